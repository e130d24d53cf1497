"""Factors and summands a channel: into the weights and the bias of a product beside them, or into one step.

The weights are scaled by nodes of their own, which backends compute when they load the graph.
"""

from __future__ import annotations

import dataclasses

from webinfer.graph.ir import Graph, Node, Value
from webinfer.ops import conv, matmul, reduce
from webinfer.ops import elementwise as ew
from webinfer.ops.activation import Activation
from webinfer.rewrite.facts import Facts
from webinfer.rewrite.matcher import rewrite, rule
from webinfer.rewrite.patterns import Match, Variable, kind
from webinfer.rewrite.products import AXES, Preparing, is_row, is_scalable, output_axis

# Elements of a result whose summand is folded: adding it to fewer costs nothing, and later rounds less; 1,000 took as
# long (EPYC, 2026-11-28).
LEAST = 24
# Pixels from which a pass over a map costs more than packing what is computed in the run: without, two models took 1.07
# times as long, half and double changed none of 146 graphs (EPYC, 2026-11-28).
LARGE = 64
SCALES, SUMS = (ew.MUL, ew.DIV), (ew.ADD, ew.SUB)

X, ROW, FACTOR = map(Variable, ("x", "row", "factor"))
product, scaling, adding, affine = kind(*AXES), kind(*SCALES), kind(*SUMS), kind(*SCALES, *SUMS)
forward = kind(conv.CONV2D, conv.DEPTHWISE_CONV2D, matmul.MATMUL)
depthwise, multiplied = kind(conv.DEPTHWISE_CONV2D), kind(ew.MUL)


def _has_no_residual(node: Node) -> bool:
    return len(node.inputs) < 4


def _is_not_prelu(node: Node) -> bool:
    """Whether a product can end as the node does: the slope would be a further input."""
    return node.attrs.activation is not Activation.PRELU and node.output.type.dtype.is_float


# ---- behind a product


def _folded_before(match: Match) -> list[Node] | None:
    """The product whose weights or bias hold what stood behind it."""
    node, before, other = match.root, match.node("product"), match.value("row")
    y = node.output
    if before.output.type != y.type or not match.facts.is_known(other) or not is_row(other, y):
        return None
    if not (y.type.size >= LEAST if node.op in SUMS else is_scalable(before, match.facts)):
        return None
    work = Preparing(before.label)
    x, w, bias = before.inputs[0], before.required_input(1), before.optional_input(2)
    row = work.shaped(other, y.type.shape[-1:])
    if node.op in SCALES:
        axis = output_axis(before, w.type)
        along = tuple(size if i == axis else 1 for i, size in enumerate(w.type.shape))
        w = work.add(node.op, [w, work.shaped(row, along)])
        bias = bias and work.add(node.op, [bias, row])
    elif bias is not None:
        bias = work.add(node.op, [bias, row])
    else:
        bias = row if node.op is ew.ADD else work.add(ew.NEG, [row], ew.UnaryAttrs())
    attrs = dataclasses.replace(before.attrs, activation=node.attrs.activation)
    inputs = [x, w] if bias is None else [x, w, bias]
    return [*work.made, Node(before.op, inputs, node.outputs, attrs, before.label)]


# ---- a depthwise convolution of one tap, which is a factor and a summand


def is_scale(node: Node, facts: Facts) -> bool:
    """Whether a node is a depthwise convolution of one tap, as known at load."""
    if node.op is not conv.DEPTHWISE_CONV2D or len(node.inputs) > 3:
        return False
    w, y, a = node.required_input(1), node.output.type, node.attrs
    plain = w.type.shape[1:3] == a.stride == (1, 1) and not any(a.pads) and y.dtype.is_float
    return (
        plain
        and node.required_input(0).type == y
        and is_scalable(node, facts)
        and facts.is_known(node.optional_input(2))
    )


def _split(match: Match) -> list[Node] | None:
    node, before = match.root, match.node("product")
    if not is_scale(node, match.facts) or not is_scalable(before, match.facts):
        return None
    work = Preparing(node.label)
    x, w, bias = node.required_input(0), node.required_input(1), node.optional_input(2)
    row = work.shaped(w, w.type.shape[-1:])
    attrs = ew.BinaryAttrs(activation=node.attrs.activation)
    if bias is None:
        return [*work.made, Node(ew.MUL, [x, row], node.outputs, attrs, node.label)]
    total = work.add(ew.MUL, [x, row])
    return [*work.made, Node(ew.ADD, [total, bias], node.outputs, attrs, node.label)]


def _joined(match: Match) -> list[Node] | None:
    """The depthwise convolution in place of a factor and a summand: of large maps also where these are computed in the
    run, as those of instance normalisations.
    """
    node, facts = match.root, match.facts
    y, channels = node.output, node.output.type.shape[-1:]
    x, factor, row = (match.value(name) for name in ("x", "factor", "row"))
    known = facts.is_known(factor) and facts.is_known(row)
    known = known or (y.type.rank == 4 and y.type.size >= LARGE * y.type.shape[-1])
    if y.type.rank != 4 or not all(channels) or not known or not (is_row(factor, y) and is_row(row, y)):
        return None  # a window has at least one channel
    if x.type != y.type or match.node("scaled").output.type != y.type:
        return None
    work = Preparing(node.label)
    w = work.shaped(work.shaped(factor, channels), (1, 1, 1, *channels))
    bias = work.shaped(row, channels)
    if node.op is ew.SUB:
        bias = work.add(ew.NEG, [bias], ew.UnaryAttrs())
    attrs = conv.Conv2dAttrs(activation=node.attrs.activation)
    return [*work.made, Node(conv.DEPTHWISE_CONV2D, [x, w, bias], node.outputs, attrs, node.label)]


# ---- before a product


def _takes_rows(node: Node) -> bool:
    """Whether each of the weights belongs to one channel of the data, and that is known by its place."""
    if node.op is conv.CONV2D:
        return bool(node.attrs.groups == 1)
    if node.op is matmul.MATMUL:
        return not bool(node.attrs.transpose_a)
    return node.required_input(1).type.shape[-1] == node.required_input(0).type.shape[-1]


def _folded_behind(match: Match) -> list[Node] | None:
    """The product whose weights and bias hold a factor or a summand of its data."""
    before, row = match.node("before"), match.value("row")
    x = match.value("x")
    if not before.output.type.dtype.is_float or x.type != before.output.type or not is_row(row, before.output):
        return None
    if not match.facts.is_known(row):
        return None
    scale, summand = (row, None) if before.op in SCALES else (None, row)
    return _folded(match, x, scale, summand, before.op)


def _folded_scale(match: Match) -> list[Node] | None:
    before = match.node("before")
    if not is_scale(before, match.facts):
        return None
    return _folded(match, before.required_input(0), before.required_input(1), before.optional_input(2), ew.MUL)


def _folded(match: Match, x: Value, scale: Value | None, summand: Value | None, op: object) -> list[Node] | None:
    node = match.root
    w, bias = node.required_input(1), node.optional_input(2)
    if not is_scalable(node, match.facts) or not match.facts.is_known(bias):
        return None
    if summand is not None and node.op is not matmul.MATMUL and any(node.attrs.pads):
        return None
    work = Preparing(node.label)
    if summand is not None:
        bias = _moved(node, work, w, bias, summand, minus=op is ew.SUB)
    if scale is not None:
        w = work.add(ew.DIV if op is ew.DIV else ew.MUL, [w, _along(node, work, w, scale)])
    inputs = [x, w] if bias is None else [x, w, bias, *node.inputs[3:]]
    return [*work.made, Node(node.op, inputs, node.outputs, dataclasses.replace(node.attrs), node.label)]


def _input_axis(node: Node, w: Value) -> int:
    if node.op is matmul.MATMUL and not node.attrs.transpose_b:
        return w.type.rank - 2
    return w.type.rank - 1


def _along(node: Node, work: Preparing, w: Value, row: Value) -> Value:
    """A number for each channel of the data in the shape in which it lies along the weights."""
    axis = _input_axis(node, w)
    shape = tuple(size if i == axis else 1 for i, size in enumerate(w.type.shape))
    return work.shaped(work.shaped(row, shape[axis : axis + 1]), shape)


def _moved(node: Node, work: Preparing, w: Value, bias: Value | None, summand: Value, *, minus: bool) -> Value:
    """The bias that holds what the summand adds to each result."""
    moved = work.add(ew.MUL, [w, _along(node, work, w, summand)])
    kept = w.type.rank - 1 if node.op is conv.DEPTHWISE_CONV2D else 0
    if node.op is matmul.MATMUL:
        kept = 1 - _input_axis(node, w)
    axes = tuple(axis for axis in range(w.type.rank) if axis != kept)
    total = work.add(reduce.REDUCE_SUM, [moved], reduce.ReduceAttrs(axes))
    total = work.shaped(total, (w.type.shape[kept],))
    if bias is not None:
        return work.add(ew.SUB if minus else ew.ADD, [bias, total])
    return work.add(ew.NEG, [total], ew.UnaryAttrs()) if minus else total


BEFORE = product(..., name="product", once=True, when=_has_no_residual)
SPLIT = (rule("scale behind a product", depthwise(BEFORE, ..., curved=True), _split),)
BEHIND = (rule("row behind a product", affine(BEFORE, ROW, curved=True, when=_is_not_prelu), _folded_before),)
ALONE = (
    rule(
        "factor and summand",
        adding(multiplied(X, FACTOR, name="scaled", once=True), ROW, curved=True, when=_is_not_prelu), _joined,
    ),
    rule(
        "row before a product",
        forward(affine(X, ROW, name="before", once=True), ..., curved=True, when=_takes_rows), _folded_behind,
    ),
    rule(
        "scale before a product",
        forward(depthwise(..., name="before", once=True), ..., curved=True, when=_takes_rows), _folded_scale,
    ),
)  # fmt: skip


def split_scales(graph: Graph) -> int:
    """Number of depthwise 1x1 convolutions behind a product that became MUL and ADD: `fold_affine` takes both."""
    return rewrite(graph, SPLIT)


def fold_affine(graph: Graph) -> int:
    """Number of MUL, DIV, ADD and SUB nodes that were folded: batch normalisations, and biases that stand alone."""
    return rewrite(graph, BEHIND)


def fold_scales(graph: Graph) -> int:
    """Number of factors and summands that joined in a depthwise 1x1 convolution, or went into weights behind them.

    Into weights behind them only where one product reads them: a summand only where its window has no padding.
    """
    return rewrite(graph, ALONE)
