"""`measure load-test`: many first visits at once, beside slow clients; who was served, and how long it took."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from build_scripts.errors import BuildError
from build_scripts.paths import ROOT
from build_scripts.setup.sequence import set_up

CONNECTIONS = 6  # that a browser opens to one address
BUFFER_BYTES = 1 << 18
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
NO_LIMITS = {"WEBINFER_SERVER_CLIENT_CONNECTIONS": "0", "WEBINFER_SERVER_CLIENT_REQUESTS": "0"}
PROBE_LIMIT_S = 30.0


def run(argv: list[str]) -> int:
    """0 if every visit got all of its files."""
    parser = argparse.ArgumentParser(
        prog="python3 -m build_scripts measure load-test", description=(__doc__ or "").strip()
    )
    parser.add_argument("--visits", type=int, default=2000, help="first visits that begin at once (default 2000)")
    parser.add_argument("--slow-readers", type=int, default=255, help="clients that never read what they asked for")
    parser.add_argument("--slow-heads", type=int, default=255, help="clients that send a byte of their head a second")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds after which a visit has failed")
    parser.add_argument("--limited", action="store_true", help="with the limits per client, though all come from one")
    parser.add_argument("--checkout", type=Path, default=ROOT, help="serve another checkout that is set up")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args(argv)
    set_up()
    with served(options.checkout, {} if options.limited else NO_LIMITS) as (process, address):
        paths = first_visit(address)
        crowd = Crowd(address, paths, options.limit)
        asyncio.run(crowd.gather(options.visits, options.slow_readers, options.slow_heads))
        figures = crowd.figures(options.visits, peak_mib(process))
    print(told(figures))
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0 if figures["whole"] == options.visits else 1


@contextmanager
def served(checkout: Path, environment: dict[str, str]) -> Iterator[tuple[int, str]]:
    """The process and the address of a server of a checkout."""
    from server.running import allow_files

    allow_files(1 << 16)  # for this process's own connections
    command = [sys.executable, "-m", "e2e_tests.serve"]
    process = subprocess.Popen(
        command,
        cwd=checkout,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # uvicorn warns of every refusal
        text=True,
        env={**os.environ, **environment},
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        if not address:
            raise BuildError(f"the server of {checkout} ended at once")
        yield process.pid, address
    finally:
        process.kill()
        process.wait(10)


def first_visit(address: str) -> list[str]:
    """The paths that Chromium asks for on a first visit, in its order."""
    from build_scripts.setup.chromium import driver, launch_options

    paths: list[str] = []
    with driver() as playwright:
        browser = playwright.chromium.launch(**launch_options(webgpu=False))
        context = browser.new_context()
        context.on("request", lambda request: paths.append(urlsplit(request.url).path))
        page = context.new_page()
        page.goto(f"{address}/face-detection?backend=wasm")
        deadline = time.monotonic() + 120
        while not page.evaluate("document.documentElement.dataset.webinferResult ?? ''"):
            if time.monotonic() > deadline:
                raise BuildError("the page gives no result, so what a visit asks for is not known")
            page.wait_for_timeout(100)
        page.wait_for_timeout(3000)
        browser.close()
    return [path for path in dict.fromkeys(paths) if path.startswith("/")]


@dataclass
class Visit:
    """One first visit: what is still to ask for, and how it went."""

    waiting: list[str]
    begin: float
    done: asyncio.Future[None]
    asked: int = 0
    ended: float = 0.0
    received: int = 0
    trouble: str = ""
    open: int = 0


class Connection(asyncio.BufferedProtocol):
    """A connection of a visit: asks for one file after the other and counts the bytes of the answers."""

    shared = memoryview(bytearray(BUFFER_BYTES))  # what comes is counted, not kept

    def __init__(self, visit: Visit, host: str) -> None:
        self.visit, self.host = visit, host
        self.head, self.left = b"", 0
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        """Asks for the first file."""
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        """Asks for the next file, or ends if there is none."""
        if not self.visit.waiting:
            self.left = -1
            self.transport.close()
            return
        path = self.visit.waiting.pop(0)
        self.head, self.left = b"", 0
        self.visit.asked += 1
        request = f"GET {path} HTTP/1.1\r\nHost: {self.host}\r\nAccept-Encoding: gzip, br\r\n\r\n"
        self.transport.write(request.encode())

    def get_buffer(self, sizehint: int) -> memoryview:
        """The place for what comes next."""
        return self.shared

    def buffer_updated(self, count: int) -> None:
        """Takes what has come; all of an answer: the next file."""
        self.visit.received += count
        if self.left:
            self.left -= count
        else:
            self.head += bytes(self.shared[:count])
            head, end, body = self.head.partition(b"\r\n\r\n")
            if not end:
                return
            length = LENGTH.search(head)
            if head.split(b" ", 2)[1] != b"200" or length is None:
                self.visit.trouble = self.visit.trouble or f"status {head.split(b' ', 2)[1].decode()}"
                self.transport.abort()
                return
            self.left = int(length[1]) - len(body)
        if self.left == 0:
            self.ask()

    def connection_lost(self, error: Exception | None) -> None:
        """A connection that ends before its answer makes the visit fail."""
        if self.left != -1 and not self.visit.trouble:
            self.visit.trouble = "the connection ended"
        self.visit.open -= 1
        if self.visit.open == 0 and not self.visit.done.done():
            self.visit.done.set_result(None)


@dataclass
class Crowd:
    """All visits, and those who disturb them."""

    address: str
    paths: list[str]
    limit_s: float
    visits: list[Visit] = field(default_factory=list)
    probes: list[float] = field(default_factory=list)  # seconds until the server said that it is well
    seconds: float = 0.0

    def __post_init__(self) -> None:
        parts = urlsplit(self.address)
        self.host, self.port, self.name = str(parts.hostname), int(parts.port or 80), parts.netloc

    async def gather(self, visits: int, readers: int, heads: int) -> None:
        """Lets the disturbers come first, then all visits at once; ends with the last visit."""
        loop = asyncio.get_running_loop()
        largest = next(path for path in self.paths if path.endswith(".bin"))
        request = f"GET {largest} HTTP/1.1\r\nHost: {self.name}\r\n\r\n".encode()
        others = [loop.create_task(self.never_read(request)) for _ in range(readers)]
        others += [loop.create_task(self.slow_head()) for _ in range(heads)]
        await asyncio.sleep(2 if others else 0)
        others.append(loop.create_task(self.probe()))
        begin = time.monotonic()
        await asyncio.gather(*(self.visit() for _ in range(visits)))
        self.seconds = time.monotonic() - begin
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def visit(self) -> None:
        """One visit: the page on one connection, then its files on several."""
        loop = asyncio.get_running_loop()
        visit = Visit(self.paths[:1], time.monotonic(), loop.create_future())
        self.visits.append(visit)
        try:
            async with asyncio.timeout(self.limit_s):
                await self.connect(visit, 1)
                visit.waiting = self.paths[1:]
                if not visit.trouble:
                    await self.connect(visit, CONNECTIONS)
        except (TimeoutError, OSError) as error:
            visit.trouble = visit.trouble or type(error).__name__
        visit.ended = time.monotonic()

    async def connect(self, visit: Visit, count: int) -> None:
        """Works off what waits on so many connections."""
        loop = asyncio.get_running_loop()
        visit.done, visit.open = loop.create_future(), count
        for _ in range(count):
            await loop.create_connection(lambda: Connection(visit, self.name), self.host, self.port)
        await visit.done

    async def never_read(self, request: bytes) -> None:
        """Asks for a large file again and again, and reads none of it."""
        loop = asyncio.get_running_loop()
        while True:
            transport, _ = await loop.create_connection(Deaf, self.host, self.port)
            transport.pause_reading()
            transport.write(request)
            begin = time.monotonic()
            while time.monotonic() - begin < 25 and not transport.is_closing():
                await asyncio.sleep(1)
            transport.abort()

    async def slow_head(self) -> None:
        """Sends a head that does not end, a byte a second, again and again."""
        loop = asyncio.get_running_loop()
        while True:
            transport, _ = await loop.create_connection(Deaf, self.host, self.port)
            transport.write(b"GET / HTTP/1.1\r\nX: ")
            while not transport.is_closing():
                transport.write(b"a")
                await asyncio.sleep(1)

    async def probe(self) -> None:
        """Asks once a second whether the server is well."""
        while True:
            begin = time.monotonic()
            try:
                async with asyncio.timeout(PROBE_LIMIT_S):
                    reader, writer = await asyncio.open_connection(self.host, self.port)
                    writer.write(f"GET /healthz HTTP/1.1\r\nHost: {self.name}\r\nConnection: close\r\n\r\n".encode())
                    well = (await reader.read()).startswith(b"HTTP/1.1 200")
                    writer.close()
            except (TimeoutError, OSError):
                well = False
            self.probes.append(time.monotonic() - begin if well else float("inf"))
            await asyncio.sleep(1)

    def figures(self, visits: int, peak: float) -> dict[str, Any]:
        """Everything that was measured."""
        whole = sorted(v.ended - v.begin for v in self.visits if not v.trouble)
        well = sorted(probe for probe in self.probes if probe < float("inf"))
        return {
            "visits": visits,
            "files": len(self.paths),
            "whole": len(whole),
            "troubles": dict(Counter(v.trouble for v in self.visits if v.trouble)),
            "seconds": round(self.seconds, 1),
            "visit_s": {"median": round(statistics.median(whole), 1), "most": round(whole[-1], 1)} if whole else None,
            "received_mb": round(sum(v.received for v in self.visits) / 1e6),
            "probes": {"asked": len(self.probes), "well": len(well)},
            "probe_s": {"median": round(statistics.median(well), 3), "most": round(well[-1], 3)} if well else None,
            "server_peak_mib": round(peak),
        }


class Deaf(asyncio.Protocol):
    """A connection whose answers nobody wants."""


def peak_mib(process: int) -> float:
    """The most memory that a process has had in RAM; 0 where the system does not tell."""
    try:
        match = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
    except OSError:
        return 0.0
    return int(match[1]) / 1024 if match else 0.0


def told(figures: dict[str, Any]) -> str:
    """The figures in a few lines."""
    lines = [f"{figures['whole']} of {figures['visits']} visits got all of their {figures['files']} files"]
    lines += [f"  {count} failed: {trouble}" for trouble, count in figures["troubles"].items()]
    lines.append(f"  {figures['seconds']} s, {figures['received_mb']} MB; a visit {figures['visit_s']}")
    lines.append(f"  well {figures['probes']['well']} of {figures['probes']['asked']} times; in {figures['probe_s']} s")
    return "\n".join([*lines, f"  the server took at most {figures['server_peak_mib']} MiB"])
