"""Complex numbers, which graphs lack, and the tables of waves that Fourier transforms are products with."""

from __future__ import annotations

import math
from collections.abc import Callable

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.operation import BaseOperation
from webinfer.ops import elementwise as ew
from webinfer.ops import movement as mv


class Complex(Value):
    """Complex numbers, where operators pass them on; a graph has their parts."""

    def __init__(self, real: Value, imaginary: Value) -> None:
        super().__init__(real.name, real.type)
        self.real, self.imaginary = real, imaginary


def magnitude(op: BaseOperation, z: Complex) -> Value:
    """The size of complex numbers."""
    return op.unary(ew.SQRT, op.binary(ew.ADD, *(op.unary(ew.SQUARE, part) for part in (z.real, z.imaginary))))


def fitted(op: BaseOperation, x: Value, axis: int, length: int) -> Value:
    """x cut, or padded with zeros, to a length along an axis."""
    x = op.cut(x, axis, 0, min(length, x.type.shape[axis]))
    missing = tuple(length - n if i == axis else 0 for i, n in enumerate(x.type.shape))
    return x if not any(missing) else op.emit(mv.PAD, [x], mv.PadAttrs((0,) * x.type.rank, missing))


def waves(
    op: BaseOperation, wave: Callable[[float], float], size: int, rows: int, columns: int, scale: float = 1.0,
    doubled: bool = False,
) -> Value:  # fmt: skip
    """[rows, columns] of a wave at the angles of a transform; `doubled` rows stand for their mirrored ones too."""
    turn = [scale * wave(2.0 * math.pi * k / size) for k in range(size)]
    times = [2 if doubled and i and 2 * i != size else 1 for i in range(rows)]
    numbers = [times[i] * turn[i * k % size] for i in range(rows) for k in range(columns)]
    return op.constant(numbers, DType.FLOAT32, (rows, columns))
