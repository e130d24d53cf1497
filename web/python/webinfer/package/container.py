"""The form of a `.webinfer` file: a header in JSON and sections of bytes, each with its SHA-256.

    bytes 0..7   "webinfer"
          8..11  version of the form, little-endian, as all numbers
         12..15  bytes of the header
         16..47  SHA-256 of the header
         48..    the header, JSON in UTF-8; `sections` has a row for each section, in order:
                 [name, first byte in the file, bytes there, bytes when unpacked, SHA-256 of those there]

A section whose two sizes differ is packed as zlib (RFC 1950). web/docs/packages.md describes the header.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from webinfer.errors import IntegrityError, LimitError, ModelFormatError
from webinfer.lazy_dataclass import dataclass

MAGIC = b"webinfer"
VERSION = 1
HEAD = struct.Struct("<8sII32s")
ALIGNMENT = 16  # bytes: where sections begin
MAX_HEADER = 16 << 20  # bytes
MAX_BYTES = 1 << 31  # of all sections, unpacked
PACKED_GAIN = 0.95  # a section is packed if that leaves less than this share


@dataclass(slots=True)
class Writer:
    """Collects sections. Bytes that come twice are stored once."""

    sections: dict[str, bytes] = field(default_factory=dict)
    _pool: bytearray = field(default_factory=bytearray)
    _places: dict[bytes, int] = field(default_factory=dict)

    def weights(self, data: bytes) -> list[int]:
        """Where these bytes lie in the section "weights": first byte and number."""
        key = hashlib.sha256(data).digest()
        if key not in self._places:
            self._pool += bytes(-len(self._pool) % ALIGNMENT)
            self._places[key] = len(self._pool)
            self._pool += data
        return [self._places[key], len(data)]

    def file(self, facts: Mapping[str, Any]) -> bytes:
        """The file, with these facts in its header."""
        sections = {"weights": bytes(self._pool), **self.sections}
        rows, parts, at = list[list[Any]](), list[bytes](), 0
        for name, data in sections.items():
            packed = zlib.compress(data, 9)
            stored = packed if len(packed) < PACKED_GAIN * len(data) else data
            rows.append([name, at, len(stored), len(data), hashlib.sha256(stored).hexdigest()])
            parts.append(stored + bytes(-len(stored) % ALIGNMENT))
            at += len(parts[-1])
        header = json.dumps({**facts, "sections": rows}, separators=(",", ":"), ensure_ascii=False).encode()
        # Sections count from the first multiple of 16 behind the header, so that its own length does not matter.
        gap = bytes(-(HEAD.size + len(header)) % ALIGNMENT)
        head = HEAD.pack(MAGIC, VERSION, len(header), hashlib.sha256(header).digest())
        return head + header + gap + b"".join(parts)


class Package:
    """A `.webinfer` file that was opened: `header`, and sections that are checked when they are asked for.

    Raises:  ModelFormatError if the bytes are not a package or break a rule; IntegrityError if the header is damaged;
             LimitError
    """

    def __init__(self, data: memoryview, name: str) -> None:
        self.name, self._data = name, memoryview(data).cast("B")
        if len(self._data) < HEAD.size:
            raise ModelFormatError(f"{name!r} has {len(self._data)} bytes, a package has at least {HEAD.size}")
        magic, version, length, digest = HEAD.unpack_from(self._data)
        if magic != MAGIC:
            raise ModelFormatError(f"{name!r} is not a package: it begins with {magic!r}, not with {MAGIC!r}")
        if version != VERSION:
            raise ModelFormatError(f"{name!r} is a package of form {version}, this engine reads {VERSION}")
        if length > MAX_HEADER:
            raise LimitError(f"header of {name!r} in bytes", length, MAX_HEADER, "the file is damaged")
        text = bytes(self._data[HEAD.size : HEAD.size + length])
        if hashlib.sha256(text).digest() != digest:
            raise IntegrityError(f"the header of package {name!r} is damaged; fetch or compile it again")
        self.header = self._parsed(text)
        self._base = -(-(HEAD.size + length) // ALIGNMENT) * ALIGNMENT
        self._rows = self._sections()
        self._opened: dict[str, memoryview] = {}

    def _parsed(self, text: bytes) -> dict[str, Any]:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ModelFormatError(f"the header of {self.name!r} is not JSON: {error}") from None
        if not isinstance(found, dict):
            raise ModelFormatError(f"the header of {self.name!r} is not a JSON object")
        return found

    def _sections(self) -> dict[str, tuple[int, int, int, str]]:
        rows, total = self.header.get("sections"), 0
        found = dict[str, tuple[int, int, int, str]]()
        for row in rows if isinstance(rows, list) else [None]:
            match row:
                case [str(name), int(at), int(stored), int(size), str(sha256)] if min(at, stored, size) >= 0:
                    found[name] = at, stored, size, sha256
                    total += size
                case _:
                    raise ModelFormatError(f"{self.name!r}: a row of its sections is {str(row)[:80]}")
        if total > MAX_BYTES:
            raise LimitError(f"sections of {self.name!r} in bytes", total, MAX_BYTES, "compile a smaller model")
        return found

    def section(self, name: str) -> memoryview:
        """A section's bytes, unpacked and checked.

        Raises:  ModelFormatError if there is none, or it ends too early; IntegrityError if it is damaged
        """
        if name not in self._opened:
            self._opened[name] = memoryview(self._unpacked(name))
        return self._opened[name]

    def _unpacked(self, name: str) -> bytes:
        if name not in self._rows:
            raise ModelFormatError(f"package {self.name!r} has no section {name!r}")
        at, stored, size, sha256 = self._rows[name]
        data = bytes(self._data[self._base + at : self._base + at + stored])
        if len(data) != stored or hashlib.sha256(data).hexdigest() != sha256:
            raise IntegrityError(f"section {name!r} of package {self.name!r} is damaged; fetch or compile it again")
        if stored == size:
            return data
        try:
            unpacking = zlib.decompressobj()
            data = unpacking.decompress(data, size)
        except zlib.error as error:
            raise ModelFormatError(f"section {name!r} of package {self.name!r} cannot be unpacked: {error}") from None
        if len(data) != size or not unpacking.eof:
            raise ModelFormatError(f"section {name!r} of package {self.name!r} does not have {size} bytes")
        return data

    def json(self, name: str) -> Any:
        """A section that holds JSON.

        Raises:  as `section`
        """
        try:
            return json.loads(bytes(self.section(name)))
        except (ValueError, RecursionError) as error:
            raise ModelFormatError(f"section {name!r} of package {self.name!r} is not JSON: {error}") from None
