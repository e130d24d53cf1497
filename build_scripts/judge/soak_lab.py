"""`judge soak --lab`: hostile devices beside an honest one, for half an hour. The honest one answers, results stay
readable, the server's memory stays flat.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.request import Request, urlopen

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from build_scripts.errors import BuildError
from build_scripts.judge.soak_judge import MEMORY_GROWTH
from build_scripts.judge.soak_page import resident_mib
from build_scripts.paths import ROOT

TOKEN = "right"
PROTOCOLS = ["webinfer.lab", f"token.{TOKEN}"]
HOSTILE = 4  # devices at a time
LOOK_S = 15.0  # between two looks at what is kept and at memory
ANSWER_S = 20.0  # that the honest device may take: this machine may be busy
PAUSE_S = 0.05  # between two questions
SETTLES = 4  # looks before memory is judged: pools and caches fill
MIB = 8.0  # below which nothing counts as growth
DEEP = "[" * 5000 + "]" * 5000
VALUES = (
    '{"median": NaN, "least": -Infinity}', '{"ms": 1e999, "n": ' + "9" * 5000 + "}",
    r'{"backend": "\ud800", "\udfff": 1}', r'{"backend": "a\u0000b"}', f'{{"a": {DEEP}}}',
    r'{"lines": "{\"key\": NaN}\n\ud800", "backend": 5}', '{"backend": {"a": []}, "name": [NaN]}',
    '{"name": "' + "x" * 300_000 + '"}', "[]", "null", "7", '{"times": "none"}',
)  # fmt: skip


def run_lab(options: argparse.Namespace) -> int:
    """0 if every answer of the honest device came and was right, results could be read, and memory stayed flat."""
    command = [sys.executable, "-m", "e2e_tests.serve", "--lab", TOKEN]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        if not address:
            raise BuildError("the server ended at once; is the site built? (python3 -m build_scripts setup)")
        soak = LabSoak(address, server.pid, options.seed)
        asyncio.run(soak.run(60 * options.minutes))
    finally:
        server.terminate()
        server.wait(20)
    return soak.verdict()


class LabSoak:
    """One soak: what was asked, what came, what the server took."""

    def __init__(self, address: str, pid: int, seed: int) -> None:
        self.address, self.pid, self.random = address, pid, random.Random(seed)
        self.times_ms: list[float] = []
        self.memory: list[float] = []
        self.wrong: list[str] = []
        self.done = Counter[str]()
        self.rows = 0

    def _socket(self, path: str) -> connect:
        address = f"ws{self.address.removeprefix('http')}/api/lab/{path}"
        return connect(address, subprotocols=PROTOCOLS, max_size=None)

    async def run(self, seconds: float) -> None:
        """Everything at once, for so long."""
        end = time.monotonic() + seconds
        async with asyncio.TaskGroup() as group:
            group.create_task(self._honest(end))
            group.create_task(self._asking(end))
            group.create_task(self._looking(end))
            for number in range(HOSTILE):
                group.create_task(self._hostile(f"hostile-{number}", end))

    async def _join(self, name: str) -> ClientConnection:
        socket = await self._socket(f"join?name={name}")
        await socket.send(json.dumps({"type": "hello", "about": {"browser": "none"}}))
        await socket.recv()
        return socket

    async def _honest(self, end: float) -> None:
        socket = await self._join("honest")
        with contextlib.suppress(TimeoutError):
            while (left := end + ANSWER_S - time.monotonic()) > 0:
                head = _said(await asyncio.wait_for(socket.recv(), left))
                if head["type"] == "ask":
                    answer = {"backend": "wasm", "times": [1.5], "fields": head["fields"]}
                    await socket.send(json.dumps({"type": "answer", "id": head["id"], "answer": answer}))
        await socket.close()

    async def _asking(self, end: float) -> None:
        """A program that drives the honest device and compares each answer."""
        await asyncio.sleep(1.0)
        async with self._socket("drive?device=honest") as socket:
            await socket.recv()
            number = 0
            while time.monotonic() < end:
                number += 1
                begin = time.monotonic()
                fields = {"n": number}
                ask = {"type": "ask", "id": number, "action": "time", "fields": fields}
                await socket.send(json.dumps(ask))
                told = _said(await asyncio.wait_for(socket.recv(), ANSWER_S))
                self.times_ms.append(1e3 * (time.monotonic() - begin))
                if (told["type"], told["id"], told["answer"]["fields"]) != ("answer", number, fields):
                    self.wrong.append(f"question {number} was answered with {str(told)[:200]}")
                await asyncio.sleep(PAUSE_S)

    async def _looking(self, end: float) -> None:
        while time.monotonic() < end:
            await asyncio.sleep(LOOK_S)
            for what in ("results", "devices", "tunings"):
                try:
                    text = await asyncio.to_thread(self._read, what)
                    if what == "tunings":
                        continue
                    rows = json.loads(text, parse_constant=_refused)
                    self.rows = len(rows) if what == "results" else self.rows
                    if what == "devices" and "honest" not in {row["name"] for row in rows}:
                        self.wrong.append("the honest device is not listed")
                except (OSError, ValueError) as error:
                    self.wrong.append(f"{what} cannot be read: {error}")
            self.memory.append(resident_mib(self.pid))

    def _read(self, what: str) -> str:
        request = Request(f"{self.address}/api/lab/{what}", headers={"Authorization": f"Bearer {TOKEN}"})
        with urlopen(request, timeout=ANSWER_S) as answer:
            return str(answer.read().decode())

    async def _hostile(self, name: str, end: float) -> None:
        """One attack after the other; connections that the server ends are begun anew."""
        attacks: tuple[Callable[[str], Awaitable[None]], ...] = (
            self._bad_answers, self._garbage, self._bad_hello, self._goes, self._unasked, self._silent,
        )  # fmt: skip
        while time.monotonic() < end:
            attack = self.random.choice(attacks)
            with contextlib.suppress(ConnectionClosed, InvalidHandshake, OSError, TimeoutError):
                await asyncio.wait_for(attack(name), 10)
            self.done[attack.__name__.strip("_")] += 1
            await asyncio.sleep(self.random.uniform(0.05, 0.3))

    async def _bad_answers(self, name: str) -> None:
        """Answers to a program of its own, each with something that is no result."""
        async with await self._join(name) as device, self._socket(f"drive?device={name}") as program:
            await program.recv()
            for number, value in enumerate(self.random.sample(VALUES, 4)):
                action = self.random.choice(("time", "tune", "profile", "verify"))
                await program.send(json.dumps({"type": "ask", "id": number, "action": action, "fields": {}}))
                while (head := _said(await device.recv()))["type"] != "ask":
                    pass
                await device.send(f'{{"type": "answer", "id": {head["id"]}, "answer": {value}}}')
                await asyncio.wait_for(program.recv(), 5)

    async def _garbage(self, name: str) -> None:
        """Bytes at random, frames whose head is longer than they are."""
        async with await self._join(name) as device:
            size = self.random.choice((0, 1, 3, 4, 100, 100_000))
            await device.send(self.random.randbytes(size))
            await device.send((2**31).to_bytes(4, "little") + b"{}")
            await device.recv()

    async def _bad_hello(self, name: str) -> None:
        """Says megabytes about itself, or nothing that can be read."""
        async with self._socket(f"join?name={name}") as socket:
            about = self.random.choice(('"' + "x" * 15_000_000 + '"', "NaN", DEEP, "{}", r'{"browser": "\ud800"}'))
            await socket.send(f'{{"type": "hello", "about": {about}}}')
            await socket.recv()

    async def _goes(self, name: str) -> None:
        """Goes in the middle of a question, without a word."""
        async with await self._join(name) as device, self._socket(f"drive?device={name}") as program:
            await program.recv()
            await program.send(json.dumps({"type": "ask", "id": 1, "action": "time", "fields": {}}))
            await device.recv()
            device.transport.abort()
            await program.recv()

    async def _unasked(self, name: str) -> None:
        """Answers that nobody asked for, by the hundred."""
        async with await self._join(name) as device:
            for number in range(300):
                await device.send(f'{{"type": "answer", "id": {number}, "answer": {self.random.choice(VALUES[:3])}}}')
            await device.send('{"type": "nothing of the kind"}')
            await device.recv()

    async def _silent(self, name: str) -> None:
        """Begins to come and says nothing."""
        async with self._socket(f"join?name={name}"):
            await asyncio.sleep(self.random.uniform(0.5, 3))

    def verdict(self) -> int:
        """Prints what was seen; 1 if something is wrong."""
        judged = self.memory[SETTLES:]
        third = max(1, len(judged) // 3)
        first, last = (statistics.median(part) if part else 0.0 for part in (judged[:third], judged[-third:]))
        if last > MEMORY_GROWTH * first + MIB:
            self.wrong.append(f"the server's memory grew from {first:.0f} to {last:.0f} MiB")
        if not self.times_ms:
            self.wrong.append("the honest device never answered")
            return 1
        ordered = sorted(self.times_ms)
        p50, p99 = ordered[len(ordered) // 2], ordered[int(0.99 * len(ordered))]
        took = f"p50 {p50:.0f} ms, p99 {p99:.0f} ms, worst {ordered[-1]:.0f} ms"
        print(f"{len(ordered)} answers of the honest device: {took}")
        print(f"attacks: {', '.join(f'{name} {count}' for name, count in sorted(self.done.items()))}")
        print(f"{self.rows} results kept and readable; the server's memory {first:.0f} to {last:.0f} MiB")
        for line in self.wrong[:20]:
            print(f"WRONG  {line}")
        return int(bool(self.wrong))


def _said(text: str | bytes) -> dict[str, Any]:
    """The JSON of a message, behind four bytes of its length where it is binary."""
    head = text if isinstance(text, str) else text[4 : 4 + int.from_bytes(text[:4], "little")]
    found: dict[str, Any] = json.loads(head)
    return found


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")
