"""FlatBuffers, read with every offset checked before use: lazy tables over a view of the file.

Nothing here recurses, and nothing is copied but numbers and names. What a file may make the reader
decode is bounded by the file's own length, so shared or overlapping vectors cannot blow up.
The `flatbuffers` package would not do: it trusts every offset, and each page would have to load it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import cache
from typing import Any

from webinfer.errors import ModelFormatError
from webinfer.lazy_dataclass import dataclass

_U16 = struct.Struct("<H").unpack_from
_U32 = struct.Struct("<I").unpack_from
_I32 = struct.Struct("<i").unpack_from
_HEAD = struct.Struct("<HH").unpack_from
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

    __slots__ = ("_allowance", "_layouts", "data", "name", "schema", "size")

    def __init__(self, data: memoryview, name: str, schema: Schema) -> None:
        self.data, self.name, self.schema = data, name, schema
        self.size = len(data)
        self._allowance = 16 * self.size + 4096
        self._layouts: dict[tuple[int, str], Layout] = {}

    def root(self, kind: str) -> Table:
        """The table that the file begins with."""
        if self.size < 8:
            raise self.error(0, f"the file has {self.size} bytes, a {kind} needs at least 8")
        return Table(self, self.follow(0, f"{kind} root"), kind)

    def error(self, at: int, problem: str) -> ModelFormatError:
        """An error that names the file and the byte."""
        return ModelFormatError(
            f"{self.name}: byte {at} of {self.size}: {problem}; the file is damaged; download it again"
        )

    def follow(self, at: int, what: str) -> int:
        """Where the offset stored at `at` points; `at` itself must have been checked."""
        (offset,) = _U32(self.data, at)
        target = at + int(offset)
        if offset < 4 or target + 4 > self.size:
            raise self.error(at, f"{what} points to byte {target}")
        return target

    def layout(self, vtable: int, at: int, kind: str) -> Layout:
        """The layout of the table of that kind at `at`, whose list of fields is at `vtable`."""
        found = self._layouts.get((vtable, kind))
        if found is None:
            found = self._layouts[vtable, kind] = Layout(self, vtable, at, kind)
        return found

    def vector(self, at: int, item_size: int, table: Table, field: str) -> tuple[int, int]:
        """First byte and item count of the vector whose offset is stored at `at`, a field of this table."""
        (offset,) = _U32(self.data, at)
        start = at + offset
        if offset < 4 or start + 4 > self.size:
            self.follow(at, f"{table.kind}.{field}")
        (count,) = _U32(self.data, start)
        end = start + 4 + count * item_size
        if end > self.size:
            raise self.error(start, f"{table.kind}.{field} has {count} items, which would end at byte {end}")
        return start + 4, count

    def spend(self, amount: int, at: int, what: object) -> None:
        """Counts decoded bytes against what the file's length allows."""
        self._allowance -= amount
        if self._allowance < 0:
            raise self.error(at, f"{what}: the same bytes are referenced over and over")


class Layout:
    """Where tables that share a list of fields (a vtable) hold them: checked once, for all of them.

    `places` has for each field of the kind: bytes from a table's first one to the field, 0 if absent, -1 if it would
    lie outside; how it is read, which is what unpacks a number, the size of a vector's items and their letter, or a
    kind of table; and the number that stands for an absent one.
    """

    __slots__ = ("places", "size")

    def __init__(self, reader: Reader, vtable: int, at: int, kind: str) -> None:
        if vtable < 0 or vtable + 4 > reader.size:
            raise reader.error(at, f"the field list of {kind} would be at byte {vtable}")
        length, self.size = _HEAD(reader.data, vtable)
        if length < 4 or vtable + length > reader.size or length % 2:
            raise reader.error(vtable, f"the field list of {kind} would end at byte {vtable + length}")
        if self.size < 4:
            raise reader.error(vtable + 2, f"{kind} would end at byte {at + self.size}")
        self.places: dict[str, tuple[int, Any, Any]] = {}
        for name, field in reader.schema[kind].items():
            entry = 4 + 2 * field.slot
            (offset,) = _U16(reader.data, vtable + entry) if entry < length else (0,)
            how, size = _reading(field.kind)
            if offset and not 4 <= offset <= self.size - size:
                offset = -1
            self.places[name] = (offset, how, field.default)


@cache
def _reading(kind: str) -> tuple[Any, int]:
    """How a field of this kind is read (Layout), and its bytes in a table."""
    if kind in _SCALARS:
        return _SCALARS[kind][:2]
    if not kind.startswith("["):
        return kind, 4
    return (_SCALARS[kind[1:-1]][1:] if kind[1:-1] in _SCALARS else (4, kind[1:-1])), 4


class Table:
    """A table whose list of fields has been checked; what they point at is checked when they are read."""

    __slots__ = ("_places", "at", "kind", "reader")

    def __init__(self, reader: Reader, at: int, kind: str) -> None:
        self.reader, self.at, self.kind = reader, at, kind
        layout = reader.layout(at - _I32(reader.data, at)[0], at, kind)
        if at + layout.size > reader.size:
            raise reader.error(at, f"{kind} would end at byte {at + layout.size}")
        self._places = layout.places

    def _outside(self, name: str) -> ModelFormatError:
        return self.reader.error(self.at, f"field {name} of {self.kind} would be outside of it")

    def number(self, name: str) -> Any:
        """A field that is one number or a boolean; its default if absent."""
        place, unpack, absent = self._places[name]
        if place <= 0:
            if place:
                raise self._outside(name)
            return absent
        return unpack(self.reader.data, self.at + place)[0]

    def real(self, name: str) -> float:
        """A float field."""
        return float(self.number(name))

    def flag(self, name: str) -> bool:
        """A boolean field: any byte but zero is true."""
        return bool(self.number(name))

    def has(self, name: str) -> bool:
        """Whether the field is stored."""
        return bool(self._places[name][0])

    def _vector(self, name: str) -> tuple[int, int, int, str]:
        """First byte and item count of a vector, its items' size and their letter; nothing if absent."""
        place, (size, letter), _ = self._places[name]
        if place <= 0:
            if place:
                raise self._outside(name)
            return 0, 0, size, letter
        start, count = self.reader.vector(self.at + place, size, self, name)
        return start, count, size, letter

    def text(self, name: str) -> str:
        """A string field, cut to a name's length; empty if absent."""
        place, reader = self._places[name][0], self.reader
        if place <= 0:
            if place:
                raise self._outside(name)
            return ""
        start, count = reader.vector(self.at + place, 1, self, name)
        if start + count >= reader.size:  # a string ends with a zero byte
            raise reader.error(start, f"{self.kind}.{name} of {count} bytes has no end")
        count = min(count, _MAX_NAME_BYTES)
        reader.spend(count, self.at, self.kind)
        return str(reader.data[start : start + count], "utf-8", "replace")

    def blob(self, name: str) -> memoryview:
        """A byte vector as a view; empty if absent."""
        start, count, _, _ = self._vector(name)
        return self.reader.data[start : start + count]

    def view(self, name: str) -> memoryview:
        """A vector of numbers as a typed view of the file; empty if absent."""
        start, count, size, letter = self._vector(name)
        found = self.reader.data[start : start + count * size]
        return found.cast(letter) if count else found  # type: ignore[call-overload]

    def numbers(self, name: str) -> tuple[int, ...]:
        """A vector of integers; empty if absent."""
        if not self._places[name][0]:
            return ()
        found = self.view(name)
        self.reader.spend(found.nbytes, self.at, self.kind)
        return tuple(found)

    def reals(self, name: str) -> tuple[float, ...]:
        """A vector of floats; empty if absent."""
        return tuple(map(float, self.numbers(name)))

    def count(self, name: str) -> int:
        """How many items a vector has, without reading them."""
        return self._vector(name)[1]

    def table(self, name: str, kind: str | None = None) -> Table | None:
        """A sub-table, or None if absent; `kind` says which member of a union it is."""
        place, own, _ = self._places[name]
        if place <= 0:
            if place:
                raise self._outside(name)
            return None
        reader, at = self.reader, self.at + place
        reader.spend(4, at, self.kind)
        return Table(reader, reader.follow(at, name), kind or own)

    def tables(self, name: str) -> list[Table]:
        """A vector of tables; empty if absent."""
        start, count, _, kind = self._vector(name)
        reader = self.reader
        reader.spend(4 * count, start, name)
        return [Table(reader, reader.follow(i, name), kind) for i in range(start, start + 4 * count, 4)]
