"""Which means and variances one pass computes: a mean, what lies between x and it, and the mean of the squares.

Only the schedule knows: the graph stays as it is, and the differences are never stored. The dispatches themselves are
in lowerings.moments.
"""

from __future__ import annotations

import functools
from collections.abc import Collection

from webinfer.backends.webgpu.dispatch import Dispatch, Joined, Target
from webinfer.backends.webgpu.joining import is_float32
from webinfer.backends.webgpu.lowerings.moments import columns_of, moments
from webinfer.graph.ir import Graph, Node, Value
from webinfer.ops.activation import Activation


def find_moments(graph: Graph, folded: set[Value], taken: Collection[Node]) -> dict[Node, Joined]:
    """The variances of a graph whose means are computed with them, by the node of the variance.

    None in graphs of parts or with values that nodes change in place: the mean is written later than its node stands.
    """
    if graph.parts or graph.resident:
        return {}
    found = dict[Node, Joined]()
    makers, readers = graph.producers(), graph.consumers()
    at = {node: i for i, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        if node.op.name != "reduce_mean" or node.outputs[0] in folded or not is_float32(node):
            continue
        inner = _between(node, makers)
        if not inner or {*inner, node} & {*taken}:
            continue
        mean, *differences = inner
        private = all(
            reader in inner or reader is node for n in differences for reader in readers.get(n.output, ())
        ) and not any(n.output in graph.outputs for n in differences)
        late = all(reader in differences or at[reader] > at[node] for reader in readers[mean.output])
        if private and late:
            x = mean.required_input(0)
            found[node] = Joined(tuple(inner), (x,), functools.partial(_lower, x, mean.output, node))
    return found


def _lower(x: Value, mean: Value, node: Node, target: Target) -> list[Dispatch]:
    return moments(x, mean, node, target)


def _between(node: Node, makers: dict[Value, Node]) -> list[Node]:
    """The node of the mean and those of the squared differences from it, where this is the mean of these."""
    last = makers.get(node.required_input(0))
    if last is None:
        return []
    if last.op.name == "squared_difference":
        inner, pair = [last], last
    else:
        squared = last.op.name == "square" or (last.op.name == "mul" and last.inputs[0] is last.inputs[1])
        before = makers.get(last.required_input(0)) if squared else None
        if before is None or before.op.name != "sub":
            return []
        inner, pair = [before, last], before
    if any(getattr(n.attrs, "activation", Activation.NONE) is not Activation.NONE for n in inner):
        return []
    for x, centre in (pair.inputs, pair.inputs[::-1]):
        mean = makers.get(centre) if centre is not None else None
        if x is None or mean is None or mean.op.name != "reduce_mean" or mean.inputs[0] is not x:
            continue
        # Where axes are not kept, a mean that fits x again is not that of the same elements.
        alike = mean.attrs.axes == node.attrs.axes and mean.attrs.keep_dims
        if alike and is_float32(mean) and columns_of(x, node.attrs.axes) is not None:
            return [mean, *inner]
    return []
