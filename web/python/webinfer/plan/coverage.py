"""Which bytes of each block a plan has written so far: what is read must be written before."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Hashable, Sequence

MAX_ROWS = 1 << 14  # of a copy that are looked at one by one, where rows of several kinds make a tensor


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

    def write_rows(self, block: Hashable, start: int, width: int, stride: int, count: int) -> None:
        """Notes `count` runs of `width` bytes, whose starts are `stride` apart.

        Between two of them other bytes lie, which other steps write; when these rows are complete, all is written.
        """
        if count == 1 or width == stride:
            self.write(block, start, start + stride * (count - 1) + width)
            return
        groups = self._rows.setdefault(block, {})
        rows = groups.setdefault((stride, count), [])
        insort(rows, (start, start + width))
        first = begin = end = -1
        for place, (own, own_end) in enumerate(rows):
            if own > end or first < 0:
                first, begin = own, place
            end = max(end, own_end)
            if end - first >= stride:
                del rows[begin : place + 1]
                self.write(block, first, first + stride * count)
                return

    def missing(self, block: Hashable, start: int, end: int) -> int:
        """The first byte from start to end that nothing has written; -1 if there is none."""
        known = self._ends.get(block)
        if known is not None and len(known) == 2 and known[0] <= start and end <= known[1]:
            return -1  # most tensors: written at once
        at = self._missing(block, start, end)
        if at < 0 or block not in self._rows:
            return at
        for (stride, count), rows in self._rows.pop(block).items():
            if count > MAX_ROWS:
                self._rows.setdefault(block, {})[stride, count] = rows
                continue
            for own, own_end in rows:
                for offset in range(0, stride * count, stride):
                    self.write(block, own + offset, own_end + offset)
        return self._missing(block, start, end)

    def _missing(self, block: Hashable, start: int, end: int) -> int:
        known = self._ends.get(block, ())
        place = bisect_right(known, start)
        if start >= end or (place % 2 and known[place] >= end):
            return -1
        return known[place] if place % 2 else start


def rows_of(sizes: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int, int, int]]:
    """(start, width, stride, count) of the rows that a strided copy writes, in elements.

    The order of the dimensions does not count. Where gaps are of several kinds, as inside of an image that is padded on
    all sides, there are such rows for each of the outer ones.
    """
    if 0 in sizes:
        return []
    width, levels = 1, list[tuple[int, int]]()  # (stride, count) of what does not follow without a gap
    for stride, size in sorted((stride, size) for size, stride in zip(sizes, strides, strict=True) if size != 1):
        if not levels and stride == width:
            width *= size
        elif levels and stride == levels[-1][0] * levels[-1][1]:
            levels[-1] = levels[-1][0], levels[-1][1] * size
        else:
            levels.append((stride, size))
    if not levels:
        return [(0, width, width, 1)]
    if levels[0][0] < width:
        return []  # its rows lie on each other
    starts = [0]
    for stride, count in levels[1:]:
        if len(starts) * count > MAX_ROWS:
            break
        starts = [start + i * stride for i in range(count) for start in starts]
    return [(start, width, *levels[0]) for start in starts]
