"""Intervals of written bytes, beside sets of single bytes."""

from __future__ import annotations

import random
import time
from itertools import product

from webinfer.plan.coverage import Coverage, places_of, reach


def test_intervals_are_the_bytes_that_were_written() -> None:
    draw = random.Random(1)
    for _ in range(300):
        coverage, known = Coverage(), set[int]()
        for _ in range(draw.randint(1, 12)):
            start, end = sorted((draw.randint(0, 40), draw.randint(0, 40)))
            if end > start:
                coverage.write("block", start, end)
                known |= {*range(start, end)}
            low, high = sorted((draw.randint(0, 40), draw.randint(0, 40)))
            missing = next((at for at in range(low, high) if at not in known), -1)
            assert coverage.missing("block", low, high) == missing
    assert Coverage().missing("other", 3, 4) == 3


def test_rows_are_one_interval_when_they_are_complete() -> None:
    coverage = Coverage()
    coverage.write_places("y", 100, 8, [(24, 5)])
    coverage.write_places("y", 300, 12, [(24, 5)])  # of another tensor in the same block
    coverage.write_places("y", 116, 8, [(24, 5)])
    coverage.write_places("y", 312, 12, [(24, 5)])
    assert coverage.missing("y", 300, 420) == -1
    assert coverage.missing("y", 100, 220) == 108
    coverage.write_places("y", 108, 8, [(24, 5)])
    assert coverage.missing("y", 100, 220) == -1
    assert coverage.missing("y", 100, 221) == 220


def test_rows_of_several_kinds_are_joined() -> None:
    coverage = Coverage()  # 6 rows of 10 bytes: the middle, then its edges, as mirrored pads are made
    coverage.write_places("y", 12, 6, [(10, 4)])
    coverage.write_places("y", 0, 2, [(10, 6)])
    coverage.write_places("y", 8, 2, [(10, 6)])
    coverage.write("y", 2, 8)
    assert coverage.missing("y", 0, 52) == -1
    assert coverage.missing("y", 0, 60) == 52
    coverage.write("y", 52, 58)
    assert coverage.missing("y", 0, 60) == -1


def test_places_of_a_strided_copy() -> None:
    draw = random.Random(2)
    for _ in range(300):
        sizes, stride, dims = [draw.randint(1, 4) for _ in range(draw.randint(1, 4))], 1, list[tuple[int, int]]()
        for size in sizes:
            stride *= draw.choice((1, 1, 2, 3))
            dims.append((size, stride))
            stride *= size
        draw.shuffle(dims)
        width, levels = places_of(*zip(*dims, strict=True))
        want = {sum(i * s for i, (_, s) in zip(at, dims, strict=True)) for at in product(*(range(n) for n, _ in dims))}
        got = {sum(i * s for i, (s, _) in zip(at, levels, strict=True)) + i
               for at in product(*(range(n) for _, n in levels)) for i in range(width)}  # fmt: skip
        assert got == want
        assert reach(width, levels) == max(want) + 1
        coverage = Coverage()
        coverage.write_places("y", 7, width, levels)
        assert [coverage.missing("y", at, at + 1) < 0 for at in range(7 + stride)] == [
            at - 7 in want for at in range(7 + stride)
        ]
    assert places_of((3, 0), (4, 1)) == (0, ())


def test_very_many_places_are_not_walked_one_by_one() -> None:
    coverage, start = Coverage(), time.process_time()
    coverage.write_places("y", 0, 1, [(3, 1000), (6000, 1 << 20)])
    coverage.write_places("z", 0, 1, [(3, 1 << 20)])
    assert coverage.missing("y", 0, 6000 << 20) > 0
    assert coverage.missing("z", 0, 3 << 20) == 3 * ((1 << 20) - 1) + 1
    assert time.process_time() - start < 0.5
