"""How far a backend may be from the reference on hostile operands: the rules of the table "tolerances"."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tests.ops.case_graphs import Array

from webinfer.backends.reference.executor import compute
from webinfer.backends.reference.quantized import is_quantized, real
from webinfer.dtypes import DType
from webinfer.graph.ir import Node, TensorType, Value
from webinfer.ops.activation import Activation
from webinfer.ops.elementwise import SQUARED_DIFFERENCE

LARGEST = float(np.finfo(np.float32).max)
Arrays = Sequence[Array | None]
# Whose numbers decide between results: which box comes first, which level is nearest. Judged on ordinary numbers.
EXACT_STORED = frozenset(
    ("add", "conv2d", "conv_transpose2d", "depthwise_conv2d", "matmul", "max_pool2d", "mul", "sub")
)
DECIDING = frozenset(("detection_postprocess", "non_max_suppression", "round_rows"))
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
    if is_open and not all(map(_is_ordinary, (*arrays, _constants(node)))):
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
        magnitude, overflows = _magnitude(node, arrays)
        magnitude = np.broadcast_to(magnitude, want.shape)
        free = np.broadcast_to(overflows, want.shape) | (magnitude >= LARGEST * (1 - 1e-6))
    if node.op.name.startswith("conv") or node.op.name == "depthwise_conv2d":
        free = free | _strange_weights(node, arrays)  # times a zero of the padding they may make a NaN
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


def _finite_part(array: Array, value: Value) -> tuple[Array, Value]:
    """Absolute values of what is finite, as floats."""
    if value.type.dtype.is_float:
        array = np.nan_to_num(array.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    elif value.type.quant is not None:
        array = real(array, value.type)
    else:
        return array, value
    type = TensorType(value.type.shape)
    return np.abs(array).astype(np.float32), Value(value.name, type)


def _absolute(node: Node, arrays: Arrays) -> tuple[Node, list[Array | None]]:
    """The node without its activation, on absolute values."""
    attrs, values, operands = node.attrs, list[Value | None](), list[Array | None]()
    for array, value in zip(arrays, node.inputs, strict=True):
        if array is None or value is None:
            values.append(None)
            operands.append(None)
            continue
        array, value = _finite_part(array, value)
        values.append(value)
        operands.append(array)
    if hasattr(attrs, "activation"):
        attrs = dataclasses.replace(attrs, activation=Activation.NONE)
    if hasattr(attrs, "out_type"):
        attrs = dataclasses.replace(attrs, out_type=None)
    outputs = [Value(v.name, TensorType(v.type.shape)) for v in node.outputs]
    return Node(node.op, values, outputs, attrs, node.label), operands


def _magnitude(node: Node, arrays: Arrays) -> tuple[Array, Array]:
    """The sum of the magnitudes of what is added for each result, and where a sum on the way may overflow."""
    special = _MAGNITUDES.get(node.op.name)
    if special is not None:
        return special(node, arrays)
    positive, operands = _absolute(node, arrays)
    sums = compute(positive, operands)[0].astype(np.float64)
    return sums * _steepness(node, arrays), ~np.isfinite(sums)


def _steepness(node: Node, arrays: Arrays) -> Any:
    """How much an activation may enlarge an error."""
    activation = getattr(node.attrs, "activation", Activation.NONE)
    if activation is Activation.PRELU:
        slope = arrays[4]
        assert slope is not None
        return np.maximum(1.0, np.nan_to_num(np.abs(slope.astype(np.float64)), nan=np.inf)).reshape(-1)
    return 1.5 if activation is Activation.HARD_SWISH else 1.0


def _largest(node: Node, arrays: Arrays) -> tuple[Array, Array]:
    """Samples between neighbours: no error is larger than that of the largest element; infinite ones are open."""
    x = arrays[0]
    assert x is not None
    x = np.abs(x.astype(np.float64))
    finite = x[np.isfinite(x)].max(initial=0.0)
    strange = [a for a in arrays if a is not None and not np.isfinite(a).all()]
    return np.asarray(finite), np.asarray(bool(strange) or finite * 4 > LARGEST)


def _mean(node: Node, arrays: Arrays) -> tuple[Array, Array]:
    """A mean is off as its sum is, and infinite where its sum is."""
    positive, operands = _absolute(node, arrays)
    mean = compute(positive, operands)[0].astype(np.float64)
    x = operands[0]
    assert x is not None
    count = math.prod(node.attrs.window) if hasattr(node.attrs, "window") else x.size // max(mean.size, 1)
    return mean, mean * count >= LARGEST * (1 - 1e-5)


def _root(node: Node, arrays: Arrays) -> tuple[Array, Array]:
    positive, operands = _absolute(node, arrays)
    size = compute(positive, operands)[0].astype(np.float64)
    return size, size >= np.sqrt(LARGEST) * (1 - 1e-5)


def _log_sum(node: Node, arrays: Arrays) -> tuple[Array, Array]:
    (x, *_), a = arrays, node.attrs
    assert x is not None
    signed = np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    total, most = (np.sum(v, axis=a.axes, keepdims=a.keep_dims) for v in (signed, np.abs(signed)))
    return most / np.abs(total), (most >= LARGEST * (1 - 1e-5)) | (np.abs(total) < 1e-4 * most)


def _product(node: Node, arrays: Arrays) -> tuple[Array, Array]:
    (x, *_), a = arrays, node.attrs
    assert x is not None
    size = np.nan_to_num(np.abs(x.astype(np.float64)), nan=1.0, posinf=1.0)
    size = np.where(size == 0, 1.0, size)
    logs = np.log10(size)
    up, down = (np.sum(v, axis=a.axes, keepdims=a.keep_dims) for v in (np.maximum(logs, 0), np.minimum(logs, 0)))
    return np.asarray(0.0), np.asarray((up > 38) | (down < -37))


def _squares(node: Node, arrays: Arrays) -> tuple[Array, Array]:
    a, b = (np.abs(x.astype(np.float64)) for x in arrays[:2] if x is not None)
    return (a + b) ** 2, np.asarray(False)


_MAGNITUDES: dict[str, Callable[[Node, Arrays], tuple[Array, Array]]] = {
    "resize_bilinear": _largest, "transform_tensor_bilinear": _largest, "transform_landmarks": _largest,
    "landmarks_to_transform_matrix": _largest, "l2_pool2d": _root, "reduce_l2": _root, "reduce_log_sum": _log_sum,
    "reduce_product": _product, "reduce_mean": _mean, "average_pool2d": _mean, SQUARED_DIFFERENCE.name: _squares,
}  # fmt: skip
