"""A bad network in front of the server: it may carry a limited number of bytes and then hang, or be slow."""

from __future__ import annotations

import asyncio
import re
import threading
from urllib.parse import urlsplit

PIECE = 16_384  # bytes that are passed on at once
NEVER_S = 3600.0


class FlakyNetwork:
    """Passes connections on to a server, and loses them as it is told: `with FlakyNetwork(address) as network`.

    A lost connection stays open and silent, as when a laptop leaves its network.
    """

    def __init__(self, address: str) -> None:
        self._server = urlsplit(address)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._left: int | None = None  # bytes that still come through; None: all
        self._only: re.Pattern[bytes] | None = None  # of requests that alone come through
        self._rate = 0  # bytes a second; 0: as fast as it goes
        self._turn = asyncio.Lock()  # one piece at a time where the network is slow
        self.address = ""

    def __enter__(self) -> FlakyNetwork:
        self._thread.start()
        begun = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._carry, "127.0.0.1", 0), self._loop)
        self._listener = begun.result(10)
        self.address = f"http://127.0.0.1:{self._listener.sockets[0].getsockname()[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end)
        self._thread.join(10)

    def _end(self) -> None:
        self._listener.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.call_soon(self._loop.stop)

    def hang_after(self, count: int) -> None:
        """Loses every connection once so many more bytes have come through."""
        self._left = count

    def carry_only(self, target: str) -> None:
        """Carries requests whose target matches this expression, and loses the connections that others come by."""
        self._only = re.compile(rf"GET ({target}) ".encode())

    def be_slow(self, bytes_per_s: int) -> None:
        """Carries so many bytes a second, of all connections together."""
        self._rate = bytes_per_s

    def recover(self) -> None:
        """Carries new connections as if nothing had been; lost ones stay lost."""
        self._left = self._only = None

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked, answers = await asyncio.open_connection(self._server.hostname, self._server.port)
        directions = [self._pump(reader, answers, False), self._pump(asked, writer, True)]
        try:
            await asyncio.wait([asyncio.ensure_future(way) for way in directions], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in (writer, answers):
                end.close()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, answers: bool) -> None:
        while data := await source.read(PIECE):
            if self._only and not answers and not self._only.match(data):
                await asyncio.sleep(NEVER_S)
            if self._left is not None:
                self._left -= len(data) if answers else 0
                if self._lost:
                    await asyncio.sleep(NEVER_S)
            if self._rate and answers:
                async with self._turn:
                    await asyncio.sleep(len(data) / self._rate)
            sink.write(data)
            await sink.drain()
        if answers and (self._lost or self._only):  # the network hides that the server hung up
            await asyncio.sleep(NEVER_S)

    @property
    def _lost(self) -> bool:
        return self._left is not None and self._left < 0
