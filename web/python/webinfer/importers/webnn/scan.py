"""WebNN operators that run along an axis."""

from __future__ import annotations

from webinfer.graph.ir import Value
from webinfer.importers.webnn.operation import Convert, Operation
from webinfer.ops import scan


def _cumulative_sum(op: Operation) -> Value:
    attrs = scan.CumulativeSumAttrs(op.need("axis"), op.get("exclusive", False), op.get("reversed", False))
    return op.emit(scan.CUMULATIVE_SUM, [op.value("input")], attrs)


CONVERTERS: dict[str, Convert] = {
    "cumulativeSum": _cumulative_sum,
}
