"""Functions of one byte that are two lines (leaky ReLU, ReLU, another scale): sooner computed than looked up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from webinfer.plan.blocks import Arguments

SHIFTS = range(8)  # of a distance of up to 255, which stays a signed 16-bit number
MOST_FACTOR = 32767  # of a sum of products of int16: the largest
UNIT, HALF = 1 << 15, 1 << 14  # what a factor is divided by


def piecewise_linear(table: bytes, x_flip: int, y_flip: int, pivot: int) -> Arguments | None:
    """The arguments of b8_two_lines that give a table's 256 bytes, every one of them; None if none do.

    `table` goes by the stored byte, `pivot` is a byte in its unsigned form.
    """
    results = [table[i ^ x_flip] ^ y_flip for i in range(256)]
    for shift in SHIFTS:
        high = _factor(range(255, pivot, -1), results, pivot, shift)
        low = _factor(range(pivot), results, pivot, shift) if high is not None else None
        if high is not None and low is not None:
            return {
                "pivot": pivot, "shift": shift, "low": low, "high": high, "zero": results[pivot],
                "x_flip": x_flip, "y_flip": y_flip,
            }  # fmt: skip
    return None


def _factor(bytes_: Iterable[int], results: Sequence[int], pivot: int, shift: int) -> int | None:
    """The middle one of the factors that take all of these bytes to their results."""
    least, most, zero = -MOST_FACTOR, MOST_FACTOR, results[pivot]
    for byte in bytes_:
        distance, result = (byte - pivot) << shift, results[byte]
        # distance * factor lies between these bounds; a result at an end of the bytes may have been clamped
        low = (result - zero) * UNIT - HALF if result > 0 else None
        high = (result - zero) * UNIT + HALF - 1 if result < 255 else None
        if distance < 0:
            distance, low, high = -distance, None if high is None else -high, None if low is None else -low
        least = least if low is None else max(least, -(-low // distance))
        most = most if high is None else min(most, high // distance)
        if least > most:
            return None
    return (least + most) // 2
