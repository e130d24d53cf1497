"""Single nodes, or nodes that one kernel computes, as a graph that can be timed; and random values for it."""

from __future__ import annotations

import random
import struct
from array import array
from collections.abc import Container, Sequence

from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Graph, Node, TensorType, Value

PATTERN = 4099  # random numbers, repeated where more are needed: a prime, so that rows differ


def graph_of_nodes(nodes: Sequence[Node], folded: Container[Value] = ()) -> Graph:
    """A graph of these nodes only, given in topological order; its outputs are those of the last one.

    What they read besides constants and each other becomes an input. `folded` are values that the whole graph
    computes once: they become constants of random values.
    """
    copies: dict[Value, Value] = {}
    inputs: list[Value] = []
    for node in nodes:
        for value in node.inputs:
            if value is None or value.is_constant or value in copies:
                continue
            constant = Constant(random_values(value.type), value.type.dtype) if value in folded else None
            copies[value] = fresh = Value(f"in{len(copies)}", value.type, constant)
            if constant is None:
                inputs.append(fresh)
        copies |= {v: Value(f"out{len(copies) + i}", v.type) for i, v in enumerate(node.outputs)}
    own = []
    for node in nodes:
        reads = [copies.get(v, v) if v is not None else None for v in node.inputs]
        own.append(Node(node.op, reads, [copies[v] for v in node.outputs], node.attrs, node.label))
    return Graph("trial", inputs, own[-1].outputs, own)


def random_values(type: TensorType) -> memoryview:
    """Bytes of a tensor, the same in every call: floats in [-1, 1), any bytes for bytes, zeros else."""
    source = random.Random(0)
    if type.dtype is DType.FLOAT32:
        pattern = array("f", (source.random() * 2 - 1 for _ in range(PATTERN))).tobytes()
    elif type.dtype is DType.FLOAT16:
        pattern = struct.pack(f"<{PATTERN}e", *(source.random() * 2 - 1 for _ in range(PATTERN)))
    elif type.dtype.itemsize == 1 and type.dtype is not DType.BOOL:
        pattern = source.randbytes(PATTERN)
    else:
        return memoryview(bytes(type.nbytes))
    return memoryview((pattern * (type.nbytes // len(pattern) + 1))[: type.nbytes])
