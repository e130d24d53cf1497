"""Who a client is, and how much of the server each one has: so that no single one can take it all."""

from collections import Counter
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from server.settings import Settings

NETWORK_BITS = 64  # of an IPv6 address: what a provider gives to one household or one machine
MAX_HOPS = 16  # addresses of a forwarded header that are looked at

Address = IPv4Address | IPv6Address


class Clients:
    """Tells clients apart by their address; behind a trusted proxy, by the address that the proxy names."""

    def __init__(self, settings: Settings) -> None:
        self.proxies = [ip_network(text, strict=False) for text in settings.trusted_proxies]
        self.header = settings.forwarded_header.lower().encode()

    def is_proxy(self, peer: str) -> bool:
        """Whether the other end of a connection is a reverse proxy that was named in the settings."""
        address = parsed(peer)
        return address is not None and any(address in network for network in self.proxies)

    def of(self, scope: Any) -> str:
        """The client of a request; "" for a trusted proxy's own request, which no limit holds for."""
        peer = (scope.get("client") or ("",))[0]
        if not self.is_proxy(peer):
            return client_of(peer)
        values = [value.decode("latin-1") for name, value in scope["headers"] if name == self.header]
        hops = [hop.strip() for hop in ",".join(values).split(",")][-MAX_HOPS:]
        for hop in reversed(hops):  # each proxy appends; what stands left of the first stranger is the stranger's word
            if not self.is_proxy(hop):
                return client_of(hop) if parsed(hop) else ""
        return ""


class Tally:
    """How many of something each client has now; at most `limit` each, 0 for no limit."""

    def __init__(self, limit: int) -> None:
        self.limit, self.counts = limit, Counter[str]()

    def enter(self, client: str) -> int:
        """Counts one more and says how many there are now beyond the limit: 0 or less is well."""
        self.counts[client] += 1
        return self.counts[client] - self.limit if self.limit and client else 0

    def leave(self, client: str) -> None:
        """Counts one less; who has none is forgotten."""
        self.counts[client] -= 1
        if self.counts[client] <= 0:
            del self.counts[client]


def client_of(text: str) -> str:
    """The name under which an address is counted: IPv4 as it is, IPv6 by its network of 64 bits."""
    address = parsed(text)
    if isinstance(address, IPv6Address):
        return str(IPv6Network((address, NETWORK_BITS), strict=False))
    return str(address or text)


def parsed(text: str) -> Address | None:
    """The address in a text; an IPv4 address that is written as IPv6 counts as IPv4. None if it is not an address."""
    try:
        address = ip_address(text.strip().strip("[]").partition("%")[0])
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
