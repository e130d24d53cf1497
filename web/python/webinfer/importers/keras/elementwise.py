"""Layers that compute element by element, join tensors, or normalise; and the functions behind other layers."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from webinfer.dtypes import DType
from webinfer.graph.ir import Op, Value
from webinfer.graph.printer import safe_name
from webinfer.importers.keras.operation import Convert, Operation
from webinfer.importers.tfjs.elementwise import selu
from webinfer.importers.tfjs.reduce import normalized
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul, reduce, softmax
from webinfer.ops.normalization import LAYER_NORM, LayerNormAttrs
from webinfer.ops.registry import NoAttrs

# Functions by their names without underscores, with the constants of their formulas.
FUNCTIONS: dict[str, tuple[Op, float, float]] = {
    "elu": (ew.ELU, 1.0, 0.0), "exponential": (ew.EXP, 0.0, 0.0), "gelu": (ew.GELU, 0.0, 0.0),
    "gelunew": (ew.GELU_TANH, 0.0, 0.0), "hardsigmoid": (ew.HARD_SIGMOID, 0.2, 0.5),
    "hardsilu": (ew.HARD_SWISH, 0.0, 0.0), "hardswish": (ew.HARD_SWISH, 0.0, 0.0),
    "leakyrelu": (ew.LEAKY_RELU, 0.2, 0.0), "mish": (ew.MISH, 0.0, 0.0), "relu": (ew.RELU, 0.0, 0.0),
    "relu6": (ew.RELU6, 0.0, 0.0), "sigmoid": (ew.SIGMOID, 0.0, 0.0), "silu": (ew.SILU, 1.0, 0.0),
    "softplus": (ew.SOFTPLUS, 0.0, 0.0), "softsign": (ew.SOFTSIGN, 0.0, 0.0), "swish": (ew.SILU, 1.0, 0.0),
    "tanh": (ew.TANH, 0.0, 0.0),
}  # fmt: skip
JOINED = {
    "Add": ew.ADD, "Average": ew.ADD, "Maximum": ew.MAXIMUM, "Minimum": ew.MINIMUM, "Multiply": ew.MUL,
    "Subtract": ew.SUB,
}  # fmt: skip
_SAME = """ActivityRegularization AlphaDropout Dropout GaussianDropout GaussianNoise RandomBrightness RandomContrast
RandomFlip RandomHeight RandomRotation RandomTranslation RandomWidth RandomZoom SpatialDropout1D SpatialDropout2D
SpatialDropout3D""".split()  # in use


def function_name(described: Any) -> str:
    """The name of a described function, without underscores; a layer that is used as one has its class name."""
    if isinstance(described, dict):
        own, settings = described.get("class_name"), described.get("config")
        described = settings if isinstance(settings, str) else own
    return "linear" if described is None else str(described).replace("_", "").lower()


def activated(op: Operation, x: Value, described: Any = None) -> Value:
    """x behind the layer's function, or behind a described one."""
    described = op.config.get("activation") if described is None else described
    name = function_name(described)
    if name == "linear":
        return x
    if isinstance(described, dict) and described.get("class_name") in CONVERTERS:
        return op.inner(described, None, [x])[0]
    if name == "selu":
        return selu(op, x)
    if name in ("softmax", "logsoftmax"):
        target = softmax.SOFTMAX if name == "softmax" else softmax.LOG_SOFTMAX
        return op.emit(target, [x], softmax.SoftmaxAttrs(op.axis(-1, x.type.rank)))
    if name not in FUNCTIONS:
        op.refuse(f"activation {safe_name(name)}")
    return op.unary(FUNCTIONS[name][0], x, *FUNCTIONS[name][1:])


def _activation(op: Operation) -> Value:
    return activated(op, op.real())


def _relu(op: Operation) -> Value:
    """Below the threshold a slope, above it x, up to a limit."""
    x, limit = op.real(), op.number("max_value") if op.config.get("max_value") is not None else math.inf
    slope, start = op.number("negative_slope"), op.number("threshold")
    if slope == 0 and start == 0:
        return op.unary(ew.RELU, x) if limit == math.inf else op.unary(ew.CLAMP, x, 0.0, limit)
    low = op.unary(ew.LINEAR, x, slope, -slope * start)
    above = op.binary(ew.GREATER_EQUAL, x, op.scalar_of(start, DType.FLOAT32))
    y = op.emit(ew.WHERE, [above, x, low], NoAttrs())
    return y if limit == math.inf else op.unary(ew.CLAMP, y, -math.inf, limit)


def _thresholded(op: Operation) -> Value:
    x, zero = op.real(), op.scalar_of(0.0, DType.FLOAT32)
    above = op.binary(ew.GREATER, x, op.scalar_of(op.number("theta", 1.0), DType.FLOAT32))
    return op.emit(ew.WHERE, [above, x, zero], NoAttrs())


def _leaky(op: Operation) -> Value:
    return op.unary(ew.LEAKY_RELU, op.real(), op.number("negative_slope", op.number("alpha", 0.3)))


def _elu(op: Operation) -> Value:
    return op.unary(ew.ELU, op.real(), op.number("alpha", 1.0))


def _prelu(op: Operation) -> Value:
    x = op.real()
    return op.binary(ew.PRELU, x, op.weight("alpha", x.type.rank - 1))


def _softmax(op: Operation) -> Value:
    x = op.real()
    (axis,) = op.wholes("axis", -1, 1)
    if op.mask() is not None:
        op.refuse("a mask")
    return op.emit(softmax.SOFTMAX, [x], softmax.SoftmaxAttrs(op.axis(axis, x.type.rank)))


def _same(op: Operation) -> Value:
    return op.value(0)


def _rescaling(op: Operation) -> Value:
    x, factor = op.real(), op.config.get("scale", 1.0)
    if not isinstance(factor, list) and not isinstance(op.config.get("offset"), list):
        return op.unary(ew.LINEAR, x, op.number("scale", 1.0), op.number("offset"))
    for kind, name in ((ew.MUL, "scale"), (ew.ADD, "offset")):
        found = op.config.get(name) or 0.0
        numbers = [op.finite(name, float(n)) for n in (found if isinstance(found, list) else [found])]
        x = op.binary(kind, x, op.constant(numbers, DType.FLOAT32))
    return x


# ---- several tensors


def _joined(op: Operation) -> Value:
    """Tensors of fewer axes get new ones behind the first."""
    values = [op.real(i) for i in range(len(op.inputs))]
    rank = max((x.type.rank for x in values), default=0)
    if len(values) < 2 or min(x.type.rank for x in values) < 1:
        op.fail(f"{len(values)} tensors of rank {rank}")
    shapes = [(x.type.shape[0], *(1,) * (rank - x.type.rank), *x.type.shape[1:]) for x in values]
    values = [op.reshape(x, shape) for x, shape in zip(values, shapes, strict=True)]
    y = functools.reduce(lambda a, b: op.binary(JOINED[op.name], a, b), values)
    return op.unary(ew.LINEAR, y, 1 / len(values)) if op.name == "Average" else y


def _concatenate(op: Operation) -> Value:
    values = op.values()
    (axis,) = op.wholes("axis", -1, 1)
    return op.concat(op.alike(values), op.axis(axis, values[0].type.rank))


def _unit(op: Operation, x: Value, axis: int) -> Value:
    """x with vectors of length one along an axis."""
    length = op.emit(reduce.REDUCE_L2, [x], reduce.ReduceAttrs((axis,), True))
    return op.binary(ew.DIV, x, op.binary(ew.MAXIMUM, length, op.scalar_of(1e-6, DType.FLOAT32)))


def _dot(op: Operation) -> Value:
    """Products along one axis of each, summed."""
    values, axes = [op.real(0), op.real(1)], op.wholes("axes", -1, 2)
    axes = tuple(op.axis(axis, x.type.rank) for x, axis in zip(values, axes, strict=True))
    if 0 in axes:
        op.refuse("sums along the first axis")
    if op.flag("normalize"):
        values = [_unit(op, x, axis) for x, axis in zip(values, axes, strict=True)]
    rows, rest = list[Value](), list[int]()
    for x, axis in zip(values, axes, strict=True):
        kept = [i for i in range(1, x.type.rank) if i != axis]
        sizes = [x.type.shape[i] for i in kept]
        rest += sizes
        turned = op.transpose(x, (0, *kept, axis))
        rows.append(op.reshape(turned, (x.type.shape[0], math.prod(sizes), x.type.shape[axis])))
    y = op.emit(matmul.MATMUL, [*rows, None], matmul.MatmulAttrs(transpose_b=True))
    return op.reshape(y, (y.type.shape[0], *(rest or (1,))))


# ---- normalisation


def _along(op: Operation, v: Value, rank: int, axes: Sequence[int], shape: Sequence[int]) -> Value:
    """A weight of some axes beside a tensor of all."""
    return op.reshape(v, [shape[i] if i in axes else 1 for i in range(rank)]) if max(axes) < rank - 1 else v


def _scale_and_offset(op: Operation, rank: int) -> list[Value | None]:
    """The weights that what is normalised is multiplied with and added to, as far as the layer has them."""
    named = ("gamma", "scale"), ("beta", "center")
    return [op.weight(name, rank) if op.flag(flag, True) else None for name, flag in named]


def _batch_norm(op: Operation) -> Value:
    x = op.real()
    axes = [op.axis(axis, x.type.rank) for axis in op.wholes("axis", -1)]
    if len(axes) != 1:
        op.refuse(f"axes {axes}")
    weights = [*_scale_and_offset(op, 1), op.weight("moving_mean"), op.weight("moving_variance")]
    scale, offset, mean, variance = (
        op.constant([usual], DType.FLOAT32) if weight is None else _along(op, weight, x.type.rank, axes, x.type.shape)
        for weight, usual in zip(weights, (1.0, 0.0, 0.0, 0.0), strict=True)
    )
    return normalized(op, x, scale, offset, mean, variance, op.number("epsilon", 1e-3))


def _layer_norm(op: Operation) -> Value:
    x = op.real()
    axes = [op.axis(axis, x.type.rank) for axis in op.wholes("axis", -1)]
    kept = [i for i in range(x.type.rank) if i not in axes]
    order = [*kept, *axes]
    attrs = LayerNormAttrs(len(axes), op.number("epsilon", 1e-3))
    y = op.emit(LAYER_NORM, [op.transpose(x, order), *_scale_and_offset(op, len(axes))], attrs)
    return op.transpose(y, [order.index(i) for i in range(x.type.rank)])


CONVERTERS: dict[str, Convert] = {
    **dict.fromkeys(JOINED, _joined),
    **dict.fromkeys(_SAME, _same),
    "Activation": _activation,
    "BatchNormalization": _batch_norm,
    "Concatenate": _concatenate,
    "Dot": _dot,
    "ELU": _elu,
    "LayerNormalization": _layer_norm,
    "LeakyReLU": _leaky,
    "PReLU": _prelu,
    "ReLU": _relu,
    "Rescaling": _rescaling,
    "Softmax": _softmax,
    "ThresholdedReLU": _thresholded,
}
