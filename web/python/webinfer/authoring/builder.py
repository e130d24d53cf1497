"""Graphs built in Python, operator by operator: what a model file would hold, without the file."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from webinfer.dtypes import DType
from webinfer.errors import InputError, LimitError, ShapeError, WebinferError
from webinfer.graph.ir import Constant, Graph, Node, TensorType, Value, apply
from webinfer.graph.made import MadeGraph
from webinfer.graph.printer import safe_name
from webinfer.graph.verify import verify
from webinfer.ops import OPS
from webinfer.ops.custom import CUSTOM, attributes
from webinfer.ops.elementwise import IDENTITY, UnaryAttrs
from webinfer.tensor import buffer_of

MAX_BYTES = 2**31 - 1


class GraphBuilder(MadeGraph):
    """Builds a graph, which `webinfer.load` accepts as a model. Images are NHWC.

        g = webinfer.GraphBuilder("edges")
        x = g.input("x", (1, 64, 64, 3))
        y = g.node("conv2d", x, weights, bias, pads=(1, 1, 1, 1))
        g.output(g.node("my.scaled_relu", y, scale=0.5), "y")

    Operators and attributes have the names that plans and `session.graph_text()` show.
    """

    def __init__(self, name: str = "graph") -> None:
        self.name = name
        self._inputs: dict[str, Value] = {}
        self._outputs: dict[str, Value] = {}
        self._nodes: list[Node] = []

    def input(self, name: str, shape: Sequence[int] | TensorType, dtype: str = DType.FLOAT32) -> Value:
        """Adds an input."""
        if name in self._inputs:
            raise InputError(f"{self.name!r} already has an input {name!r}")
        value = self._inputs[name] = Value(name, _type(name, shape, dtype))
        return value

    def constant(self, data: Any, shape: Sequence[int] | TensorType | None = None, dtype: str | None = None) -> Value:
        """Adds a constant from an array, a buffer, a flat list or one number. The bytes are copied.

        `shape` is the array's own or flat, `dtype` the array's own or float32, where they are not given.
        """
        if isinstance(data, int | float):
            data, shape = [data], () if shape is None else shape
        found = data.dtype if dtype is None and hasattr(data, "dtype") else dtype
        if shape is None:
            shape = data.shape if hasattr(data, "shape") else (len(data),) if hasattr(data, "__len__") else ()
        type = _type("constant", shape, str(found or DType.FLOAT32))
        if isinstance(data, list | tuple):
            try:
                data = struct.pack(f"<{len(data)}{type.dtype.letter}", *data)
            except (struct.error, OverflowError, TypeError, ValueError):
                needs = "numbers" if type.dtype.is_float else "whole numbers in its range"
                told = f"these {len(data)} elements make no flat constant of {type.dtype}"
                raise InputError(f"{told}, which takes a list of {needs}") from None
        bytes_ = bytes(buffer_of(data, type.shape, type.dtype, "constant"))
        return Value("constant", type, Constant(memoryview(bytes_), type.dtype))

    def node(self, op: str, /, *inputs: Any, name: str = "", **attrs: Any) -> Any:
        """Adds a node and returns its output, or a list if the operator has several outputs.

        `inputs` are values, None where an optional one is left out, or whatever `constant` takes.

        Raises:  InputError for an unknown operator or attribute; ShapeError if the inputs do not fit
        """
        operator = OPS.get(op) or CUSTOM.get(op)
        if operator is None:
            raise InputError(f"there is no operator {safe_name(op)}; see webinfer.operators()")
        values = [v if v is None or isinstance(v, Value) else self.constant(v) for v in inputs]
        label = name or f"{op}_{len(self._nodes)}"
        try:
            node = apply(operator, values, attributes(operator, attrs), label)
        except WebinferError:
            raise
        except Exception as error:  # inference meets attributes that no importer would have made
            raise ShapeError(f"{op}: these inputs and attributes do not fit: {error}") from error
        for value in node.outputs:
            _check_size(value.name, value.type)
        self._nodes.append(node)
        return node.output if len(node.outputs) == 1 else node.outputs

    def output(self, value: Value, name: str = "") -> None:
        """Makes a value an output of the graph."""
        name = name or value.name
        if name in self._outputs:
            raise InputError(f"{self.name!r} already has an output {name!r}")
        made = {v for node in self._nodes for v in node.outputs}
        if value not in made or value in self._outputs.values():  # an output is a node's own result
            node = apply(IDENTITY, [value], UnaryAttrs(), name)
            self._nodes.append(node)
            value = node.output
        value.name = name
        self._outputs[name] = value

    def extend(self, graph: Graph) -> None:
        """Appends the built nodes to a graph whose values they read; the outputs are then the builder's."""
        graph.inputs += self._inputs.values()
        graph.nodes += self._nodes
        graph.outputs = list(self._outputs.values())

    def precede(self, graph: Graph) -> None:
        """Prepends the built nodes to a graph that reads their values; the inputs are then the builder's."""
        graph.inputs = list(self._inputs.values())
        graph.nodes = self._nodes + graph.nodes

    def graph(self) -> Graph:
        """Returns a verified copy of the graph.

        Raises:  ShapeError if a value of another builder is used, or nothing is an output
        """
        if not self._outputs:
            raise ShapeError(f"{self.name!r} has no output; call output() before it is loaded")
        copies: dict[Value, Value] = {}

        def copy(value: Value | None) -> Any:
            if value is None:
                return None
            return copies.setdefault(value, Value(value.name, value.type, value.constant))

        nodes = [
            Node(n.op, [copy(v) for v in n.inputs], [copy(v) for v in n.outputs], n.attrs, n.label) for n in self._nodes
        ]
        inputs, outputs = ([copy(v) for v in found.values()] for found in (self._inputs, self._outputs))
        graph = Graph(self.name, inputs, outputs, nodes)
        verify(graph)
        return graph


def _type(name: str, shape: Sequence[int] | TensorType, dtype: str) -> TensorType:
    try:
        type = shape if isinstance(shape, TensorType) else TensorType(tuple(shape), DType(dtype))
    except (TypeError, ValueError) as error:
        raise InputError(f"{name!r} cannot be {dtype} of shape {shape!r}: {error}") from None
    if not all(isinstance(size, int) and size > 0 for size in type.shape):
        raise ShapeError(f"{name!r} has shape {type.shape}; sizes are whole numbers from 1")
    _check_size(name, type)
    return type


def _check_size(name: str, type: TensorType) -> None:
    if type.nbytes > MAX_BYTES:
        raise LimitError(f"tensor {safe_name(name)} in bytes", type.nbytes, MAX_BYTES, "use a smaller one")
