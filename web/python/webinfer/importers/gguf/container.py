"""The bytes of a GGUF file: its metadata, and where each tensor lies. Nothing is copied but texts.

Source: the format's specification, version 2 and 3, little-endian
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from webinfer.errors import LimitError, ModelFormatError
from webinfer.graph.printer import safe_name
from webinfer.importers.core.limits import MAX_TENSOR_BYTES, MAX_TENSORS, within
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.language import BlockType
from webinfer.spans import FileSpan

MAGIC = b"GGUF"
MAX_FACTS = 10_000  # of metadata
MAX_ITEMS = 2_000_000  # of all lists of metadata together
MAX_DIMENSIONS = 4
WINDOW = 1 << 20  # bytes of a list of texts that are looked at together
HEAD_BYTES = 4 << 20  # of a file that is not in memory, read first
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9
_OTHER_TYPES = {
    9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S",
    20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64",
    29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4",
}  # fmt: skip
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor: its sizes, the innermost first, as the file has them, its type and its bytes in the file.

    `type` is None where webinfer does not read it; `type_name` is its name or number. A spans.FileSpan stands for
    bytes that are not in memory.
    """

    name: str
    sizes: tuple[int, ...]
    type: BlockType | None
    type_name: str
    data: memoryview


@dataclass(frozen=True, slots=True)
class GgufFile:
    """A file that was read: its metadata by key, its tensors by name."""

    name: str
    facts: Mapping[str, Any]
    tensors: Mapping[str, StoredTensor]

    def fact(self, key: str, kind: type[T] | tuple[type[T], ...], default: T | None = None) -> T:
        """The value of a key.

        Raises:  ModelFormatError if there is none and no default, or it is of another kind
        """
        found = self.facts.get(key, default)
        if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
            what = "missing" if found is None else f"a {type(found).__name__}"
            raise ModelFormatError(f"{self.name!r}: {key} is {what}; the file is damaged or of another kind")
        return found


class _Cursor:
    """Reads the file's first bytes; `size` is that of all of it."""

    def __init__(self, data: memoryview, name: str, size: int) -> None:
        self._data, self._name, self._size, self.at, self._items = data, name, size, 4, 0

    def number(self, letter: str) -> Any:
        size = struct.calcsize(f"<{letter}")
        if self.at + size > len(self._data):
            raise self._short("a number")
        (found,) = struct.unpack_from(f"<{letter}", self._data, self.at)
        self.at += size
        return found

    def text(self) -> str:
        return str(self.bytes(), "utf-8", "replace")

    def bytes(self) -> memoryview:
        length, start = self.number("Q"), self.at
        if length > len(self._data) - start:
            raise self._short(f"a text of {length} bytes")
        self.at = start + length
        return self._data[start : self.at]

    def value(self, kind: int, depth: int = 0) -> Any:
        if kind == _TEXT:
            return self.text()
        if kind in _NUMBERS:
            return self.number(_NUMBERS[kind])
        if kind != _LIST or depth:
            raise ModelFormatError(
                f"{self._name!r}: metadata of type {kind} before byte {self.at}; the file is damaged"
            )
        inner, count = self.number("I"), self.number("Q")
        self._items += count
        within(f"items of lists in {self._name!r}", self._items, MAX_ITEMS)
        if inner in _NUMBERS:
            size = struct.calcsize(f"<{_NUMBERS[inner]}") * count
            if size > len(self._data) - self.at:
                raise self._short(f"a list of {count} numbers")
            found = list(struct.unpack_from(f"<{count}{_NUMBERS[inner]}", self._data, self.at))
            self.at += size
            return found
        if inner == _TEXT:
            return self._texts(count)
        return [self.value(inner, depth + 1) for _ in range(count)]

    def _texts(self, count: int) -> list[str]:
        """So many texts: vocabularies have a hundred thousand, so they are found and decoded without calls for each."""
        found: list[bytes] = []
        length_at = struct.Struct("<Q").unpack_from
        while len(found) < count:
            window, at, before = bytes(self._data[self.at : self.at + WINDOW]), 0, len(found)
            last = len(window) - 8
            while at <= last and len(found) < count:
                end = at + 8 + length_at(window, at)[0]
                if end > len(window):
                    break
                found.append(window[at + 8 : end])
                at = end
            self.at += at
            if len(found) == before:  # one that is longer than the window, or cut off
                found.append(bytes(self.bytes()))
        whole = b"\0".join(found)
        if whole.count(b"\0") == count - 1:
            return str(whole, "utf-8", "replace").split("\0")
        return [str(text, "utf-8", "replace") for text in found]

    def _short(self, what: str) -> ModelFormatError:
        if len(self._data) < self._size:
            return _MoreOfIt(self._name)
        return ModelFormatError(
            f"{self._name!r} ends inside {what} at byte {self.at} of {self._size}; the download was cut off "
            "or the file is damaged"
        )


class _MoreOfIt(ModelFormatError):
    """The head goes on behind the bytes that were read."""


def read_file(data: memoryview | FileSpan, name: str) -> GgufFile:
    """What a file holds; tensors are views of `data`, or parts of a file that is not in memory.

    Raises:  ModelFormatError if the bytes break a rule of the format; LimitError
    """
    if isinstance(data, memoryview):
        return _read(data, data, name)
    length = HEAD_BYTES
    while True:
        try:
            return _read(data.part(0, min(length, len(data))).view(), data, name)
        except _MoreOfIt:
            length *= 4


def _read(head: memoryview, data: memoryview | FileSpan, name: str) -> GgufFile:
    if bytes(head[:4]) != MAGIC:
        raise ModelFormatError(f"{name!r} does not start with the bytes GGUF")
    cursor = _Cursor(head, name, len(data))
    version = cursor.number("I")
    if version not in (2, 3):
        raise ModelFormatError(f"{name!r} is GGUF version {version}; supported are versions 2 and 3, little-endian")
    tensors, facts = cursor.number("Q"), cursor.number("Q")
    within(f"tensors of {name!r}", tensors, MAX_TENSORS)
    within(f"entries of metadata in {name!r}", facts, MAX_FACTS)
    found: dict[str, Any] = {}
    for _ in range(facts):
        key = cursor.text()
        found[key] = cursor.value(cursor.number("I"))
    heads = [_head(cursor, name) for _ in range(tensors)]
    alignment = found.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 1 <= alignment <= 1 << 20 or alignment & (alignment - 1):
        raise ModelFormatError(f"{name!r}: general.alignment is {alignment!r}; needs a power of two")
    start = -(-cursor.at // alignment) * alignment
    stored = {head[0]: _tensor(data, start, name, *head) for head in heads}
    if len(stored) < tensors:
        raise ModelFormatError(f"{name!r} has two tensors with the same name; the file is damaged")
    return GgufFile(name, found, stored)


def _head(cursor: _Cursor, name: str) -> tuple[str, tuple[int, ...], int, int]:
    tensor, rank = cursor.text(), cursor.number("I")
    if not 1 <= rank <= MAX_DIMENSIONS:
        raise ModelFormatError(f"{name!r}: tensor {safe_name(tensor)} has {rank} dimensions; the file is damaged")
    sizes = tuple(cursor.number("Q") for _ in range(rank))
    return tensor, sizes, cursor.number("I"), cursor.number("Q")


def _tensor(
    data: memoryview | FileSpan, start: int, name: str, tensor: str, sizes: tuple[int, ...], kind: int, at: int
) -> StoredTensor:
    what = f"{name!r}: tensor {safe_name(tensor)}"
    if kind not in BlockType._value2member_map_:
        return StoredTensor(tensor, sizes, None, _OTHER_TYPES.get(kind, f"number {kind}"), memoryview(b""))
    type, count = BlockType(kind), math.prod(sizes)
    if not all(sizes) or sizes[0] % type.elements:
        raise ModelFormatError(f"{what} has sizes {sizes}, no whole blocks of {type.name}; the file is damaged")
    nbytes = count // type.elements * type.nbytes
    if nbytes > MAX_TENSOR_BYTES:
        raise LimitError(f"{what} in bytes", nbytes, MAX_TENSOR_BYTES, "use a smaller model")
    first = start + at
    if first + nbytes > len(data):
        end = f"ends at byte {first + nbytes} of {len(data)}"
        raise ModelFormatError(f"{what} {end}; the download was cut off or the file is damaged")
    stored = data.part(first, nbytes) if isinstance(data, FileSpan) else data[first : first + nbytes]
    return StoredTensor(tensor, sizes, type, type.name, cast("memoryview", stored))
