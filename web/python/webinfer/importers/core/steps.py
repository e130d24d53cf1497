"""The steps that converters build operators from: constants, arithmetic, layouts, conversions of type and scale."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NoReturn

from webinfer.dtypes import DType
from webinfer.graph.dims import has_size
from webinfer.graph.ir import Constant, Op, Quantization, SizeConstant, TensorType, Value
from webinfer.graph.printer import safe_name
from webinfer.ops import elementwise as ew
from webinfer.ops import movement as mv
from webinfer.ops.activation import Activation
from webinfer.ops.registry import NoAttrs

RANGES = 8, 1 << 16  # ranges of numbers that are kept, and how long they are at most: 2 MB, 4 MB of int64
SIZED = (DType.INT32, DType.INT64)  # element types of constants that may follow sizes
QUANTIZED = (DType.INT8, DType.UINT8, DType.INT16)
CLAMPS = (Activation.NONE, Activation.RELU, Activation.RELU6, Activation.RELU_N1_TO_1)  # any operator fuses these
_ACTIVATIONS = {
    Activation.RELU: ew.RELU, Activation.RELU6: ew.RELU6, Activation.RELU_N1_TO_1: ew.RELU_N1_TO_1,
    Activation.TANH: ew.TANH,
}  # fmt: skip


def pack(numbers: Sequence[float], dtype: DType) -> bytes:
    """The numbers as little-endian elements; floats beyond the type become infinities."""
    layout = f"<{len(numbers)}{dtype.letter}"
    if not dtype.is_float:
        return struct.pack(layout, *map(int, numbers))
    try:
        return struct.pack(layout, *numbers)
    except OverflowError:
        limit = 65520.0 if dtype is DType.FLOAT16 else 3.4028235677973366e38
        return struct.pack(layout, *(math.copysign(math.inf, n) if abs(n) >= limit else n for n in numbers))


@lru_cache(RANGES[0])
def packed_range(numbers: range, dtype: DType) -> memoryview:
    """As `pack`; ranges asked for again are the same view, so that layers share what they make of positions."""
    return memoryview(pack(numbers, dtype))


class Steps:
    """Building blocks over `emit`. What changes nothing adds no node."""

    __slots__ = ()

    def emit(self, op: Op, inputs: Sequence[Value | None], attrs: Any) -> Value:
        """The only result of a new node."""
        raise NotImplementedError

    def fail(self, problem: str) -> NoReturn:
        """Ends the conversion: the file breaks a rule."""
        raise NotImplementedError

    def out_type(self, i: int = 0) -> tuple[DType, Quantization | None] | None:
        """Element type and scale that the file declares output i with; None unless it is quantised."""
        return None

    # ---- constants and arithmetic

    def constant(self, numbers: Sequence[float], dtype: DType, shape: Sequence[int] | None = None) -> Value:
        """A new constant, of rank 1 unless a shape is given."""
        kind = TensorType((len(numbers),) if shape is None else tuple(shape), dtype)
        if dtype in SIZED and has_size(numbers):
            return Value("sizes", kind, SizeConstant(numbers, dtype))
        is_kept = isinstance(numbers, range) and len(numbers) <= RANGES[1]
        data = packed_range(numbers, dtype) if is_kept else memoryview(pack(numbers, dtype))
        return Value("constant", kind, Constant(data, dtype))

    def scalar_of(self, number: float, dtype: DType) -> Value:
        """One number as a constant without axes."""
        return self.constant([number], dtype, ())

    def zeros(self, shape: Sequence[int], dtype: DType) -> Value:
        """A new constant of zeros."""
        kind = TensorType(tuple(shape), dtype)
        if has_size(kind.shape):
            return self.expand(self.scalar_of(0, dtype), shape)
        return Value("zeros", kind, Constant(memoryview(bytes(kind.nbytes)), dtype))

    def empty(self, shape: Sequence[int], dtype: DType, quant: Quantization | None = None) -> Value:
        """A new constant without elements."""
        return Value("nothing", TensorType(tuple(shape), dtype, quant), Constant(memoryview(b""), dtype))

    def unary(self, op: Op, x: Value, a: float = 0.0, b: float = 0.0) -> Value:
        """A formula of one operand; `a` and `b` are its constants."""
        return self.emit(op, [x], ew.UnaryAttrs(a, b))

    def clamp(self, x: Value, low: float, high: float) -> Value:
        """x between two numbers, as runtimes compare them: a bound that is NaN is none."""
        low, high = -math.inf if math.isnan(low) else low, math.inf if math.isnan(high) else high
        return x if (low, high) == (-math.inf, math.inf) else self.unary(ew.CLAMP, x, low, high)

    def bounded(self, x: Value, low: Value | None, high: Value | None) -> Value:
        """x between two computed numbers, None for a bound that is absent; one that is NaN is none."""
        for bound, kind, none in ((low, ew.MAXIMUM, -math.inf), (high, ew.MINIMUM, math.inf)):
            if bound is not None and bound.type.dtype.is_float:
                parts = [self.unary(ew.IS_NAN, bound), self.scalar_of(none, bound.type.dtype), bound]
                bound = self.emit(ew.WHERE, parts, NoAttrs())
            x = x if bound is None else self.binary(kind, x, bound)
        return x

    def binary(self, op: Op, a: Value, b: Value) -> Value:
        """A formula of two operands that broadcast."""
        return self.emit(op, [a, b], ew.BinaryAttrs())

    def activate(self, x: Value, activation: Activation) -> Value:
        """A fused activation as a node of its own, for operators that carry none."""
        return x if activation is Activation.NONE else self.unary(_ACTIVATIONS[activation], x)

    # ---- layouts

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """x with another shape."""
        if x.type.shape == tuple(shape):
            return x
        return self.emit(mv.RESHAPE, [x], mv.ReshapeAttrs(tuple(shape)))

    def transpose(self, x: Value, perm: Sequence[int]) -> Value:
        """x with its axes in that order."""
        if tuple(perm) == tuple(range(x.type.rank)):
            return x
        return self.emit(mv.TRANSPOSE, [x], mv.TransposeAttrs(tuple(perm)))

    def expand(self, x: Value, shape: Sequence[int]) -> Value:
        """x repeated along its axes of size 1."""
        if any(d < 0 for d in shape):
            self.fail(f"shape {tuple(shape)} has a negative size")
        return x if x.type.shape == tuple(shape) else self.emit(mv.EXPAND, [x], mv.ExpandAttrs(tuple(shape)))

    def cut(self, x: Value, axis: int, start: int, size: int) -> Value:
        """x[start : start + size] along one axis."""
        starts, sizes = [0] * x.type.rank, list(x.type.shape)
        starts[axis], sizes[axis] = start, size
        return self.sliced(x, starts, sizes)

    def sliced(
        self, x: Value, starts: Sequence[int], sizes: Sequence[int], steps: Sequence[int] | None = None
    ) -> Value:
        """So many elements of each axis from a start on, `steps` apart; where there are none, starts mean nothing."""
        steps = (1,) * x.type.rank if steps is None else steps
        if 0 in sizes:
            starts, steps = (0,) * x.type.rank, (1,) * x.type.rank
        return self.emit(mv.SLICE, [x], mv.SliceAttrs(tuple(starts), tuple(sizes), tuple(steps)))

    def pieces(self, x: Value, axis: int, sizes: Sequence[int]) -> list[Value]:
        """x cut along an axis into parts of these sizes."""
        if sum(sizes) != x.type.shape[axis] or any(size < 0 for size in sizes):
            self.fail(f"sizes {tuple(sizes)} do not make axis {axis} of {x.type.shape}")
        starts = itertools.accumulate(sizes, initial=0)
        return [self.cut(x, axis, start, size) for start, size in zip(starts, sizes, strict=False)]

    def row(self, x: Value, axis: int, at: int) -> Value:
        """x at one position of an axis, which is gone."""
        return self.reshape(self.cut(x, axis, at, 1), (*x.type.shape[:axis], *x.type.shape[axis + 1 :]))

    def concat(self, parts: Sequence[Value], axis: int) -> Value:
        """The parts one after the other along an axis."""
        return self.emit(mv.CONCAT, parts, mv.ConcatAttrs(axis))

    def stack(self, parts: Sequence[Value], axis: int = 0) -> Value:
        """The parts, all of one shape, along a new axis."""
        shapes = [part.type.shape for part in parts]
        rows = [self.reshape(part, (*s[:axis], 1, *s[axis:])) for part, s in zip(parts, shapes, strict=True)]
        return self.concat(rows, axis)

    # ---- types and scales

    def cast(self, x: Value, dtype: DType) -> Value:
        """x in that element type."""
        return x if x.type.dtype is dtype else self.emit(ew.CAST, [x], ew.CastAttrs(dtype))

    def saturated(self, x: Value) -> Value:
        """Integers as int32; what int32 cannot hold becomes the nearest number that it can, not its low bits."""
        if x.type.dtype is DType.UINT64:  # what is too large for int64 is too large for int32
            high = self.emit(ew.BITCAST, [x], ew.CastAttrs(DType.INT64))
            over = self.binary(ew.LESS, high, self.scalar_of(0, DType.INT64))
            x = self.emit(ew.WHERE, [over, self.scalar_of(2**31 - 1, DType.INT64), high], NoAttrs())
        if x.type.dtype in (DType.INT64, DType.UINT32):
            low = 0 if x.type.dtype is DType.UINT32 else -(2**31)
            x = self.unary(ew.CLAMP, x, float(low), float(2**31 - 1))
        return self.cast(x, DType.INT32)

    def in_float32(self, x: Value, compute: Callable[[Value], Value]) -> Value:
        """What `compute` makes of x, in x's type; float16, which powers and squares would leave, is widened for it."""
        if x.type.dtype is not DType.FLOAT16:
            return compute(x)
        return self.cast(compute(self.cast(x, DType.FLOAT32)), DType.FLOAT16)

    def alike(self, values: Sequence[Value]) -> list[Value]:
        """The values in one type: the widest of bool, int32 and float32."""
        kinds = {value.type.dtype for value in values}
        widest = next((d for d in (DType.FLOAT32, DType.INT32) if d in kinds), DType.BOOL)
        return [self.cast(value, widest) for value in values]

    def quantized(self, value: Value) -> bool:
        """Whether the value is quantised; an int8, uint8 or int16 operand without a scale is an error."""
        if value.type.dtype not in QUANTIZED:
            return False
        if value.type.quant is None:
            self.fail(f"{safe_name(value.name)} is {value.type.dtype} and has no scale")
        return True

    def requantized(self, x: Value) -> Value:
        """x in the scale that the first output is declared with."""
        out = self.out_type()
        if out is None or not self.quantized(x) or (x.type.dtype, x.type.quant) == out:
            return x
        return self.emit(ew.QUANTIZE, [x], ew.CastAttrs(*out))

    def as_float(self, x: Value) -> Value:
        """x in float32: float16 and quantised values pass through DEQUANTIZE."""
        if x.type.dtype is DType.FLOAT32:
            return x
        if x.type.dtype is not DType.FLOAT16:
            self.quantized(x)
        return self.emit(ew.DEQUANTIZE, [x], ew.CastAttrs(DType.FLOAT32))

    def in_float(self, compute: Callable[[list[Value]], Value], inputs: list[Value]) -> Value:
        """`compute` on the inputs in float32, brought back to the declared type if that is quantised."""
        y = compute([self.as_float(x) if x.type.dtype in QUANTIZED else x for x in inputs])
        out = self.out_type()
        return y if out is None else self.emit(ew.QUANTIZE, [y], ew.CastAttrs(*out))
