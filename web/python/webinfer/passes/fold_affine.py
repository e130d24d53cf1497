"""One factor or summand a channel, known at load, moves from behind a product into its weights and bias."""

from __future__ import annotations

import dataclasses

from webinfer.graph.ir import Graph, Node, Op, TensorType, Value, apply
from webinfer.graph.queries import remove, single_producers
from webinfer.ops import conv, matmul
from webinfer.ops import elementwise as ew
from webinfer.ops import movement as mv
from webinfer.ops.activation import Activation
from webinfer.rewrite.products import AXES, output_axis

_PLAIN = ew.BinaryAttrs()
LEAST = 24  # elements of a result whose summand is folded: adding it to fewer costs nothing, and later rounds less


def fold_affine(graph: Graph) -> int:
    """Number of MUL, DIV, ADD and SUB nodes that were folded: batch normalisations, and biases that stand alone.

    The weights are scaled by nodes of their own, which backends compute when they load the graph.
    """
    mergeable, fixed = single_producers(graph), graph.fixed_values()
    merged: set[Node] = set()
    nodes: list[Node] = []
    for node in graph.nodes:
        found = _operands(node, mergeable, fixed)
        if found is not None:
            producer, other = found
            made = _Folding(node, producer, other).nodes()
            fixed.update(value for extra in made[:-1] for value in extra.outputs)
            if node.output in mergeable:
                mergeable[node.output] = made[-1]
            merged.add(producer)
            nodes += made
        else:
            nodes.append(node)
    graph.nodes = nodes
    remove(graph, merged)
    return len(merged)


def _operands(node: Node, mergeable: dict[Value, Node], fixed: set[Value]) -> tuple[Node, Value] | None:
    """The product that the node may be folded into, and the other operand."""
    if node.op not in (ew.MUL, ew.DIV, ew.ADD, ew.SUB) or not node.output.type.dtype.is_float:
        return None
    orders = [node.inputs] if node.op in (ew.DIV, ew.SUB) else [node.inputs, node.inputs[::-1]]
    for value, other in orders:
        producer = mergeable.get(value) if value is not None else None
        if producer is None or other is None or producer.op not in AXES or producer.output.type != node.output.type:
            continue
        if node.attrs.activation is Activation.PRELU or producer.attrs.activation is not Activation.NONE:
            continue
        if len(producer.inputs) > 3 or not (other.is_constant or other in fixed) or not is_row(other, node.output):
            continue
        if node.output.type.size >= LEAST if node.op in (ew.ADD, ew.SUB) else is_scalable(producer, fixed):
            return producer, other
    return None


def is_row(other: Value, total: Value) -> bool:
    """Whether an operand has one number a channel, or one for all."""
    channels = total.type.shape[-1:]
    return other.type.size == 1 or (other.type.shape[-1:] == channels and other.type.size == channels[0])


def is_scalable(producer: Node, fixed: set[Value]) -> bool:
    """Whether the weights are floats that are known at load, with one axis for the channels of the result.

    Not those of an exact product: what was folded into them would count among its sums.
    """
    w = producer.required_input(1)
    if getattr(producer.attrs, "exact", False):
        return False
    if not w.type.dtype.is_float or (w.constant is not None and w.constant.sparsity is not None):
        return False
    if producer.op is matmul.MATMUL:
        known = w.type.rank == 2
    else:
        known = producer.op is not conv.CONV_TRANSPOSE2D or producer.attrs.groups == 1
    return known and (w.is_constant or w in fixed)


class Preparing:
    """Makes nodes of weights, which backends compute when they load the graph; `made` has them."""

    def __init__(self, label: str) -> None:
        self.label, self.made = label, list[Node]()

    def shaped(self, value: Value, shape: tuple[int, ...]) -> Value:
        """The value in a shape of as many elements; one element is repeated."""
        if value.type.size == 1 and shape != (1,) * len(shape):
            flat = self.shaped(value, (1,) * len(shape))
            return self.add(mv.EXPAND, [flat], mv.ExpandAttrs(shape))
        return value if value.type.shape == shape else self.add(mv.RESHAPE, [value], mv.ReshapeAttrs(shape))

    def add(self, op: Op, inputs: list[Value], attrs: object = _PLAIN) -> Value:
        """The result of one more node."""
        self.made.append(apply(op, inputs, attrs, f"{self.label}/{op.name}"))
        return self.made[-1].output


class _Folding(Preparing):
    """Makes the nodes that take the place of a folded one."""

    def __init__(self, node: Node, producer: Node, other: Value) -> None:
        super().__init__(producer.label)
        self.node, self.producer = node, producer
        self.row = self.shaped(other, (node.output.type.shape[-1],))

    def nodes(self) -> list[Node]:
        """Those that prepare weights and bias, then the product."""
        node, producer = self.node, self.producer
        x, w, bias = (*producer.inputs, None)[:3]
        if node.op in (ew.MUL, ew.DIV):
            assert w is not None
            w = self.add(node.op, [w, self.shaped(self.row, self._along(w.type))])
            bias = bias and self.add(node.op, [bias, self.row])
        elif bias is not None:
            bias = self.add(node.op, [bias, self.row])
        else:
            bias = self.row if node.op is ew.ADD else self.add(ew.NEG, [self.row], ew.UnaryAttrs())
        attrs = dataclasses.replace(producer.attrs, activation=node.attrs.activation)
        inputs = [x, w] if bias is None else [x, w, bias]
        return [*self.made, Node(producer.op, inputs, node.outputs, attrs, producer.label)]

    def _along(self, w: TensorType) -> tuple[int, ...]:
        """The shape in which the row lies along the weights' axis of channels."""
        axis = output_axis(self.producer, w)
        return tuple(size if i == axis else 1 for i, size in enumerate(w.shape))
