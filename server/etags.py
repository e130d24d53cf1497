"""Entity tags: how a client asks whether the copy that it has is still the current one."""

import hashlib


def etag_of(body: bytes) -> str:
    """The entity tag of these bytes, in quotes as the header wants it."""
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def matches(header: str | None, etag: str) -> bool:
    """Whether an If-None-Match header names this entity tag.

    Source: RFC 9110, section 13.1.2: weak comparison
    """
    if header is None:
        return False
    names = [name.strip().removeprefix("W/") for name in header.split(",")]
    return etag in names or names == ["*"]
