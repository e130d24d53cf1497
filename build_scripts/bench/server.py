"""Serves the benchmark's folder on loopback and takes what its page posts."""

import contextlib
import functools
import http.server
import json
import queue
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from build_scripts.loopback import on_loopback

MAX_POST_BYTES = 1 << 20
UNSAFE = " 'unsafe-eval'"  # of a rival that makes functions of strings
POLICY = (
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'{} blob:; worker-src 'self' blob:; "
    "connect-src 'self' blob: data:; img-src 'self' data:"  # TF.js makes its thread workers from blobs
)
HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}
Answer = Callable[[dict[str, Any]], dict[str, Any]]


class _Handler(http.server.SimpleHTTPRequestHandler):
    extensions_map = {  # noqa: RUF012 - the base class's own name and form
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm", ".json": "application/json",
    }  # fmt: skip
    protocol_version = "HTTP/1.1"

    def __init__(
        self, *args: Any, reports: "queue.Queue[list[Any]]", native: Answer | None, policy: str, **kwargs: Any
    ) -> None:
        self._reports, self._native, self._policy = reports, native, policy
        super().__init__(*args, **kwargs)

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if length > MAX_POST_BYTES:
            self.send_error(413)
            return
        body = json.loads(self.rfile.read(length))
        if self.path == "/log":
            self._reports.put(body)
            self._reply({})
        elif self.path == "/native" and self._native is not None:
            self._reply(self._native(body))
        else:
            self.send_error(404)

    def _reply(self, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def end_headers(self) -> None:
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Security-Policy", self._policy)
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Silence: a line a request would cost the runs their quiet."""


@contextlib.contextmanager
def serving(
    site: Path, native: Answer | None, *, unsafe_eval: bool = False
) -> Iterator[tuple[str, "queue.Queue[list[Any]]"]]:
    """The address, and the queue of what the page reports, while the block runs."""
    policy = POLICY.format(UNSAFE if unsafe_eval else "")
    reports: queue.Queue[list[Any]] = queue.Queue()
    handler = functools.partial(_Handler, directory=str(site), reports=reports, native=native, policy=policy)
    with on_loopback(handler) as address:
        yield address, reports
