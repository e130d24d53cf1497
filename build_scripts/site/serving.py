"""Runs the server: in the foreground for a person, or in a thread for tests and for --headless."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import uvicorn

from build_scripts.errors import BuildError
from server.app import create_app
from server.connections import protocol_with_limits
from server.settings import Settings, settings_from

HOST = "127.0.0.1"
PORTS_TRIED = 50
WAITING = 2048  # connections that the system holds until the server takes them
OTHER_FILES = 128


def bound_socket(port: int, host: str = HOST) -> socket.socket:
    """A listening socket: this port, or the next one that is free; 0 lets the system choose."""
    for candidate in range(port, port + (PORTS_TRIED if port else 1)):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, candidate))
            listener.listen(WAITING)
            return listener
        except OSError:
            listener.close()
    raise BuildError(f"no free port between {port} and {port + PORTS_TRIED - 1}; choose another with --port")


def address_of(listener: socket.socket, secure: bool = False) -> str:
    """The address to open."""
    host, port = listener.getsockname()[:2]
    return f"http{'s' * secure}://{host}:{port}"


def make_server(settings: Settings, certificate: Path | None = None, key: Path | None = None) -> uvicorn.Server:
    """A uvicorn server for these settings, with no more connections and requests than it may open files for.

    With a certificate it speaks HTTPS.
    """
    settings = within_files(settings, allow_files(settings.max_connections + settings.max_requests + OTHER_FILES))
    config = uvicorn.Config(
        create_app(settings),
        log_level="warning",
        access_log=False,  # server/middleware.py writes the one line of each request
        server_header=False,
        proxy_headers=False,  # server/clients.py reads them, of proxies that were named
        ws="websockets-sansio" if settings.lab else "none",
        ws_max_size=settings.lab_message_bytes,
        ws_per_message_deflate=False,  # weights hardly become smaller
        http=protocol_with_limits(settings),
        timeout_keep_alive=settings.keep_alive_timeout_s,
        timeout_graceful_shutdown=3,
        lifespan="off",
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    return uvicorn.Server(config)


def within_files(settings: Settings, files: int) -> Settings:
    """The settings with their limits lowered so that each connection and each file that is sent can be opened."""
    requests = min(settings.max_requests, (files - OTHER_FILES) // 2)
    return replace(
        settings, max_requests=requests, max_connections=min(settings.max_connections, files - OTHER_FILES - requests)
    )


def allow_files(wanted: int) -> int:
    """How many files this process may open now; the system is asked for the number that is wanted."""
    try:
        import resource
    except ImportError:  # Windows counts no files
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else soft


@contextlib.contextmanager
def running_server(
    settings: Settings | None = None, port: int = 0, certificate: Path | None = None, key: Path | None = None
) -> Iterator[str]:
    """The address of a server that runs in a thread until the block ends."""
    server = make_server(settings or settings_from(), certificate, key)
    listener = bound_socket(port)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            raise BuildError("the server did not start")
        time.sleep(0.01)
    try:
        yield address_of(listener, bool(certificate))
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
