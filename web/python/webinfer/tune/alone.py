"""One node as a graph of its own, and something to compute with."""

from __future__ import annotations

import random
from array import array
from collections.abc import Container

from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Graph, Node, TensorType, Value

PATTERN = 4099  # random numbers, repeated where more are needed: a prime, so that rows differ


def alone(node: Node, folded: Container[Value] = ()) -> Graph:
    """A graph of this node only; what it reads besides constants becomes an input.

    `folded` are values that the whole graph computes once: they become constants, filled with noise.
    """
    copies: dict[Value, Value] = {}
    inputs: list[Value] = []
    for value in node.inputs:
        if value is None or value.is_constant or value in copies:
            continue
        copies[value] = Value(f"in{len(copies)}", value.type, _constant(value.type) if value in folded else None)
        if value not in folded:
            inputs.append(copies[value])
    outputs = [Value(f"out{i}", v.type) for i, v in enumerate(node.outputs)]
    reads = [copies.get(v, v) if v is not None else None for v in node.inputs]
    return Graph("trial", inputs, outputs, [Node(node.op, reads, outputs, node.attrs, "trial")])


def _constant(type: TensorType) -> Constant:
    return Constant(noise(type), type.dtype)


def noise(type: TensorType) -> memoryview:
    """Bytes of a tensor: seeded numbers in [-1, 1) for floats, any bytes for bytes, zeros else."""
    source = random.Random(0)
    if type.dtype is DType.FLOAT32:
        pattern = array("f", (source.random() * 2 - 1 for _ in range(PATTERN))).tobytes()
    elif type.dtype.itemsize == 1 and type.dtype is not DType.BOOL:
        pattern = source.randbytes(PATTERN)
    else:
        return memoryview(bytes(type.nbytes))
    return memoryview((pattern * (type.nbytes // len(pattern) + 1))[: type.nbytes])
