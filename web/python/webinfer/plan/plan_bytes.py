"""The bytes of a stored plan: magic, length of the header; the header as JSON; what else belongs to the plan."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from typing import Any

MAX_BYTES = 32 << 20  # of constants and programs: above, reading them back costs more than it saves. A guess
LENGTH = struct.Struct("<I")


def pack(magic: bytes, header: Mapping[str, Any], body: Iterable[bytes | memoryview]) -> bytes:
    """The bytes of a plan. `header["fits"]` begins with the identity of the engine that made it."""
    text = json.dumps(header).encode()
    return b"".join([magic, LENGTH.pack(len(text)), text, *body])


def unpack(data: Any, magic: bytes, identity: str) -> tuple[dict[str, Any], memoryview] | None:
    """Header and body of these bytes; None if they are not a plan, or not by the engine of this identity."""
    view = memoryview(data or b"").cast("B")
    if view[: len(magic)] != magic:
        return None
    (length,) = LENGTH.unpack_from(view, len(magic))
    begin = len(magic) + LENGTH.size
    header = json.loads(bytes(view[begin : begin + length]))
    return None if header["fits"][0] != identity else (header, view[begin + length :])
