"""A server of this machine's own for as long as a block runs."""

import contextlib
import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def get_request(self) -> tuple[socket.socket, Any]:
        """A connection that sends at once: a body would wait 40 ms for the acknowledgement of its head."""
        connection, address = super().get_request()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Silence: a browser that closes, or a frame that is removed, drops its connections."""


@contextlib.contextmanager
def on_loopback(handler: Callable[..., http.server.BaseHTTPRequestHandler]) -> Iterator[str]:
    """The address of a server whose requests this handler answers, each in a thread, while the block runs."""
    server = _Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


class _Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


def plain_host(folder: Path) -> contextlib.AbstractContextManager[str]:
    """The address of a host that only knows a folder's files, as Python's http.server does: no header is ours."""
    return on_loopback(partial(_Files, directory=str(folder)))
