"""How long a client may take: uvicorn bounds idle connections, this bounds the sending of a request's head."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


def protocol_with_deadline(seconds: float) -> type[H11Protocol]:
    """uvicorn's protocol, closing connections whose next request's head has begun and takes longer than this.

    A new connection counts as begun: it was opened to send one.
    """

    class DeadlineProtocol(H11Protocol):
        deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.deadline = self.loop.call_later(seconds, transport.close)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.conn.their_state is not h11.IDLE or not self.conn.trailing_data[0]:
                self.forget_deadline()
            elif self.deadline is None:
                self.deadline = self.loop.call_later(seconds, self.transport.close)

        def connection_lost(self, exc: Exception | None) -> None:
            self.forget_deadline()
            super().connection_lost(exc)

        def forget_deadline(self) -> None:
            if self.deadline is not None:
                self.deadline.cancel()
                self.deadline = None

    return DeadlineProtocol
