"""What the searches ask of a graph that find the nodes which one dispatch computes together."""

from __future__ import annotations

from collections.abc import Mapping

from webinfer.dtypes import DType
from webinfer.graph.ir import Graph, Node, Value


def single_producers(graph: Graph) -> Mapping[Value, Node]:
    """The node that writes each value that has one reader and is no output of the graph."""
    consumers, outputs = graph.consumers(), set(graph.outputs)
    producers = graph.producers().items()
    return {value: node for value, node in producers if len(consumers.get(value, ())) == 1 and value not in outputs}


def is_float32(node: Node) -> bool:
    """Whether all that a node reads and writes is float32, and not quantised."""
    values = [v for v in (*node.inputs, *node.outputs) if v is not None]
    return all(v.type.dtype is DType.FLOAT32 and v.type.quant is None for v in values)


def is_real(node: Node) -> bool:
    """The same of float16 too."""
    values = [v for v in (*node.inputs, *node.outputs) if v is not None]
    return all(v.type.dtype.is_float and v.type.quant is None for v in values)
