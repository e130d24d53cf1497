"""Sigmoid and tanh of 16-bit numbers as LiteRT's integer LSTM has them: fixed-point arithmetic, as tables.

A table holds the results of all 65,536 inputs as int16, from the most negative input on.

Source:  gemmlowp, fixedpoint/fixedpoint.h, with std::int16_t as the raw type
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable

ONE = 32767  # in 15 bits behind the point, as all results
_HALF_UNIT, _LEAST = 1 << 14, -(1 << 15)
_EXP_MINUS_EIGHTH, _THIRD = 28918, 10923
_BARREL = (25520, 19875, 12055, 4435, 600, 11, 0, 0, 0)  # exp(-2**i) for i from -2 on
_48_OVER_17, _MINUS_32_OVER_17 = 23130, -15420  # in 13 bits


def _times(a: int, b: int) -> int:
    """The product of two numbers, one of 15 bits behind the point, rounded."""
    product = a * b
    return (product + _HALF_UNIT) >> 15 if product >= 0 else -((_HALF_UNIT - 1 - product) >> 15)


def _divided(x: int, bits: int) -> int:
    """x / 2**bits, rounded; halves go away from zero."""
    half = 1 << (bits - 1)
    return (x + half) >> bits if x >= 0 else -((half - x) >> bits)


def _shifted(x: int, bits: int) -> int:
    return min(max(x << bits, _LEAST), ONE)


def _exp_near_zero(a: int) -> int:
    """exp(a) for a from -1/4 to 0: a series around -1/8."""
    x = a + (1 << 12)
    x2 = _times(x, x)
    x3, x4 = _times(x2, x), _times(x2, x2)
    rest = _divided(_times(_divided(x4, 2) + x3, _THIRD) + x2, 1)
    return min(_EXP_MINUS_EIGHTH + _times(_EXP_MINUS_EIGHTH, x + rest), ONE)


def _exponentials(integer_bits: int) -> list[int]:
    """exp(-i / 2**f) for i from 0 to 2**15, with f = 15 - integer_bits bits behind the point."""
    quarter = 1 << max(13 - integer_bits, 0)
    lines = [[_exp_near_zero(_shifted(-i, integer_bits)) for i in range(quarter, 0, -1)]]
    for exponent in range(-2, integer_bits):  # numbers that lie 2**exponent further below
        factor = _BARREL[exponent + 2]
        lines += [[_times(e, factor) for e in line] for line in lines]
    below = [e for line in lines for e in reversed(line)]  # at 1, 2, ... units below zero
    return [ONE, *below]


def _quotient(e: int) -> int:
    """2 / (1 + e), by Newton's method, with 13 bits behind the point."""
    half = (e + ONE + 1) >> 1
    x = _48_OVER_17 + _times(half, _MINUS_32_OVER_17)
    for _ in range(3):
        x += _shifted(_times(x, 8192 - _times(half, x)), 2)
    return x


def _table(integer_bits: int, positive: Callable[[int], int], mirror: Callable[[int], int], middle: int) -> memoryview:
    """The table of a function: `positive` gives it above zero, from 2 / (1 + exp(-x)); `mirror` below."""
    known: dict[int, int] = {}
    right = []
    for e in _exponentials(integer_bits)[: 1 - _LEAST]:
        if e not in known:
            known[e] = positive(_quotient(e))
        right.append(known[e])
    left = [mirror(y) for y in reversed(right[1:])]
    return memoryview(struct.pack("<65536h", *left, middle, *right[1:-1]))


@functools.lru_cache(maxsize=1)
def sigmoid() -> memoryview:
    """Of numbers with 12 bits behind the point."""
    return _table(3, lambda x: _shifted(x, 1), lambda y: ONE - y, _HALF_UNIT)


@functools.lru_cache(maxsize=8)
def tanh(integer_bits: int) -> memoryview:
    """Of numbers with 15 - integer_bits bits behind the point; integer_bits is 0 to 6."""
    return _table(integer_bits + 1, lambda x: _shifted(x - 8192, 2), lambda y: -y, 0)
