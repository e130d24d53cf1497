"""Moves that hide from other rules what stands around them: one element of an axis, reshapes behind products; and
conversions to 32 bits behind integers of 64.
"""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.graph.ir import Graph, Node, Value, apply
from webinfer.ops import conv
from webinfer.ops import elementwise as ew
from webinfer.ops import gather as ga
from webinfer.ops import matmul as mm
from webinfer.ops import movement as mv
from webinfer.ops import reduce as red
from webinfer.rewrite.matcher import rewrite, rule
from webinfer.rewrite.patterns import Match, Variable, add, kind

X, OTHER = Variable("x"), Variable("other")
gather, reshape, product, cast = kind(ga.GATHER), kind(mv.RESHAPE), kind(conv.CONV2D, mm.MATMUL), kind(ew.CAST)
# The low 32 bits of their results are those of the same on the low 32 bits of their operands.
MODULAR = (ew.ADD, ew.SUB, ew.MUL, red.REDUCE_SUM, mv.RESHAPE, mv.SLICE)


def _as_slice(match: Match) -> list[Node] | None:
    """The slice that holds the element at a known position, without its axis where the position had none."""
    node, x = match.root, match.value("x")
    positions, axis = node.required_input(1), node.attrs.axis
    if not positions.is_constant or positions.type.size != 1 or node.attrs.batch_dims or positions.type.rank > 1:
        return None
    at, size = positions.numbers()[0], x.type.shape[axis]
    if not isinstance(at, int) or not isinstance(size, int) or not -size <= at < size:
        return None
    starts = tuple(at % size if i == axis else 0 for i in range(x.type.rank))
    sizes = tuple(1 if i == axis else n for i, n in enumerate(x.type.shape))
    cut = apply(mv.SLICE, [x], mv.SliceAttrs(starts, sizes, (1,) * x.type.rank), node.label)
    if cut.output.type == node.output.type:
        cut.outputs = node.outputs
        return [cut]
    return [cut, Node(mv.RESHAPE, [cut.output], node.outputs, mv.ReshapeAttrs(node.output.type.shape), node.label)]


def _summed_first(match: Match) -> list[Node] | None:
    """The sum in the product's own shape, and the reshape behind it."""
    root, made, other = match.root, match.node("product").output, match.value("other")
    if not root.output.type == match.node("reshape").output.type == other.type:
        return None
    label, shape = root.label, made.type.shape
    turned = apply(mv.RESHAPE, [other], mv.ReshapeAttrs(shape), label)
    total = apply(ew.ADD, [made, turned.output], root.attrs, label)
    return [
        turned,
        total,
        Node(mv.RESHAPE, [total.output], root.outputs, mv.ReshapeAttrs(root.output.type.shape), label),
    ]


def _converted_first(match: Match) -> list[Node] | None:
    """The sums in 32 bits: GPUs have no others, and ONNX Runtime's attention gets its counts of tokens in this way."""
    root, total = match.root, match.node("total")
    if root.output.type.dtype is not DType.INT32 or total.output.type.dtype is not DType.INT64:
        return None
    made = list[Node]()

    def narrow(value: Value) -> Value:
        node = match.facts.writers.get(value)
        if node is not None and node.op in MODULAR and match.facts.is_inner(value):
            made.append(apply(node.op, [narrow(one) for one in node.inputs if one is not None], node.attrs, node.label))
        else:
            made.append(apply(ew.CAST, [value], root.attrs, root.label))
        return made[-1].output

    narrow(total.output)
    made[-1].outputs = root.outputs
    return made


BEHIND = reshape(product(..., name="product", once=True, curved=True), name="reshape", once=True)
RULES = (
    rule("one element of an axis", gather(X, ...), _as_slice),
    rule("sum behind a reshaped product", add(BEHIND, OTHER), _summed_first),
    rule("sums of 64 bits of which 32 count", cast(kind(*MODULAR)(..., name="total", once=True)), _converted_first),
)


def open_moves(graph: Graph) -> int:
    """Number of gathers that became slices, of sums that went before a reshape, and of conversions that did."""
    return rewrite(graph, RULES)
