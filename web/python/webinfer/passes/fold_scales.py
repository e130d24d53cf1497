"""A factor and a summand a channel that stand alone: into the weights of a product beside them, or into one step."""

from __future__ import annotations

import dataclasses

from webinfer.graph.ir import Graph, Node, Value
from webinfer.graph.queries import remove, single_producers
from webinfer.ops import conv, matmul, reduce
from webinfer.ops import elementwise as ew
from webinfer.ops.activation import Activation
from webinfer.passes.fold_affine import Preparing, is_row, is_scalable
from webinfer.rewrite.products import AXES

LARGE = 64  # pixels from which a pass over a map costs more than packing what is computed in the run
_SCALES = (ew.MUL, ew.DIV)
_SUMS = (ew.ADD, ew.SUB)


def split_scales(graph: Graph) -> int:
    """Number of depthwise 1x1 convolutions behind a product that became MUL and ADD: `fold_affine` takes both."""
    mergeable, fixed, nodes = single_producers(graph), graph.fixed_values(), list[Node]()
    for node in graph.nodes:
        producer = mergeable.get(node.required_input(0)) if _is_scale(node, fixed) else None
        fits = producer is not None and producer.op in AXES and producer.attrs.activation is Activation.NONE
        if fits and producer is not None and is_scalable(producer, fixed) and len(producer.inputs) < 4:
            nodes += _split(node)
        else:
            nodes.append(node)
    count, graph.nodes = len(nodes) - len(graph.nodes), nodes
    return count


def fold_scales(graph: Graph) -> int:
    """Number of factors and summands that joined in a depthwise 1x1 convolution, or went into weights behind them.

    Into weights behind them only where one product reads them: a summand only where its window has no padding.
    """
    mergeable, fixed = single_producers(graph), graph.fixed_values()
    merged: set[Node] = set()
    nodes: list[Node] = []
    for node in graph.nodes:
        made, taken = _joined(node, mergeable, fixed)
        while (folded := _folded(made[-1], mergeable, fixed)) is not None:
            made, taken = [*made[:-1], *folded[0]], [*taken, folded[1]]
            _note_fixed(made, fixed)
        for extra in made:
            mergeable.update({v: extra for v in extra.outputs if v in mergeable})
        _note_fixed(made, fixed)
        merged.update(taken)
        nodes += made
    graph.nodes = nodes
    remove(graph, merged)
    return len(merged)


def _is_scale(node: Node, fixed: set[Value]) -> bool:
    """Whether a node is a depthwise convolution of one tap, as known at load."""
    if node.op is not conv.DEPTHWISE_CONV2D or len(node.inputs) > 3:
        return False
    w, y, a = node.required_input(1), node.output.type, node.attrs
    plain = w.type.shape[1:3] == a.stride == (1, 1) and not any(a.pads) and y.dtype.is_float
    fixed_whole = is_scalable(node, fixed) and _known(node.optional_input(2), fixed)
    return plain and node.required_input(0).type == y and fixed_whole


def _note_fixed(nodes: list[Node], fixed: set[Value]) -> None:
    for node in nodes:
        if all(_known(value, fixed) for value in node.inputs):
            fixed.update(node.outputs)


def _known(value: Value | None, fixed: set[Value]) -> bool:
    return value is None or value.is_constant or value in fixed


def _split(node: Node) -> list[Node]:
    work = Preparing(node.label)
    x, w, bias = (*node.inputs, None)[:3]
    assert x is not None
    assert w is not None
    row = work.shaped(w, w.type.shape[-1:])
    attrs = ew.BinaryAttrs(activation=node.attrs.activation)
    if bias is None:
        return [*work.made, Node(ew.MUL, [x, row], node.outputs, attrs, node.label)]
    total = work.add(ew.MUL, [x, row])
    return [*work.made, Node(ew.ADD, [total, bias], node.outputs, attrs, node.label)]


def _joined(node: Node, mergeable: dict[Value, Node], fixed: set[Value]) -> tuple[list[Node], list[Node]]:
    """The nodes in place of a sum whose summand is a product with a factor a channel, and what they make needless.

    Of large maps also where factor and summand are computed in the run, as those of instance normalisations.
    """
    y = node.outputs[0] if node.outputs else None
    every = y is not None and y.type.rank == 4 and y.type.size >= LARGE * y.type.shape[-1]
    found = _row_of(node, fixed, every)
    producer = mergeable.get(found[0]) if found is not None else None
    factor = _row_of(producer, fixed, every) if producer is not None and producer.op is ew.MUL else None
    if y is None or y.type.rank != 4 or node.op not in _SUMS or found is None or factor is None or producer is None:
        return [node], []
    if producer.attrs.activation is not Activation.NONE or node.attrs.activation is Activation.PRELU:
        return [node], []
    work, channels = Preparing(node.label), y.type.shape[-1:]
    w = work.shaped(work.shaped(factor[1], channels), (1, 1, 1, *channels))
    bias = work.shaped(found[1], channels)
    if node.op is ew.SUB:
        bias = work.add(ew.NEG, [bias], ew.UnaryAttrs())
    attrs = conv.Conv2dAttrs(activation=node.attrs.activation)
    joined = Node(conv.DEPTHWISE_CONV2D, [factor[0], w, bias], node.outputs, attrs, node.label)
    return [*work.made, joined], [producer]


def _row_of(node: Node, fixed: set[Value], every: bool = False) -> tuple[Value, Value] | None:
    """What a MUL, DIV, ADD or SUB takes, and the number for each channel that it takes it by; `every`: known or not."""
    if node.op not in (*_SCALES, *_SUMS) or not node.output.type.dtype.is_float:
        return None
    orders = [node.inputs] if node.op in (ew.DIV, ew.SUB) else [node.inputs, node.inputs[::-1]]
    for x, row in orders:
        if x is not None and row is not None and x.type == node.output.type and (every or _known(row, fixed)):
            if is_row(row, node.output):
                return x, row
    return None


def _folded(node: Node, mergeable: dict[Value, Node], fixed: set[Value]) -> tuple[list[Node], Node] | None:
    """The nodes in place of a product whose data is scaled or moved by a number a channel, and the scaling node."""
    before = mergeable.get(node.inputs[0]) if node.inputs and node.inputs[0] is not None else None
    if before is None or node.op not in AXES or node.op is conv.CONV_TRANSPOSE2D or not is_scalable(node, fixed):
        return None
    if before.attrs.__class__ in (ew.BinaryAttrs, conv.Conv2dAttrs) and before.attrs.activation is not Activation.NONE:
        return None
    w, bias = node.required_input(1), node.optional_input(2)
    if not _fits(node, w) or not _known(bias, fixed):
        return None
    work = Preparing(node.label)
    scale: Value | None = None
    summand: Value | None = None
    if _is_scale(before, fixed):
        x, scale, summand = before.required_input(0), before.required_input(1), before.optional_input(2)
    elif found := _row_of(before, fixed):
        x = found[0]
        scale, summand = (found[1], None) if before.op in _SCALES else (None, found[1])
    else:
        return None
    if summand is not None:
        if node.op is not matmul.MATMUL and any(node.attrs.pads):
            return None
        bias = _moved(node, work, w, bias, summand, ew.SUB if before.op is ew.SUB else ew.ADD)
    if scale is not None:
        w = work.add(ew.DIV if before.op is ew.DIV else ew.MUL, [w, _along(node, work, w, scale)])
    inputs = [x, w] if bias is None else [x, w, bias, *node.inputs[3:]]
    return [*work.made, Node(node.op, inputs, node.outputs, dataclasses.replace(node.attrs), node.label)], before


def _fits(node: Node, w: Value) -> bool:
    """Whether each of the weights belongs to one channel of the data, and that is known by its place."""
    if node.op is conv.CONV2D:
        return bool(node.attrs.groups == 1)
    if node.op is matmul.MATMUL:
        return not bool(node.attrs.transpose_a)
    return w.type.shape[-1] == node.required_input(0).type.shape[-1]


def _input_axis(node: Node, w: Value) -> int:
    if node.op is matmul.MATMUL and not node.attrs.transpose_b:
        return w.type.rank - 2
    return w.type.rank - 1


def _along(node: Node, work: Preparing, w: Value, row: Value) -> Value:
    """A number for each channel of the data in the shape in which it lies along the weights."""
    axis = _input_axis(node, w)
    shape = tuple(size if i == axis else 1 for i, size in enumerate(w.type.shape))
    return work.shaped(work.shaped(row, shape[axis : axis + 1]), shape)


def _moved(node: Node, work: Preparing, w: Value, bias: Value | None, summand: Value, op: object) -> Value:
    """The bias that holds what the summand adds to each result."""
    moved = work.add(ew.MUL, [w, _along(node, work, w, summand)])
    kept = w.type.rank - 1 if node.op is conv.DEPTHWISE_CONV2D else 0
    if node.op is matmul.MATMUL:
        kept = 1 - _input_axis(node, w)
    axes = tuple(axis for axis in range(w.type.rank) if axis != kept)
    total = work.add(reduce.REDUCE_SUM, [moved], reduce.ReduceAttrs(axes))
    total = work.shaped(total, (w.type.shape[kept],))
    if bias is not None:
        return work.add(ew.SUB if op is ew.SUB else ew.ADD, [bias, total])
    return work.add(ew.NEG, [total], ew.UnaryAttrs()) if op is ew.SUB else total
