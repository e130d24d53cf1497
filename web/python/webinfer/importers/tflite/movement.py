"""TFLite operators that move elements: shapes, slices, joins, pads."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.graph.ir import TensorType, Value
from webinfer.importers.core.axes import equal_split, sized_split
from webinfer.importers.core.geometry import batch_to_space, dynamic_update_slice, space_to_batch, strided_slice
from webinfer.importers.core.steps import QUANTIZED
from webinfer.importers.tflite.operation import Operation, Row
from webinfer.importers.tflite.schema import MIRROR_PAD_MODES
from webinfer.ops import gather
from webinfer.ops import movement as mv
from webinfer.ops.registry import broadcast


def _reshape(op: Operation) -> Value:
    x = op.value(0)
    wanted = op.integers(1) if op.optional(1) is not None else op.vector("new_shape")
    if op.optional(1) is None and wanted == (0,):
        wanted = ()  # how old writers say scalar
    if wanted.count(-1) > 1 or any(d < -1 for d in wanted):
        op.fail(f"shape {wanted} may hold one -1 and no other negative size")
    if -1 in wanted:
        rest = math.prod(d for d in wanted if d != -1)
        if rest == 0 or x.type.size % rest:
            op.fail(f"{x.type.size} elements of {x.type.shape} do not fit shape {wanted}")
        wanted = tuple(x.type.size // rest if d == -1 else d for d in wanted)
    batch = x.type.shape[0] if x.type.rank else 1
    if wanted[:1] == (1,) and x.type.size == batch * math.prod(wanted):
        wanted = (batch, *wanted[1:])  # the file says a batch of one, the input was bound to more
    return op.in_shape(x, tuple(wanted))


def _broadcast_args(op: Operation) -> Value:
    """The shape that two shapes broadcast to; both must be known while reading."""
    shapes = op.integers(0), op.integers(1)
    return op.constant(broadcast("BROADCAST_ARGS", *shapes), op.value(0).type.dtype)


def _squeeze(op: Operation) -> Value:
    x, wanted = op.value(0), op.vector("squeeze_dims")
    axes = {op.axis(a, x.type.rank) for a in wanted} if wanted else {i for i, d in enumerate(x.type.shape) if d == 1}
    if any(x.type.shape[a] != 1 for a in axes):
        op.fail(f"axes {wanted} of {x.type.shape} do not all have size 1")
    return op.in_shape(x, tuple(d for i, d in enumerate(x.type.shape) if i not in axes))


def _expand_dims(op: Operation) -> Value:
    x = op.value(0)
    axis = op.axis(op.integer(1), x.type.rank + 1)
    return op.in_shape(x, (*x.type.shape[:axis], 1, *x.type.shape[axis:]))


def _transpose(op: Operation) -> Value:
    x = op.value(0)
    perm = tuple(op.axis(a, x.type.rank) for a in op.integers(1))
    return op.emit(mv.TRANSPOSE, [x], mv.TransposeAttrs(perm))


def _rescaled(op: Operation, x: Value) -> Value:
    """x in the scale of the result. Bytes without a sign go through a table: LiteRT rounds them otherwise than others.

    Source:  tensorflow v2.18.0, lite/kernels/internal/reference/concatenation.h, ConcatenationWithScaling
    """
    out, quant = op.out_type(), x.type.quant
    if x.type.dtype is not DType.UINT8 or quant is None or out is None or out[1] is None or out == (DType.UINT8, quant):
        return op.requantized(x)
    zero, (to_scale, to_zero) = quant.zero_points[0], (out[1].scales[0], out[1].zero_points[0])
    factor = min(_single(quant.scales[0] * _single(1.0 / to_scale)), 1e30)  # every difference saturates then
    offset = _single(-zero * factor)
    reals = [_single(_single(stored * factor) + offset) for stored in range(256)]
    nearest = [int(math.copysign(math.floor(abs(real) + 0.5), real)) + to_zero for real in reals]
    table = op.constant([min(max(n, 0), 255) for n in nearest], DType.UINT8)
    table.type = TensorType((256,), *out)
    return op.emit(gather.GATHER, [table, op.cast(x, DType.INT32)], gather.GatherAttrs(0))


def _single(number: float) -> float:
    """The nearest float32, a large number instead of an infinity."""
    return float(struct.unpack("<f", struct.pack("<f", min(max(number, -3e38), 3e38)))[0])


def _concat(op: Operation) -> Value:
    parts = op.values()
    if not parts:
        op.fail("nothing to join")
    axis = op.axis(op.number("axis"), parts[0].type.rank)
    if parts[0].type.quant is not None:
        parts = [_rescaled(op, x) for x in parts]
    if any(x.type.rank > axis and x.type.shape[axis] == 0 for x in parts):  # nothing to copy from those
        parts = [x for x in parts if x.type.rank <= axis or x.type.shape[axis]] or parts[:1]
    return op.concat(parts, axis)


def _pack(op: Operation) -> Value:
    parts = op.values()
    if not parts or op.number("values_count") != len(parts):
        op.fail(f"values_count is {op.number('values_count')}, inputs are {len(parts)}")
    axis = op.axis(op.number("axis"), parts[0].type.rank + 1)
    if any(x.type.shape != parts[0].type.shape for x in parts):
        op.fail(f"the shapes {sorted({x.type.shape for x in parts})} differ")
    return op.stack(parts, axis)


def _unpack(op: Operation) -> list[Value]:
    x = op.value(0)
    axis = op.axis(op.number("axis"), x.type.rank)
    if op.number("num") != x.type.shape[axis] or op.output_count != op.number("num"):
        op.fail(f"num is {op.number('num')}, needs axis {axis} of {x.type.shape} and {op.output_count} outputs")
    return [op.row(x, axis, i) for i in range(op.output_count)]


def _split_into(op: Operation, x: Value, axis: int, sizes: Sequence[int]) -> list[Value]:
    if len(sizes) != op.output_count:
        op.fail(f"{len(sizes)} parts for {op.output_count} outputs")
    return op.pieces(x, axis, sizes)


def _split(op: Operation) -> list[Value]:
    return _split_into(op, *equal_split(op, op.number("num_splits")))


def _split_v(op: Operation) -> list[Value]:
    return _split_into(op, *sized_split(op))


def _slice(op: Operation) -> Value:
    x, starts, sizes = op.value(0), op.integers(1), op.integers(2)
    if not len(starts) == len(sizes) == x.type.rank:
        op.fail(f"begin {starts} and size {sizes} do not fit {x.type.shape}")
    full = tuple(d - b if s == -1 else s for d, b, s in zip(x.type.shape, starts, sizes, strict=True))
    return op.sliced(x, starts, full)


def _strided_slice(op: Operation) -> Value:
    return strided_slice(op, op.value(0), [op.integers(i) for i in (1, 2, 3)], op.number, op.flag("offset"))


def _paddings(op: Operation, x: Value, i: int = 1) -> tuple[tuple[int, ...], tuple[int, ...]]:
    numbers = op.integers(i)
    if op.value(i).type.shape != (x.type.rank, 2) or min(numbers, default=0) < 0:
        op.fail(f"paddings {numbers} of shape {op.value(i).type.shape} do not fit {x.type.shape}")
    return tuple(numbers[0::2]), tuple(numbers[1::2])


def _pad(op: Operation) -> Value:
    x = op.value(0)
    value = float(x.type.quant.zero_points[0]) if x.type.quant is not None and x.type.dtype in QUANTIZED else 0.0
    if op.info.name == "PADV2" and op.optional(2) is not None:
        value = op.scalar(2)
    if math.isnan(value):
        op.fail("the padding is not a number")
    return op.emit(mv.PAD, [x], mv.PadAttrs(*_paddings(op, x), value))


def _mirror_pad(op: Operation) -> Value:
    x, mode = op.value(0), op.number("mode")
    if not 0 <= mode < len(MIRROR_PAD_MODES):
        op.fail(f"mode is {mode}, must be 0 (REFLECT) or 1 (SYMMETRIC)")
    return op.emit(mv.PAD, [x], mv.PadAttrs(*_paddings(op, x), mode=MIRROR_PAD_MODES[mode]))


def _tile(op: Operation) -> Value:
    return op.emit(mv.TILE, [op.value(0)], mv.TileAttrs(tuple(op.integers(1))))


def _reverse(op: Operation) -> Value:
    x = op.value(0)
    return op.emit(mv.REVERSE, [x], mv.ReverseAttrs(op.axes(1, x.type.rank)))


def _block_size(op: Operation) -> mv.BlockAttrs:
    block = op.number("block_size")
    if block < 1:
        op.fail(f"block_size is {block}, must be at least 1")
    return mv.BlockAttrs(block)


def _depth_to_space(op: Operation) -> Value:
    return op.emit(mv.DEPTH_TO_SPACE, [op.value(0)], _block_size(op))


def _space_to_depth(op: Operation) -> Value:
    return op.emit(mv.SPACE_TO_DEPTH, [op.value(0)], _block_size(op))


def _densify(op: Operation) -> Value:
    """Sparse storage is a property of the constant, so its dense form is the same value."""
    x = op.value(0)
    if x.constant is None:
        op.refuse("a sparse tensor that is not a constant")
    return x


def _reverse_sequence(op: Operation) -> Value:
    """Each batch row with its first `length` elements reversed."""
    x, lengths = op.value(0), op.integers(1)
    along, batch = op.axis(op.number("seq_dim"), x.type.rank), op.axis(op.number("batch_dim"), x.type.rank)
    size = x.type.shape[along]
    if len(lengths) != x.type.shape[batch] or along == batch or any(not 0 <= n <= size for n in lengths):
        op.fail(f"lengths {lengths} do not fit axes {batch} and {along} of {x.type.shape}")
    if len(lengths) > 256:
        op.refuse(f"a batch of {len(lengths)}")
    rows = []
    for i, length in enumerate(lengths):
        row = op.cut(x, batch, i, 1)
        head = op.emit(mv.REVERSE, [op.cut(row, along, 0, length)], mv.ReverseAttrs((along,)))
        rows.append(op.concat([head, op.cut(row, along, length, size - length)], along))
    return op.concat(rows, batch) if rows else x


CONVERTERS: dict[str, Row] = {
    "BATCH_TO_SPACE_ND": (batch_to_space, ""),
    "CONCATENATION": (_concat, "ConcatenationOptions"),
    "DENSIFY": (_densify, ""),
    "DEPTH_TO_SPACE": (_depth_to_space, "DepthToSpaceOptions"),
    "DYNAMIC_UPDATE_SLICE": (dynamic_update_slice, ""),
    "BROADCAST_ARGS": (_broadcast_args, ""),
    "EXPAND_DIMS": (_expand_dims, ""),
    "MIRROR_PAD": (_mirror_pad, "MirrorPadOptions"),
    "PACK": (_pack, "PackOptions"),
    "PAD": (_pad, ""),
    "PADV2": (_pad, ""),
    "RESHAPE": (_reshape, "ReshapeOptions"),
    "REVERSE_SEQUENCE": (_reverse_sequence, "ReverseSequenceOptions"),
    "REVERSE_V2": (_reverse, ""),
    "SLICE": (_slice, ""),
    "SPACE_TO_BATCH_ND": (space_to_batch, ""),
    "SPACE_TO_DEPTH": (_space_to_depth, "SpaceToDepthOptions"),
    "SPLIT": (_split, "SplitOptions"),
    "SPLIT_V": (_split_v, "SplitVOptions"),
    "SQUEEZE": (_squeeze, "SqueezeOptions"),
    "STRIDED_SLICE": (_strided_slice, "StridedSliceOptions"),
    "TILE": (_tile, ""),
    "TRANSPOSE": (_transpose, ""),
    "UNPACK": (_unpack, "UnpackOptions"),
}
