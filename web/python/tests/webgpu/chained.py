"""Graphs that are written node by node."""

from __future__ import annotations

from typing import Any

import numpy as np

from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Graph, Node, TensorType, Value, apply
from webinfer.ops import OPS
from webinfer.ops.movement import PadAttrs, ReshapeAttrs

RNG = np.random.default_rng(8)


class Chain:
    """A graph of x that is written node by node; every method returns the node's result."""

    def __init__(self, *shape: int) -> None:
        self.x, self.nodes = Value("x", TensorType(shape)), list[Node]()

    def given(self, *shape: int, value: float | None = None) -> Value:
        data = RNG.uniform(0.5, 2, shape) if value is None else np.full(shape, value)
        return Value("c", TensorType(shape), Constant(memoryview(data.astype(np.float32).tobytes()), DType.FLOAT32))

    def signed(self, *shape: int) -> Value:
        data = RNG.uniform(-1, 1, shape).astype(np.float32)
        return Value("w", TensorType(shape), Constant(memoryview(data.tobytes()), DType.FLOAT32))

    def number(self, value: float) -> Value:
        return Value("number", TensorType((1,)), Constant(memoryview(np.float32(value).tobytes()), DType.FLOAT32))

    def op(self, name: str, *inputs: Value | None, attrs: Any = None) -> Value:
        kind = OPS[name].attrs
        self.nodes.append(apply(OPS[name], inputs, attrs or kind(), f"{name} {len(self.nodes)}"))
        return self.nodes[-1].output

    def reshape(self, value: Value, *shape: int) -> Value:
        return self.op("reshape", value, attrs=ReshapeAttrs(shape))

    def pad(self, mode: str, before: tuple[int, ...], after: tuple[int, ...]) -> Value:
        return self.op("pad", self.nodes[-1].output, attrs=PadAttrs(before, after, mode=mode))

    def graph(self, *more: Value) -> Graph:
        return Graph("chain", [self.x], [self.nodes[-1].output, *more], self.nodes)
