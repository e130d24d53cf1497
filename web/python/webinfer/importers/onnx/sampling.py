"""Images sampled at positions that are tensors themselves: rows of pixels gathered, weighted and summed.

Source:  onnx v1.23, GridSample-22, AffineGrid-20 and onnx/reference/ops/op_grid_sample.py
"""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.graph.ir import Op, Value
from webinfer.importers.core.limits import within
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import gather
from webinfer.ops import matmul as mm
from webinfer.ops.registry import NoAttrs

CUBIC = -0.75
MODES = {"bilinear": "linear", "linear": "linear", "nearest": "nearest", "bicubic": "cubic", "cubic": "cubic"}


class _Sampler:
    """One axis: where each sample lies, in elements."""

    def __init__(self, op: Operation, place: Value, size: int, padding: str, corners: bool) -> None:
        self.op, self.size, self.padding = op, size, padding
        scaled = self.linear(place, 0.5, 0.5)  # 0 to 1
        self.at = self.linear(scaled, size - 1) if corners else self.linear(scaled, size, -0.5)
        self.low, self.high = (0.0, size - 1.0) if corners else (-0.5, size - 0.5)

    def linear(self, x: Value, a: float, b: float = 0.0) -> Value:
        """a x + b"""
        return self.op.unary(ew.LINEAR, x, a, b)

    def number(self, number: float) -> Value:
        """A constant."""
        return self.op.scalar_of(number, DType.FLOAT32)

    def two(self, kind: Op, a: Value, b: Value | float) -> Value:
        """A formula of two operands."""
        return self.op.binary(kind, a, self.number(b) if isinstance(b, (int, float)) else b)

    def inside(self, x: Value) -> Value:
        """Positions brought into the image as the padding says; outside of it where that is zeros."""
        if self.padding == "border":
            return self.op.unary(ew.CLAMP, x, 0.0, self.size - 1.0)
        if self.padding == "reflection":
            return self.reflected(x)
        return x

    def reflected(self, x: Value) -> Value:
        """Positions mirrored at the edges until they lie inside."""
        span = self.high - self.low
        if span <= 0:
            return self.linear(x, 0.0, self.low)
        beyond = self.linear(x, 1.0, -self.low)
        turns = self.op.unary(ew.FLOOR, self.linear(beyond, 1 / (2 * span)))
        rest = self.two(ew.SUB, beyond, self.linear(turns, 2 * span))
        mirrored = self.linear(rest, -1.0, 2 * span)
        return self.linear(self.two(ew.MINIMUM, rest, mirrored), 1.0, self.low)

    def taps(self, mode: str) -> list[tuple[Value, Value | None]]:
        """(position, weight) of each tap; whole positions that may lie outside."""
        x = self.inside(self.at) if mode != "cubic" else self.at
        if mode == "nearest":
            return [(self.op.unary(ew.ROUND_EVEN, x), None)]
        before = self.op.unary(ew.FLOOR, x)
        t = self.two(ew.SUB, x, before)
        if mode == "linear":
            return [(before, self.linear(t, -1.0, 1.0)), (self.linear(before, 1.0, 1.0), t)]
        return [(self.inside(self.linear(before, 1.0, i)), self.cubic(t, i)) for i in range(-1, 3)]

    def cubic(self, t: Value, i: int) -> Value:
        """The weight of the element i behind the one before a sample that lies t behind that."""
        d = self.linear(t, 1.0, 1.0) if i == -1 else t if i == 0 else self.linear(t, -1.0, float(i))
        a = CUBIC
        factors = (a + 2, -(a + 3), 0.0, 1.0) if i in (0, 1) else (a, -5 * a, 8 * a, -4 * a)
        y = self.linear(d, factors[0], factors[1])
        for factor in factors[2:]:
            y = self.linear(self.two(ew.MUL, y, d), 1.0, factor)
        return y

    def seen(self, position: Value) -> Value:
        """1 where a position lies in the image, else 0."""
        early = self.two(ew.GREATER_EQUAL, position, 0.0)
        late = self.two(ew.LESS_EQUAL, position, self.size - 1.0)
        return self.op.cast(self.op.binary(ew.LOGICAL_AND, early, late), DType.FLOAT32)


def _grid_sample(op: Operation) -> Value:
    """Shapes:  x [N, C, *sizes], grid [N, *outputs, axes], whose last axis counts x, y (, z) -> [N, C, *outputs]"""
    mode = MODES[op.chosen("mode", tuple(MODES), "linear" if op.opset >= 20 else "bilinear")]
    padding = op.chosen("padding_mode", ("zeros", "border", "reflection"), "zeros")
    corners = bool(op.whole("align_corners", 0))
    given, places = op.channels_last(), op.value(1)
    n, *sizes, channels = given.type.shape
    axes, floats = len(sizes), (DType.FLOAT32, DType.FLOAT16)
    if given.type.dtype not in floats or places.type.dtype not in floats:
        op.refuse(f"sampling of {given.type.dtype} at {places.type.dtype}")
    image, grid = (op.cast(v, DType.FLOAT32) for v in (given, places))
    # As in ONNX Runtime: deformable attention makes 0 / 0 of a map of one row or column.
    start = op.scalar_of(-1.0, DType.FLOAT32)
    grid = op.emit(ew.WHERE, [op.unary(ew.IS_NAN, grid), start, grid], NoAttrs())
    if grid.type.rank != axes + 2 or grid.type.shape[-1] != axes or grid.type.shape[0] != n:
        op.fail(f"a grid of {grid.type.shape} does not fit {image.type.shape}")
    outputs = grid.type.shape[1:-1]
    count = 1
    for size in outputs:
        count *= size
    flat = op.reshape(grid, (n, count, axes))
    columns = [op.row(flat, 2, axes - 1 - i) for i in range(axes)]
    samplers = [_Sampler(op, c, size, padding, corners) for c, size in zip(columns, sizes, strict=True)]
    pixels = 1
    for size in sizes:
        pixels *= size
    rows = op.reshape(image, (n, pixels, channels))
    total = _summed(op, rows, samplers, [s.taps(mode) for s in samplers])
    return op.channels_first(op.cast(op.reshape(total, (n, *outputs, channels)), given.type.dtype))


def _summed(
    op: Operation, rows: Value, samplers: Sequence[_Sampler], taps: Sequence[list[tuple[Value, Value | None]]]
) -> Value:
    """All taps of all axes: gathered rows times weights. Shapes:  rows [N, pixels, C] -> [N, samples, C]"""
    combined: list[tuple[Value, Value | None]] = []
    for k, (sampler, own) in enumerate(zip(samplers, taps, strict=True)):
        parts = []
        for position, weight in own:
            if sampler.padding == "zeros":
                seen = sampler.seen(position)
                weight = seen if weight is None else op.binary(ew.MUL, weight, seen)
            near = op.cast(op.unary(ew.CLAMP, position, 0.0, sampler.size - 1.0), DType.INT32)
            parts.append((near, weight))
        size = op.scalar_of(sampler.size, DType.INT32)
        combined = parts if k == 0 else [
            (op.binary(ew.ADD, op.binary(ew.MUL, at, size), near), _both(op, w, v))
            for at, w in combined
            for near, v in parts
        ]  # fmt: skip
    total = None
    for position, weight in combined:
        part = op.emit(gather.GATHER, [rows, position], gather.GatherAttrs(1, 1))
        if weight is not None:
            part = op.binary(ew.MUL, part, op.reshape(weight, (*weight.type.shape, 1)))
        total = part if total is None else op.binary(ew.ADD, total, part)
    assert total is not None
    return total


def _both(op: Operation, a: Value | None, b: Value | None) -> Value | None:
    if a is None or b is None:
        return a if b is None else b
    return op.binary(ew.MUL, a, b)


def _affine_grid(op: Operation) -> Value:
    """Each pixel's place, turned and moved. Shapes:  theta [N, axes, axes + 1] -> [N, *sizes, axes]"""
    theta, size = op.value(0), op.integers(1)
    n, sizes = size[0], size[2:]
    axes, corners = len(sizes), bool(op.whole("align_corners", 0))
    if theta.type.shape != (n, axes, axes + 1) or axes not in (2, 3) or theta.type.dtype is not DType.FLOAT32:
        op.refuse(f"transformations {theta.type} for {axes} axes")
    count = 1
    for s in sizes:
        count *= s
    within("places of a grid", count, 2**20, "use a smaller image")
    if corners and 1 in sizes:
        op.refuse("corners of an axis of one element")
    places = [[-1 + 2 * i / (s - 1) if corners else -1 + (2 * i + 1) / s for i in range(s)] for s in sizes]  # by axis
    numbers: list[float] = []
    for flat in range(count):
        index, rest = [], flat
        for s in reversed(sizes):
            index.append(rest % s)
            rest //= s
        numbers += [places[axes - 1 - k][i] for k, i in enumerate(index)]
        numbers.append(1.0)
    grid = op.constant(numbers, DType.FLOAT32, (1, count, axes + 1))
    y = op.emit(mm.MATMUL, [grid, theta], mm.MatmulAttrs(transpose_b=True))
    return op.reshape(y, (n, *sizes, axes))


CONVERTERS: dict[str, Convert] = {
    "AffineGrid": _affine_grid,
    "GridSample": _grid_sample,
    "com.microsoft.GridSample": _grid_sample,
}
