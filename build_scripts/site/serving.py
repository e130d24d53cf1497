"""Runs the server: in the foreground for a person, or in a thread for tests and for --headless."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import uvicorn

from build_scripts.errors import BuildError
from server.app import create_app
from server.header_timeout import protocol_with_header_timeout
from server.settings import Settings

HOST = "127.0.0.1"
PORTS_TRIED = 50


def bound_socket(port: int) -> socket.socket:
    """A listening socket on loopback: this port, or the next one that is free; 0 lets the system choose."""
    for candidate in range(port, port + (PORTS_TRIED if port else 1)):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, candidate))
            listener.listen(128)
            return listener
        except OSError:
            listener.close()
    raise BuildError(f"no free port between {port} and {port + PORTS_TRIED - 1}; choose another with --port")


def address_of(listener: socket.socket) -> str:
    """The address to open."""
    return f"http://{HOST}:{listener.getsockname()[1]}"


def make_server(settings: Settings) -> uvicorn.Server:
    """A uvicorn server for these settings."""
    config = uvicorn.Config(
        create_app(settings),
        log_level="warning",
        access_log=False,  # server/middleware.py writes the one line of each request
        server_header=False,
        http=protocol_with_header_timeout(settings.header_timeout_s),
        timeout_keep_alive=settings.keep_alive_timeout_s,
        limit_concurrency=settings.max_connections,
        timeout_graceful_shutdown=3,
        lifespan="off",
    )
    return uvicorn.Server(config)


@contextlib.contextmanager
def running_server(settings: Settings | None = None, port: int = 0) -> Iterator[str]:
    """The address of a server that runs in a thread until the block ends."""
    server = make_server(settings or Settings())
    listener = bound_socket(port)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            raise BuildError("the server did not start")
        time.sleep(0.01)
    try:
        yield address_of(listener)
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
