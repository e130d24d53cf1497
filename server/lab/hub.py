"""Brings devices and programs together: each program drives one device, and what one says is passed to the other."""

import asyncio
import json
import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from server.lab.clean import clean, clean_text
from server.lab.frames import Frame, FrameError, message, read
from server.lab.neighbours import Neighbours
from server.lab.store import StoreError
from server.settings import Settings

log = logging.getLogger("webinfer.lab")

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,39}")
CLOSED_WITH_ERROR = 4000  # of a WebSocket: the message before it says why
GOODBYE_S = 5.0  # for who is told why the connection ends
MAX_ABOUT_CHARS = 1 << 15  # of JSON
MAX_JOBS = 64  # of a program that are open at a time
FROM_DEVICES = frozenset({"step", "answer", "error"})
FROM_PROGRAMS = frozenset({"ask", "stop"})

Record = Callable[["Device", "Job", dict[str, Any]], None]


class LabError(Exception):
    """Why the lab ends a connection: a code and a sentence."""

    def __init__(self, code: str, text: str) -> None:
        self.code = code
        super().__init__(text)


class Gone(Exception):
    """The other end is not there any more."""


class Peer:
    """One end of a connection: whole messages, one after the other."""

    def __init__(self, socket: WebSocket, settings: Settings) -> None:
        self.socket, self.settings = socket, settings
        self._sending = asyncio.Lock()

    async def send(self, frame: Frame) -> None:
        """Sends a message.

        Raises: Gone if nobody takes it
        """
        data = frame.written()
        try:
            async with asyncio.timeout(self.settings.lab_send_timeout_s), self._sending:
                await (self.socket.send_text(data) if isinstance(data, str) else self.socket.send_bytes(data))
        except (WebSocketDisconnect, RuntimeError, TimeoutError) as error:
            raise Gone from error

    async def receive(self) -> Frame:
        """The next message.

        Raises: Gone; LabError if it is none
        """
        got = await self.socket.receive()
        if got["type"] == "websocket.disconnect":
            raise Gone
        try:
            return read(got["text"] if got.get("text") is not None else got["bytes"])
        except FrameError as error:
            raise LabError("protocol", f"the lab does not understand a message: {error}") from error

    async def end(self, error: LabError) -> None:
        """Says why, and ends the connection."""
        try:
            async with asyncio.timeout(GOODBYE_S):
                await self.send(message("error", code=error.code, message=str(error)))
                await self.socket.close(CLOSED_WITH_ERROR, error.code)
        except (Gone, WebSocketDisconnect, RuntimeError, TimeoutError):
            return


@dataclass
class Job:
    """One question of a program to its device."""

    program: Peer
    id: Any  # as the program numbers it
    action: str
    fields: dict[str, Any]


@dataclass(eq=False)
class Device:
    """A browser that lets itself be driven."""

    name: str
    peer: Peer
    about: dict[str, Any]  # what it says of itself
    since: float = field(default_factory=time.time)
    program: Peer | None = None
    model: str = ""  # that it has open
    jobs: dict[int, Job] = field(default_factory=dict)
    count: int = 0

    def public(self) -> dict[str, Any]:
        """What everybody in the lab may know."""
        doing = [job.action for job in self.jobs.values()]
        about = {"name": self.name, "about": self.about, "since": self.since}
        return {**about, "busy": self.program is not None, "doing": doing, "model": self.model}


class Hub:
    """All devices that are here; `record` is told of each answer. A lab of several workers has `neighbours`."""

    def __init__(self, settings: Settings, record: Record, neighbours: Neighbours | None = None) -> None:
        self.settings, self.record, self.neighbours = settings, record, neighbours
        self.devices: dict[str, Device] = {}
        self._coming = set[str]()  # names of devices that are not in yet

    # ----- a device comes, answers and goes

    async def serve_device(self, peer: Peer, name: str) -> None:
        """Has a device in the lab until it goes. Raises nothing."""
        device = None
        try:
            device = await self._joined(peer, name)
            await peer.send(message("welcome", name=name, most_bytes=self.settings.lab_message_bytes))
            while True:
                await self._heard(device, await peer.receive())
        except Gone:
            pass
        except LabError as error:
            await peer.end(error)
        finally:
            if device is not None:
                await self._left(device)

    async def _joined(self, peer: Peer, name: str) -> Device:
        hello = await peer.receive()
        about = hello.head.get("about")
        if hello.kind != "hello" or not isinstance(about, dict):
            raise LabError("protocol", "a device begins with hello, and says about itself")
        about = clean(about)
        if (size := len(json.dumps(about))) > MAX_ABOUT_CHARS:  # which goes to everybody who lists devices
            raise LabError("protocol", f"what a device says about itself has {size} characters; {MAX_ABOUT_CHARS} fit")
        if not NAME.fullmatch(name):
            raise LabError("name", f"{name[:40]!r} is not a name of a device: 1 to 40 letters, digits, spaces, . _ -")
        await self._admitted(name)
        device = self.devices[name] = Device(name, peer, about)
        log.info("device %r came", name)
        return device

    async def _admitted(self, name: str) -> None:
        taken = LabError("name-taken", f"another device is called {name!r} already; choose another name")
        if name in self.devices or name in self._coming:
            raise taken
        self._coming.add(name)
        try:
            here = len(self.devices) + len(self._coming) - 1
            if self.neighbours is not None:
                here = await self.neighbours.count()
            if here >= self.settings.lab_devices:
                raise LabError("full", f"{here} devices are here already, no more fit in")
            if self.neighbours is not None and not await self.neighbours.claim(name):
                raise taken
        except StoreError as error:
            raise LabError("database", str(error)) from error
        finally:
            self._coming.discard(name)

    async def _heard(self, device: Device, frame: Frame) -> None:
        """Passes what a device says on to the program that asked; nobody waits for what has no job any more."""
        if frame.kind not in FROM_DEVICES:
            raise LabError("protocol", f"a device does not say {frame.kind[:40]!r}")
        number = frame.head.get("id")
        job = device.jobs.get(number) if isinstance(number, int) else None
        if job is None or number is None:
            return
        if frame.kind != "step":
            del device.jobs[number]
        if frame.kind == "answer":
            self._note(device, job, frame)
        try:
            await job.program.send(frame.with_fields(id=job.id))
        except Gone:
            self._release(device, job.program)

    def _note(self, device: Device, job: Job, frame: Frame) -> None:
        answer = frame.head.get("answer")
        if not isinstance(answer, dict):
            raise LabError("protocol", "a device's answer is not an object")
        if job.action == "open":
            device.model = clean_text(str(answer.get("name", "")), 200)
        self.record(device, job, answer)

    async def _left(self, device: Device) -> None:
        """Forgets a device; its program hears of it, and of each job that nobody will answer."""
        del self.devices[device.name]
        if self.neighbours is not None:
            self.neighbours.free(device.name)
        log.info("device %r went", device.name)
        text = f"the device {device.name!r} is gone: its page was closed or stopped, or its network failed"
        if (program := device.program) is None:
            return
        device.program = None
        try:
            for job in device.jobs.values():
                if job.program is program:
                    await program.send(message("error", id=job.id, code="device-gone", message=text))
        except Gone:
            return
        await program.end(LabError("device-gone", text))

    # ----- a program comes, asks and goes

    async def serve_program(self, peer: Peer, name: str, where: str) -> None:
        """Lets a program drive a device until one of both goes. Raises nothing."""
        device = None
        try:
            device = await self._taken(name, peer)
            await device.peer.send(message("controlled", by=where))
            about = {"name": device.name, "about": device.about}
            await peer.send(message("welcome", device=about, most_bytes=self.settings.lab_message_bytes))
            while True:
                await self._asked(device, peer, await peer.receive())
        except Gone:
            pass
        except LabError as error:
            await peer.end(error)
        finally:
            if device is not None:
                await self._let_go(device, peer)

    async def _taken(self, name: str, peer: Peer) -> Device:
        device = self.devices.get(name)
        if device is None:
            here = ", ".join(await self._names()) or "none"
            raise LabError("no-device", f"there is no device {name[:40]!r} in the lab; there is {here}")
        if device.program is not None:
            raise LabError("device-busy", f"another program drives the device {name!r}; come again when it is done")
        device.program = peer
        return device

    async def _names(self) -> list[str]:
        try:
            return sorted(self.devices) if self.neighbours is None else await self.neighbours.names()
        except StoreError as error:
            raise LabError("database", str(error)) from error

    async def _asked(self, device: Device, peer: Peer, frame: Frame) -> None:
        if frame.kind not in FROM_PROGRAMS:
            raise LabError("protocol", f"a program does not say {frame.kind[:40]!r}")
        if frame.kind == "stop":
            await self._tell(device, frame)
            return
        action, fields = frame.head.get("action"), frame.head.get("fields")
        if not isinstance(action, str) or not isinstance(fields, dict):
            raise LabError("protocol", "a question has no action, or no fields")
        if len(device.jobs) >= MAX_JOBS:
            raise LabError("limit", f"{MAX_JOBS} questions to {device.name!r} are open already")
        device.count += 1
        device.jobs[device.count] = Job(peer, frame.head.get("id"), action, fields)
        await self._tell(device, frame.with_fields(id=device.count))

    async def _tell(self, device: Device, frame: Frame) -> None:
        """Sends to a device; one that takes nothing any more is told to its program by who hears the device."""
        try:
            await device.peer.send(frame)
        except Gone:
            await device.peer.end(LabError("silent", "the device does not take what is sent to it"))

    async def _let_go(self, device: Device, peer: Peer) -> None:
        """Frees a device: what its program asked for ends at its next step."""
        open_jobs = [number for number, job in device.jobs.items() if job.program is peer]
        self._release(device, peer)
        if self.devices.get(device.name) is device:
            if open_jobs:
                await self._tell(device, message("stop"))
            await self._tell(device, message("released"))

    def _release(self, device: Device, peer: Peer) -> None:
        for number in [number for number, job in device.jobs.items() if job.program is peer]:
            del device.jobs[number]
        if device.program is peer:
            device.program = None
