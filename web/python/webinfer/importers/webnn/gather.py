"""WebNN operators that read or write elements by position."""

from __future__ import annotations

from webinfer.graph.ir import Value
from webinfer.importers.webnn.operation import Convert, Operation
from webinfer.ops import gather


def _gather(op: Operation) -> Value:
    return op.emit(gather.GATHER, [op.value("input"), op.value("indices")], gather.GatherAttrs(op.get("axis", 0)))


def _gather_elements(op: Operation) -> Value:
    inputs = [op.value("input"), op.value("indices")]
    return op.emit(gather.GATHER_ELEMENTS, inputs, gather.ElementsAttrs(op.get("axis", 0)))


def _gather_nd(op: Operation) -> Value:
    return op.emit(gather.GATHER_ND, [op.value("input"), op.value("indices")], gather.GatherNdAttrs())


def _scatter_elements(op: Operation) -> Value:
    inputs = [op.value(name) for name in ("input", "indices", "updates")]
    return op.emit(gather.SCATTER_ELEMENTS, inputs, gather.ElementsAttrs(op.get("axis", 0)))


def _scatter_nd(op: Operation) -> Value:
    inputs = [op.value(name) for name in ("input", "indices", "updates")]
    return op.emit(gather.SCATTER_ND, inputs, gather.ScatterNdAttrs())


CONVERTERS: dict[str, Convert] = {
    "gather": _gather,
    "gatherElements": _gather_elements,
    "gatherND": _gather_nd,
    "scatterElements": _scatter_elements,
    "scatterND": _scatter_nd,
}
