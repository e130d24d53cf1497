"""A message of the lab: JSON, and behind it buffers where it has such (server/lab/frames.py has the form in words)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from webinfer.lab.errors import LabError

LENGTH_BYTES = 4


def written(kind: str, fields: Mapping[str, Any]) -> str | bytes:
    """A message of this type. Buffers may stand anywhere in `fields`; {"buffer": n} takes their places in the JSON."""
    buffers: list[bytes] = []

    def placed(value: Any) -> Any:
        if isinstance(value, bytes | bytearray | memoryview):
            buffers.append(bytes(value))
            return {"buffer": len(buffers) - 1}
        if isinstance(value, Mapping):
            return {str(name): placed(one) for name, one in value.items()}
        return [placed(one) for one in value] if isinstance(value, list | tuple) else value

    head = {"type": kind, **placed(fields)}
    if not buffers:
        return json.dumps(head)
    text = json.dumps({**head, "buffers": list(map(len, buffers))}).encode()
    return b"".join((len(text).to_bytes(LENGTH_BYTES, "little"), text, *buffers))


def read(data: str | bytes) -> tuple[dict[str, Any], list[memoryview]]:
    """The JSON of a message, and its buffers.

    Raises:  LabError if it is none
    """
    try:
        if isinstance(data, str):
            head, tail = json.loads(data), memoryview(b"")
        else:
            end = LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "little")
            head, tail = json.loads(data[LENGTH_BYTES:end]), memoryview(data)[end:]
        buffers, at = list[memoryview](), 0
        for size in head.get("buffers", ()):
            buffers.append(tail[at : at + size])
            at += size
        if at != len(tail) or not isinstance(head["type"], str):
            raise ValueError("lengths differ")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise LabError(f"the lab sent an invalid message: {error}") from error
    return head, buffers
