"""WebNN's matrix products."""

from __future__ import annotations

from webinfer.graph.ir import Value
from webinfer.importers.webnn.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul as mm


def _matmul(op: Operation) -> Value:
    return op.emit(mm.MATMUL, [op.value("a"), op.value("b")], mm.MatmulAttrs())


def _gemm(op: Operation) -> Value:
    """alpha * A * B + beta * C"""
    attrs = mm.MatmulAttrs(op.get("aTranspose", False), op.get("bTranspose", False))
    y = op.emit(mm.MATMUL, [op.value("a"), op.value("b")], attrs)
    alpha, beta, addend = op.get("alpha", 1.0), op.get("beta", 1.0), op.optional("c")
    if alpha != 1.0:
        y = op.unary(ew.LINEAR, y, alpha, 0.0)
    if addend is None:
        return y
    scaled = addend if beta == 1.0 else op.unary(ew.LINEAR, addend, beta, 0.0)
    return op.binary(ew.ADD, y, scaled)


CONVERTERS: dict[str, Convert] = {
    "gemm": _gemm,
    "matmul": _matmul,
}
