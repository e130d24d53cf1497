"""Products of data and weights, and nodes that prepare weights."""

from __future__ import annotations

from webinfer.graph.ir import Node, Op, TensorType, Value, apply
from webinfer.ops import conv, matmul
from webinfer.ops import elementwise as ew
from webinfer.ops import movement as mv
from webinfer.rewrite.facts import Facts

# The axis of the weights along which outputs lie, if it is not turned.
AXES: dict[Op, int] = {conv.CONV2D: 0, conv.DEPTHWISE_CONV2D: -1, conv.CONV_TRANSPOSE2D: 0, matmul.MATMUL: -1}


def output_axis(product: Node, weights: TensorType) -> int:
    """The axis of the weights along which the product's channels or columns lie."""
    if product.op is matmul.MATMUL and product.attrs.transpose_b:
        return weights.rank - 2
    return AXES[product.op] % weights.rank


def is_row(other: Value, total: Value) -> bool:
    """Whether an operand has one number a channel, or one for all."""
    channels = total.type.shape[-1:]
    return other.type.size == 1 or (other.type.shape[-1:] == channels and other.type.size == channels[0])


def is_scalable(producer: Node, facts: Facts) -> bool:
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
    return known and facts.is_known(w)


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

    def add(self, op: Op, inputs: list[Value], attrs: object = ew.BinaryAttrs()) -> Value:
        """The result of one more node."""
        self.made.append(apply(op, inputs, attrs, f"{self.label}/{op.name}"))
        return self.made[-1].output
