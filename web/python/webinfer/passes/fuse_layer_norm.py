"""Means, differences, squares and roots that are a layer norm or an RMS norm become one node."""

from __future__ import annotations

from collections.abc import Mapping

from webinfer.graph.ir import Graph, Node, Value
from webinfer.ops import elementwise as ew
from webinfer.ops import normalization as norm
from webinfer.ops import reduce as red
from webinfer.ops.activation import Activation
from webinfer.passes.readers import producer_of, reshaped, scalar_constant, single_producers

Writers = Mapping[Value, Node]


def fuse_layer_norm(graph: Graph) -> int:
    """Number of quotients, products and sums that became a norm or joined one; what they no longer read stays."""
    writers = graph.producers()
    count = 0
    for node in graph.nodes:
        count += _becomes_norm(node, writers) or _from_moments(node, writers)
    mergeable = single_producers(graph)
    for node in graph.nodes:
        count += _joins(node, mergeable, writers)
    return count


def _becomes_norm(node: Node, writers: Writers) -> int:
    """1 if the node was x / sqrt(mean square + epsilon) or x * (1 / sqrt(...)) and is a norm now."""
    if node.op not in (ew.DIV, ew.MUL) or node.attrs.activation is not Activation.NONE:
        return 0
    pairs = [node.inputs] if node.op is ew.DIV else [node.inputs, node.inputs[::-1]]
    for x, divisor in pairs:
        root = _root(divisor, writers, inverse=node.op is ew.MUL)
        total = producer_of(root, writers, ew.ADD)
        if x is None or total is None or x.type != node.output.type or not x.type.dtype.is_float:
            continue
        for mean, epsilon in (total.inputs, total.inputs[::-1]):
            least = scalar_constant(epsilon)
            found = _squared(mean, writers) if least is not None and least >= 0 else None
            if found is None or found[0] is not x:
                continue
            axes = found[1]
            if not _are_last(axes, x):
                continue
            source = _centred(x, axes, writers)
            attrs = norm.LayerNormAttrs(len(axes), least or 0.0, source is not None)
            node.op, node.attrs, node.inputs = norm.LAYER_NORM, attrs, [source or x]
            return 1
    return 0


def _from_moments(node: Node, writers: Writers) -> int:
    """1 if the node was x * factor + (bias - mean * factor), where factor = scale / deviation, and is a norm now."""
    if node.op is not ew.ADD or node.attrs.activation is not Activation.NONE or not node.output.type.dtype.is_float:
        return 0
    for first, second in (node.inputs, node.inputs[::-1]):
        product, rest = producer_of(first, writers, ew.MUL), producer_of(second, writers, ew.SUB)
        shift = producer_of(rest.inputs[1], writers, ew.MUL) if rest is not None else None
        if product is None or rest is None or shift is None or product.output.type != node.output.type:
            continue
        shared = [v for v in product.inputs if any(v is other for other in shift.inputs)]
        if len(shared) != 1:
            continue
        (x,) = (v for v in product.inputs if v is not shared[0])
        (mean,) = (v for v in shift.inputs if v is not shared[0])
        found = _factor(shared[0], x, mean, writers)
        if found is None or x is None:
            continue
        axes, epsilon, scale = found
        shape = x.type.shape[x.type.rank - axes :]
        rows = [None if v is None else reshaped(v, shape, writers) for v in (scale, rest.inputs[0])]
        if rows[1] is None or (scale is not None and rows[0] is None):
            continue
        node.op, node.attrs, node.inputs = norm.LAYER_NORM, norm.LayerNormAttrs(axes, epsilon), [x, *rows]
        return 1
    return 0


def _factor(
    factor: Value | None, x: Value | None, mean: Value | None, writers: Writers
) -> tuple[int, float, Value | None] | None:
    """(axes, epsilon, scale) of scale / sqrt(variance of x + epsilon), if `mean` is the mean of x along these axes."""
    average = producer_of(mean, writers, red.REDUCE_MEAN)
    if average is None or x is None or average.inputs[0] is not x or not average.attrs.keep_dims:
        return None
    axes = average.attrs.axes
    if not _are_last(axes, x):
        return None
    scaled = producer_of(factor, writers, ew.MUL)
    options = [(factor, None)] if scaled is None else [(scaled.inputs[0], scaled.inputs[1]), tuple(scaled.inputs[::-1])]
    for root, scale in options:
        total = producer_of(_root(root, writers, inverse=True), writers, ew.ADD)
        for variance, epsilon in (total.inputs, total.inputs[::-1]) if total is not None else ():
            least, spread = scalar_constant(epsilon), producer_of(variance, writers, red.REDUCE_MEAN)
            if least is None or least < 0 or spread is None or spread.attrs != average.attrs:
                continue
            apart = producer_of(spread.inputs[0], writers, ew.SQUARED_DIFFERENCE)
            if apart is not None and {*apart.inputs} == {x, mean} and apart.attrs.activation is Activation.NONE:
                return len(axes), least, scale
    return None


def _are_last(axes: tuple[int, ...], x: Value) -> bool:
    """Whether these are the last axes of x, at least one."""
    rank = x.type.rank
    return bool(axes) and sorted(axes) == list(range(rank - len(axes), rank))


def _root(value: Value | None, writers: Writers, inverse: bool) -> Value | None:
    """What the value is the root of, or with `inverse` one over the root."""
    if not inverse:
        root = producer_of(value, writers, ew.SQRT)
        if root is None:
            power = producer_of(value, writers, ew.POW)
            return power.inputs[0] if power is not None and scalar_constant(power.inputs[1]) == 0.5 else None
        return root.inputs[0]
    direct = producer_of(value, writers, ew.RSQRT, ew.RECIPROCAL, ew.POW, ew.DIV)
    if direct is None:
        return None
    if direct.op is ew.POW:
        return direct.inputs[0] if scalar_constant(direct.inputs[1]) == -0.5 else None
    if direct.op is ew.DIV:
        return _root(direct.inputs[1], writers, inverse=False) if scalar_constant(direct.inputs[0]) == 1.0 else None
    return direct.inputs[0] if direct.op is ew.RSQRT else _root(direct.inputs[0], writers, inverse=False)


def _squared(mean: Value | None, writers: Writers) -> tuple[Value, tuple[int, ...]] | None:
    """Whose mean square this is, and along which axes."""
    reduction = producer_of(mean, writers, red.REDUCE_MEAN)
    if reduction is None or not reduction.attrs.keep_dims:
        return None
    square = producer_of(reduction.inputs[0], writers, ew.SQUARE, ew.MUL, ew.POW)
    if square is None:
        return None
    x = square.required_input(0)
    if square.op is ew.MUL and (square.inputs[1] is not x or square.attrs.activation is not Activation.NONE):
        return None
    if square.op is ew.POW and scalar_constant(square.inputs[1]) != 2.0:
        return None
    return x, reduction.attrs.axes


def _centred(x: Value, axes: tuple[int, ...], writers: Writers) -> Value | None:
    """What x is the difference from the mean of, along these axes."""
    difference = producer_of(x, writers, ew.SUB)
    mean = producer_of(difference.inputs[1], writers, red.REDUCE_MEAN) if difference is not None else None
    if difference is None or mean is None or mean.inputs[0] is not difference.inputs[0]:
        return None
    same = mean.attrs.keep_dims and sorted(mean.attrs.axes) == sorted(axes)
    plain = difference.attrs.activation is Activation.NONE
    return difference.inputs[0] if same and plain else None


def _joins(node: Node, mergeable: dict[Value, Node], writers: Writers) -> int:
    """1 if the node scaled or shifted the rows of a norm and is that norm now."""
    if node.op not in (ew.MUL, ew.ADD) or node.attrs.activation is not Activation.NONE:
        return 0
    for value, other in (node.inputs, node.inputs[::-1]):
        before = producer_of(value, mergeable, norm.LAYER_NORM)
        if before is None or other is None or before.output.type != node.output.type:
            continue
        x, scale, bias = (*before.inputs, None, None)[:3]
        row = reshaped(other, node.output.type.shape[node.output.type.rank - before.attrs.axes :], writers)
        if row is None or bias is not None or (node.op is ew.MUL and scale is not None):
            continue
        node.inputs = [x, row] if node.op is ew.MUL else [x, scale, row]
        node.op, node.attrs = norm.LAYER_NORM, before.attrs
        return 1
    return 0
