"""The lab served by several processes at one address: uvicorn starts them, and starts them again where they end.

Each has, beside the address that all share, one of its own, where the others reach the devices that it has.
"""

import asyncio
import contextlib
import logging
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from server.lab.directory import Worker
from server.lab.store import MEMORY, StoreError
from server.running import address_of, bound_socket, uvicorn_options
from server.settings import Settings

log = logging.getLogger("webinfer.lab")

KEY_BYTES = 16
MakeApp = Callable[..., FastAPI]  # settings, `me`, `lifespan`


class WorkerError(Exception):
    """A worker cannot start, and would not if it were started again; the message says why."""


class WorkerConfig(uvicorn.Config):
    """The configuration of one worker, which is made anew in its process."""

    def __init__(self, make_app: MakeApp, settings: Settings, workers: int, **files: Path | None) -> None:
        self._made_of = (make_app, settings, workers, files)
        options = {**uvicorn_options(settings, **files), "lifespan": "on", "workers": workers}
        super().__init__(partial(worker_app, make_app, settings, **files), factory=True, **options)

    def __reduce__(self) -> Any:
        make_app, settings, workers, files = self._made_of
        return partial(WorkerConfig, make_app, settings, workers, **files), ()


class _Inner(uvicorn.Server):
    """A server inside of another one, which hears the signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def worker_app(make_app: MakeApp, settings: Settings, **files: Path | None) -> FastAPI:
    """The application of a worker, which is also served at the worker's own address as long as it lives."""
    own = bound_socket(0)
    me = Worker(address_of(own, files.get("certificate") is not None), secrets.token_hex(KEY_BYTES))

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        inner = _Inner(uvicorn.Config(app, **uvicorn_options(settings, **files)))
        task = asyncio.create_task(inner.serve(sockets=[own]))
        try:
            yield
        finally:
            inner.should_exit = True
            await task

    try:
        return make_app(settings, me=me, lifespan=lifespan)
    except Exception as error:  # uvicorn starts a worker again that ends with any other status, for ever
        log.error("a worker cannot start: %s: %s", type(error).__name__, error)
        sys.exit(STARTUP_FAILURE)


def serve_workers(
    make_app: MakeApp, settings: Settings, listener: socket.socket, workers: int, **files: Path | None
) -> None:
    """Serves until it is told to stop, by so many processes. It blocks, and wants the main thread: it hears signals.

    Raises: StoreError if processes cannot share the database; what `make_app` raises, which a worker that is started
            again later may meet too; WorkerError if a worker cannot start for another reason
    """
    if settings.lab_database == MEMORY:
        raise StoreError("several workers need a database that they share: a file, or PostgreSQL by --database")
    make_app(settings)  # what it raises is told once, by this process; it also makes the tables
    supervisor = Multiprocess(WorkerConfig(make_app, settings, workers, **files), sockets=[listener])
    supervisor.run()
    if any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes):
        make_app(settings)
        raise WorkerError("a worker of the lab could not start; its log says why")
