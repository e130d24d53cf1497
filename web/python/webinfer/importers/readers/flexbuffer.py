"""FlexBuffers maps, read with every offset checked: how custom operators write their options.

Only what such options hold is read: a map of numbers and vectors of numbers. Nothing recurses.
Source: google/flatbuffers, docs of the FlexBuffer format (type = high six bits, width = low two bits).
"""

from __future__ import annotations

import struct

from webinfer.errors import ModelFormatError

Number = int | float
_MAP, _INT, _UINT, _FLOAT, _BOOL = 9, 1, 2, 3, 26
_INDIRECT = {6: _INT, 7: _UINT, 8: _FLOAT}
_VECTORS = {11: _INT, 12: _UINT, 13: _FLOAT, 36: _BOOL}
_LETTERS = {
    (_INT, 1): "b", (_INT, 2): "h", (_INT, 4): "i", (_INT, 8): "q", (_UINT, 1): "B", (_UINT, 2): "H", (_UINT, 4): "I",
    (_UINT, 8): "Q", (_FLOAT, 2): "e", (_FLOAT, 4): "f", (_FLOAT, 8): "d", (_BOOL, 1): "B", (_BOOL, 2): "H",
    (_BOOL, 4): "I", (_BOOL, 8): "Q",
}  # fmt: skip
_MAX_ITEMS = 65536


def read_map(data: memoryview, what: str) -> dict[str, Number | tuple[Number, ...]]:
    """The map's numbers and vectors of numbers by key; values of other types are left out.

    Raises:  ModelFormatError naming `what` if the bytes are no such map.
    """
    return _Bytes(data, what).map()


class _Bytes:
    __slots__ = ("data", "what")

    def __init__(self, data: memoryview, what: str) -> None:
        self.data, self.what = data, what

    def map(self) -> dict[str, Number | tuple[Number, ...]]:
        size = len(self.data)
        if size < 3:
            raise self.error(f"{size} bytes are too short for a map")
        root_width, root_type = self.data[size - 1], self.data[size - 2]
        if root_width not in (1, 2, 4, 8) or root_type >> 2 != _MAP:
            raise self.error(f"the last bytes {root_type}, {root_width} do not say that this is a map")
        width = 1 << (root_type & 3)
        start = self.target(size - 2 - root_width, root_width)
        count = self.count(start - width, width)
        keys_width = self.unsigned(start - 2 * width, width)
        if keys_width not in (1, 2, 4, 8):
            raise self.error(f"a key width of {keys_width}")
        keys = self.target(start - 3 * width, width)
        if self.count(keys - keys_width, keys_width) != count:
            raise self.error(f"{count} values have another number of keys")
        result: dict[str, Number | tuple[Number, ...]] = {}
        for i in range(count):
            kind = self.unsigned(start + count * width + i, 1)
            value = self.value(start + i * width, width, kind)
            if value is not None:
                result[self.key(self.target(keys + i * keys_width, keys_width))] = value
        return result

    def value(self, at: int, width: int, packed: int) -> Number | tuple[Number, ...] | None:
        """The number or vector whose inline value is at `at`; None for other types."""
        kind, own_width = packed >> 2, 1 << (packed & 3)
        if kind in (_INT, _UINT, _FLOAT, _BOOL):
            (number,) = self.numbers(kind, at, 1, width)
            return bool(number) if kind == _BOOL else number
        if kind in _INDIRECT:
            return self.numbers(_INDIRECT[kind], self.target(at, width), 1, own_width)[0]
        if kind in _VECTORS:
            start = self.target(at, width)
            return self.numbers(_VECTORS[kind], start, self.count(start - own_width, own_width), own_width)
        return None

    def numbers(self, kind: int, at: int, count: int, width: int) -> tuple[Number, ...]:
        letter = _LETTERS.get((kind, width))
        if letter is None or at < 0 or at + count * width > len(self.data):
            raise self.error(f"{count} numbers of {width} bytes would lie at byte {at}")
        return struct.unpack_from(f"<{count}{letter}", self.data, at)

    def unsigned(self, at: int, width: int) -> int:
        return int(self.numbers(_UINT, at, 1, width)[0])

    def count(self, at: int, width: int) -> int:
        found = self.unsigned(at, width)
        if found > min(_MAX_ITEMS, len(self.data)):
            raise self.error(f"a vector of {found} items")
        return found

    def target(self, at: int, width: int) -> int:
        """Where the offset at `at`, which counts backwards, points."""
        found = at - self.unsigned(at, width)
        if not 0 <= found <= at:
            raise self.error(f"an offset at byte {at} points to byte {found}")
        return found

    def key(self, at: int) -> str:
        text = bytes(self.data[at : at + 256])
        return text.partition(b"\0")[0].decode("utf-8", "replace")

    def error(self, problem: str) -> ModelFormatError:
        return ModelFormatError(f"{self.what}: its options are not a FlexBuffer map: {problem}")
