"""The site's server: in the foreground for a person, or in a thread for tests and for --headless."""

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import uvicorn

from build_scripts.errors import BuildError
from server.app import create_app
from server.running import address_of, bound_socket, uvicorn_server, within_files
from server.settings import Settings, settings_from


def make_server(settings: Settings, certificate: Path | None = None, key: Path | None = None) -> uvicorn.Server:
    """A uvicorn server for these settings, with no more connections and requests than it may open files for.

    With a certificate it speaks HTTPS.
    """
    settings = within_files(settings)
    return uvicorn_server(create_app(settings), settings, certificate, key)


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
