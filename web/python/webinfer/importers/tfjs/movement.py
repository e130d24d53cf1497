"""TensorFlow nodes that move elements, or whose result follows from sizes and positions alone."""

from __future__ import annotations

import math
from collections.abc import Callable

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.axes import equal_split, gathered, sized_split
from webinfer.importers.core.geometry import strided_slice
from webinfer.importers.core.limits import MAX_READ, within
from webinfer.importers.core.spectral import Complex, magnitude
from webinfer.importers.tfjs.model import MAX_RESULTS
from webinfer.importers.tfjs.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import gather, pattern
from webinfer.ops import movement as mv


def _identity(op: Operation) -> Value:
    return op.passed(0)


def _identities(op: Operation) -> list[Value]:
    return [op.passed(i) for i in range(op.count)]


def _const(op: Operation) -> Value:
    name = op.info.name
    if name in op.context.strange:
        op.refuse(f"weights of type {op.context.strange[name]}")
    if name not in op.context.weights:
        op.fail("the manifest of weights does not list it")
    return op.context.weights[name]


def _nothing(op: Operation) -> Value:
    return op.scalar_of(1.0, DType.FLOAT32)


def _concat(op: Operation) -> Value:
    first = 1 if op.name == "Concat" else 0
    parts = op.alike([op.value(i) for i in range(first, op.count - 1 + first)])
    axis = op.axis(op.integer(0 if first else op.count - 1), parts[0].type.rank)
    parts = [x for x in parts if x.type.rank <= axis or x.type.shape[axis]] or parts[:1]
    return op.concat(parts, axis) if len(parts) > 1 else parts[0]


def _pack(op: Operation) -> Value:
    parts = op.alike(op.values())
    axis = op.axis(op.number("axis"), parts[0].type.rank + 1)
    return op.stack([op.reshape(x, parts[0].type.shape) for x in parts], axis)


def _unpack(op: Operation) -> list[Value]:
    x = op.value(0)
    axis = op.axis(op.number("axis"), x.type.rank)
    return rows(op, x, axis)


def rows(op: Operation, x: Value, axis: int = 0) -> list[Value]:
    """The parts of x along an axis, without that axis."""
    within(f"{op.what}: parts", x.type.shape[axis], MAX_RESULTS, "use fewer")
    return [op.row(x, axis, i) for i in range(x.type.shape[axis])]


def _split(op: Operation) -> list[Value]:
    count = op.number("num_split")
    within(f"{op.what}: parts", count, MAX_RESULTS, "use fewer")
    return op.pieces(*equal_split(op, count))


def _split_v(op: Operation) -> list[Value]:
    return op.pieces(*sized_split(op))


def _pad(op: Operation) -> Value:
    x, edges = op.value(0), op.integers(1)
    if op.value(1).type.shape != (x.type.rank, 2) or min(edges, default=0) < 0:
        op.fail(f"paddings {edges} of shape {op.value(1).type.shape} do not fit {x.type.shape}")
    value, mode = 0.0, "constant"
    if op.name == "MirrorPad":
        mode = op.chosen("mode", ("REFLECT", "SYMMETRIC")).lower()
    elif op.optional(2) is not None:
        value = op.scalar(2)  # before a maximum it may be minus infinity
        if math.isnan(value):
            op.fail("the padding is not a number")
    return op.emit(mv.PAD, [x], mv.PadAttrs(tuple(edges[0::2]), tuple(edges[1::2]), value, mode))


def _strided_slice(op: Operation) -> Value:
    positions = [op.integers(i) for i in (1, 2, 3)]
    return strided_slice(op, op.value(0), positions, op.number, masks_dropped=False)


def _reverse(op: Operation) -> Value:
    """The old operator has a yes or no for each axis."""
    x = op.value(0)
    axes = tuple(i for i, yes in enumerate(op._constants(1)) if yes)
    return op.emit(mv.REVERSE, [x], mv.ReverseAttrs(axes))


def _blocks(op: Operation) -> Value:
    op.channels_last()
    block = op.number("block_size")
    if block < 1:
        op.fail(f"block_size is {block}, must be at least 1")
    target = mv.DEPTH_TO_SPACE if op.name == "DepthToSpace" else mv.SPACE_TO_DEPTH
    return op.emit(target, [op.value(0)], mv.BlockAttrs(block))


def _gather(op: Operation) -> Value:
    axis = op.integer(2) if op.name == "GatherV2" and op.count > 2 else 0
    return gathered(op, op.value(0), op.cast(op.value(1), DType.INT32), axis, op.number("batch_dims"))


def _scatter_update(op: Operation) -> Value:
    x, positions, updates = op.values()[:3]
    return op.emit(gather.SCATTER_ND, [x, positions, updates], gather.ScatterNdAttrs())


def _one_hot(op: Operation) -> Value:
    x = op.value(0)
    on, off = op.scalar(2), op.scalar(3)
    dtype = op.value(2).type.dtype
    return op.emit(pattern.ONE_HOT, [x], pattern.OneHotAttrs(op.integer(1), x.type.rank, on, off, dtype))


def _shape(op: Operation) -> Value:
    return op.constant(op.value(0).type.shape, DType.INT32)


def _shapes(op: Operation) -> list[Value]:
    return [op.constant(x.type.shape, DType.INT32) for x in op.values()]


def _size(op: Operation) -> Value:
    return op.scalar_of(op.value(0).type.size, DType.INT32)


def _filled(number: int) -> Convert:
    def convert(op: Operation) -> Value:
        if op.name.endswith("Like"):
            x = op.value(0)
            return op.expand(op.scalar_of(number, x.type.dtype), x.type.shape)
        return op.expand(op.scalar_of(number, op.dtype("dtype")), op.integers(0))

    return convert


def _linspace(op: Operation) -> Value:
    start, stop, count = float(op.scalar(0)), float(op.scalar(1)), op.integer(2)
    within(f"{op.what}: numbers", count, MAX_READ, "use fewer")
    if count < 1 or not math.isfinite(stop - start):
        op.fail(f"{count} numbers from {start} to {stop}")
    step = (stop - start) / max(count - 1, 1)
    return op.constant([start + i * step for i in range(count)], DType.FLOAT32)


def _ensure_shape(op: Operation) -> Value:
    x, wanted = op.value(0), op.shape("shape")
    if wanted is not None and (
        len(wanted) != x.type.rank or any(w not in (-1, d) for w, d in zip(wanted, x.type.shape, strict=True))
    ):
        op.fail(f"x has shape {x.type.shape}, must have {wanted}")
    return x


def _band(op: Operation) -> Value:
    """A matrix without what lies too far below or above its diagonal; negative counts keep all."""
    x, low, high = op.value(0), op.integer(1), op.integer(2)
    if x.type.rank < 2:
        op.fail(f"x has shape {x.type.shape}, needs two axes")
    for count, upper in ((low, True), (high, False)):
        if count >= 0:
            x = op.emit(pattern.TRIANGULAR, [x], pattern.TriangularAttrs(upper, -count if upper else count))
    return x


def _complex(op: Operation) -> Value:
    return Complex(op.value(0), op.value(1))


def _half(pick: Callable[[Complex], Value]) -> Convert:
    def convert(op: Operation) -> Value:
        z = op.passed(0)
        return pick(z) if isinstance(z, Complex) else op.value(0)

    return convert


def _complex_abs(op: Operation) -> Value:
    z = op.passed(0)
    if not isinstance(z, Complex):
        return op.unary(ew.ABS, op.value(0))
    return magnitude(op, z)


CONVERTERS: dict[str, Convert] = {
    "Complex": _complex,
    "ComplexAbs": _complex_abs,
    "Concat": _concat,
    "ConcatV2": _concat,
    "Const": _const,
    "DepthToSpace": _blocks,
    "EnsureShape": _ensure_shape,
    "FakeQuantWithMinMaxVars": _identity,  # as TensorFlow.js reads it
    "Gather": _gather,
    "GatherV2": _gather,
    "Identity": _identity,
    "IdentityN": _identities,
    "Imag": _half(lambda z: z.imaginary),
    "LinSpace": _linspace,
    "MatrixBandPart": _band,
    "MirrorPad": _pad,
    "NoOp": _nothing,
    "OneHot": _one_hot,
    "Ones": _filled(1),
    "OnesLike": _filled(1),
    "Pack": _pack,
    "Pad": _pad,
    "PadV2": _pad,
    "PlaceholderWithDefault": _identity,
    "Print": _identity,
    "Real": _half(lambda z: z.real),
    "Reverse": _reverse,
    "Shape": _shape,
    "ShapeN": _shapes,
    "Size": _size,
    "Snapshot": _identity,
    "SpaceToDepth": _blocks,
    "Split": _split,
    "SplitV": _split_v,
    "StopGradient": _identity,
    "StridedSlice": _strided_slice,
    "TensorScatterUpdate": _scatter_update,
    "Unpack": _unpack,
    "Zeros": _filled(0),
    "ZerosLike": _filled(0),
}
