"""TensorFlow nodes that combine elements along axes, normalise, or pick the largest."""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.graph.ir import Op, Value
from webinfer.importers.core.axes import local_response, running_product
from webinfer.importers.core.limits import within
from webinfer.importers.core.steps import Steps
from webinfer.importers.core.unique import distinct
from webinfer.importers.tfjs.elementwise import number, real
from webinfer.importers.tfjs.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import reduce, scan, softmax

REDUCTION = {
    "All": reduce.REDUCE_ALL, "Any": reduce.REDUCE_ANY, "EuclideanNorm": reduce.REDUCE_L2, "Max": reduce.REDUCE_MAX,
    "Mean": reduce.REDUCE_MEAN, "Min": reduce.REDUCE_MIN, "Prod": reduce.REDUCE_PRODUCT, "Sum": reduce.REDUCE_SUM,
}  # fmt: skip


def _reduce(op: Operation) -> Value:
    if op.name in ("All", "Any"):
        x = op.cast(op.value(0), DType.BOOL)
    else:
        x = real(op) if op.name in ("Mean", "EuclideanNorm") else number(op)
    axes = op.axes(1, x.type.rank) if op.optional(1) is not None else tuple(range(x.type.rank))
    return op.emit(REDUCTION[op.name], [x], reduce.ReduceAttrs(axes, op.flag("keep_dims")))


def _arg(target: Op) -> Convert:
    def convert(op: Operation) -> Value:
        x = number(op)
        axis = op.axis(op.integer(1) if op.optional(1) is not None else 0, x.type.rank)
        return op.emit(target, [x], reduce.ArgAttrs(axis, False, DType.INT32))

    return convert


def _cumulative_sum(op: Operation) -> Value:
    x = number(op)
    axis = op.axis(op.integer(1), x.type.rank)
    return op.emit(scan.CUMULATIVE_SUM, [x], scan.CumulativeSumAttrs(axis, op.flag("exclusive"), op.flag("reverse")))


def _cumulative_product(op: Operation) -> Value:
    x = number(op)
    return running_product(op, x, op.axis(op.integer(1), x.type.rank), op.flag("exclusive"), op.flag("reverse"))


def _batch_norm(op: Operation) -> Value:
    """x * factor + offset, both of which constants make; what training needs is empty."""
    op.channels_last()
    x, scale, offset, mean, variance = (real(op, i) for i in range(5))
    return normalized(op, x, scale, offset, mean, variance, op.real("epsilon", 1e-3))


def normalized(op: Steps, x: Value, scale: Value, offset: Value, mean: Value, variance: Value, epsilon: float) -> Value:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset: one factor and one term."""
    least = op.scalar_of(epsilon, DType.FLOAT32)
    factor = op.binary(ew.DIV, scale, op.unary(ew.SQRT, op.binary(ew.ADD, variance, least)))
    moved = op.binary(ew.SUB, offset, op.binary(ew.MUL, mean, factor))
    return op.binary(ew.ADD, op.binary(ew.MUL, x, factor), moved)


def _local_response(op: Operation) -> Value:
    radius, alpha, beta = op.number("depth_radius", 5), op.real("alpha", 1.0), op.real("beta", 0.5)
    return local_response(op, real(op), radius, alpha, beta, op.real("bias", 1.0))


def _softmax(op: Operation) -> Value:
    x = real(op)
    target = softmax.SOFTMAX if op.name == "Softmax" else softmax.LOG_SOFTMAX
    return op.emit(target, [x], softmax.SoftmaxAttrs(op.axis(-1, x.type.rank)))


def _top_k(op: Operation) -> list[Value]:
    return op.emit_all(scan.TOP_K, [number(op)], scan.TopKAttrs(op.integer(1)))


def _unique(op: Operation) -> list[Value]:
    """The different elements as they come, and which of them each element is."""
    x = number(op)
    if op.name == "UniqueV2" and any(axis % max(x.type.rank, 1) for axis in op.integers(1)):
        op.refuse("different rows")
    if x.type.rank != 1:
        op.refuse(f"different rows of {x.type}")
    values, _, back, _ = distinct(op, x, ordered=False)
    return [values, back]


def _bincount(op: Operation) -> Value:
    """How often each number below `size` is in a row, or the sum of its weights: a product with rows of ones.

    `binary_output`, whether it is there at all, is obeyed for several rows alone, as TensorFlow.js does.
    """
    x, size = op.value(0), op.integer(1)
    if x.type.rank not in (1, 2) or size < 0:
        op.refuse(f"numbers of shape {x.type.shape}")
    within(f"{op.what}: products", x.type.size * max(size, 1), 2**24, "use fewer")
    weighted = op.optional(2) is not None and op.value(2).type.size > 0
    kind, axis = op.value(2).type.dtype if op.optional(2) is not None else DType.FLOAT32, x.type.rank - 1
    held = op.binary(ew.EQUAL, op.reshape(x, (*x.type.shape, 1)), op.constant(range(size), DType.INT32))
    if op.flag("binary_output") and axis:
        return op.cast(op.emit(reduce.REDUCE_ANY, [held], reduce.ReduceAttrs((axis,))), kind)
    hits = op.cast(held, kind)
    if weighted:
        hits = op.binary(ew.MUL, hits, op.reshape(op.value(2), (*x.type.shape, 1)))
    return op.emit(reduce.REDUCE_SUM, [hits], reduce.ReduceAttrs((axis,)))


def _bound(op: Operation) -> Value:
    """How many numbers of each sorted row are below each value, or not above it."""
    rows, values = op.alike(op.values()[:2])
    if rows.type.rank != 2 or values.type.rank != 2:
        op.fail(f"rows {rows.type.shape} and values {values.type.shape} must have rank 2")
    kind = ew.LESS if op.name == "LowerBound" else ew.LESS_EQUAL
    n, m = rows.type.shape
    found = op.binary(kind, op.reshape(rows, (n, 1, m)), op.reshape(values, (*values.type.shape, 1)))
    return op.emit(reduce.REDUCE_SUM, [op.cast(found, DType.INT32)], reduce.ReduceAttrs((2,)))


CONVERTERS: dict[str, Convert] = {
    **dict.fromkeys(REDUCTION, _reduce),
    "ArgMax": _arg(reduce.ARG_MAX),
    "ArgMin": _arg(reduce.ARG_MIN),
    "Bincount": _bincount,
    "Cumprod": _cumulative_product,
    "Cumsum": _cumulative_sum,
    "DenseBincount": _bincount,
    "FusedBatchNorm": _batch_norm,
    "FusedBatchNormV2": _batch_norm,
    "FusedBatchNormV3": _batch_norm,
    "LRN": _local_response,
    "LogSoftmax": _softmax,
    "LowerBound": _bound,
    "Softmax": _softmax,
    "TopKV2": _top_k,
    "Unique": _unique,
    "UniqueV2": _unique,
    "UpperBound": _bound,
}
