"""Which bytes of each block a plan has written so far: what is read must be written before."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Sequence

Levels = Sequence[tuple[int, int]]  # (stride, count), upwards
# Of a copy that are looked at one by one, where rows of several kinds make a tensor: half and double changed none of
# 146 graphs.
MAX_ROWS = 1 << 14


class Coverage:
    """The written bytes of blocks, as sets of intervals. Most blocks are written at once and cost one look-up.

    Units:  bytes, from the start of a block
    """

    def __init__(self) -> None:
        self._ends: dict[Hashable, list[int]] = {}  # of a block: start, end, start, end, ..., upwards
        self._claims: dict[Hashable, list[tuple[int, int, int]]] = {}  # (start, end, writer), upwards
        self._rows: dict[Hashable, dict[tuple[int, int], list[tuple[int, int]]]] = {}  # that are not complete

    def write(self, block: Hashable, start: int, end: int) -> None:
        """Notes that the bytes from start to end are written."""
        known = self._ends.get(block)
        if known is None:
            self._ends[block] = [start, end]
            return
        first, last = bisect_left(known, start), bisect_right(known, end)  # ends that it touches or covers
        known[first:last] = [start] * (first % 2 == 0) + [end] * (last % 2 == 0)

    def claim(self, block: Hashable, start: int, end: int, writer: int) -> int:
        """Notes who writes these bytes; a writer that has written one of them before, or `writer` if there is none."""
        claims = self._claims.get(block)
        if claims is None:
            self._claims[block] = [(start, end, writer)]
            return writer
        place = bisect_left(claims, (start, end))
        for other_start, other_end, other in claims[max(place - 1, 0) : place + 1]:
            if other != writer and other_start < end and start < other_end:
                return other
        if place and claims[place - 1][2] == writer and claims[place - 1][1] >= start:
            before, other_end, _ = claims[place - 1]
            claims[place - 1] = before, max(end, other_end), writer
        else:
            claims.insert(place, (start, end, writer))
        return writer

    def write_places(self, block: Hashable, start: int, width: int, levels: Levels) -> None:
        """Notes runs of `width` bytes that begin at `start` and at the strides of each level from there.

        Between two of them other bytes lie, which other steps write; when rows of one stride are complete, all is
        written. Of places on very many rows of several kinds all from the first to the last is taken for written.
        """
        (stride, count), *outer = levels or ((width, 1),)
        if math.prod(size for _, size in outer) > MAX_ROWS:
            self.write(block, start, start + reach(width, levels))
            return
        starts = [start]
        for step, size in outer:
            starts = [each + i * step for each in starts for i in range(size)]
        for each in starts:
            self._write_rows(block, each, width, stride, count)

    def _write_rows(self, block: Hashable, start: int, width: int, stride: int, count: int) -> None:
        if count == 1 or width >= stride:
            self.write(block, start, start + stride * (count - 1) + width)
            return
        rows = self._rows.setdefault(block, {}).setdefault((stride, count), [])
        place = bisect_left(rows, (start, start + width))
        rows.insert(place, (start, start + width))
        first = last = place
        while first and rows[first - 1][1] >= rows[first][0]:
            first -= 1
        while last + 1 < len(rows) and rows[last + 1][0] <= rows[last][1]:
            last += 1
        if rows[last][1] - rows[first][0] >= stride:
            begin = rows[first][0]
            del rows[first : last + 1]
            self.write(block, begin, begin + stride * count)

    def missing(self, block: Hashable, start: int, end: int) -> int:
        """The first byte from start to end that nothing has written; -1 if there is none."""
        known = self._ends.get(block)
        if known is not None and len(known) == 2 and known[0] <= start and end <= known[1]:
            return -1  # most tensors: written at once
        at = self._missing(block, start, end)
        if at < 0 or block not in self._rows:
            return at
        found = [*zip(self._ends.get(block, ())[::2], self._ends.get(block, ())[1::2], strict=True)]
        for (stride, count), rows in self._rows.pop(block).items():
            if len(rows) * count > MAX_ROWS:
                found.append((rows[0][0], rows[-1][1] + stride * (count - 1)))
                continue
            steps = range(0, stride * count, stride)
            found += [(own + step, own_end + step) for own, own_end in rows for step in steps]
        self._ends[block] = []
        for own, own_end in sorted(found):  # upwards: each is put at the end
            self.write(block, own, own_end)
        return self._missing(block, start, end)

    def _missing(self, block: Hashable, start: int, end: int) -> int:
        known = self._ends.get(block, ())
        place = bisect_right(known, start)
        if start >= end or (place % 2 and known[place] >= end):
            return -1
        return known[place] if place % 2 else start


def places_of(sizes: Sequence[int], strides: Sequence[int]) -> tuple[int, Levels]:
    """(width, levels) of the places that a strided copy writes, in elements: what lies side by side, and the steps.

    The order of the dimensions does not count.
    """
    if 0 in sizes:
        return 0, ()
    width, levels = 1, list[tuple[int, int]]()
    for stride, size in sorted((stride, size) for size, stride in zip(sizes, strides, strict=True) if size != 1):
        if not levels and stride == width:
            width *= size
        elif levels and stride == levels[-1][0] * levels[-1][1]:
            levels[-1] = levels[-1][0], levels[-1][1] * size
        else:
            levels.append((stride, size))
    return width, tuple(levels)


def reach(width: int, levels: Levels) -> int:
    """From the first byte of such places to the end of the last."""
    return width + sum(stride * (count - 1) for stride, count in levels)
