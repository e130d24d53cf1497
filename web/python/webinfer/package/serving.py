"""A folder that `export` wrote, served on this machine with the headers that let its pages have threads."""

from __future__ import annotations

import asyncio
import http.server
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

from webinfer.errors import InputError

HOST = "127.0.0.1"
ISOLATION = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
    ".webp": "image/webp",
}


class _Handler(http.server.SimpleHTTPRequestHandler):
    def guess_type(self, path: str | os.PathLike[str]) -> str:
        """The type of a file; machines have opinions of their own on these."""
        return TYPES.get(Path(path).suffix) or super().guess_type(path)

    def end_headers(self) -> None:
        """Adds the headers of isolation to every answer."""
        for name, value in ISOLATION.items():
            self.send_header(name, value)
        super().end_headers()

    def list_directory(self, path: Any) -> None:
        """A folder without an index.html is not found; its files are nobody's business."""
        self.send_error(HTTPStatus.NOT_FOUND)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Silence: a browser that closes drops its connections."""


@contextmanager
def open_server(folder: Path, port: int = 0) -> Iterator[str]:
    """The address of the folder, which is served to this machine meanwhile. Port 0 takes a free one.

    Raises:  InputError if the folder has no index.html, or the port is taken or none
    """
    if not (folder / "index.html").is_file():
        raise InputError(f"{folder} has no index.html; `webinfer export {folder} --package FILE` writes a site")
    try:
        server = _Server((HOST, port), partial(_Handler, directory=str(folder.resolve())))
    except (OSError, OverflowError) as error:
        raise InputError(f"cannot serve on port {port}: {error}; --port names another one, 0 a free one") from error
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://{HOST}:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()


async def serve_folder(folder: Path, port: int = 8000, told: Callable[[str], None] = print) -> None:
    """Serves the folder to this machine until it is cancelled; `told` hears the address. Port 0 takes a free one.

    Raises:  InputError if the folder has no index.html, or the port is taken or none
    """
    with open_server(folder, port) as address:
        told(address)
        await asyncio.Event().wait()
