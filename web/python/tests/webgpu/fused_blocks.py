"""Blocks of a depthwise and a 1x1 convolution, and what a backend makes of a graph with one output."""

from __future__ import annotations

from typing import Any

import numpy as np

from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Graph, Node, TensorType, Value, apply
from webinfer.ops import OPS
from webinfer.ops.activation import Activation
from webinfer.ops.conv import Conv2dAttrs
from webinfer.ops.pool import Pool2dAttrs

RNG = np.random.default_rng(5)


def weights(*shape: int) -> Value:
    data = RNG.uniform(-1, 1, shape).astype(np.float32)
    return Value("w", TensorType(shape), Constant(memoryview(data.tobytes()), DType.FLOAT32))


def block(
    x: Value, co: int, stride: int = 1, window: int = 3, pool: Pool2dAttrs | None = None, **inner: Any
) -> list[Node]:
    """Depthwise, pooling if asked for, 1x1 with x or the pooled x as its residual where that fits."""
    c = x.type.shape[3]
    before = (window - stride) // 2 if stride > 1 else window // 2
    pads = (before, window // 2, before, window // 2)
    attrs = Conv2dAttrs((stride, stride), pads, **inner)
    slope = [None, weights(c)] if attrs.activation is Activation.PRELU else []
    given = [x, weights(1, window, window, c), weights(c), *slope]
    depthwise = apply(OPS["depthwise_conv2d"], given, attrs, "depthwise")
    nodes, residual = [depthwise], None
    if pool is not None:
        nodes.append(apply(OPS["max_pool2d"], [x], pool, "pool"))
        residual = nodes[-1].output
    elif stride == 1 and c <= co:
        residual = x
    inputs = [depthwise.output, weights(co, 1, 1, c), weights(co), residual]
    nodes.append(apply(OPS["conv2d"], inputs, Conv2dAttrs(activation=Activation.RELU), "pointwise"))
    return nodes


def graph_of(x: Value, nodes: list[Node]) -> Graph:
    return Graph("block", [x], nodes[-1].outputs, nodes)


def image(*shape: int) -> Value:
    return Value("x", TensorType(shape))


async def outputs_of(backend: Any, graph: Graph, host: Any, data: np.ndarray[Any, Any], **options: Any) -> Any:
    executor = await backend.build(graph, host, **options)
    try:
        (tensor,) = (await executor.run({"x": memoryview(data.tobytes())})).values()
        return tensor.numpy().copy()
    finally:
        executor.close()
