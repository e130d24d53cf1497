"""Runs a server: its socket, its limits, uvicorn."""

import errno
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from server.connections import protocol_with_limits
from server.settings import Settings

HOST = "127.0.0.1"
PORTS_TRIED = 50
WAITING = 2048  # connections that the system holds until the server takes them
OTHER_FILES = 128


class AddressError(Exception):
    """Nothing can be served at this address; the message says why."""


def bound_socket(port: int, host: str = HOST) -> socket.socket:
    """A listening socket: this port, or the next one that is free; 0 lets the system choose.

    Raises: AddressError if the address is none of this machine, or no port is free
    """
    for candidate in range(port, port + (PORTS_TRIED if port else 1)):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, candidate))
            listener.listen(WAITING)
            return listener
        except socket.gaierror as error:
            listener.close()
            raise AddressError(f"--host {host}: {error.strerror}; name an address of this machine") from error
        except (OSError, OverflowError) as error:
            listener.close()
            if getattr(error, "errno", 0) == errno.EADDRNOTAVAIL:
                raise AddressError(f"--host {host} is not an address of this machine; name one that is") from error
    raise AddressError(f"no free port between {port} and {port + PORTS_TRIED - 1}; choose another with --port")


def address_of(listener: socket.socket, secure: bool = False) -> str:
    """The address to open."""
    host, port = listener.getsockname()[:2]
    return f"http{'s' * secure}://{host}:{port}"


def uvicorn_server(
    app: ASGIApp, settings: Settings, certificate: Path | None = None, key: Path | None = None
) -> uvicorn.Server:
    """A uvicorn server of this application; over HTTPS with a certificate. The settings are `within_files`."""
    return uvicorn.Server(uvicorn.Config(app, **uvicorn_options(settings, certificate, key)))


def uvicorn_options(settings: Settings, certificate: Path | None = None, key: Path | None = None) -> dict[str, Any]:
    """What uvicorn is told beside the application."""
    return {
        "log_level": "warning",
        "access_log": False,  # server/middleware.py writes the one line of each request
        "server_header": False,
        "proxy_headers": False,  # server/clients.py reads them, of proxies that were named
        "ws": "websockets-sansio" if settings.lab else "none",
        "ws_max_size": settings.lab_message_bytes,
        "ws_per_message_deflate": False,  # weights hardly become smaller
        "http": protocol_with_limits(settings),
        "timeout_keep_alive": settings.keep_alive_timeout_s,
        "timeout_graceful_shutdown": 3,
        "lifespan": "off",
        "ssl_certfile": certificate,
        "ssl_keyfile": key,
    }


def within_files(settings: Settings, files: int | None = None) -> Settings:
    """The settings with their limits lowered so that each connection and each file that is sent can be opened.

    `files` are those that this process may open; without it, it asks the system for what it needs.
    """
    if files is None:
        files = allow_files(settings.max_connections + settings.max_requests + OTHER_FILES)
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
