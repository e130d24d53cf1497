"""Which values of a float32 graph are stored as float16 where that was asked for.

Kernels load and store through accessors and compute in float32, so most of them take any mix of the two types and no
step is needed to convert. Inputs and outputs of the graph keep their type. Float32 stays as well: what is stored one
by one, what may exceed float16, and what is computed before the first product (positions, scales of pictures).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from webinfer.backends.webgpu.dispatch import Lower
from webinfer.backends.webgpu.lowerings import (
    LOWERINGS,
    attention,
    conv,
    conv_transpose,
    described,
    elementwise,
    matmul,
    movement,
    pool,
    reduce,
    resize,
)
from webinfer.backends.webgpu.lowerings.described import MAX_FLOAT16
from webinfer.dtypes import DType
from webinfer.graph.ir import Graph, Node, TensorType, Value

# A constant that is not a weight keeps its type up to so many elements: half and double changed none of 146 graphs.
SMALL = 4096

# How lowerings treat float16. Products: any mix of types, weights stored as float16.
PRODUCTS: tuple[Lower, ...] = (
    conv.conv2d,
    conv_transpose.conv_transpose2d,
    conv.depthwise_conv2d,
    matmul.matmul,
)
# Inputs and result may each be float16 or float32.
ANY_MIX: tuple[Lower, ...] = (elementwise.binary, elementwise.unary, pool.pool2d, resize.resize_bilinear)
MOVES: tuple[Lower, ...] = (  # copy bits: inputs and results have one type
    movement.concat,
    movement.reshape,
    movement.strided,
)
READERS: tuple[Lower, ...] = (  # take float16, but their result has a type of its own
    elementwise.cast,
    elementwise.dequantize,
    reduce.arg_extreme,
    reduce.reduce,
)


def in_float16(graph: Graph) -> tuple[Graph, Mapping[Value, Value]]:
    """The same nodes over values of which weights and intermediate results are float16.

    Also returns, for each value that is new, the value of `graph` that it stands for.
    """
    narrow = _Narrowing(graph).values()
    copies: dict[Value, Value] = {}
    nodes = []
    for node in graph.nodes:
        for value in (*node.inputs, *node.outputs):
            if value in narrow and value not in copies:
                assert value is not None
                copies[value] = Value(value.name, TensorType(value.type.shape, DType.FLOAT16), value.constant)
        inputs = [v if v is None else copies.get(v, v) for v in node.inputs]
        nodes.append(Node(node.op, inputs, [copies.get(v, v) for v in node.outputs], node.attrs, node.label))
    copy = Graph(graph.name, graph.inputs, graph.outputs, nodes)
    copy.resident, copy.parts = graph.resident, graph.parts
    return copy, {duplicate: value for value, duplicate in copies.items()}


class _Narrowing:
    """Decides which values become float16, for groups of values that moves tie together: all of a group or none."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._leader: dict[Value, Value] = {}
        self._wide: set[Value] = set()  # leaders
        self._weights = {
            w for n in graph.nodes if LOWERINGS.get(n.op) in PRODUCTS for w in n.inputs[1:2] if w is not None
        }

    def values(self) -> set[Value]:
        """The values that become float16."""
        graph = self._graph
        for node in graph.nodes:
            if _is_move(node) or _is_attention(node):
                tied = _tied(node)
                for value in tied[1:]:
                    self._leader[self._group(value)] = self._group(tied[0])
        for value in (*graph.inputs, *graph.outputs):
            self._keep(value)
        for node in graph.nodes:
            if _leaves_range(node) or not _takes_float16(node):
                self._keep(*node.inputs, *node.outputs)
            elif _is_attention(node):
                self._keep(*node.inputs[3:])
        found = [v for node in graph.nodes for v in self._results(node)]
        found += [v for node in graph.nodes for v in node.inputs if v is not None and self._is_stored_narrow(v, node)]
        return {v for v in found if self._group(v) not in self._wide}

    def _group(self, value: Value) -> Value:
        while value in self._leader and self._leader[value] is not value:
            value = self._leader[value]
        return value

    def _keep(self, *values: Value | None) -> None:
        self._wide |= {self._group(v) for v in values if v is not None}

    def _is_narrow(self, value: Value) -> bool:
        return value.type.dtype is DType.FLOAT16 or (_is_float32(value) and self._group(value) not in self._wide)

    def _results(self, node: Node) -> Sequence[Value]:
        """The results of a node that may be float16; notes those that may not."""
        lower, results = LOWERINGS.get(node.op), [v for v in node.outputs if _is_float32(v)]
        data = [v for v in node.inputs if v is not None and not v.is_constant and v.type.dtype.is_float]
        if lower in PRODUCTS:
            kept = node.output.type.shape[-1] % 4 != 0  # stored one by one
        elif lower in ANY_MIX:
            kept = not any(map(self._is_narrow, data))
        elif lower in READERS:
            kept = not (node.output in self._weights and _is_moderate(node))
        else:
            kept = False
        if kept:
            self._keep(*results)
        return results

    def _is_stored_narrow(self, value: Value, node: Node) -> bool:
        if value.constant is None or not _is_float32(value):
            return False
        return value in self._weights or _is_move(node) or value.type.size > SMALL


def _is_float32(value: Value) -> bool:
    return value.type.dtype is DType.FLOAT32


def _is_move(node: Node) -> bool:
    return LOWERINGS.get(node.op) in MOVES or described.is_move(node)


def _is_attention(node: Node) -> bool:
    """Whether it is an attention whose rows are whole quads, so that its kernel reads and stores float16 as it is."""
    return LOWERINGS.get(node.op) is attention.attention and attention.has_quads(node)


def _tied(node: Node) -> list[Value]:
    """What has one type; an attention's mask may hold what float16 does not."""
    inputs = node.inputs[:3] if _is_attention(node) else node.inputs
    return [v for v in (*inputs, *node.outputs) if v is not None and _is_float32(v)]


def _takes_float16(node: Node) -> bool:
    if getattr(node.attrs, "exact", False):  # sums of whole numbers, up to what float32 holds
        return False
    return LOWERINGS.get(node.op) in (*PRODUCTS, *ANY_MIX, *READERS) or _is_move(node) or _is_attention(node)


def _leaves_range(node: Node) -> bool:
    """Whether constants or a fill say that numbers beyond float16 are meant."""
    fill = getattr(node.attrs, "value", 0.0)
    if isinstance(fill, int | float) and math.isfinite(fill) and abs(fill) > MAX_FLOAT16:
        return True
    inputs = node.inputs[:3] if _is_attention(node) else node.inputs
    return any(v is not None and _is_float32(v) and not _fits(v) for v in inputs)


def _fits(value: Value) -> bool:
    constant = value.constant
    if constant is None or constant.stored is not DType.FLOAT32:
        return True
    numbers = memoryview(constant.data).cast("B").cast("f")
    return not numbers or (max(numbers) <= MAX_FLOAT16 and min(numbers) >= -MAX_FLOAT16)


def _is_moderate(node: Node) -> bool:
    """Whether the numbers that a conversion of a constant makes are surely in float16's range."""
    x = node.inputs[0]
    if x is None or x.constant is None or x.type.quant is None or x.type.dtype.itemsize != 1:
        return False
    return 255 * max(x.type.quant.scales, default=0.0) <= MAX_FLOAT16
