"""Float16 constants become float32 values that are stored as float16: backends convert when they pack."""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Graph, Node
from webinfer.graph.queries import remove
from webinfer.ops import elementwise as ew


def dequantize_constants(graph: Graph) -> int:
    """Number of DEQUANTIZE and CAST nodes of float16 constants that were absorbed."""
    outputs = set(graph.outputs)
    absorbed: set[Node] = set()
    for node in graph.nodes:
        if node.op not in (ew.DEQUANTIZE, ew.CAST) or node.attrs.dtype is not DType.FLOAT32:
            continue
        source = node.inputs[0]
        if source is None or source.constant is None or node.output in outputs:
            continue
        if source.type.dtype is DType.FLOAT16:
            node.output.constant = Constant(source.constant.data, source.constant.stored, source.constant.sparsity)
            absorbed.add(node)
    remove(graph, absorbed)
    return len(absorbed)
