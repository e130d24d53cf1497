"""How far a backend may be from the reference on hostile operands: the rules of the table "tolerances"."""

import dataclasses

import numpy as np
from tests.ops.case_graphs import Array

from build_scripts.judge.hostile_magnitudes import LARGEST, Arrays, lines_too_wide, magnitude_of
from webinfer.backends.reference.language import weights
from webinfer.backends.reference.quantized import is_quantized
from webinfer.dtypes import DType
from webinfer.graph.ir import Node
from webinfer.ops.language import BLOCK_MATMUL, CACHED_ATTENTION
from webinfer.ops.softmax import LOG_SOFTMAX, SOFTMAX

EXACT_STORED = frozenset(
    ("add", "conv2d", "conv_transpose2d", "depthwise_conv2d", "matmul", "max_pool2d", "mul", "sub")
)
# Whose numbers decide between results: which box or pose comes first, which level is nearest, where the next step
# starts. Judged on ordinary numbers.
DECIDING = frozenset((
    "block_matmul", "cached_attention", "detection_postprocess", "non_max_suppression", "posenet_decoder", "recurrent",
    "round_rows", "sample", "ssd_detections", "swiglu",
))  # fmt: skip
# What moves elements, or looks at their bits.
MOVES = frozenset((
    "concat", "depth_to_space", "expand", "gather", "gather_elements", "gather_nd", "identity", "is_infinite", "is_nan",
    "pad", "reshape", "resize_nearest", "reverse", "scatter_elements", "slice", "space_to_depth",
    "tile", "transpose", "triangular", "where",
))  # fmt: skip


def difference(got: Array, want: Array, node: Node, arrays: Arrays, index: int, backend: str) -> str:
    """What is wrong with a result, or an empty text."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"is {got.dtype}{got.shape}, must be {want.dtype}{want.shape}"
    is_open = node.op.name in DECIDING or (backend == "webgpu" and node.op.name not in MOVES)
    numbers = (*arrays, _constants(node), _in_blocks(node, arrays))
    if is_open and not all(map(_is_ordinary, numbers)):
        return ""
    if want.dtype.kind != "f" and (node.op.name in EXACT_STORED or not is_quantized(node)):
        wrong = got != want
    else:
        with np.errstate(all="ignore"):
            wrong = _wrong(got.astype(np.float64), want.astype(np.float64), node, arrays, index)
    if not wrong.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {got.size} wrong, first at {at}: {got[at]!r}, must be {want[at]!r}"


def _is_ordinary(array: Array | None) -> bool:
    """Whether WGSL says what comes of these numbers: it need not know infinities, NaN, and what is next to either."""
    if array is None or array.dtype.kind != "f":
        return True
    size = np.abs(array[array != 0].astype(np.float64))
    return bool(((size >= 1e-30) & (size <= 1e4)).all())


def _in_blocks(node: Node, arrays: Arrays) -> Array | None:
    """The weights that lie in blocks of bytes; of caches of whole numbers what is never ordinary, as in their logits
    13 bits count."""
    if node.op is CACHED_ATTENTION and arrays[6] is not None and arrays[6].dtype == np.int16:
        return np.array([np.inf])
    if node.op is not BLOCK_MATMUL or arrays[1] is None:
        return None
    with np.errstate(all="ignore"):
        return weights(arrays[1], node.attrs.type)


def _constants(node: Node) -> Array:
    """The real numbers among the node's attributes."""
    given = (getattr(node.attrs, field.name) for field in dataclasses.fields(node.attrs))
    return np.array([number for number in given if isinstance(number, float)])


def _wrong(got: Array, want: Array, node: Node, arrays: Arrays, index: int) -> Array:
    tolerance, half = node.op.tolerance, node.outputs[index].type.dtype is DType.FLOAT16
    absolute, relative = tolerance.absolute, tolerance.relative
    if half and absolute:
        absolute, relative = absolute + 2e-3, relative + 2e-3
    largest = 65504.0 if half else LARGEST
    magnitude, free = np.abs(want), np.zeros(want.shape, bool)
    if tolerance.summed and not is_quantized(node):
        magnitude, overflows = magnitude_of(node, arrays)
        magnitude = np.broadcast_to(magnitude, want.shape)
        free = np.broadcast_to(overflows, want.shape) | (magnitude >= LARGEST * (1 - 1e-6))
    if node.op.name.startswith("conv") or node.op.name == "depthwise_conv2d":
        free = free | _strange_weights(node, arrays)  # times a zero of the padding they may make a NaN
    if node.op in (LOG_SOFTMAX, SOFTMAX) and arrays[0] is not None and not is_quantized(node):
        free = free | lines_too_wide(arrays[0].astype(np.float32), node.attrs.axis)
    if is_quantized(node) and node.op.name not in EXACT_STORED:
        return _stored_wrong(got, want, node, index)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    allowed = absolute + relative * np.maximum(magnitude, np.abs(want))
    near = np.isfinite(got) & np.isfinite(want) & (np.abs(got - want) <= allowed)
    edge = np.isinf(got) ^ np.isinf(want)  # one rounded to infinity, the other just not
    edge &= (np.minimum(np.abs(got), np.abs(want)) >= largest * (1 - 4 * relative - 1e-3 * half)) & (got * want > 0)
    return np.asarray(~(same | near | free | edge))


def _strange_weights(node: Node, arrays: Arrays) -> bool:
    w = arrays[1]
    return w is not None and w.dtype.kind == "f" and not np.isfinite(w).all()


def _stored_wrong(got: Array, want: Array, node: Node, index: int) -> Array:
    """Where a real result that is stored again is off by more than a tie and its own tolerance."""
    tolerance, type = node.op.tolerance, node.outputs[index].type
    assert type.quant is not None
    scale, zero = min(type.quant.scales), max(map(abs, type.quant.zero_points), default=0)
    real_error = tolerance.absolute + tolerance.relative * (np.abs(want) + zero) * scale
    return np.asarray(np.abs(got - want) > 1 + real_error / scale)
