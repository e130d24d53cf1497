"""One device of the lab: questions to its engine, answered one by one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from webinfer.errors import ClosedError, LimitError, WebinferError
from webinfer.host import current
from webinfer.host.interface import Progress, ProgressEvent
from webinfer.host.socket_native import NativeSocket, SocketLost, SocketRefused, open_socket
from webinfer.lab.addresses import Place, place_of
from webinfer.lab.errors import DeviceGoneError, LabError, error_of
from webinfer.lab.frames import read, written
from webinfer.lab.session import DeviceSession
from webinfer.models.registry import MODELS
from webinfer.session.loading import opened

SILENCE_S = 300.0  # without a word about a question; then the device counts as gone


async def device(name: str, address: str | None = None, silence_s: float = SILENCE_S) -> Device:
    """The device of this name, driven from here until it is closed; no other program may drive it meanwhile.

    `address` is what the lab's server printed; without it, that of the environment variable WEBINFER_LAB. A question
    that the device says nothing about for `silence_s` seconds fails, and so does the connection.

    Raises:  NoDeviceError, DeviceBusyError; LabError if the lab cannot be reached or refuses
    """
    place = place_of(address)
    try:
        socket = await open_socket(place.socket(name), place.protocols)
    except SocketRefused as error:
        raise LabError(f"{place.root} refuses: {error.title}") from error
    except SocketLost as error:
        raise LabError(f"the lab at {place.root} cannot be reached: {error}") from error
    try:
        head, _ = read(await socket.receive())
    except SocketLost as error:
        raise LabError(f"the lab at {place.root} ended the connection: {error}") from error
    if head["type"] == "error":
        await socket.close()
        raise error_of(str(head["code"]), str(head["message"]))
    return Device(socket, place, head, silence_s)


class Device:
    """A device that is driven from here. It has one model open at a time."""

    def __init__(self, socket: NativeSocket, place: Place, welcome: Mapping[str, Any], silence_s: float) -> None:
        self.name: str = welcome["device"]["name"]
        self.about: dict[str, Any] = welcome["device"]["about"]
        self._place, self._socket, self._silence_s = place, socket, silence_s
        self._most_bytes = int(welcome["most_bytes"])
        self._count, self._open = 0, dict[int, _Question]()
        self._end: WebinferError | None = None
        self._session: DeviceSession | None = None
        self._hearing = asyncio.get_running_loop().create_task(self._hear())

    async def load(
        self,
        source: Any,
        *,
        backend: str = "auto",
        shapes: Mapping[str, Sequence[int]] | None = None,
        member: str | None = None,
        progress: Progress | None = None,
    ) -> DeviceSession:
        """A model, compiled there. The one before is closed: a device has one at a time.

        `source` is what `webinfer.load` takes as a name, bytes, a path or a URL. A known model is fetched by the device
        from its site, if that has models; all else is read here and sent. Other options are those of `webinfer.load`.

        Raises:  what `webinfer.load` raises; DeviceGoneError; LimitError if the model is larger than a message may be
        """
        name, found = await self._opened(source, member, progress)
        if "error" in found:
            raise error_of(found["error"]["code"], found["error"]["message"])
        if self._session is not None:
            self._session.closed = True
        self._session = DeviceSession(self, name, backend)
        await self._session.compile(shapes, progress)
        return self._session

    async def _opened(self, source: Any, member: str | None, progress: Progress | None) -> tuple[str, dict[str, Any]]:
        """A model's name, and what the device says of it once it is open there."""
        if isinstance(source, str) and source in MODELS and self.about.get("models") != 0:
            return source, (await self.ask("open", {"name": source}, progress))[0]
        model = await opened(source, current(), progress, member)
        files = {"model.json" if model.files else model.name: model.data, **model.files}
        return model.name, (await self.ask("open", {"files": files}, progress))[0]

    async def ask(
        self, action: str, fields: Mapping[str, Any], progress: Progress | None = None
    ) -> tuple[dict[str, Any], list[memoryview]]:
        """What the device's engine answers, and its buffers; `progress` hears how far it is. Cancelled, it stops there.

        Raises:  what the engine there raises; DeviceGoneError; LimitError; ClosedError
        """
        if self._end is not None:
            raise self._end
        self._count += 1
        data = written("ask", {"id": self._count, "action": action, "fields": fields})
        if len(data) > self._most_bytes:
            raise LimitError(f"a message to {self.name!r}", len(data), self._most_bytes, "send a smaller model")
        question = self._open[self._count] = _Question(progress)
        number = self._count
        try:
            await self._send(data)
            return await self._answer_of(question)
        except BaseException as error:
            if question.interrupted or isinstance(error, asyncio.CancelledError):
                with contextlib.suppress(WebinferError):
                    await self._send(written("stop", {}))
            raise
        finally:
            self._open.pop(number, None)
            question.answer.cancel()  # nobody waits for it any more

    async def _answer_of(self, question: _Question) -> tuple[dict[str, Any], list[memoryview]]:
        clock = asyncio.get_running_loop().time
        while not question.answer.done():
            left = question.heard_at + self._silence_s - clock()
            if left <= 0:
                silent = DeviceGoneError(f"{self.name!r} has not responded for {self._silence_s:g} seconds")
                self._finish(silent)
                await self._socket.close()
                raise silent
            await asyncio.wait([question.answer], timeout=left)
        return question.answer.result()

    async def _send(self, data: str | bytes) -> None:
        try:
            await self._socket.send(data)
        except SocketLost as error:
            raise self._end or DeviceGoneError(f"{self.name!r} is no longer reachable: {error}") from error

    async def _hear(self) -> None:
        """Passes answers on until the connection ends."""
        try:
            while True:
                self._take(*read(await self._socket.receive()))
        except SocketLost as error:
            self._finish(DeviceGoneError(f"{self.name!r} is no longer reachable: {error}"))
        except LabError as error:
            self._finish(error)

    def _take(self, head: dict[str, Any], buffers: list[memoryview]) -> None:
        question = self._open.get(head["id"]) if isinstance(head.get("id"), int) else None
        if head["type"] == "error":
            error = error_of(str(head.get("code")), str(head.get("message")))
            if "id" not in head:
                self._finish(error)
            elif question is not None:
                question.fail(error)
        elif question is not None and head["type"] == "answer":
            question.succeed(head["answer"], buffers)
        elif question is not None and head["type"] == "step":
            question.step(ProgressEvent(str(head["stage"]), int(head["done"]), int(head["total"]), "steps"))

    def _finish(self, error: WebinferError) -> None:
        """Fails what is open, and all that is asked later."""
        self._end = self._end or error
        for question in list(self._open.values()):
            question.fail(self._end)

    async def close(self) -> None:
        """Lets the device go: other programs may drive it. A second call does nothing."""
        self._finish(ClosedError(f"the device {self.name!r} was closed here"))
        await self._socket.close()
        self._hearing.cancel()

    async def __aenter__(self) -> Device:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"Device({self.name!r}, {'gone' if self._end else self._place.root})"


class _Question:
    """One that is open: its answer to come, and who hears how far it is."""

    def __init__(self, progress: Progress | None) -> None:
        loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[tuple[dict[str, Any], list[memoryview]]] = loop.create_future()
        self.heard_at, self._clock, self._progress = loop.time(), loop.time, progress
        self.interrupted = False  # by its own progress

    def step(self, event: ProgressEvent) -> None:
        self.heard_at = self._clock()
        if self._progress is None:
            return
        try:
            self._progress(event)
        except Exception as error:
            self.interrupted = True
            self.fail(error)

    def succeed(self, answer: Any, buffers: list[memoryview]) -> None:
        if not isinstance(answer, dict):
            self.fail(LabError("the device's answer is not an object"))
        elif not self.answer.done():
            self.answer.set_result((answer, buffers))

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)
