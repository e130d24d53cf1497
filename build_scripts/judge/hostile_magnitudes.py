"""What is added for a result, by operator: the sum of its magnitudes, and where float32 may overflow on the way."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tests.ops.case_graphs import Array

from webinfer.backends.reference.attention import whole_mask
from webinfer.backends.reference.executor import compute
from webinfer.backends.reference.quantized import real
from webinfer.graph.ir import Node, TensorType, Value
from webinfer.ops.activation import Activation
from webinfer.ops.attention import ATTENTION
from webinfer.ops.elementwise import SQUARED_DIFFERENCE
from webinfer.ops.normalization import LAYER_NORM
from webinfer.ops.packed_matmul import PACKED_MATMUL
from webinfer.ops.stored_matmul import STORED_MATMUL

LARGEST = float(np.finfo(np.float32).max)
SMALLEST = float(np.finfo(np.float32).tiny)  # with all its digits
Arrays = Sequence[Array | None]


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


def magnitude_of(node: Node, arrays: Arrays) -> tuple[Array, Array]:
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


def lines_too_wide(x: Array, axis: int) -> Array:
    """Where an element of the line lies further from the largest than float32 can say."""
    with np.errstate(over="ignore", invalid="ignore"):
        top = x.max(axis=axis, keepdims=True, initial=-np.inf)
        far = np.isinf(x - top) & np.isfinite(x) & np.isfinite(top)
    return np.broadcast_to(far.any(axis=axis, keepdims=True), x.shape)


def _squares(node: Node, arrays: Arrays) -> tuple[Array, Array]:
    a, b = (np.abs(x.astype(np.float64)) for x in arrays[:2] if x is not None)
    return (a + b) ** 2, np.asarray(False)


def _size(array: Array | None) -> Array:
    """Absolute values of what is finite; 0 for the rest and for an operand that is absent."""
    wide = np.zeros(1) if array is None else array.astype(np.float64)
    return np.abs(np.nan_to_num(wide, nan=0.0, posinf=0.0, neginf=0.0))


def _packed(node: Node, arrays: Arrays) -> tuple[Array, Array]:
    """Products with weights, whose stored numbers and zeros have magnitudes of their own.

    Open too where a weight may overflow, or one that float32 rounds to 0 meets an infinity.
    """
    x, w, scales, zeros, bias = (*arrays, None, None)[:5]
    assert x is not None
    assert w is not None
    assert scales is not None
    bits, rows = node.attrs.bits, w.shape[0]
    stored = w if bits == 8 else np.stack([w & 15, w >> 4], axis=-1).reshape(rows, -1)
    offset = np.nan_to_num(zeros.astype(np.float64)) if zeros is not None else np.full(scales.shape, 2.0 ** (bits - 1))
    stored, offset = stored.reshape(rows, -1, node.attrs.block).astype(np.float64), offset[:, :, None]
    weights, apart = (
        (part * _size(scales)[:, :, None]).reshape(rows, -1)[:, : x.shape[-1]]
        for part in (stored + np.abs(offset), np.abs(stored - offset))
    )
    faint = ((apart > 0) & (apart < SMALLEST)).astype(np.float64)
    vanishes = np.isinf(x).astype(np.float64) @ faint.T > 0
    return _size(x) @ weights.T + _size(bias), (weights >= LARGEST).any(-1) | vanishes


def _layer_norm(node: Node, arrays: Arrays) -> tuple[Array, Array]:
    """An error of the mean counts in units of the deviation. Open where squares overflow or have lost their digits."""
    relative, a = node.op.tolerance.relative, node.attrs
    x, scale, bias = (*arrays, None, None)[:3]
    assert x is not None
    axes, wide = tuple(range(x.ndim - a.axes, x.ndim)), x.astype(np.float64)
    size, count = _size(x), math.prod(x.shape[x.ndim - a.axes :])
    mean = size.mean(axes, keepdims=True) if a.centred else np.zeros(1)
    apart = _size(wide - wide.mean(axes, keepdims=True) if a.centred else wide)
    square = np.square(apart).mean(axes, keepdims=True) + a.epsilon
    square = np.maximum(square, SMALLEST * SMALLEST)
    mean, apart = mean / np.sqrt(square), apart / np.sqrt(square)
    terms = mean + apart * (1.0 + mean)
    vanishes = apart <= SMALLEST + relative * terms  # a sign, or a zero, that an infinite scale makes seen
    is_open = (mean * np.sqrt(square) * count >= LARGEST) | (square * count >= LARGEST) | (square < SMALLEST)
    if scale is not None:
        is_open = is_open | (vanishes & np.isinf(scale))
        terms = terms * _size(scale)
    return terms + _size(bias), np.asarray(is_open)


def _attention(node: Node, arrays: Arrays) -> tuple[Array, Array]:
    """An error of a logit is a factor of its weight; keys that are far below the top have none.

    Open where a logit or a sum of values may overflow, or an infinite value meets a weight that float32 rounds to 0.
    """
    relative, a = node.op.tolerance.relative, node.attrs
    q, k, v = (
        np.swapaxes(x, 1, 2) if inner else x for x, inner in zip(arrays[:3], a.inner, strict=False) if x is not None
    )
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    parts = [part.astype(np.float64) for part in arrays[3:] if part is not None] or [np.zeros((1, 1, 1, 1))]
    mask, sizes = whole_mask(*parts), whole_mask(*map(_size, parts))
    products = _size(q) @ np.swapaxes(_size(k), -1, -2)
    logits = a.scale * (q.astype(np.float64) @ np.swapaxes(k.astype(np.float64), -1, -2)) + mask
    terms = abs(a.scale) * products + sizes
    sure = np.nan_to_num(logits - relative * terms, nan=-np.inf).max(-1, keepdims=True)
    counts = ~(logits + relative * terms < sure - 110.0)
    steep = np.where(counts, terms, 0.0).max(-1, keepdims=True)
    weights = np.exp(np.minimum(logits - logits.max(-1, keepdims=True) + 2 * relative * steep, 0.0))
    values, infinite = np.broadcast_to(_size(v), v.shape), np.isinf(v)
    faint = (logits > -np.inf) & (weights * np.exp(np.maximum(-4 * relative * steep, -700.0)) < SMALLEST)
    overflows = (np.maximum(products, abs(a.scale) * products).max(-1, keepdims=True) >= LARGEST) | (steep >= LARGEST)
    overflows = (
        overflows
        | ((logits > -np.inf).astype(np.float64) @ values >= LARGEST)
        | (faint.astype(np.float64) @ infinite.astype(np.float64) > 0)
    )
    sums = (1.0 + 2.0 * steep) * (np.nan_to_num(weights, nan=0.0) @ values)
    return (np.swapaxes(sums, 1, 2), np.swapaxes(overflows, 1, 2)) if a.inner[3] else (sums, overflows)


def _stored(node: Node, arrays: Arrays) -> tuple[Array, Array]:
    """Products of bytes with scales: of the real numbers that they stand for."""
    x, w = (np.abs(real(a, node.required_input(i).type)) for i, a in enumerate(arrays[:2]) if a is not None)
    sums = np.matmul(x, w.T if node.attrs.transpose_b else w) + _size(arrays[2] if len(arrays) > 2 else None)
    return sums, sums >= LARGEST


_MAGNITUDES: dict[str, Callable[[Node, Arrays], tuple[Array, Array]]] = {
    "resize_bilinear": _largest, "transform_tensor_bilinear": _largest, "transform_landmarks": _largest,
    "landmarks_to_transform_matrix": _largest, "l2_pool2d": _root, "reduce_l2": _root, "reduce_log_sum": _log_sum,
    "reduce_product": _product, "reduce_mean": _mean, "average_pool2d": _mean, SQUARED_DIFFERENCE.name: _squares,
    ATTENTION.name: _attention, LAYER_NORM.name: _layer_norm, PACKED_MATMUL.name: _packed,
    STORED_MATMUL.name: _stored,
}  # fmt: skip
