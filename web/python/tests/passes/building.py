"""Graphs for tests of passes, built node by node; printed before they are compared."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Graph, Op, Quantization, TensorType, Value, apply
from webinfer.graph.printer import print_graph
from webinfer.graph.verify import verify

Q = Quantization((0.5,), (3,))


class Build:
    """A graph under construction."""

    def __init__(self) -> None:
        self.graph = Graph("g", [], [], [])

    def input(self, name: str, *shape: int, dtype: DType = DType.FLOAT32, quant: Quantization | None = None) -> Value:
        value = Value(name, TensorType(shape, dtype, quant))
        self.graph.inputs.append(value)
        return value

    def constant(self, *shape: int, dtype: DType = DType.FLOAT32, quant: Quantization | None = None) -> Value:
        """A constant of zeros with bytes of its own."""
        type = TensorType(shape, dtype, quant)
        return Value("c", type, Constant(memoryview(bytes(type.nbytes)), dtype))

    def number(self, number: float) -> Value:
        return Value("n", TensorType(()), Constant(memoryview(struct.pack("<f", number)), DType.FLOAT32))

    def node(self, op: Op, inputs: Sequence[Value | None], attrs: Any, name: str) -> Value:
        node = apply(op, inputs, attrs, name=name)
        self.graph.nodes.append(node)
        return node.outputs[0]

    def output(self, *values: Value) -> Graph:
        names = set[str]()
        for number, value in enumerate(values):  # no two outputs may have one name
            value.name += f".{number}" * (value.name in names)
            names.add(value.name)
        self.graph.outputs = list(values)
        verify(self.graph)
        return self.graph


def body(graph: Graph) -> str:
    """The printed nodes and the return, without indentation."""
    return "\n".join(line.strip() for line in print_graph(graph).splitlines()[1:-1])


def rewritten(rewrite: Callable[[Graph], int], graph: Graph, count: int) -> str:
    """The printed body after a pass, which must report `count` rewrites and leave a sound graph."""
    assert rewrite(graph) == count
    verify(graph)
    return body(graph)


def lines(*text: str) -> str:
    return "\n".join(text)
