"""Which global means one dispatch computes with the one or two small products that read them: squeeze and excitation.
It also adds the two images of whose sum the means are.

Only the schedule knows: the graph stays as it is, and the inner values are never stored. The dispatch itself is in
lowerings.squeeze.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import dataclass

from webinfer.backends.webgpu.dispatch import Dispatch, Joined, Target
from webinfer.backends.webgpu.joining import is_float32, single_producers
from webinfer.backends.webgpu.lowerings.squeeze import GROUP, squeeze
from webinfer.backends.webgpu.lowerings.variants import MIN_LIMITS
from webinfer.graph.ir import Graph, Node, Value
from webinfer.ops.activation import Activation

MOST_WEIGHTS = 1 << 15  # of a product: beyond, more than one workgroup should share it


@dataclass(frozen=True, slots=True, eq=False)
class Squeeze:
    """A mean over the pixels of an image, or of the sum of two, and the products of what is left: one or two."""

    images: tuple[Value, ...]
    mean: Node
    products: tuple[Node, ...]


def find_squeezes(graph: Graph, folded: set[Value], target: Target, taken: Collection[Node]) -> dict[Node, Joined]:
    """The squeezes of a graph by their last product; none on software adapters, where a dispatch costs little."""
    least = MIN_LIMITS["maxComputeInvocationsPerWorkgroup"]
    if target.software or graph.parts or target.limits.get("maxComputeInvocationsPerWorkgroup", least) < GROUP:
        return {}
    readers, single = graph.consumers(), single_producers(graph)
    found = dict[Node, Joined]()
    for node in graph.nodes:
        if node in taken or not node.outputs or node.outputs[0] in folded or not _is_mean(node):
            continue
        products: list[Node] = []
        last = node
        while len(products) < 2:
            after = readers.get(last.output, [])
            if len(after) != 1 or last.output in graph.outputs or after[0] in taken or not _is_small(after[0], last):
                break
            if products and not _is_inner(products[-1]):
                break
            products.append(after[0])
            last = after[0]
        if products:
            x = node.required_input(0)
            made = single.get(x)
            summed = [] if made is None or made in taken or x in folded or not _is_sum(made) else [made]
            images = (summed[0].required_input(0), summed[0].required_input(1)) if summed else (x,)
            inner = (*summed, node, *products[:-1])
            more = [v for product in products[:-1] for v in product.inputs[1:] if v is not None]
            one = Squeeze(images, node, tuple(products))
            found[last] = Joined(inner, (*images, *more), functools.partial(_lower, one))
    return found


def _lower(one: Squeeze, target: Target) -> list[Dispatch]:
    return squeeze(one.images, one.mean, one.products, target)


def _is_sum(node: Node) -> bool:
    """Whether it adds two images of one size, and does nothing else."""
    if node.op.name != "add" or not is_float32(node) or node.attrs.activation is not Activation.NONE:
        return False
    return all(v is not None and v.type.shape == node.output.type.shape for v in node.inputs)


def _is_mean(node: Node) -> bool:
    if node.op.name not in ("average_pool2d", "reduce_mean") or not is_float32(node):
        return False
    shape = node.required_input(0).type.shape
    if len(shape) != 4 or shape[3] % 4 or shape[3] > 4 * GROUP or shape[0] * shape[1] * shape[2] == 0:
        return False
    if node.op.name == "reduce_mean":
        return sorted(node.attrs.axes) == [1, 2] and node.output.type.shape == (shape[0], 1, 1, shape[3])
    a = node.attrs
    whole = a.window == shape[1:3] and node.output.type.shape[1:3] == (1, 1) and not any(a.pads)
    return whole and a.dilation == (1, 1) and a.activation is Activation.NONE


def _is_small(node: Node, before: Node) -> bool:
    """Whether it is a product of one pixel an image, with constant weights, that a workgroup computes quickly."""
    if node.op.name != "conv2d" or not is_float32(node) or node.inputs[0] is not before.output:
        return False
    w, a = node.required_input(1), node.attrs
    plain = node.optional_input(3) is None and a.activation is not Activation.PRELU and a.groups == 1
    return plain and w.is_constant and w.type.shape[1:3] == (1, 1) and w.type.size <= MOST_WEIGHTS and (
        w.type.shape[3] % 4 == 0 and not any(a.pads) and node.output.type.shape[1:3] == (1, 1)
    )  # fmt: skip


def _is_inner(node: Node) -> bool:
    """Whether another product may follow it in one dispatch."""
    return node.attrs.activation.bounds is not None and node.output.type.shape[3] % 4 == 0
