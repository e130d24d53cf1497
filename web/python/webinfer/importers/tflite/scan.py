"""TFLite operators that run along an axis: running sums, the largest elements."""

from __future__ import annotations

from webinfer.graph.ir import Value
from webinfer.importers.core.steps import QUANTIZED
from webinfer.importers.tflite.operation import Operation, Row
from webinfer.ops import scan


def _cumsum(op: Operation) -> Value:
    x = op.value(0)
    axis = op.axis(op.integer(1), x.type.rank)
    return op.emit(scan.CUMULATIVE_SUM, [x], scan.CumulativeSumAttrs(axis, op.flag("exclusive"), op.flag("reverse")))


def _top_k(op: Operation) -> list[Value]:
    x, k = op.value(0), op.integer(1)
    if x.type.dtype in QUANTIZED:
        op.quantized(x)
    return op.emit_all(scan.TOP_K, [x], scan.TopKAttrs(k))


CONVERTERS: dict[str, Row] = {
    "CUMSUM": (_cumsum, "CumsumOptions"),
    "TOPK_V2": (_top_k, ""),
}
