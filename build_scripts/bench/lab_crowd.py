"""`measure lab-crowd`: hundreds of devices and programs in one lab; how long a command takes, and who is lost."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from build_scripts.errors import BuildError
from build_scripts.files import write_json
from build_scripts.paths import ROOT
from build_scripts.setup.sequence import set_up

TOKEN = "of-this-measurement"
COMING = 16  # devices that come in at a time
START_S = 60.0
SERVER = """
import json, sys
from dataclasses import replace
from server.app import create_app
from server.lab.workers import serve_workers
from server.running import address_of, bound_socket, within_files
from server.settings import Settings

if __name__ == "__main__":
    told = json.loads(sys.argv[1])
    workers = told.pop("workers")
    settings = within_files(replace(Settings(), lab=True, **told))
    listener = bound_socket(0)
    print(address_of(listener), flush=True)
    serve_workers(create_app, settings, listener, workers)
"""


@dataclass
class Crowd:
    """What devices and programs saw."""

    round_trips: list[float] = field(default_factory=list)  # ms, of a command and its answer
    troubles: Counter[str] = field(default_factory=Counter)

    def figures(self) -> dict[str, Any]:
        """Commands, quantiles of their times in ms, and what went wrong."""
        found = sorted(self.round_trips)
        if len(found) < 2:
            raise BuildError(f"no command was answered: {dict(self.troubles)}")
        cuts = statistics.quantiles(found, n=1000, method="inclusive")
        quantiles = {"median_ms": cuts[499], "p95_ms": cuts[949], "p99_ms": cuts[989], "longest_ms": found[-1]}
        return {"commands": len(found), **quantiles, "troubles": dict(self.troubles)}


def run(argv: list[str]) -> int:
    """0 if no device was lost and no command went without an answer."""
    parser = argparse.ArgumentParser(
        prog="python3 -m build_scripts measure lab-crowd", description=(__doc__ or "").strip()
    )
    parser.add_argument("--devices", type=int, default=300, help="simulated devices (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long they are driven (default: %(default)s)")
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two commands of a program")
    parser.add_argument("--workers", type=int, default=2, help="processes of the server (default: %(default)s)")
    parser.add_argument("--database", help="of the lab, as SQLAlchemy says it (default: a file of this measurement)")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args(argv)
    set_up()
    crowd = Crowd()
    with served(options.workers, options.devices, options.database) as address:
        asyncio.run(crowded(address, options, crowd))
    figures = {"devices": options.devices, "seconds": options.seconds, "workers": options.workers, **crowd.figures()}
    print(json.dumps(figures, indent=1))
    if options.json is not None:
        write_json(options.json, figures)
    return 1 if crowd.troubles else 0


@contextlib.contextmanager
def served(workers: int, devices: int, database: str | None = None) -> Iterator[str]:
    """The address of a lab with so many workers, and room for twice so many devices."""
    folder = ROOT / "build" / "lab_crowd"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("lab.sqlite*"):
        old.unlink()
    (folder / "serve.py").write_text(SERVER)
    database = database or f"sqlite:///{folder / 'lab.sqlite'}"
    told = {
        "workers": workers,
        "lab_token": TOKEN,
        "lab_database": database,
        "lab_devices": 2 * devices,
    }
    process = subprocess.Popen(
        [sys.executable, str(folder / "serve.py"), json.dumps(told)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        if not address:
            raise BuildError("the lab's server ended at once")
        yield address
    finally:
        process.terminate()
        process.wait(20)


async def crowded(address: str, options: argparse.Namespace, crowd: Crowd) -> None:
    """Devices come in, programs drive them, and all of them go."""
    names = [f"device-{number}" for number in range(options.devices)]
    lab, gate = _Lab(address, crowd), asyncio.Semaphore(COMING)
    devices = [asyncio.create_task(lab.device(await lab.come_in(name), name)) for name in names]
    pauses = [options.pause * number / len(names) for number in range(len(names))]  # not all at the same moment
    driving = (lab.program(name, pause, gate, options) for name, pause in zip(names, pauses, strict=True))
    for error in await asyncio.gather(*driving, return_exceptions=True):
        if isinstance(error, BaseException):
            crowd.troubles[f"a program failed: {error!r}"[:200]] += 1
    lab.over = True
    for task in devices:
        task.cancel()
    await asyncio.gather(*devices, return_exceptions=True)


class _Lab:
    def __init__(self, address: str, crowd: Crowd) -> None:
        self.address, self.crowd, self.over = address, crowd, False

    async def come_in(self, name: str) -> Any:
        """The connection of a device that is in."""
        socket = await _connected(self.address, f"join?name={name}")
        await socket.send(json.dumps({"type": "hello", "about": {"browser": "none"}}))
        if (said := json.loads(await socket.recv()))["type"] != "welcome":
            raise BuildError(f"{name} was not let in: {said}")
        return socket

    async def device(self, socket: Any, name: str) -> None:
        """Answers each question; a connection that ends before all is over is a trouble."""
        try:
            async for text in socket:
                if (head := json.loads(text))["type"] == "ask":
                    answer = {"backend": "wasm", "times": [1.0]}
                    await socket.send(json.dumps({"type": "answer", "id": head["id"], "answer": answer}))
        finally:
            if not self.over:
                self.crowd.troubles["a device was lost"] += 1

    async def program(self, name: str, pause: float, gate: asyncio.Semaphore, options: argparse.Namespace) -> None:
        """Drives a device, command after command."""
        async with gate:
            socket = await _connected(self.address, f"drive?device={name}")
            if (said := json.loads(await socket.recv()))["type"] != "welcome":
                self.crowd.troubles[f"a program heard {said.get('code')}"] += 1
                return
        await asyncio.sleep(pause)
        end, count = time.monotonic() + options.seconds, 0
        while time.monotonic() < end:
            count += 1
            begin = time.perf_counter()
            await socket.send(json.dumps({"type": "ask", "id": count, "action": "time", "fields": {}}))
            if (said := json.loads(await socket.recv()))["type"] != "answer":
                self.crowd.troubles[f"a command ended with {said.get('code')}"] += 1
                return
            self.crowd.round_trips.append((time.perf_counter() - begin) * 1e3)
            await asyncio.sleep(options.pause)
        await socket.close()


async def _connected(address: str, path: str) -> Any:
    """A WebSocket of the lab; its server may be starting."""
    from websockets.asyncio.client import connect

    end = time.monotonic() + START_S
    while True:
        try:
            return await connect(
                f"ws{address.removeprefix('http')}/api/lab/{path}", subprotocols=["webinfer.lab", f"token.{TOKEN}"],
                compression=None, proxy=None, open_timeout=START_S,
            )  # fmt: skip
        except OSError:
            if time.monotonic() > end:
                raise
        await asyncio.sleep(0.2)
