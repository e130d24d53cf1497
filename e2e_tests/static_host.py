"""A static host for tests: a folder below an address, with the headers that hosts have or lack."""

from __future__ import annotations

import contextlib
import functools
import http.server
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ISOLATED = {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp"}


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder with more headers, and remembers which answers were errors."""

    more: Mapping[str, str] = {}
    refused: list[str]

    def end_headers(self) -> None:
        for name, value in self.more.items():
            self.send_header(name, value)
        super().end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        self.refused.append(f"{code} {self.path}")
        super().send_error(code, message, explain)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


class Quiet(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away is not an error."""


@contextlib.contextmanager
def served(
    folder: Path,
    *,
    isolated: bool = False,
    headers: Mapping[str, str] | None = None,
    types: Mapping[str, str] | None = None,
    refused: list[str] | None = None,
) -> Iterator[str]:
    """The address of a host of the folder, while the block runs.

    `types` are the media types by suffix that it knows, None for those of Python; other files have none of use then.
    `refused` collects the answers that were errors.
    """
    own = {
        "more": {**(ISOLATED if isolated else {}), **(headers or {})},
        "refused": [] if refused is None else refused,
    }
    if types is not None:
        own["extensions_map"] = {"": "application/octet-stream", **types}
        own["guess_type"] = lambda self, path: self.extensions_map.get(Path(path).suffix, self.extensions_map[""])
    handler = functools.partial(type("Chosen", (Handler,), own), directory=str(folder))
    server = Quiet(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
