"""WebNN operators that combine elements along axes."""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.webnn.operation import DTYPES, Convert, Operation
from webinfer.ops import reduce as red

REDUCTION = {
    "reduceL1": red.REDUCE_L1, "reduceL2": red.REDUCE_L2, "reduceLogSum": red.REDUCE_LOG_SUM,
    "reduceLogSumExp": red.REDUCE_LOG_SUM_EXP, "reduceMax": red.REDUCE_MAX, "reduceMean": red.REDUCE_MEAN,
    "reduceMin": red.REDUCE_MIN, "reduceProduct": red.REDUCE_PRODUCT, "reduceSum": red.REDUCE_SUM,
    "reduceSumSquare": red.REDUCE_SUM_SQUARE,
}  # fmt: skip


def _reduction(op: Operation) -> Value:
    x = op.value("input")
    attrs = red.ReduceAttrs(tuple(op.get("axes", range(x.type.rank))), op.get("keepDimensions", False))
    return op.emit(REDUCTION[op.name], [x], attrs)


def _arg(op: Operation) -> Value:
    dtype = DTYPES.get(op.get("outputDataType", "int32"))
    if dtype not in (DType.INT32, DType.INT64):
        op.fail(f"{op.name}: positions as {op.get('outputDataType')} must be int32 or int64")
    kind = red.ARG_MAX if op.name == "argMax" else red.ARG_MIN
    return op.emit(kind, [op.value("input")], red.ArgAttrs(op.need("axis"), op.get("keepDimensions", False), dtype))


CONVERTERS: dict[str, Convert] = {
    **dict.fromkeys(REDUCTION, _reduction),
    "argMax": _arg,
    "argMin": _arg,
}
