"""Random numbers, made of integer arithmetic that gives the same bits on every backend.

A variable of the session counts draws, so that each run and each operator has numbers of its own; `session.reset()`
begins anew with the same ones. Seeds of files are not looked at: no two runtimes make the same numbers of a seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.graph.ir import TensorType, Value
from webinfer.importers.core.limits import check_bytes, within
from webinfer.importers.core.operation import BaseOperation
from webinfer.ops import elementwise as ew
from webinfer.ops import reduce

_COUNTER = "random numbers: draws"
_ROW = 4096  # numbers whose places are one constant
_BITS = 23  # of each number: all sums and products of them are exact in float32
_LARGEST = 2**26  # numbers of one operator
# Of a bijection of 32 bits that mixes all of them. Source: Wellons, hash-prospector, lowbias32
_MIX = ((16, 0x7FEB352D), (15, 0x846CA68B))
_CUT = 0.9544997361036416  # how much of a normal distribution lies within two deviations
# The inverse of erf near 0, a polynomial of -ln(1 - x²) - 2.5. Source: Giles, Approximating the erfinv function
_INVERSE_ERF = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
    0.246640727, 1.50140941,
)  # fmt: skip


def asked_shape(op: BaseOperation, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that a file asks for, if it is one."""
    if min(shape, default=0) < 0:
        op.fail(f"shape {shape} has a negative size")
    check_bytes(shape, DType.FLOAT32, op.what)
    return shape


def _int32(op: BaseOperation, number: int) -> Value:
    number &= 0xFFFFFFFF
    return op.scalar_of(number - (number >> 31 << 32), DType.INT32)


def _mixed(op: BaseOperation, x: Value) -> Value:
    """int32 whose upper bits depend on all bits of x."""
    for distance, factor in _MIX:
        x = op.binary(ew.MUL, op.binary(ew.BIT_XOR, x, _shifted(op, x, distance)), _int32(op, factor))
    return x


def _shifted(op: BaseOperation, x: Value, distance: int) -> Value:
    """x moved to the right, with zeros before it."""
    moved = op.binary(ew.FLOOR_DIV, x, _int32(op, 1 << distance))
    return op.binary(ew.BIT_AND, moved, _int32(op, (1 << (32 - distance)) - 1))


def _draw(op: BaseOperation, shape: Sequence[int]) -> Value:
    """float32 numbers from 0 to 2**23 - 1, whole ones, all equally likely."""
    size = math.prod(shape)
    within(f"{op.what}: random numbers", size, _LARGEST, "use a smaller input")
    variables = op.writer.variables
    none = memoryview(bytes(4))
    count = variables.read(_COUNTER, TensorType((), DType.INT32), none)
    variables.write(_COUNTER, op.binary(ew.ADD, count, _int32(op, 1)), none)
    width = min(max(size, 1), _ROW)
    rows = -(-size // width)
    places = op.constant(range(width), DType.INT32)
    if rows > 1:
        starts = op.constant([i * width for i in range(rows)], DType.INT32, (rows, 1))
        places = op.binary(ew.ADD, places, starts)
    key = _mixed(op, op.binary(ew.ADD, count, _int32(op, 0x9E3779B9)))
    bits = _shifted(op, _mixed(op, op.binary(ew.ADD, places, key)), 32 - _BITS)
    if rows * width > size:
        bits = op.cut(op.reshape(bits, (rows * width,)), 0, 0, size)
    return op.cast(op.reshape(bits, shape), DType.FLOAT32)


def _open(op: BaseOperation, shape: Sequence[int]) -> Value:
    """Numbers between 0 and 1, neither of which is one of them."""
    return op.unary(ew.LINEAR, _draw(op, shape), 2.0**-_BITS, 2.0 ** -(_BITS + 1))


def uniform(op: BaseOperation, shape: Sequence[int], low: float = 0.0, high: float = 1.0) -> Value:
    """float32 numbers from `low` up to `high`, all equally likely."""
    return op.unary(ew.LINEAR, _draw(op, shape), (high - low) * 2.0**-_BITS, low)


def normal(op: BaseOperation, shape: Sequence[int], mean: float = 0.0, deviation: float = 1.0) -> Value:
    """float32 numbers of a normal distribution (Box and Muller's way)."""
    radius = op.unary(ew.SQRT, op.unary(ew.LINEAR, op.unary(ew.LOG, _open(op, shape)), -2.0))
    angle = op.unary(ew.COS, op.unary(ew.LINEAR, _draw(op, shape), 2 * math.pi * 2.0**-_BITS))
    return op.unary(ew.LINEAR, op.binary(ew.MUL, radius, angle), deviation, mean)


def cut_normal(op: BaseOperation, shape: Sequence[int]) -> Value:
    """float32 numbers of a normal distribution that ends at two deviations."""
    x = op.unary(ew.LINEAR, _open(op, shape), 2 * _CUT, -_CUT)
    rest = op.unary(ew.LINEAR, op.unary(ew.SQUARE, x), -1.0, 1.0)
    w = op.unary(ew.LINEAR, op.unary(ew.LOG, rest), -1.0, -2.5)
    first, second, *others = _INVERSE_ERF
    sum_ = op.unary(ew.LINEAR, w, first, second)
    for term in others:
        sum_ = op.unary(ew.LINEAR, op.binary(ew.MUL, sum_, w), 1.0, term)
    return op.unary(ew.LINEAR, op.binary(ew.MUL, sum_, x), math.sqrt(2.0))


def chosen(op: BaseOperation, logits: Value, count: int, dtype: DType) -> Value:
    """Classes drawn by unnormalised logarithms of their probabilities. Shapes:  [N, C] -> [N, count]"""
    if dtype not in (DType.INT32, DType.INT64):
        op.fail(f"classes as {dtype}")
    if logits.type.rank != 2 or count < 0 or not logits.type.shape[1]:
        op.fail(f"{count} draws from {logits.type}")
    rows, classes = logits.type.shape
    if not rows * count:
        return op.zeros((rows, count), dtype)
    noise = op.unary(ew.LOG, _open(op, (rows, count, classes)))  # less -log of it than others: Gumbel's maximum
    noise = op.unary(ew.LOG, op.unary(ew.NEG, noise))
    scores = op.binary(ew.SUB, op.reshape(op.cast(logits, DType.FLOAT32), (rows, 1, classes)), noise)
    return op.emit(reduce.ARG_MAX, [scores], reduce.ArgAttrs(2, False, dtype))
