"""uvicorn's HTTP connections with limits of time and number, and with our own answer to what is not HTTP.

uvicorn closes connections that are idle after an answer. It does not limit how long a client may take to send a
request's head, how long it may leave an answer unread, nor how many connections one address may have; this module adds
all three. Whoever reads or writes slowly so holds a connection for a while and costs the others nothing.
"""

import asyncio
import logging
import secrets
import socket
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from server.clients import Clients, Tally
from server.middleware import REFUSED, security_headers
from server.problems import problem
from server.settings import Settings

log = logging.getLogger("webinfer.access")
WITHOUT_ANSWER = 2  # times the limit of a client's connections: beyond that nobody is told why


def protocol_with_limits(limits: Settings) -> type[H11Protocol]:
    """uvicorn's HTTP protocol class with the timeouts and the limits of these settings."""

    class Protocol(LimitedProtocol):
        settings, clients, tally = limits, Clients(limits), Tally(limits.client_connections)

    return Protocol


def send_at_once(transport: Any) -> None:
    """Has the system send each piece when it is written, not 40 ms later when the client has told of the one before.

    asyncio does so for sockets that name TCP as their protocol, and those that are handed to uvicorn mostly do not.
    """
    connection = transport.get_extra_info("socket")
    if connection is not None and connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class LimitedProtocol(H11Protocol):
    """One connection.

    The header timeout starts when a connection opens, and again when the first byte of each later request arrives. It
    ends when all of the request has been read: here nobody has use for a body. The write timeout starts when bytes of
    an answer wait for the client, and ends when it has taken all of them; never more than one piece of a file (64 kB)
    waits. A connection beyond its client's limit is answered with 429 and closed. Those of a trusted proxy are not
    limited: its clients are told apart by the requests.
    """

    settings: ClassVar[Settings]
    clients: ClassVar[Clients]
    tally: ClassVar[Tally]
    counted_as: str | None = None
    upgraded = False  # to a WebSocket: another protocol has the connection
    header_timer: asyncio.TimerHandle | None = None
    write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Counts the connection and starts the header timeout: a connection is opened to send a request."""
        super().connection_made(transport)
        send_at_once(transport)
        self.counted_as = self.clients.of({"client": self.client, "headers": []})
        over = self.tally.enter(self.counted_as)
        if over > (WITHOUT_ANSWER - 1) * self.tally.limit or len(self.connections) > self.settings.max_connections:
            transport.abort()
            return
        if over > 0:
            self.app_state = {**self.app_state, REFUSED: True}
        transport.set_write_buffer_limits(high=1)  # hear of all that has to wait; with 0, TLS would wait for ever
        self.header_timer = self.loop.call_later(self.settings.header_timeout_s, transport.close)

    def data_received(self, data: bytes) -> None:
        """Starts the header timeout if a request is incomplete, stops it if none is."""
        super().data_received(data)
        if self.upgraded:
            return
        begun = self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]
        if not begun and self.conn.their_state is not h11.SEND_BODY:
            self.stop_header_timer()
        elif self.header_timer is None:
            self.header_timer = self.loop.call_later(self.settings.header_timeout_s, self.transport.close)

    def pause_writing(self) -> None:
        """Starts the write timeout: the client does not keep up."""
        super().pause_writing()
        if self.write_timer is None:
            self.write_timer = self.loop.call_later(self.settings.write_timeout_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Stops the write timeout: the client has taken everything."""
        self.stop_write_timer()
        super().resume_writing()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Hands the connection over to the WebSocket's protocol, which has limits of its own."""
        self._end_limits()
        self.upgraded = True
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops the timers with the connection, and counts it no more."""
        self._end_limits()
        super().connection_lost(exc)

    def _end_limits(self) -> None:
        if self.counted_as is not None:
            self.tally.leave(self.counted_as)
            self.counted_as = None
        self.stop_header_timer()
        self.stop_write_timer()

    def send_400_response(self, msg: str) -> None:
        """Answers what is not HTTP with a problem document; where an answer is under way, the connection just ends."""
        busy = self.cycle is not None and not self.cycle.response_complete
        if busy or self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.close()
            return
        request_id = secrets.token_hex(8)
        answer = problem(400, request_id, {"Connection": "close"})
        headers = [*answer.raw_headers, *security_headers(self.settings), (b"x-request-id", request_id.encode())]
        log.info("no HTTP from %s: %s %s", self.client, msg, request_id)
        body = h11.Data(data=bytes(answer.body))
        for event in (h11.Response(status_code=400, headers=headers), body, h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def stop_header_timer(self) -> None:
        """Lets the client take its time until the next head begins."""
        if self.header_timer is not None:
            self.header_timer.cancel()
            self.header_timer = None

    def stop_write_timer(self) -> None:
        """Nothing waits for the client."""
        if self.write_timer is not None:
            self.write_timer.cancel()
            self.write_timer = None
