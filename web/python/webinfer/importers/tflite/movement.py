"""Operators that move elements: shapes, slices, joins, pads, blocks, resampling."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Value
from webinfer.importers.tflite.operation import QUANTIZED, Operation, Row
from webinfer.importers.tflite.schema import DTYPES, MIRROR_PAD_MODES
from webinfer.importers.tflite.strided_slice import strided_slice
from webinfer.ops import elementwise as ew
from webinfer.ops import movement as mv
from webinfer.ops import resize


def _reshape(op: Operation) -> Value:
    x = op.value(0)
    wanted = op.integers(1) if op.optional(1) is not None else op.vector("new_shape")
    if op.optional(1) is None and wanted == (0,):
        wanted = ()  # how old writers say scalar
    if wanted.count(-1) > 1 or any(d < -1 for d in wanted):
        raise ModelFormatError(f"{op.info}: shape {wanted} may hold one -1 and no other negative size")
    if -1 in wanted:
        rest = math.prod(d for d in wanted if d != -1)
        if rest == 0 or x.type.size % rest:
            raise ModelFormatError(f"{op.info}: {x.type.size} elements of {x.type.shape} do not fit shape {wanted}")
        wanted = tuple(x.type.size // rest if d == -1 else d for d in wanted)
    batch = x.type.shape[0] if x.type.rank else 1
    if wanted[:1] == (1,) and x.type.size == batch * math.prod(wanted):
        wanted = (batch, *wanted[1:])  # the file says a batch of one, the input was bound to more
    return op.emit(mv.RESHAPE, [x], mv.ReshapeAttrs(tuple(wanted)))


def _squeeze(op: Operation) -> Value:
    x, wanted = op.value(0), op.vector("squeeze_dims")
    axes = {op.axis(a, x.type.rank) for a in wanted} if wanted else {i for i, d in enumerate(x.type.shape) if d == 1}
    if any(x.type.shape[a] != 1 for a in axes):
        raise ModelFormatError(f"{op.info}: axes {wanted} of {x.type.shape} do not all have size 1")
    return op.emit(mv.RESHAPE, [x], mv.ReshapeAttrs(tuple(d for i, d in enumerate(x.type.shape) if i not in axes)))


def _expand_dims(op: Operation) -> Value:
    x = op.value(0)
    axis = op.axis(op.integer(1), x.type.rank + 1)
    return op.emit(mv.RESHAPE, [x], mv.ReshapeAttrs((*x.type.shape[:axis], 1, *x.type.shape[axis:])))


def _transpose(op: Operation) -> Value:
    x = op.value(0)
    perm = tuple(op.axis(a, x.type.rank) for a in op.integers(1))
    return op.emit(mv.TRANSPOSE, [x], mv.TransposeAttrs(perm))


def requantized(op: Operation, x: Value) -> Value:
    """x in the scale that the output is declared with."""
    out = op.out_type()
    if out is None or not op.quantized(x) or (x.type.dtype, x.type.quant) == out:
        return x
    return op.emit(ew.QUANTIZE, [x], ew.CastAttrs(*out))


def _concat(op: Operation) -> Value:
    parts = op.values()
    if not parts:
        raise ModelFormatError(f"{op.info}: nothing to join")
    axis = op.axis(op.number("axis"), parts[0].type.rank)
    if op.number("fused_activation_function"):
        op.refuse("a fused activation")
    if parts[0].type.quant is not None:
        parts = [requantized(op, x) for x in parts]
    if any(x.type.rank > axis and x.type.shape[axis] == 0 for x in parts):  # nothing to copy from those
        parts = [x for x in parts if x.type.rank <= axis or x.type.shape[axis]] or parts[:1]
    return op.emit(mv.CONCAT, parts, mv.ConcatAttrs(axis))


def _pack(op: Operation) -> Value:
    parts = op.values()
    if not parts or op.number("values_count") != len(parts):
        raise ModelFormatError(f"{op.info}: values_count is {op.number('values_count')}, inputs are {len(parts)}")
    axis = op.axis(op.number("axis"), parts[0].type.rank + 1)
    if any(x.type.shape != parts[0].type.shape for x in parts):
        raise ModelFormatError(f"{op.info}: the shapes {sorted({x.type.shape for x in parts})} differ")
    shape = parts[0].type.shape
    rows = [op.reshape(x, (*shape[:axis], 1, *shape[axis:])) for x in parts]
    return op.emit(mv.CONCAT, rows, mv.ConcatAttrs(axis))


def cut(op: Operation, x: Value, axis: int, start: int, size: int) -> Value:
    """x[start : start + size] along one axis."""
    starts, sizes = [0] * x.type.rank, list(x.type.shape)
    starts[axis], sizes[axis] = start if 0 not in sizes and size else 0, size
    return op.emit(mv.SLICE, [x], mv.SliceAttrs(tuple(starts), tuple(sizes), (1,) * x.type.rank))


def _unpack(op: Operation) -> list[Value]:
    x = op.value(0)
    axis = op.axis(op.number("axis"), x.type.rank)
    if op.number("num") != x.type.shape[axis] or op.output_count != op.number("num"):
        raise ModelFormatError(
            f"{op.info}: num is {op.number('num')}, needs axis {axis} of {x.type.shape} and {op.output_count} outputs"
        )
    rest = (*x.type.shape[:axis], *x.type.shape[axis + 1 :])
    return [op.reshape(cut(op, x, axis, i, 1), rest) for i in range(op.output_count)]


def _split_into(op: Operation, x: Value, axis: int, sizes: Sequence[int]) -> list[Value]:
    if sum(sizes) != x.type.shape[axis] or len(sizes) != op.output_count or min(sizes, default=0) < 0:
        raise ModelFormatError(
            f"{op.info}: sizes {tuple(sizes)}, {op.output_count} in number, do not make axis {axis} of {x.type.shape}"
        )
    starts = itertools.accumulate(sizes, initial=0)
    return [cut(op, x, axis, start, size) for start, size in zip(starts, sizes, strict=False)]


def _split(op: Operation) -> list[Value]:
    x, count = op.value(1), op.number("num_splits")
    axis = op.axis(op.integer(0), x.type.rank)
    if count < 1 or x.type.shape[axis] % count:
        raise ModelFormatError(f"{op.info}: axis {axis} of {x.type.shape} does not split into {count} equal parts")
    return _split_into(op, x, axis, [x.type.shape[axis] // count] * count)


def _split_v(op: Operation) -> list[Value]:
    x, sizes = op.value(0), list(op.integers(1))
    axis = op.axis(op.integer(2), x.type.rank)
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = x.type.shape[axis] - sum(s for s in sizes if s != -1)
    return _split_into(op, x, axis, sizes)


def _slice(op: Operation) -> Value:
    x, starts, sizes = op.value(0), op.integers(1), op.integers(2)
    if not len(starts) == len(sizes) == x.type.rank:
        raise ModelFormatError(f"{op.info}: begin {starts} and size {sizes} do not fit {x.type.shape}")
    full = tuple(d - b if s == -1 else s for d, b, s in zip(x.type.shape, starts, sizes, strict=True))
    return op.emit(mv.SLICE, [x], mv.SliceAttrs(tuple(starts), full, (1,) * x.type.rank))


def _paddings(op: Operation, x: Value, i: int = 1) -> tuple[tuple[int, ...], tuple[int, ...]]:
    numbers = op.integers(i)
    if op.value(i).type.shape != (x.type.rank, 2) or min(numbers, default=0) < 0:
        raise ModelFormatError(
            f"{op.info}: paddings {numbers} of shape {op.value(i).type.shape} do not fit {x.type.shape}"
        )
    return tuple(numbers[0::2]), tuple(numbers[1::2])


def _pad(op: Operation) -> Value:
    x = op.value(0)
    value = float(x.type.quant.zero_points[0]) if x.type.quant is not None and x.type.dtype in QUANTIZED else 0.0
    if op.info.name == "PADV2" and op.optional(2) is not None:
        value = op.scalar(2)
    if math.isnan(value):
        raise ModelFormatError(f"{op.info}: the padding is no number")
    return op.emit(mv.PAD, [x], mv.PadAttrs(*_paddings(op, x), float(value)))


def _mirror_pad(op: Operation) -> Value:
    x, mode = op.value(0), op.number("mode")
    if not 0 <= mode < len(MIRROR_PAD_MODES):
        raise ModelFormatError(f"{op.info}: mode is {mode}, must be 0 (REFLECT) or 1 (SYMMETRIC)")
    return op.emit(mv.PAD, [x], mv.PadAttrs(*_paddings(op, x), mode=MIRROR_PAD_MODES[mode]))


def _tile(op: Operation) -> Value:
    return op.emit(mv.TILE, [op.value(0)], mv.TileAttrs(tuple(op.integers(1))))


def expand(op: Operation, x: Value, shape: Sequence[int]) -> Value:
    """x broadcast to a shape."""
    if any(d < 0 for d in shape):
        raise ModelFormatError(f"{op.info}: shape {tuple(shape)} has a negative size")
    return x if x.type.shape == tuple(shape) else op.emit(mv.EXPAND, [x], mv.ExpandAttrs(tuple(shape)))


def _broadcast_to(op: Operation) -> Value:
    return expand(op, op.value(0), op.integers(1))


def _fill(op: Operation) -> Value:
    return expand(op, op.reshape(op.value(1), ()), op.integers(0))


def _shape(op: Operation) -> Value:
    x, dtype = op.value(0), DTYPES.get(op.number("out_type"), DType.INT32)
    if dtype not in (DType.INT32, DType.INT64):  # 0, the default, is FLOAT32 and means int32
        dtype = DType.INT32
    return op.constant(x.type.shape, dtype)


def _rank(op: Operation) -> Value:
    return op.constant([op.value(0).type.rank], DType.INT32, ())


def _range(op: Operation) -> Value:
    start, limit, delta = op.scalar(0), op.scalar(1), op.scalar(2)
    if len({op.value(i).type.dtype for i in range(3)}) > 1:
        raise ModelFormatError(f"{op.info}: start, limit and delta have different types")
    if delta == 0 or not all(map(math.isfinite, (start, limit, delta))):
        raise ModelFormatError(f"{op.info}: no range goes from {start} to {limit} by {delta}")
    count = max(math.ceil((limit - start) / delta), 0)
    if count > 65536:
        op.refuse(f"a range of {count} numbers")
    return op.constant([start + i * delta for i in range(count)], op.value(0).type.dtype)


def _reverse(op: Operation) -> Value:
    x = op.value(0)
    return op.emit(mv.REVERSE, [x], mv.ReverseAttrs(op.axes(1, x.type.rank)))


def _block_size(op: Operation) -> mv.BlockAttrs:
    block = op.number("block_size")
    if block < 1:
        raise ModelFormatError(f"{op.info}: block_size is {block}, must be at least 1")
    return mv.BlockAttrs(block)


def _depth_to_space(op: Operation) -> Value:
    return op.emit(mv.DEPTH_TO_SPACE, [op.value(0)], _block_size(op))


def _space_to_depth(op: Operation) -> Value:
    return op.emit(mv.SPACE_TO_DEPTH, [op.value(0)], _block_size(op))


def _resize_attrs(op: Operation) -> resize.ResizeAttrs:
    size = op.integers(1)
    if len(size) != 2:
        raise ModelFormatError(f"{op.info}: size is {size}, must be two numbers")
    return resize.ResizeAttrs((size[0], size[1]), op.flag("align_corners"), op.flag("half_pixel_centers"))


def _resize_bilinear(op: Operation) -> Value:
    return op.emit(resize.RESIZE_BILINEAR, [op.value(0)], _resize_attrs(op))


def _resize_nearest(op: Operation) -> Value:
    return op.emit(resize.RESIZE_NEAREST, [op.value(0)], _resize_attrs(op))


def _densify(op: Operation) -> Value:
    """Sparse storage is a property of the constant, so its dense form is the same value."""
    x = op.value(0)
    if x.constant is None:
        op.refuse("a sparse tensor that is not a constant")
    return x


CONVERTERS: dict[str, Row] = {
    "BROADCAST_TO": (_broadcast_to, ""),
    "CONCATENATION": (_concat, "ConcatenationOptions"),
    "DENSIFY": (_densify, ""),
    "DEPTH_TO_SPACE": (_depth_to_space, "DepthToSpaceOptions"),
    "EXPAND_DIMS": (_expand_dims, ""),
    "FILL": (_fill, ""),
    "MIRROR_PAD": (_mirror_pad, "MirrorPadOptions"),
    "PACK": (_pack, "PackOptions"),
    "PAD": (_pad, ""),
    "PADV2": (_pad, ""),
    "RANGE": (_range, ""),
    "RANK": (_rank, ""),
    "RESHAPE": (_reshape, "ReshapeOptions"),
    "RESIZE_BILINEAR": (_resize_bilinear, "ResizeBilinearOptions"),
    "RESIZE_NEAREST_NEIGHBOR": (_resize_nearest, "ResizeNearestNeighborOptions"),
    "REVERSE_V2": (_reverse, ""),
    "SHAPE": (_shape, "ShapeOptions"),
    "SLICE": (_slice, ""),
    "SPACE_TO_DEPTH": (_space_to_depth, "SpaceToDepthOptions"),
    "SPLIT": (_split, "SplitOptions"),
    "SPLIT_V": (_split_v, "SplitVOptions"),
    "SQUEEZE": (_squeeze, "SqueezeOptions"),
    "STRIDED_SLICE": (strided_slice, "StridedSliceOptions"),
    "TILE": (_tile, ""),
    "TRANSPOSE": (_transpose, ""),
    "UNPACK": (_unpack, "UnpackOptions"),
}
