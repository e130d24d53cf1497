"""A server with a lab, and devices that are no browsers, over real WebSockets."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from build_scripts.site.serving import running_server
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
