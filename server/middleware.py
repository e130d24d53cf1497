"""What holds for every request: accepted hosts, its turn, a request id, security headers, one log line."""

import asyncio
import logging
import re
import secrets
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.clients import Clients, Tally
from server.problems import problem
from server.settings import Settings

log = logging.getLogger("webinfer.access")

CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'self'",
        "script-src 'self' 'wasm-unsafe-eval'",
        "worker-src 'self'",
        "img-src 'self' blob: data:",
        "media-src 'self' blob:",
        "connect-src 'self'",
        "style-src 'self'",
        "object-src 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(self)",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
REFUSED = "webinfer.refused"  # in the state of a request: its connection is one too many for its client
ISOLATION = {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp"}


HOST = re.compile(r"(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<name>[^:\[\]]*))(?::\d*)?", re.ASCII)


def security_headers(settings: Settings) -> list[tuple[bytes, bytes]]:
    """The headers that every answer carries, whatever handler made it."""
    headers = {**HEADERS, **(ISOLATION if settings.isolated else {})}
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]


class RequestMiddleware:
    """The outermost ASGI layer: checks each request before the routes see it, and adds headers to each answer."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app, self.settings = app, settings
        self.headers = security_headers(settings)
        self.clients, self.requests = Clients(settings), Tally(settings.client_requests)
        self.turns = asyncio.Semaphore(settings.max_requests)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuses the request, or hands it on; either way the answer gets the request id and the security headers."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        scope["request_id"] = secrets.token_hex(8)
        if scope["type"] == "websocket":
            await (self._refusal(scope, False) or self.app)(scope, receive, self._with_headers(scope, send))
            return
        begin, status, started = time.monotonic(), 500, False
        with_headers = self._with_headers(scope, send)

        async def send_with_headers(message: Message) -> None:
            nonlocal status, started
            if message["type"] == "http.response.start":
                status, started = message["status"], True
            await with_headers(message)

        client = self.clients.of(scope)
        refusal = self._refusal(scope, self.requests.enter(client) > 0)
        try:
            await (refusal or self._in_turn)(scope, receive, send_with_headers)
        except Exception:
            log.exception("request %s failed", scope["request_id"])
            if started:  # the client must see a broken answer, not a short one that looks whole
                raise
            await problem(500, scope["request_id"])(scope, receive, send_with_headers)
        finally:
            self.requests.leave(client)
            elapsed = 1000 * (time.monotonic() - begin)
            log.info("%s %r %s %.1f ms %s", scope["method"], scope["path"], status, elapsed, scope["request_id"])

    def _with_headers(self, scope: Scope, send: Send) -> Send:
        """The same, with the request id and the security headers in each answer that begins."""

        async def with_headers(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                identity = (b"x-request-id", scope["request_id"].encode())
                own = message.get("headers", [])  # a page's own security policy stands instead of that of all answers
                said = {name for name, _ in own}
                message["headers"] = [*own, *(pair for pair in self.headers if pair[0] not in said), identity]
            await send(message)

        return with_headers

    def _refusal(self, scope: Scope, too_many: bool) -> ASGIApp | None:
        """The answer to a request that must not reach the routes.

        Protects against DNS rebinding (a foreign Host that resolves to loopback), endless paths, and clients that have
        too much under way already.
        """
        if _host_of(scope) not in self.settings.hosts:
            return problem(400, scope["request_id"])
        if scope.get("state", {}).get(REFUSED):
            return self._later(429, scope, {"Connection": "close"})
        if too_many:
            return self._later(429, scope)
        if len(scope["path"]) > self.settings.max_path_chars:
            return problem(404, scope["request_id"])
        return None

    async def _in_turn(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hands a request on as soon as fewer than `max_requests` are being answered; 503 if that takes too long."""
        try:
            async with asyncio.timeout(self.settings.turn_timeout_s):
                await self.turns.acquire()
        except TimeoutError:
            await self._later(503, scope)(scope, receive, send)
            return
        try:
            await self.app(scope, receive, send)
        finally:
            self.turns.release()

    def _later(self, status: int, scope: Scope, headers: dict[str, str] | None = None) -> ASGIApp:
        again = {"Retry-After": str(self.settings.retry_after_s)}
        return problem(status, scope["request_id"], {**again, **(headers or {})})


def _host_of(scope: Any) -> str:
    values = [value for name, value in scope["headers"] if name == b"host"]
    if len(values) != 1:
        return ""
    match = HOST.fullmatch(values[0].decode("latin-1").lower())
    return (match["v6"] or match["name"] or "") if match else ""
