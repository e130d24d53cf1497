"""Activations move into the epilogue of the operator before them, where that operator has one."""

from __future__ import annotations

import dataclasses
import struct

from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Graph, Node, Op, TensorType, Value
from webinfer.graph.queries import remove, single_producers
from webinfer.ops import conv, matmul, pool
from webinfer.ops import elementwise as ew
from webinfer.ops.activation import Activation

_CLAMPS = frozenset({Activation.RELU, Activation.RELU6, Activation.RELU_N1_TO_1})
_CURVES = _CLAMPS | {Activation.HARD_SWISH, Activation.SIGMOID, Activation.TANH, Activation.SILU}
_CARRIES: dict[Op, frozenset[Activation]] = {
    conv.CONV2D: _CURVES | {Activation.PRELU},
    conv.DEPTHWISE_CONV2D: _CURVES | {Activation.PRELU},
    conv.CONV_TRANSPOSE2D: _CURVES | {Activation.PRELU},
    matmul.MATMUL: _CURVES,
    ew.ADD: _CLAMPS,
    ew.MUL: _CLAMPS,
    ew.SUB: _CLAMPS,
    pool.AVERAGE_POOL2D: _CLAMPS,
    pool.MAX_POOL2D: _CLAMPS,
}
_NODES = {op: activation for activation, op in ew.ACTIVATIONS.items()}


def fuse_activation(graph: Graph) -> int:
    """Number of activation nodes that were merged. Quantised ones have their own rounding and stay."""
    mergeable = single_producers(graph)
    merged: set[Node] = set()
    for node in graph.nodes:
        activation = _activation(node)
        source = node.inputs[0] if node.inputs else None
        producer = mergeable.get(source) if source is not None else None
        if activation is None or source is None or producer is None or source.type != node.output.type:
            continue
        if activation not in _CARRIES.get(producer.op, ()) or producer.attrs.activation is not Activation.NONE:
            continue
        if activation is Activation.PRELU:
            slope = _channel_slope(node) if node.op is ew.PRELU else _leak(node)
            if slope is None:
                continue
            producer.inputs = [*(producer.inputs + [None] * 2)[:4], slope]
        producer.attrs = dataclasses.replace(producer.attrs, activation=activation)
        producer.outputs = node.outputs
        if node.output in mergeable:
            mergeable[node.output] = producer
        merged.add(node)
    remove(graph, merged)
    return len(merged)


def _activation(node: Node) -> Activation | None:
    """Which epilogue this node is."""
    if not node.outputs or not node.outputs[0].type.dtype.is_float:
        return None
    if node.op is ew.CLAMP and node.attrs.a == 0.0 and node.attrs.b == 6.0:
        return Activation.RELU6
    if node.op is ew.LEAKY_RELU:
        return Activation.PRELU
    if node.op is ew.SILU and node.attrs.a != 1.0:
        return None
    return _NODES.get(node.op)


def _leak(node: Node) -> Value | None:
    """The one slope of a LEAKY_RELU as a constant with a number a channel."""
    shape = node.output.type.shape[-1:]
    if not shape:
        return None
    data = struct.pack("<f", node.attrs.a) * shape[0]
    return Value("leak", TensorType(shape), Constant(memoryview(data), DType.FLOAT32))


def _channel_slope(node: Node) -> Value | None:
    """The slope of a PRELU if it is a constant with one number a channel."""
    slope = node.inputs[1]
    if slope is None or not slope.is_constant or node.output.type.rank == 0:
        return None
    channels = node.output.type.shape[-1]
    return slope if slope.type.size == channels and slope.type.shape[-1:] == (channels,) else None
