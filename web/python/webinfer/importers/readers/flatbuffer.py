"""FlatBuffers, read with every offset checked before use: lazy tables over a view of the file.

Nothing here recurses, and nothing is copied but numbers and names. What a file may make the reader
decode is bounded by the file's own length, so shared or overlapping vectors cannot blow up.
The `flatbuffers` package would not do: it trusts every offset, and each page would have to load it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from webinfer.errors import ModelFormatError

_U16 = struct.Struct("<H").unpack_from
_U32 = struct.Struct("<I").unpack_from
_I32 = struct.Struct("<i").unpack_from
_SCALARS = {
    kind: (struct.Struct("<" + letter).unpack_from, struct.calcsize("<" + letter), letter)
    for kind, letter in {
        "bool": "?", "i8": "b", "u8": "B", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q", "f32": "f",
    }.items()
}  # fmt: skip
_MAX_NAME_BYTES = 512  # bytes of a string that are decoded; names are for people


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a table: its slot, what it holds, and its value when absent.

    `kind` is a scalar kind ("i32"), "str", "bytes", "union", a table's name, or one of these in brackets.
    """

    slot: int
    kind: str
    default: int | float | bool = 0


Schema = Mapping[str, Mapping[str, Field]]


class Reader:
    """The bytes of one file and what may still be decoded from them."""

    __slots__ = ("_allowance", "data", "name", "schema", "size")

    def __init__(self, data: memoryview, name: str, schema: Schema) -> None:
        self.data, self.name, self.schema = data, name, schema
        self.size = len(data)
        self._allowance = 16 * self.size + 4096

    def root(self, kind: str) -> Table:
        """The table that the file begins with."""
        if self.size < 8:
            raise self.error(0, f"the file has {self.size} bytes, a {kind} needs at least 8")
        return Table(self, self.follow(0, f"{kind} root"), kind)

    def error(self, at: int, problem: str) -> ModelFormatError:
        """An error that names the file and the byte."""
        return ModelFormatError(f"{self.name}: byte {at} of {self.size}: {problem}; the file is damaged, get it again")

    def follow(self, at: int, what: str) -> int:
        """Where the offset stored at `at` points; `at` itself must have been checked."""
        (offset,) = _U32(self.data, at)
        target = at + int(offset)
        if offset < 4 or target + 4 > self.size:
            raise self.error(at, f"{what} points to byte {target}")
        return target

    def vector(self, at: int, item_size: int, what: str) -> tuple[int, int]:
        """First byte and item count of the vector whose offset is stored at `at`."""
        start = self.follow(at, what)
        (count,) = _U32(self.data, start)
        end = start + 4 + int(count) * item_size
        if end > self.size:
            raise self.error(start, f"{what} has {count} items, which would end at byte {end}")
        return start + 4, int(count)

    def spend(self, amount: int, at: int, what: str) -> None:
        """Counts decoded bytes against what the file's length allows."""
        self._allowance -= amount
        if self._allowance < 0:
            raise self.error(at, f"{what}: the same bytes are referenced over and over")


class Table:
    """A table whose vtable has been checked; its fields are checked when they are read."""

    __slots__ = ("_end", "_fields", "_vtable", "_vtable_end", "at", "kind", "reader")

    def __init__(self, reader: Reader, at: int, kind: str) -> None:
        self.reader, self.at, self.kind = reader, at, kind
        self._fields = reader.schema[kind]
        vtable = at - int(_I32(reader.data, at)[0])
        if vtable < 0 or vtable + 4 > reader.size:
            raise reader.error(at, f"the field list of {kind} would be at byte {vtable}")
        self._vtable = vtable
        self._vtable_end = vtable + int(_U16(reader.data, vtable)[0])
        self._end = at + int(_U16(reader.data, vtable + 2)[0])
        if self._vtable_end < vtable + 4 or self._vtable_end > reader.size or (self._vtable_end - vtable) % 2:
            raise reader.error(vtable, f"the field list of {kind} would end at byte {self._vtable_end}")
        if self._end < at + 4 or self._end > reader.size:
            raise reader.error(vtable + 2, f"{kind} would end at byte {self._end}")

    def _find(self, field: Field, size: int, name: str) -> int:
        """Byte of a field of `size` bytes, 0 if absent."""
        entry = self._vtable + 4 + 2 * field.slot
        if entry + 2 > self._vtable_end:
            return 0
        (offset,) = _U16(self.reader.data, entry)
        if offset == 0:
            return 0
        at = self.at + int(offset)
        if offset < 4 or at + size > self._end:
            raise self.reader.error(entry, f"field {name} of {self.kind} would be at byte {at}")
        return at

    def _scalar(self, name: str) -> int | float | bool:
        field = self._fields[name]
        unpack, size, _ = _SCALARS[field.kind]
        at = self._find(field, size, name)
        if not at:
            return field.default
        if field.kind == "bool":  # any non-zero byte is true
            return self.reader.data[at] != 0
        value: int | float = unpack(self.reader.data, at)[0]
        return value

    def number(self, name: str) -> int:
        """An integer field."""
        return int(self._scalar(name))

    def real(self, name: str) -> float:
        """A float field."""
        return float(self._scalar(name))

    def flag(self, name: str) -> bool:
        """A boolean field."""
        return bool(self._scalar(name))

    def has(self, name: str) -> bool:
        """Whether the field is stored."""
        return self._find(self._fields[name], 1, name) != 0

    def text(self, name: str) -> str:
        """A string field, cut to a name's length; empty if absent."""
        at = self._find(self._fields[name], 4, name)
        if not at:
            return ""
        what = f"{self.kind}.{name}"
        start, count = self.reader.vector(at, 1, what)
        if start + count >= self.reader.size:  # a string ends with a zero byte
            raise self.reader.error(start, f"{what} of {count} bytes has no end")
        count = min(count, _MAX_NAME_BYTES)
        self.reader.spend(count, at, what)
        return str(self.reader.data[start : start + count], "utf-8", "replace")

    def blob(self, name: str) -> memoryview:
        """A byte vector as a view; empty if absent."""
        at = self._find(self._fields[name], 4, name)
        if not at:
            return self.reader.data[:0]
        start, count = self.reader.vector(at, 1, f"{self.kind}.{name}")
        return self.reader.data[start : start + count]

    def view(self, name: str) -> memoryview:
        """A vector of numbers as a typed view of the file; empty if absent."""
        field = self._fields[name]
        _, size, letter = _SCALARS[field.kind[1:-1]]
        at = self._find(field, 4, name)
        if not at:
            return self.reader.data[:0]
        start, count = self.reader.vector(at, size, f"{self.kind}.{name}")
        if not count:
            return self.reader.data[:0]
        return self.reader.data[start : start + count * size].cast(letter)  # type: ignore[call-overload,no-any-return]

    def numbers(self, name: str) -> tuple[int, ...]:
        """A vector of integers; empty if absent."""
        found = self.view(name)
        self.reader.spend(found.nbytes, self.at, f"{self.kind}.{name}")
        return tuple(found)

    def reals(self, name: str) -> tuple[float, ...]:
        """A vector of floats; empty if absent."""
        found = self.view(name)
        self.reader.spend(found.nbytes, self.at, f"{self.kind}.{name}")
        return tuple(map(float, found))

    def count(self, name: str) -> int:
        """How many items a vector has, without reading them."""
        field = self._fields[name]
        at = self._find(field, 4, name)
        item = field.kind[1:-1]
        size = _SCALARS[item][1] if item in _SCALARS else 4
        return self.reader.vector(at, size, f"{self.kind}.{name}")[1] if at else 0

    def table(self, name: str, kind: str | None = None) -> Table | None:
        """A sub-table, or None if absent; `kind` says which member of a union it is."""
        field = self._fields[name]
        at = self._find(field, 4, name)
        if not at:
            return None
        self.reader.spend(4, at, f"{self.kind}.{name}")
        return Table(self.reader, self.reader.follow(at, f"{self.kind}.{name}"), kind or field.kind)

    def tables(self, name: str) -> list[Table]:
        """A vector of tables; empty if absent."""
        field = self._fields[name]
        at = self._find(field, 4, name)
        if not at:
            return []
        what = f"{self.kind}.{name}"
        start, count = self.reader.vector(at, 4, what)
        self.reader.spend(4 * count, start, what)
        reader, kind = self.reader, field.kind[1:-1]
        return [Table(reader, reader.follow(i, what), kind) for i in range(start, start + 4 * count, 4)]
