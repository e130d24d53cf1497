"""A server with a lab, and devices that are not browsers, over real WebSockets."""

import asyncio
import contextlib
import json
import secrets
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from build_scripts.site.serving import running_server
from server.app import create_app
from server.lab.directory import Worker
from server.running import address_of, bound_socket, uvicorn_server, within_files
from server.settings import Settings
from server.tests.sites import made_site

TOKEN = "right-token"
PROTOCOLS = ["webinfer.lab", f"token.{TOKEN}"]
Answer = Callable[[str | bytes, ClientConnection], Awaitable[None]]


def lab_settings(folder: Path, **more: Any) -> Settings:
    """A made site whose server has a lab, with its results in a file."""
    folder.mkdir(parents=True, exist_ok=True)
    database = f"sqlite:///{folder / 'lab.sqlite'}"
    return replace(made_site(folder), **{"lab": True, "lab_token": TOKEN, "lab_database": database, **more})


@contextlib.contextmanager
def running_lab(folder: Path, **more: Any) -> Iterator[str]:
    """The root address of a server with a lab."""
    with running_server(lab_settings(folder, **more)) as address:
        yield address


@contextlib.contextmanager
def running_workers(folder: Path, count: int, **more: Any) -> Iterator[list[str]]:
    """The root addresses of this many workers of one lab, each at an address where it alone is reached."""
    settings = within_files(lab_settings(folder, **more))
    servers, roots = [], []
    for _ in range(count):
        listener = bound_socket(0)
        me = Worker(address_of(listener), secrets.token_hex(8))
        servers.append((uvicorn_server(create_app(settings, me), settings), listener))
        roots.append(me.address)
    threads = [threading.Thread(target=s.run, kwargs={"sockets": [at]}, daemon=True) for s, at in servers]
    for thread in threads:
        thread.start()
    while not all(server.started for server, _ in servers):
        assert all(thread.is_alive() for thread in threads)
        time.sleep(0.01)
    try:
        yield roots
    finally:
        for server, _ in servers:
            server.should_exit = True
        for thread, (_, listener) in zip(threads, servers, strict=True):
            thread.join(10)
            listener.close()


def socket_of(root: str, path: str) -> str:
    """The address of one of the lab's WebSockets."""
    return f"ws{root.removeprefix('http')}/api/lab/{path}"


def said(text: str | bytes) -> dict[str, Any]:
    """The JSON of a message."""
    found: dict[str, Any] = json.loads(
        text if isinstance(text, str) else text[4 : 4 + int.from_bytes(text[:4], "little")]
    )
    return found


@asynccontextmanager
async def joined(root: str, name: str, answer: Answer) -> AsyncIterator[ClientConnection]:
    """A device of this name that has `answer` deal with each message; it goes with the block."""
    async with connect(socket_of(root, f"join?name={name}"), subprotocols=PROTOCOLS, max_size=None) as socket:
        await socket.send(json.dumps({"type": "hello", "about": {"browser": "none"}}))
        assert said(await socket.recv())["type"] == "welcome"

        async def work() -> None:
            with contextlib.suppress(ConnectionClosed):
                while True:
                    await answer(await socket.recv(), socket)

        task = asyncio.create_task(work())
        try:
            yield socket
        finally:
            await socket.close()
            await task
