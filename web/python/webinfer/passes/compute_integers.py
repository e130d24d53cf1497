"""Operators between what dequantises and what quantises again become those of integers: after activations are fused."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.graph.ir import Graph, Node, Op, Quantization, Value, apply
from webinfer.graph.queries import single_producers
from webinfer.ops import conv
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul as mm
from webinfer.ops import movement as mv
from webinfer.ops import reduce as red
from webinfer.ops import softmax as sm
from webinfer.ops import stored_matmul as st
from webinfer.passes.eliminate_dead import eliminate_dead
from webinfer.passes.integers import BYTES, constant_of, dense, one_scale, rescaling
from webinfer.rewrite.products import AXES, output_axis

APART = {ew.HARD_SWISH, ew.LEAKY_RELU}  # integers have a fixed-point form of their own, of another format
MAX_TAPS = 256  # of a depthwise window in integers: half and double changed none of 146 graphs


def compute_integers(graph: Graph) -> int:
    """Number of operators that compute on integers now, with floats before them or behind them gone."""
    if any(node.op is ew.QUANTIZE for node in graph.nodes):
        eliminate_dead(graph)  # what nobody wants would count as a reader
    real = {n.output: n.required_input(0) for n in graph.nodes if n.op is ew.DEQUANTIZE}
    real = {y: x for y, x in real.items() if x.type.quant is not None and not x.type.dtype.is_float}
    _quantize_early(graph)
    # Files that say where they round are computed in integers; of others, only the weights stay what they are.
    rounds = any(n.op is ew.QUANTIZE for n in graph.nodes)
    writers = single_producers(graph)
    ends = {n.required_input(0): n for n in graph.nodes if n.op is ew.QUANTIZE and n.inputs[0] in writers}
    gone, made = set[Node](), list[Node]()
    count = 0
    for node in graph.nodes:
        end = ends.get(node.outputs[0]) if rounds and len(node.outputs) == 1 else None
        if end is not None and one_scale(end.output.type) and _become_integer(node, real, end.output, made):
            gone.add(end)
            count += 1
        elif node.op is mm.MATMUL:  # convolutions make real weights of them in any case
            w = real.get(node.required_input(1))
            if w is not None and w.is_constant and w.type.dtype in BYTES and _by_channel(node, w):
                node.inputs[1] = w
                count += 1
                if rounds:
                    _multiply_stored(node, real.get(node.required_input(0)))
        made.append(node)
    graph.nodes = [node for node in made if node not in gone]
    return count


def _quantize_early(graph: Graph) -> None:
    """What is moved and then quantised is quantised first."""
    writers = single_producers(graph)
    for node in graph.nodes:
        move = writers.get(node.inputs[0]) if node.op is ew.QUANTIZE and node.inputs[0] is not None else None
        while move is not None and move.op in (mv.RESHAPE, mv.TRANSPOSE) and one_scale(node.output.type):
            x, y = move.required_input(0), node.output
            stored = Value(y.name, dataclasses.replace(y.type, shape=x.type.shape))
            move.op, move.attrs, node.op, node.attrs = node.op, node.attrs, move.op, move.attrs
            move.inputs, move.outputs, node.inputs, node.outputs = [x], [stored], [stored], [y]
            node, move = move, writers.get(x)


def _multiply_stored(node: Node, x: Value | None) -> None:
    """The product of stored integers in the node's place, if its data are such: the result stays what it is."""
    a = node.attrs
    if x is None or not one_scale(x.type) or a.transpose_a:
        return
    inputs, attrs = [x, *node.inputs[1:3]], st.StoredMatmulAttrs(a.transpose_b, a.activation)
    try:
        fits = st.infer([None if v is None else v.type for v in inputs], attrs) == (node.output.type,)
    except ShapeError:
        return
    if fits:
        node.op, node.inputs, node.attrs = st.STORED_MATMUL, inputs, attrs


def _by_channel(node: Node, w: Value) -> bool:
    """Whether the weights have one scale, or one for each output."""
    quant = w.type.quant
    return quant is not None and (len(quant.scales) == 1 or quant.axis == output_axis(node, w.type))


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


Inputs = Sequence[Value | None]


def _all_stored(node: Node, real: dict[Value, Value]) -> Inputs | None:
    found = [real.get(v) for v in node.inputs if v is not None]
    bounded = getattr(node.attrs, "activation", None)
    if bounded is not None and bounded.bounds is None:
        return None
    return found if all(v is not None and one_scale(v.type) for v in found) else None


def _product(node: Node, real: dict[Value, Value]) -> Inputs | None:
    x, w = (real.get(node.required_input(i)) for i in (0, 1))
    if x is None or w is None or not one_scale(x.type) or w.type.dtype not in BYTES or not _by_channel(node, w):
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
    if dense(bias) is None or bias.type.size != len(scales):
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
    return constant_of(bias.name, (len(whole),), whole, DType.INT32, quant)


Form = Callable[[Node, dict[Value, Value]], Inputs | None]
FORMS: dict[Op, Form] = {
    **dict.fromkeys(AXES, _product),
    **dict.fromkeys((ew.ADD, ew.SUB, ew.MUL, mv.CONCAT, red.REDUCE_MEAN, red.REDUCE_SUM, sm.SOFTMAX), _all_stored),
}
