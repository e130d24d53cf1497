"""ONNX operators that read or write elements by position."""

from __future__ import annotations

from webinfer.graph.ir import Value
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.ops import gather


def _gather(op: Operation) -> Value:
    x, positions = op.arranged(0), op.value(1)
    rank = len(x.perm)
    axis = op.axis(op.whole("axis", 0), rank)
    at = x.perm[axis]
    y = op.emit(gather.GATHER, [x.value, positions], gather.GatherAttrs(at))
    # The axis becomes those of the positions; what lies behind it moves.
    more = positions.type.rank - 1

    def place(p: int) -> int:
        return p if p < at else p + more

    perm = [place(p) for p in x.perm[:axis]] + list(range(at, at + more + 1)) + [place(p) for p in x.perm[axis + 1 :]]
    return op.view(y, perm)


def _gather_elements(op: Operation) -> Value:
    x = op.value(0)
    axis = op.axis(op.whole("axis", 0), x.type.rank)
    positions = op.value(1)
    if x.type.rank == positions.type.rank:  # what no position reaches beside the axis is cut off
        for i, size in enumerate(positions.type.shape):
            if i != axis and size < x.type.shape[i]:
                x = op.cut(x, i, 0, size)
    return op.emit(gather.GATHER_ELEMENTS, [x, positions], gather.ElementsAttrs(axis))


def _gather_nd(op: Operation) -> Value:
    attrs = gather.GatherNdAttrs(op.whole("batch_dims", 0))
    return op.emit(gather.GATHER_ND, [op.value(0), op.value(1)], attrs)


def _scatter_elements(op: Operation) -> Value:
    if op.word("reduction", "none") != "none":
        op.refuse(f"reduction {op.word('reduction', '')}")
    x, positions = op.value(0), op.value(1)
    axis = op.axis(op.whole("axis", 0), x.type.rank)
    if any(p != d for i, (p, d) in enumerate(zip(positions.type.shape, x.type.shape, strict=True)) if i != axis):
        op.refuse("positions of a part of the tensor")
    return op.emit(gather.SCATTER_ELEMENTS, [x, positions, op.value(2)], gather.ElementsAttrs(axis))


def _scatter_nd(op: Operation) -> Value:
    reduction = op.word("reduction", "none")
    if reduction not in ("none", "add"):
        op.refuse(f"reduction {reduction}")
    inputs = [op.value(i) for i in range(3)]
    return op.emit(gather.SCATTER_ND, inputs, gather.ScatterNdAttrs(reduction == "add"))


CONVERTERS: dict[str, Convert] = {
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "Scatter": _scatter_elements,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
}
