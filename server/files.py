"""Files as answers, read piece by piece in the event loop.

A thread for every piece, as Starlette's FileResponse has it, costs more than the piece: these files lie on the local
disk, mostly in the system's cache.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from fastapi import Response
from starlette.types import Receive, Scope, Send

PIECE_BYTES = 1 << 16  # what waits for a client that does not read
PIECES_AT_A_TIME = 64  # between two looks at new requests; the others wait in a queue
NOTHING = {"type": "http.response.body", "body": b"", "more_body": True}


class WholeFile(Response):
    """A file from its first to its last byte; all answers of a server share `turns`, a semaphore."""

    def __init__(self, path: Path, headers: Mapping[str, str], turns: asyncio.Semaphore) -> None:
        self.path, self.size, self.turns = path, path.stat().st_size, turns
        super().__init__(headers={**headers, "Content-Length": str(self.size), "Accept-Ranges": "bytes"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the file; a file that has become shorter breaks the answer off."""
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        if scope["method"] == "HEAD" or not self.size:
            await send(start)
            await send({"type": "http.response.body", "body": b""})
            return
        with self.path.open("rb", buffering=0) as file:
            await send(start)
            left = self.size
            while left:
                await send(NOTHING)  # waits until the client has read what was sent, and keeps nobody else waiting
                async with self.turns:
                    piece = file.read(min(PIECE_BYTES, left))
                    if not piece:
                        raise OSError(f"{self.path} has become shorter")
                    left -= len(piece)
                    await send({"type": "http.response.body", "body": piece, "more_body": left > 0})
                    await asyncio.sleep(0)
