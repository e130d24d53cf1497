"""What was dequantised is moved as the integers that it was, constants too: before moves are merged."""

from __future__ import annotations

import dataclasses
import math
from itertools import product

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.graph.ir import Constant, Graph, Node, Quantization, TensorType, Value, apply
from webinfer.graph.queries import resolve, substitute
from webinfer.ops import elementwise as ew
from webinfer.ops import gather, pool, resize
from webinfer.ops import movement as mv
from webinfer.ops import reduce as red
from webinfer.ops.strides import row_major
from webinfer.passes.integers import BYTES, constant_of, dense, one_scale, rescaling

MOVES = {
    mv.CONCAT, mv.DEPTH_TO_SPACE, mv.EXPAND, mv.PAD, mv.RESHAPE, mv.REVERSE, mv.SLICE, mv.SPACE_TO_DEPTH, mv.TILE,
    mv.TRANSPOSE, gather.GATHER, pool.MAX_POOL2D, red.REDUCE_MAX, red.REDUCE_MIN, resize.RESIZE_NEAREST,
}  # fmt: skip
MAX_SCALES = 65536  # of a constant of bytes, kept beside it: 32,768 and 131,072 changed none of 146 graphs


def sink_dequantize(graph: Graph) -> int:
    """Number of nodes that move integers now, or vanished because they led to integers and back."""
    known, made = _Known(set(graph.outputs)), list[Node]()
    for node in graph.nodes:
        node.inputs = [None if v is None else resolve(v, known.swapped) for v in node.inputs]
        made += known.kept(node) if len(node.outputs) == 1 and node.inputs and node.inputs[0] is not None else [node]
    graph.nodes = made
    substitute(graph, known.swapped)
    return known.count


class _Known:
    """What `sink_dequantize` knows of the values so far: which stored integers they were made of."""

    def __init__(self, outputs: set[Value]) -> None:
        self.outputs = outputs
        self.casts: dict[Value, Value] = {}  # constants that were made floats
        self.real: dict[Value, Value] = {}  # dequantised → stored
        self.plain: dict[Value, Value] = {}  # without a scale → stored
        self.swapped: dict[Value, Value] = {}
        self.count = 0

    def kept(self, node: Node) -> list[Node]:
        """The nodes that stand in the node's place."""
        y, x = node.output, node.required_input(0)
        if node.op is ew.MUL and (weights := _scaled_constant(node, self.casts)) is not None:
            node.op, node.inputs, node.attrs = ew.DEQUANTIZE, [weights], ew.CastAttrs(DType.FLOAT32)
            x, self.count = weights, self.count + 1
        if node.op is ew.CAST and x.type.dtype in BYTES:
            return self._cast(node, x, y)
        if node.op is ew.DEQUANTIZE and x.type.quant is not None and not x.type.dtype.is_float:
            self.real[y] = x
        elif node.op is ew.QUANTIZE and x in self.real and one_scale(self.real[x].type) and y.type.dtype in BYTES:
            source = self.real[x]
            node.op, node.attrs = ew.LINEAR, rescaling(y.type)
            return self._replaced(node, source, [source])
        elif (moved := _on_integers(node, self.real) or _on_integers(node, self.plain)) is not None:
            self.count += 1
            if moved[-1].op is not ew.MUL:
                back = self.real if moved[-1].op is ew.DEQUANTIZE else self.plain
                back[y] = moved[-1].required_input(0)
            return moved
        return [node]

    def _cast(self, node: Node, x: Value, y: Value) -> list[Node]:
        if y.type.dtype is DType.FLOAT32 and x.type.quant is None and dense(x) is not None:
            self.casts[y] = x
        elif x in self.plain and self.plain[x].type == y.type:
            return self._replaced(node, self.plain[x], [x])
        elif x.type.quant is not None and y.type == dataclasses.replace(x.type, quant=None):
            self.plain[y] = x
        return [node]

    def _replaced(self, node: Node, by: Value, inputs: list[Value]) -> list[Node]:
        """Nothing, where that value has what the node makes; else the node with other inputs."""
        self.count += 1
        if by.type == node.output.type and node.output not in self.outputs:
            self.swapped[node.output] = by
            return []
        node.inputs = list(inputs)
        return [node]


def _on_integers(node: Node, known: dict[Value, Value]) -> list[Node] | None:
    """The move of stored integers, and what makes of them what the node made."""
    many = node.op is mv.CONCAT
    sources = [known.get(v) for v in (node.inputs if many else node.inputs[:1]) if v is not None]
    first = sources[0] if sources else None
    if node.op not in MOVES or first is None or any(s is None or s.type.quant != first.type.quant for s in sources):
        return None
    if any(s is None or s.type.dtype is not first.type.dtype for s in sources):
        return None
    y, back = node.output, ew.DEQUANTIZE if node.output.type.dtype.is_float else ew.CAST
    tail = [Node(back, [first], [y], ew.CastAttrs(y.type.dtype), node.label)]
    constant = _moved_constant(node, first)
    if constant is not None:
        tail[0].inputs = [constant]
        return tail
    if not one_scale(first.type):
        return _gathered_rows(node, first)
    attrs, quant = node.attrs, first.type.quant
    if node.op is mv.PAD and back is ew.DEQUANTIZE:
        assert quant is not None
        value, (low, high) = attrs.value / quant.scales[0] + (quant.zero_points or (0,))[0], first.type.dtype.range
        if not low <= value <= high or value != round(value):
            return None
        attrs = dataclasses.replace(attrs, value=float(value))
    if getattr(attrs, "activation", "none") != "none" or getattr(attrs, "out_type", None) is not None:
        return None
    try:
        move = apply(node.op, [*sources, *node.inputs[len(sources) :]], attrs, node.label, f"{y.name} stored")
    except ShapeError:
        return None
    if move.output.type.quant != quant:
        return None
    tail[0].inputs = [move.output]
    return [move, *tail]


# ---- constants


def _scaled_constant(node: Node, casts: dict[Value, Value]) -> Value | None:
    """For a product of 8-bit constants, made floats, and scales: the constants with these scales."""
    for i in (0, 1):
        x, s = casts.get(node.required_input(i)), node.required_input(1 - i)
        if x is None or dense(s) is None or s.type.size > MAX_SCALES or x.type.rank < s.type.rank:
            continue
        shape = (1,) * (x.type.rank - s.type.rank) + s.type.shape
        wide = [axis for axis, size in enumerate(shape) if size != 1]
        scales = tuple(map(float, s.numbers()))
        fits = node.output.type.shape == x.type.shape and len(wide) <= 1 and all(0 < n < math.inf for n in scales)
        if fits and (not wide or len(scales) == x.type.shape[wide[0]]):
            quant = Quantization(scales, (0,) * len(scales), wide[0] if wide else None)
            return Value(x.name, dataclasses.replace(x.type, quant=quant), x.constant)
    return None


def _axis_after(node: Node, source: TensorType) -> int | None:
    """Where the axis of the scales is after a move; None where it is torn apart."""
    assert source.quant is not None
    axis, shape = source.quant.axis or 0, node.output.type.shape
    if node.op is mv.TRANSPOSE:
        return int(node.attrs.perm.index(axis))
    if node.op is mv.RESHAPE:
        before = math.prod(source.shape[:axis])
        same = [i for i, n in enumerate(shape) if n == source.shape[axis] and math.prod(shape[:i]) == before]
        return same[0] if same else None
    return None


def _moved_constant(node: Node, source: Value) -> Value | None:
    """The constant with its axes moved, and its scales with them."""
    data, quant, shape = dense(source), source.type.quant, node.output.type.shape
    if data is None or quant is None or node.op not in (mv.TRANSPOSE, mv.RESHAPE):
        return None
    axis = None if len(quant.scales) == 1 else _axis_after(node, source.type)
    if axis is None and len(quant.scales) > 1:
        return None
    if node.op is mv.TRANSPOSE:
        if source.type.dtype not in BYTES:
            return None
        strides = [row_major(source.type.shape)[i] for i in node.attrs.perm]
        *outer, last = shape
        step = strides[-1]
        rows = (sum(map(int.__mul__, at, strides)) for at in product(*map(range, outer)))
        raw = bytes(data)
        data = memoryview(b"".join(raw[at : at + (last - 1) * step + 1 : step] for at in rows))
    type = TensorType(shape, source.type.dtype, dataclasses.replace(quant, axis=axis))
    return Value(node.output.name, type, Constant(data, source.type.dtype))


def _gathered_rows(node: Node, source: Value) -> list[Node] | None:
    """Rows of a table with a scale each, gathered as integers."""
    quant, y = source.type.quant, node.output
    if node.op is not gather.GATHER or node.attrs.axis or node.attrs.batch_dims or quant is None or quant.axis != 0:
        return None
    if any(quant.zero_points) or source.constant is None:
        return None
    table = Value(source.name, TensorType(source.type.shape, source.type.dtype), source.constant)
    scales = constant_of(f"{source.name} scales", (len(quant.scales), *(1,) * (source.type.rank - 1)), quant.scales)
    rows = [apply(node.op, [part, node.inputs[1]], node.attrs, node.label) for part in (table, scales)]
    real = apply(ew.CAST, [rows[0].output], ew.CastAttrs(DType.FLOAT32), node.label)
    return [*rows, real, Node(ew.MUL, [real.output, rows[1].output], [y], ew.BinaryAttrs(), node.label)]
