"""WebSockets in CPython, by the package websockets: whole messages out and in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from webinfer.errors import BackendUnavailableError

OPEN_S = 20.0  # to be answered
CLOSE_S = 5.0


class SocketRefused(Exception):
    """The server refuses the WebSocket; `status` is its answer, `title` what its problem document says."""

    def __init__(self, status: int, title: str) -> None:
        self.status, self.title = status, title
        super().__init__(title)


class SocketLost(Exception):
    """There is no connection, or no more; the message says why."""


async def open_socket(address: str, protocols: Sequence[str]) -> NativeSocket:
    """A WebSocket to this address that offers these protocols.

    Raises:  SocketRefused; SocketLost; BackendUnavailableError without the package websockets
    """
    try:
        from websockets.asyncio.client import connect
        from websockets.exceptions import InvalidHandshake, InvalidStatus, InvalidURI
    except ImportError as error:
        raise BackendUnavailableError("controlling devices needs WebSockets: pip install webinfer[lab]") from error
    try:
        found = await connect(
            address, subprotocols=list(protocols), max_size=None, compression=None, open_timeout=OPEN_S,
            close_timeout=CLOSE_S, user_agent_header="webinfer", proxy=None,
        )  # fmt: skip
    except InvalidStatus as error:
        raise SocketRefused(error.response.status_code, _title(error.response.body)) from error
    except (OSError, TimeoutError, InvalidHandshake, InvalidURI) as error:
        raise SocketLost(str(error) or type(error).__name__) from error
    return NativeSocket(found)


def _title(body: bytes | None) -> str:
    try:
        return str(json.loads(body or b"{}")["title"])
    except (ValueError, KeyError, TypeError):
        return "the server gives no reason"


class NativeSocket:
    """One connection."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def send(self, data: str | bytes) -> None:
        """Sends one message.

        Raises:  SocketLost
        """
        from websockets.exceptions import ConnectionClosed

        try:
            await self._connection.send(data)
        except ConnectionClosed as error:
            raise SocketLost(_reason(error)) from error

    async def receive(self) -> str | bytes:
        """The next message.

        Raises:  SocketLost at the end
        """
        from websockets.exceptions import ConnectionClosed

        try:
            found: str | bytes = await self._connection.recv()
        except ConnectionClosed as error:
            raise SocketLost(_reason(error)) from error
        return found

    async def close(self) -> None:
        """Ends the connection; a second call does nothing."""
        await self._connection.close()


def _reason(error: Any) -> str:
    close = error.rcvd or error.sent
    return f"the connection was closed: {close.reason or close.code}" if close else "the connection broke"
