"""Who reads what, and replacing values in one walk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping

from webinfer.graph.ir import Graph, Node, Op, TensorType, Value
from webinfer.ops import conv, matmul
from webinfer.ops import movement as mv

# Products, and the axis of their weights along which outputs lie, if it is not turned.
AXES: dict[Op, int] = {conv.CONV2D: 0, conv.DEPTHWISE_CONV2D: -1, conv.CONV_TRANSPOSE2D: 0, matmul.MATMUL: -1}
MAX_WALK = 16  # values that are looked at behind one, so that long chains take no time by their square


def use_counts(graph: Graph) -> Counter[Value]:
    """How often each value is read; being an output of the graph counts as one more."""
    counts = Counter(value for node in graph.nodes for value in node.inputs if value is not None)
    counts.update(graph.outputs)
    return counts


def single_producers(graph: Graph) -> dict[Value, Node]:
    """The writer of each value that exactly one reader wants and that is no output of the graph.

    Such a node may be merged into its reader.
    """
    counts, outputs = use_counts(graph), set(graph.outputs)
    return {
        node.outputs[0]: node
        for node in graph.nodes
        if len(node.outputs) == 1 and counts[node.outputs[0]] == 1 and node.outputs[0] not in outputs
    }


def resolve(value: Value, replacements: dict[Value, Value]) -> Value:
    """What the value is replaced by in the end; the chain is shortened for the next call."""
    path = []
    while value in replacements:
        path.append(value)
        value = replacements[value]
    for passed in path:
        replacements[passed] = value
    return value


def substitute(graph: Graph, replacements: dict[Value, Value]) -> None:
    """Makes every reader of a key read its value instead; chains of replacements are followed."""
    if not replacements:
        return

    for node in graph.nodes:
        node.inputs = [None if value is None else resolve(value, replacements) for value in node.inputs]
    graph.outputs = [resolve(value, replacements) for value in graph.outputs]


def remove(graph: Graph, nodes: Container[Node]) -> None:
    """Takes nodes out of the graph; their results must have no reader left."""
    graph.nodes = [node for node in graph.nodes if node not in nodes]


def output_axis(product: Node, weights: TensorType) -> int:
    """The axis of the weights along which the product's channels or columns lie."""
    if product.op is matmul.MATMUL and product.attrs.transpose_b:
        return weights.rank - 2
    return AXES[product.op] % weights.rank


def scalar_constant(value: Value | None) -> float | None:
    """The element of a float constant that has one."""
    if value is None or value.constant is None or value.type.size != 1 or not value.type.dtype.is_float:
        return None
    return float(value.numbers()[0]) if value.constant.sparsity is None else None


def producer_of(value: Value | None, writers: Mapping[Value, Node], *ops: Op) -> Node | None:
    """The node that writes the value, if it is of one of these operators."""
    node = writers.get(value) if value is not None else None
    return node if node is not None and node.op in ops else None


def reshaped(value: Value, shape: tuple[int, ...], writers: Mapping[Value, Node]) -> Value | None:
    """The value in another shape where that takes no step, and the shapes differ by leading axes of size 1 alone."""
    own = value.type.shape
    if own == shape:
        return value
    shorter, longer = sorted((own, shape), key=len)
    if longer != (1,) * (len(longer) - len(shorter)) + shorter:
        return None
    if value.is_constant:
        return Value(value.name, TensorType(shape, value.type.dtype, value.type.quant), value.constant)
    before = producer_of(value, writers, mv.RESHAPE)
    return reshaped(before.required_input(0), shape, writers) if before is not None else None
