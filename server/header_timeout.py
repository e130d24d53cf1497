"""Closes connections of clients that take too long to send the head of a request.

uvicorn closes connections that are idle after an answer. It does not limit how long a client may
take to send a request line and headers; this module adds that limit.
"""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


def protocol_with_header_timeout(seconds: float) -> type[H11Protocol]:
    """uvicorn's HTTP protocol class with a header timeout.

    The time starts when a connection opens, and again when the first byte of each later request
    arrives. It ends when the last header has been read.
    """

    class HeaderTimeoutProtocol(H11Protocol):
        """One connection."""

        header_timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            """Starts the timer: a connection is opened to send a request."""
            super().connection_made(transport)
            self.header_timer = self.loop.call_later(seconds, transport.close)

        def data_received(self, data: bytes) -> None:
            """Starts the timer if a head is incomplete, stops it if none is."""
            super().data_received(data)
            if self.conn.their_state is not h11.IDLE or not self.conn.trailing_data[0]:
                self.stop_header_timer()
            elif self.header_timer is None:
                self.header_timer = self.loop.call_later(seconds, self.transport.close)

        def connection_lost(self, exc: Exception | None) -> None:
            """Stops the timer with the connection."""
            self.stop_header_timer()
            super().connection_lost(exc)

        def stop_header_timer(self) -> None:
            """Lets the client take its time until the next head begins."""
            if self.header_timer is not None:
                self.header_timer.cancel()
                self.header_timer = None

    return HeaderTimeoutProtocol
