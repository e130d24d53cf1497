"""The other workers of a lab that several processes serve: who has a device, and a program's way to it.

A device and the program that drives it may be connected to different workers. The program's worker then opens the
same WebSocket at the device's worker, and passes messages on as they are. A worker is reached at an address of its
own, by a key that only the database and the workers know; who says the key is answered for this worker alone.
"""

import asyncio
import contextlib
import json
import logging
import secrets
import ssl
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from server.lab.directory import Directory, Worker
from server.lab.guard import BEARER, PROTOCOL, TOKEN_PREFIX
from server.lab.store import StoreError
from server.settings import Settings

log = logging.getLogger("webinfer.lab")

KEY_HEADER = "X-Webinfer-Lab-Worker"  # of requests of one worker to another
PROGRAM_HEADER = "X-Webinfer-Lab-Program"  # where the program is that it speaks for
ANSWER_S = 10.0  # within which a worker that is alive answers
DATABASE_S = 60.0  # that a database may be away while it is started again
PAUSE_S = 0.5  # before it is asked again
NORMAL_CLOSE = 1000

Found = TypeVar("Found")


class Neighbours:
    """This worker's view of the others."""

    def __init__(self, directory: Directory, settings: Settings) -> None:
        self.directory, self._settings = directory, settings
        self._trusting = ssl.create_default_context()  # a certificate names the public host; the key proves who it is
        self._trusting.check_hostname, self._trusting.verify_mode = False, ssl.CERT_NONE
        self._freeing = set[asyncio.Task[None]]()

    def speaks(self, key: str) -> bool:
        """Whether a request with this key comes from a worker: it is about what is here, and goes no further."""
        return secrets.compare_digest(key.encode(), self.directory.me.key.encode())

    # ----- devices that are here

    async def claim(self, name: str) -> bool:
        """Whether a device may have this name; then no worker gives it to another.

        Raises: StoreError
        """
        owner = await self._asked(self.directory.claim, name)
        if not owner:
            return True
        if owner != self.directory.me.address:
            worker = await self._asked(self.directory.worker, owner)
            found = [] if worker is None else await self._devices_of(worker)
            if found is None or name in {row["name"] for row in found}:
                return False
        return await self._asked(self.directory.take_over, name, owner)

    def free(self, name: str) -> None:
        """Gives a name back; where the database is away, as soon as it is there again."""

        async def freed() -> None:
            try:
                await self._asked(self.directory.free, name)
            except StoreError as error:
                log.error("the name %r stays taken until another device asks for it: %s", name, error)

        task = asyncio.get_running_loop().create_task(freed())
        self._freeing.add(task)
        task.add_done_callback(self._freeing.discard)

    async def count(self) -> int:
        """How many devices all workers have.

        Raises: StoreError
        """
        return await self._asked(self.directory.count)

    async def names(self) -> list[str]:
        """The names of the devices of all workers.

        Raises: StoreError
        """
        return await self._asked(self.directory.names)

    # ----- devices of the others

    async def devices(self) -> list[dict[str, Any]]:
        """What the other workers say of their devices.

        Raises: StoreError
        """
        found = await asyncio.gather(*map(self._devices_of, await self._asked(self.directory.others)))
        return [row for rows in found for row in rows or ()]

    async def relayed(self, socket: WebSocket, device: str, program: str) -> bool:
        """Passes on what a program and its device at another worker say, until one ends; False if no worker has it.

        Raises: StoreError
        """
        address = await self._asked(self.directory.address_of, device)
        worker = await self._asked(self.directory.worker, address) if address else None
        if worker is None or worker == self.directory.me:
            return False
        url = f"ws{worker.address.removeprefix('http')}/api/lab/drive?device={quote(device)}"
        try:
            other = await connect(
                url, subprotocols=[PROTOCOL, TOKEN_PREFIX + self._settings.lab_token],
                additional_headers={KEY_HEADER: worker.key, PROGRAM_HEADER: program},
                max_size=self._settings.lab_message_bytes, compression=None, proxy=None, open_timeout=ANSWER_S,
                ssl=self._trusting if url.startswith("wss") else None,
            )  # fmt: skip
        except (OSError, TimeoutError, InvalidHandshake) as error:
            await self._lost(worker, error)
            return False
        async with other:
            await _passed_on(socket, other)
        return True

    async def _devices_of(self, worker: Worker) -> list[dict[str, Any]] | None:
        """What a worker says of its devices: none if it is gone, None if it does not answer now."""
        try:
            return await asyncio.to_thread(self._read, worker)
        except (URLError, OSError, ValueError) as error:
            return [] if await self._lost(worker, error) else None

    def _read(self, worker: Worker) -> list[dict[str, Any]]:
        headers = {"Authorization": BEARER + self._settings.lab_token, KEY_HEADER: worker.key}
        request = Request(f"{worker.address}/api/lab/devices", headers=headers)
        context = self._trusting if worker.address.startswith("https") else None
        with urlopen(request, timeout=ANSWER_S, context=context) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found

    async def _lost(self, worker: Worker, error: Exception) -> bool:
        """Whether a worker that did not answer is gone: nobody listens at its address. Then it is forgotten.

        One that is only slow keeps its devices.
        """
        log.warning("the worker at %s does not answer: %s", worker.address, error)
        if not isinstance(getattr(error, "reason", error), ConnectionRefusedError):
            return False
        await self._asked(self.directory.forget, worker)
        return True

    async def _asked(self, method: Callable[..., Found], *args: Any) -> Found:
        """What the directory answers. A database that is away is waited for, up to DATABASE_S."""
        return await with_retries(lambda: asyncio.to_thread(method, *args))


async def with_retries(attempt: Callable[[], Coroutine[Any, Any, Found]], timeout_s: float = DATABASE_S) -> Found:
    """What an attempt gives, made again while the database is away.

    Raises: StoreError when the time is over, or at once if the database is there and refuses
    """
    end = asyncio.get_running_loop().time() + timeout_s
    while True:
        try:
            return await attempt()
        except StoreError as error:
            if not error.away or asyncio.get_running_loop().time() > end:
                raise
        await asyncio.sleep(PAUSE_S)


async def _passed_on(socket: WebSocket, other: ClientConnection) -> None:
    """Passes messages on in both directions until one end closes, and closes the other with the same words."""

    async def up() -> None:
        while (got := await socket.receive())["type"] != "websocket.disconnect":
            await other.send(got["text"] if got.get("text") is not None else got["bytes"])

    async def down() -> None:
        async for data in other:
            await (socket.send_text(data) if isinstance(data, str) else socket.send_bytes(data))

    tasks = [asyncio.create_task(up()), asyncio.create_task(down())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for error in ended:
        if isinstance(error, Exception) and not isinstance(
            error, ConnectionClosed | WebSocketDisconnect | RuntimeError | OSError
        ):
            raise error
    await other.close()
    with contextlib.suppress(RuntimeError, WebSocketDisconnect):
        await socket.close(other.close_code or NORMAL_CLOSE, other.close_reason or "")
