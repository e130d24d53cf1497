"""Integers that stand for real numbers stay integers: files that dequantise, compute and quantise again.

Two passes. `keep_integers` comes before moves are merged: what was dequantised is moved as the integers that it was,
constants too. `compute_integers` comes after activations are fused, and makes operators of integers.
"""

from __future__ import annotations

import dataclasses
import math
import struct
from collections.abc import Callable, Sequence
from itertools import product

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.graph.ir import Constant, Graph, Node, Op, Quantization, TensorType, Value, apply
from webinfer.ops import conv, gather, pool, resize
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul as mm
from webinfer.ops import movement as mv
from webinfer.ops import reduce as red
from webinfer.ops import softmax as sm
from webinfer.ops.strides import row_major
from webinfer.passes.eliminate_dead import eliminate_dead
from webinfer.passes.uses import resolve, single_producers, substitute

BYTES = (DType.INT8, DType.UINT8)
MOVES = {
    mv.CONCAT, mv.DEPTH_TO_SPACE, mv.EXPAND, mv.PAD, mv.RESHAPE, mv.REVERSE, mv.SLICE, mv.SPACE_TO_DEPTH, mv.TILE,
    mv.TRANSPOSE, gather.GATHER, pool.MAX_POOL2D, red.REDUCE_MAX, red.REDUCE_MIN, resize.RESIZE_NEAREST,
}  # fmt: skip
CHANNELS = {conv.CONV2D: 0, conv.DEPTHWISE_CONV2D: 3, conv.CONV_TRANSPOSE2D: 0}  # the axis of outputs in weights
APART = {ew.HARD_SWISH, ew.LEAKY_RELU}  # integers have a fixed-point form of their own, of another format
MAX_TAPS = 256  # of a depthwise window in integers
MAX_SCALES = 65536


def _one_scale(type: TensorType) -> bool:
    return type.quant is not None and type.dtype in BYTES and len(type.quant.scales) == 1


def _dense(value: Value | None) -> memoryview | None:
    """The bytes of a constant that lies as it is computed with."""
    constant = value.constant if value is not None else None
    if value is None or constant is None or constant.sparsity is not None or constant.stored is not value.type.dtype:
        return None
    return constant.data


# ---- constants


def _constant(
    name: str, shape: tuple[int, ...], numbers: Sequence[float], dtype: DType = DType.FLOAT32,
    quant: Quantization | None = None,
) -> Value:  # fmt: skip
    data = memoryview(struct.pack(f"<{len(numbers)}{dtype.letter}", *numbers))
    return Value(name, TensorType(shape, dtype, quant), Constant(data, dtype))


def _scaled_constant(node: Node, casts: dict[Value, Value]) -> Value | None:
    """For a product of 8-bit constants, made floats, and scales: the constants with these scales."""
    for i in (0, 1):
        x, s = casts.get(node.required_input(i)), node.required_input(1 - i)
        if x is None or _dense(s) is None or s.type.size > MAX_SCALES or x.type.rank < s.type.rank:
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
    data, quant, shape = _dense(source), source.type.quant, node.output.type.shape
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
    scales = _constant(f"{source.name} scales", (len(quant.scales), *(1,) * (source.type.rank - 1)), quant.scales)
    rows = [apply(node.op, [part, node.inputs[1]], node.attrs, node.label) for part in (table, scales)]
    real = apply(ew.CAST, [rows[0].output], ew.CastAttrs(DType.FLOAT32), node.label)
    return [*rows, real, Node(ew.MUL, [real.output, rows[1].output], [y], ew.BinaryAttrs(), node.label)]


# ---- moves


def keep_integers(graph: Graph) -> int:
    """Number of nodes that move integers now, or vanished because they led to integers and back."""
    known, made = _Known(set(graph.outputs)), list[Node]()
    for node in graph.nodes:
        node.inputs = [None if v is None else resolve(v, known.swapped) for v in node.inputs]
        made += known.kept(node) if len(node.outputs) == 1 and node.inputs and node.inputs[0] is not None else [node]
    graph.nodes = made
    substitute(graph, known.swapped)
    return known.count


class _Known:
    """What `keep_integers` knows of the values so far: which stored integers they were made of."""

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
        elif node.op is ew.QUANTIZE and x in self.real and _one_scale(self.real[x].type) and y.type.dtype in BYTES:
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
        if y.type.dtype is DType.FLOAT32 and x.type.quant is None and _dense(x) is not None:
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
    if not _one_scale(first.type):
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


# ---- arithmetic


def leave_rounding_out(graph: Graph) -> int:
    """Number of times that real numbers are no longer rounded to integers and made real again."""
    keep_integers(graph)
    writers = graph.producers()
    count = 0
    for node in graph.nodes:
        source = writers.get(node.required_input(0)) if node.op is ew.DEQUANTIZE else None
        if source is not None and source.op is ew.QUANTIZE:
            node.op, node.attrs, node.inputs = ew.IDENTITY, ew.UnaryAttrs(), [source.required_input(0)]
            count += 1
    return count


def compute_integers(graph: Graph) -> int:
    """Number of operators that compute on integers now, with floats before them or behind them gone."""
    if any(node.op is ew.QUANTIZE for node in graph.nodes):
        eliminate_dead(graph)  # what nobody wants would count as a reader
    real = {n.output: n.required_input(0) for n in graph.nodes if n.op is ew.DEQUANTIZE}
    real = {y: x for y, x in real.items() if x.type.quant is not None and not x.type.dtype.is_float}
    _quantize_early(graph)
    # Files that say where they round are computed in integers; of others, only the weights stay what they are.
    casts = (n for n in graph.nodes if n.op is ew.CAST)
    rounds = any(n.attrs.quant is not None or n.required_input(0).type.quant is not None for n in casts)
    writers = single_producers(graph)
    ends = {n.required_input(0): n for n in graph.nodes if n.op is ew.QUANTIZE and n.inputs[0] in writers}
    gone, made = set[Node](), list[Node]()
    count = 0
    for node in graph.nodes:
        end = ends.get(node.outputs[0]) if rounds and len(node.outputs) == 1 else None
        if end is not None and _one_scale(end.output.type) and _become_integer(node, real, end.output, made):
            gone.add(end)
            count += 1
        elif node.op is mm.MATMUL:  # convolutions make real weights of them in any case
            w = real.get(node.required_input(1))
            if w is not None and w.is_constant and w.type.dtype in BYTES and _by_channel(node, w):
                node.inputs[1] = w
                count += 1
        made.append(node)
    graph.nodes = [node for node in made if node not in gone]
    return count


def _quantize_early(graph: Graph) -> None:
    """What is moved and then quantised is quantised first."""
    writers = single_producers(graph)
    for node in graph.nodes:
        move = writers.get(node.inputs[0]) if node.op is ew.QUANTIZE and node.inputs[0] is not None else None
        while move is not None and move.op in (mv.RESHAPE, mv.TRANSPOSE) and _one_scale(node.output.type):
            x, y = move.required_input(0), node.output
            stored = Value(y.name, dataclasses.replace(y.type, shape=x.type.shape))
            move.op, move.attrs, node.op, node.attrs = node.op, node.attrs, move.op, move.attrs
            move.inputs, move.outputs, node.inputs, node.outputs = [x], [stored], [stored], [y]
            node, move = move, writers.get(x)


def _by_channel(node: Node, w: Value) -> bool:
    """Whether the weights have one scale, or one for each output."""
    quant, rank = w.type.quant, w.type.rank
    axis = CHANNELS.get(node.op)
    if axis is None:
        axis = rank - 2 if node.attrs.transpose_b else rank - 1
    return quant is not None and (len(quant.scales) == 1 or quant.axis == axis)


def _become_integer(node: Node, real: dict[Value, Value], y: Value, made: list[Node]) -> bool:
    """Whether the node now makes y, stored integers, of stored integers; what it needs before it is in `made`."""
    change = FORMS.get(node.op)
    if change is None and isinstance(node.op, ew.ElementwiseOp) and node.op.attrs is ew.UnaryAttrs:
        change = None if node.op in APART or node.op.gives_truth else _all_stored
    inputs = change(node, real) if change is not None else None
    if inputs is None:
        return False
    attrs, before = node.attrs, list[Node]()
    assert y.type.quant is not None
    if node.op is mv.CONCAT:
        before = [apply(ew.LINEAR, [v], rescaling(y.type), v.name) for v in inputs if v is not None]
        inputs = [n.output for n in before]
    else:
        attrs = dataclasses.replace(attrs, out_type=(y.type.dtype, y.type.quant))
    try:
        if node.op.result_types([None if v is None else v.type for v in inputs], attrs) != (y.type,):
            return False
    except ShapeError:
        return False
    made += before
    node.inputs, node.attrs, node.outputs = list(inputs), attrs, [y]
    return True


def rescaling(y: TensorType) -> ew.UnaryAttrs:
    """Attributes of LINEAR that make it the same real numbers in another scale, by a table."""
    return ew.UnaryAttrs(1.0, 0.0, (y.dtype, y.quant))


Inputs = Sequence[Value | None]


def _all_stored(node: Node, real: dict[Value, Value]) -> Inputs | None:
    found = [real.get(v) for v in node.inputs if v is not None]
    bounded = getattr(node.attrs, "activation", None)
    if bounded is not None and bounded.bounds is None:
        return None
    return found if all(v is not None and _one_scale(v.type) for v in found) else None


def _product(node: Node, real: dict[Value, Value]) -> Inputs | None:
    x, w = (real.get(node.required_input(i)) for i in (0, 1))
    if x is None or w is None or not _one_scale(x.type) or w.type.dtype not in BYTES or not _by_channel(node, w):
        return None
    assert x.type.quant is not None
    assert w.type.quant is not None
    own, taps = w.type.quant.scales, math.prod(w.type.shape[1:3])
    refused = (
        any(v is not None for v in node.inputs[3:])
        or node.attrs.activation.bounds is None
        or (node.op is mm.MATMUL and len(own) > 1 and (math.prod(w.type.shape[:-2]) > 1 or not w.is_constant))
        or (node.op is conv.DEPTHWISE_CONV2D and taps > MAX_TAPS)
        or (node.op is conv.CONV_TRANSPOSE2D and node.attrs.groups > 1)
    )
    bias = node.optional_input(2)
    if refused or bias is None:
        return None if refused else [x, w]
    scales = [x.type.quant.scales[0] * s for s in own] * (node.output.type.shape[-1] if len(own) == 1 else 1)
    whole = _whole_bias(real.get(bias, bias), scales)
    return None if whole is None else [x, w, whole]


def _whole_bias(bias: Value, scales: Sequence[float]) -> Value | None:
    """The bias as int32 of these scales."""
    if _dense(bias) is None or bias.type.size != len(scales):
        return None
    own, numbers = bias.type.quant, list(bias.numbers())
    if own is not None:
        steps, zeros = (list(part) * (len(scales) // len(part)) for part in (own.scales, own.zero_points or (0,)))
        numbers = [(n - z) * s for n, z, s in zip(numbers, zeros, steps, strict=True)]
    try:
        whole = [round(n / s) for n, s in zip(numbers, scales, strict=True)]
    except (ArithmeticError, ValueError):
        return None
    if any(abs(n) >= 2**31 for n in whole):
        return None
    quant = Quantization(tuple(scales), (0,) * len(scales), 0)
    return _constant(bias.name, (len(whole),), whole, DType.INT32, quant)


Form = Callable[[Node, dict[Value, Value]], Inputs | None]
FORMS: dict[Op, Form] = {
    **dict.fromkeys((*CHANNELS, mm.MATMUL), _product),
    **dict.fromkeys((ew.ADD, ew.SUB, ew.MUL, mv.CONCAT, red.REDUCE_MEAN, red.REDUCE_SUM, sm.SOFTMAX), _all_stored),
}
