"""What plans of one model tell equal constants by, so that they are in the kernels' memory once."""

from __future__ import annotations

import gc

from webinfer.plan.marks import LARGE_BYTES, Marks

FILE = bytes(range(256)) * (4 * LARGE_BYTES // 256)


def test_a_large_part_of_a_file_is_itself_and_no_other() -> None:
    marks, data = Marks(), memoryview(FILE)
    first, second = data[:LARGE_BYTES], data[LARGE_BYTES : 2 * LARGE_BYTES]
    assert first == second  # as bytes; only their places tell them apart
    assert marks.of(first, lasting=False) == marks.of(first, lasting=False) != marks.of(second, lasting=False)


def test_small_parts_whole_buffers_and_lasting_marks_are_hashes() -> None:
    one, other, data = Marks(), Marks(), memoryview(FILE)
    for part, lasting in ((data[:64], False), (data, False), (data[:LARGE_BYTES], True)):
        assert one.of(part, lasting) == other.of(memoryview(bytes(part)), lasting)


def test_a_view_that_takes_the_place_of_another_gets_a_mark_of_its_own() -> None:
    marks, data, seen = Marks(), memoryview(FILE), set[bytes]()
    for start in range(50):  # ids of views that are gone are given again
        seen.add(marks.of(data[start : start + LARGE_BYTES], lasting=False))
        gc.collect()
    assert len(seen) == 50


def test_a_number_is_never_given_as_a_mark_that_lasts() -> None:
    """A small plan that is stored may read what a large one has named before."""
    marks, part = Marks(), memoryview(FILE)[:LARGE_BYTES]
    number = marks.of(part, lasting=False)
    assert marks.of(part, lasting=True) == Marks().of(part, lasting=True) != number
