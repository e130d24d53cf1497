"""Described operators as backends meet them."""

from __future__ import annotations

from webinfer.expr.kernel import Kernel
from webinfer.graph.ir import Node


def kernel_of(node: Node) -> Kernel:
    """The kernel of a node, as its operator describes it."""
    assert node.op.kernel is not None
    kernel: Kernel = node.op.kernel([v.type for v in node.inputs if v is not None], [node.output.type], node.attrs)
    return kernel
