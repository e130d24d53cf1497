"""Rounding to float32: of many numbers as of each one."""

import math

from webinfer.dtypes import all_to_f32, round_to_f32

LARGEST = 2.0**128 - 2.0**104  # the largest float32
NUMBERS = [0.0, -0.0, 0.1, -1 / 3, 2.0**-149, 2.0**-150, 1e-60, LARGEST, LARGEST + 2.0**103, 1e39, -1e39, math.inf]


def test_many_numbers_are_rounded_as_each_one_is() -> None:
    assert [number.hex() for number in all_to_f32(NUMBERS)] == [round_to_f32(number).hex() for number in NUMBERS]
    assert all(map(math.isnan, all_to_f32([math.nan, round_to_f32(math.nan)])))
    assert all_to_f32(()) == []
