"""ONNX's classical models beside trees: linear ones, and what prepares tables for them.

Source:  onnx v1.23, ai.onnx.ml; scores as ONNX Runtime writes them
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.limits import within
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.importers.onnx.tree_ensemble import label, labels_of, transformed
from webinfer.ops import elementwise as ew
from webinfer.ops import gather, matmul, reduce
from webinfer.ops.registry import NoAttrs

_MOST_PAIRS = 2**22


def _table(op: Operation) -> Value:
    """The first input as float32 [N, F]."""
    x = op.cast(op.value(0), DType.FLOAT32)
    if x.type.rank == 1:
        x = op.reshape(x, (1, *x.type.shape))
    if x.type.rank != 2:
        op.fail(f"{x.type.shape} is not a table")
    return x


def _product(op: Operation, x: Value, count: int) -> Value:
    """x times the coefficients of each score, plus its intercept. Shapes:  [N, F] → [N, count]"""
    weights, more = op.reals("coefficients") or (), op.reals("intercepts") or ()
    features = x.type.shape[1]
    if len(weights) != count * features or len(more) not in (0, count):
        op.fail(f"{len(weights)} coefficients and {len(more)} intercepts for {features} features and {count} scores")
    w = op.constant(weights, DType.FLOAT32, (count, features))
    y = op.emit(matmul.MATMUL, [x, w], matmul.MatmulAttrs(transpose_b=True))
    return op.binary(ew.ADD, y, op.constant(more, DType.FLOAT32, (1, count))) if more else y


def _linear_classifier(op: Operation) -> list[Value]:
    x, labels = _table(op), labels_of(op, ("classlabels_ints", "classlabels_strings"))
    if len(op.reals("coefficients") or ()) != len(labels) * x.type.shape[1]:
        op.refuse("one score for two classes")
    scores = _product(op, x, len(labels))
    place = op.emit(reduce.ARG_MAX, [scores], reduce.ArgAttrs(1, False, DType.INT32))
    return [label(op, labels, place), transformed(op, scores)]


def _linear_regressor(op: Operation) -> Value:
    count = op.whole("targets", 1)
    if count < 1:
        op.fail(f"{count} targets")
    return transformed(op, _product(op, _table(op), count))


def _column(op: Operation, x: Value, numbers: Sequence[float], what: str) -> Value:
    """One number for all columns, or one for each."""
    if len(numbers) not in (1, x.type.shape[-1]):
        op.fail(f"{len(numbers)} numbers as {what} for {x.type.shape[-1]} columns")
    return op.constant(numbers, x.type.dtype)


def _scaler(op: Operation) -> Value:
    x = op.cast(op.value(0), DType.FLOAT32)
    offset, scale = (_column(op, x, op.reals(name) or (), name) for name in ("offset", "scale"))
    return op.binary(ew.MUL, op.binary(ew.SUB, x, offset), scale)


def _normalizer(op: Operation) -> Value:
    """Rows over the sum of their absolute values, or over their length."""
    x = op.cast(op.value(0), DType.FLOAT32)
    kind = reduce.REDUCE_L1 if op.chosen("norm", ("L1", "L2"), "MAX") == "L1" else reduce.REDUCE_L2
    length = op.emit(kind, [x], reduce.ReduceAttrs((x.type.rank - 1,), keep_dims=True))
    zero = op.binary(ew.EQUAL, length, op.scalar_of(0.0, DType.FLOAT32))
    return op.binary(ew.DIV, x, op.emit(ew.WHERE, [zero, op.scalar_of(1.0, DType.FLOAT32), length], NoAttrs()))


def _imputer(op: Operation) -> Value:
    x = op.value(0)
    whole = not x.type.dtype.is_float
    numbers = op.wholes("imputed_value_int64s") if whole else op.reals("imputed_value_floats")
    missing = op.whole("replaced_value_int64", 0) if whole else op.real("replaced_value_float", 0.0)
    values = _column(op, x, numbers or (), "imputed values")
    if math.isnan(missing):
        found = op.binary(ew.NOT_EQUAL, x, x)
    else:
        found = op.binary(ew.EQUAL, x, op.scalar_of(missing, x.type.dtype))
    return op.emit(ew.WHERE, [found, values, x], NoAttrs())


def _binarizer(op: Operation) -> Value:
    x = op.value(0)
    return op.cast(op.binary(ew.GREATER, x, op.scalar_of(op.real("threshold", 0.0), x.type.dtype)), x.type.dtype)


def _columns(op: Operation) -> Value:
    """Some columns of a table; of one row, a table of one row."""
    x, places = op.value(0), op.value(1)
    x = op.reshape(x, (1, *x.type.shape)) if x.type.rank == 1 else x
    if not x.type.rank or not places.type.size:
        op.fail(f"columns {places.type.shape} of {x.type.shape}")
    flat = op.reshape(places, (places.type.size,))
    return op.emit(gather.GATHER, [x, flat], gather.GatherAttrs(x.type.rank - 1))


def _vectorizer(op: Operation) -> Value:
    parts = [op.cast(part, DType.FLOAT32) for part in op.values()]
    parts = [op.reshape(part, (1, *part.type.shape)) if part.type.rank == 1 else part for part in parts]
    sizes = op.wholes("inputdimensions") or tuple(part.type.shape[-1] for part in parts)
    if not parts or any(p.type.rank != 2 or p.type.shape[1] != d for p, d in zip(parts, sizes, strict=True)):
        op.refuse(f"columns {sizes} of {[part.type.shape for part in parts]}")
    return op.concat(parts, 1)


def _one_hot(op: Operation) -> Value:
    """1 at the place of each element's category. Shapes:  [...] → [..., categories]"""
    if op.words("cats_strings", ()):
        op.refuse("categories of type string")
    x, known = op.cast(op.value(0), DType.INT64), op.wholes("cats_int64s") or ()
    if not known or not op.whole("zeros", 1):
        op.refuse("categories that must be known")
    same = op.binary(ew.EQUAL, op.reshape(x, (*x.type.shape, 1)), op.constant(known, DType.INT64))
    return op.cast(same, DType.FLOAT32)


def _encoder(op: Operation) -> Value:
    """Each element's number in a list of pairs, or the default."""
    x, keys = op.value(0), op.reals("keys_floats") or op.wholes("keys_int64s") or ()
    kind = DType.FLOAT32 if "values_floats" in op.attributes else DType.INT64
    values = op.reals("values_floats") or op.wholes("values_int64s") or ()
    if len(keys) != len(values) or not keys or x.type.dtype.is_float is not ("keys_floats" in op.attributes):
        op.refuse("pairs of type string, or in tensors")
    within(f"{op.what}: pairs for each element", len(keys) * x.type.size, _MOST_PAIRS, "use fewer")
    other = op.real("default_float", -0.0) if kind is DType.FLOAT32 else op.whole("default_int64", -1)
    same = op.binary(ew.EQUAL, op.reshape(x, (*x.type.shape, 1)), op.constant(keys, x.type.dtype))
    last = reduce.ReduceAttrs((x.type.rank,))
    at = op.emit(reduce.ARG_MAX, [op.cast(same, DType.INT32)], reduce.ArgAttrs(x.type.rank, False, DType.INT32))
    found = op.emit(gather.GATHER, [op.constant(values, kind), at], gather.GatherAttrs(0))
    return op.emit(ew.WHERE, [op.emit(reduce.REDUCE_ANY, [same], last), found, op.scalar_of(other, kind)], NoAttrs())


def _maps(op: Operation) -> Value:
    op.refuse("a sequence of maps; export scores as a tensor (of skl2onnx: options={'zipmap': False})")


CONVERTERS: dict[str, Convert] = {
    "ai.onnx.ml.ArrayFeatureExtractor": _columns,
    "ai.onnx.ml.Binarizer": _binarizer,
    "ai.onnx.ml.FeatureVectorizer": _vectorizer,
    "ai.onnx.ml.Imputer": _imputer,
    "ai.onnx.ml.LabelEncoder": _encoder,
    "ai.onnx.ml.LinearClassifier": _linear_classifier,
    "ai.onnx.ml.LinearRegressor": _linear_regressor,
    "ai.onnx.ml.Normalizer": _normalizer,
    "ai.onnx.ml.OneHotEncoder": _one_hot,
    "ai.onnx.ml.Scaler": _scaler,
    "ai.onnx.ml.ZipMap": _maps,
}
