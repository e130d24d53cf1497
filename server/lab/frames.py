"""A message of the lab: JSON, and behind it buffers where it has such.

A message without buffers is a text, its JSON. One with buffers is binary: the length of the JSON in four bytes, least
significant first, the JSON, and the buffers one behind the other; `buffers` in the JSON lists their lengths, and
{"buffer": n} stands for one of them. The messages themselves are those of the page's engine (ask, stop, step, answer,
error in webinfer/page/messages.toml), and those by which devices and programs come and go.
"""

import json
from dataclasses import dataclass
from typing import Any

from server.lab.clean import loads

LENGTH_BYTES = 4
MAX_HEAD_BYTES = 1 << 24  # of the JSON
MAX_BUFFERS = 4096


class FrameError(ValueError):
    """Bytes that are not a message of the lab; the message says why."""


@dataclass(frozen=True)
class Frame:
    """One message: its JSON, and its buffers in a row."""

    head: dict[str, Any]
    tail: bytes = b""

    @property
    def kind(self) -> str:
        """The type of the message, such as "ask"."""
        return str(self.head["type"])

    def with_fields(self, **fields: Any) -> "Frame":
        """The same message with some fields replaced."""
        return Frame({**self.head, **fields}, self.tail)

    def written(self) -> str | bytes:
        """The message as it is sent."""
        text = json.dumps(self.head)
        if not self.head.get("buffers"):
            return text
        data = text.encode()
        return len(data).to_bytes(LENGTH_BYTES, "little") + data + self.tail


def message(kind: str, **fields: Any) -> Frame:
    """A message without buffers."""
    return Frame({"type": kind, **fields})


def read(data: str | bytes) -> Frame:
    """The message in what was received.

    Raises: FrameError if it is none
    """
    text, tail = _parts(data)
    if len(text) > MAX_HEAD_BYTES:
        raise FrameError(f"its JSON has more than {MAX_HEAD_BYTES} bytes")
    try:
        head = loads(text)
    except (ValueError, RecursionError) as error:
        raise FrameError("it holds no JSON") from error
    if not isinstance(head, dict) or not isinstance(head.get("type"), str):
        raise FrameError("its JSON is not an object with a type")
    sizes = head.get("buffers", [])
    if not isinstance(sizes, list) or len(sizes) > MAX_BUFFERS or not all(type(n) is int and n >= 0 for n in sizes):
        raise FrameError("its buffers are not a list of lengths")
    if sum(sizes) != len(tail):
        raise FrameError(f"its buffers should have {sum(sizes)} bytes and have {len(tail)}")
    return Frame(head, tail)


def _parts(data: str | bytes) -> tuple[str | bytes, bytes]:
    """The JSON of a message and the bytes behind it."""
    if isinstance(data, str):
        return data, b""
    end = LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "little")
    if len(data) < LENGTH_BYTES or end > len(data):
        raise FrameError("it ends before its JSON does")
    return data[LENGTH_BYTES:end], data[end:]
