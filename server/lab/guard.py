"""Who may come into the lab: who has the token, from this network, and no page of another site."""

import secrets
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.types import Scope

from server.clients import parsed
from server.settings import Settings

PROTOCOL = "webinfer.lab"  # of the WebSockets
TOKEN_PREFIX = "token."  # of the other protocol that a client offers: a page can set no header
BEARER = "bearer "


def refusal_of_request(scope: Scope, headers: Mapping[str, str], settings: Settings) -> int:
    """The status with which a request is refused: 401 without the token, 403 from elsewhere; 0 if it is welcome."""
    given = headers.get("authorization", "")
    token = given[len(BEARER) :] if given.lower().startswith(BEARER) else ""
    return _refusal(scope, headers, token, settings)


def refusal_of_socket(scope: Scope, headers: Mapping[str, str], settings: Settings) -> int:
    """The same for a WebSocket, whose client names the token as a protocol."""
    offered = [name for name in scope["subprotocols"] if name.startswith(TOKEN_PREFIX)]
    token = offered[0].removeprefix(TOKEN_PREFIX) if PROTOCOL in scope["subprotocols"] and offered else ""
    return _refusal(scope, headers, token, settings)


def _refusal(scope: Scope, headers: Mapping[str, str], token: str, settings: Settings) -> int:
    if not _near(scope) or not _own_page(headers):
        return 403
    right = settings.lab_token and secrets.compare_digest(token.encode(), settings.lab_token.encode())
    return 0 if right else 401


def _near(scope: Scope) -> bool:
    """Whether the other end is in this network: its address is one that no router of the internet passes on."""
    address = parsed((scope.get("client") or ("",))[0])
    return address is not None and (address.is_private or address.is_loopback or address.is_link_local)


def _own_page(headers: Mapping[str, str]) -> bool:
    """Whether the request comes from a page of this server, or from no page at all."""
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
