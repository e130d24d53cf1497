"""What is done with each row of a tensor by itself, and put together again, is done with all rows at once.

Detectors do so with their classes: a suppression for each, and the class's number written beside what it found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from webinfer.graph.ir import Graph, Node, Op, TensorType, Value, apply
from webinfer.graph.queries import producer_of, single_producers, use_counts
from webinfer.ops import elementwise as ew
from webinfer.ops import movement as mv
from webinfer.ops import suppression
from webinfer.passes.integers import constant_of
from webinfer.rewrite.patterns import MAX_WALK

Writers = Mapping[Value, Node]
# Elements that paddings of different values may become: half and double changed none of 146 graphs.
MAX_CONSTANT = 65536


def join_suppressions(graph: Graph) -> int:
    """Number of suppressions of the same boxes, by rows of the same scores, that joined others."""
    writers, groups = graph.producers(), dict[tuple[Value, Value, object], dict[int, Node]]()
    for node in graph.nodes:
        if node.op is suppression.NON_MAX_SUPPRESSION and node.required_input(1).type.rank == 1:
            source, offset = _span(node.required_input(1), writers)
            groups.setdefault((node.required_input(0), source, node.attrs), {}).setdefault(offset, node)
    used, replaced = use_counts(graph), dict[Node, list[Node]]()
    for (boxes, source, attrs), rows in groups.items():
        offsets, count = sorted(rows), boxes.type.shape[0]
        if len(rows) < 2 or offsets != [offsets[0] + i * count for i in range(len(rows))]:
            continue
        lists = _cut(source, offsets[0], (len(rows), count))
        joined = apply(suppression.NON_MAX_SUPPRESSION, [boxes, lists[-1].output], attrs, "suppressions")
        new = [*lists, joined]
        for i, offset in enumerate(offsets):
            for whole, value in zip(joined.outputs, rows[offset].outputs, strict=True):
                if used[value]:
                    new += _cut(whole, i * value.type.size, value.type.shape, value)
        replaced |= {node: [] if i else new for i, node in enumerate(rows.values())}  # in the graph's order
    graph.nodes = [new for node in graph.nodes for new in replaced.get(node, [node])]
    return len(replaced)


def batch_rows(graph: Graph) -> int:
    """Number of concatenations of rows of a tensor, each cast, shaped or padded alike, that became one walk of all."""
    mergeable, writers = single_producers(graph), graph.producers()
    replaced, seen = dict[Node, list[Node]](), set[Node]()
    for node in reversed(graph.nodes):
        if node.op is mv.CONCAT and node not in seen:
            found = _walk(_leaves(node, mergeable, seen), node, mergeable, writers)
            if found is not None:
                replaced[node] = found
    graph.nodes = [new for node in graph.nodes for new in replaced.get(node, [node])]
    return len(replaced)


def _span(value: Value, writers: Writers) -> tuple[Value, int]:
    """The tensor in which the value's elements lie one behind the other, and how many lie before them."""
    offset = 0
    for _ in range(MAX_WALK):
        node = producer_of(value, writers, mv.RESHAPE, mv.SLICE)
        if node is None:
            break
        source = node.required_input(0)
        if source.type.quant != value.type.quant:
            break
        if node.op is mv.SLICE:
            before = _before(source.type.shape, node.attrs)
            if before is None:
                break
            offset += before
        value = source
    return value, offset


def _before(shape: tuple[int, ...], a: mv.SliceAttrs) -> int | None:
    """How many elements lie before a slice; None if it is not in one piece."""
    first = next((i for i, size in enumerate(a.sizes) if size != 1), len(shape))
    if any(step != 1 for step in a.steps) or a.sizes[first + 1 :] != shape[first + 1 :]:
        return None
    return sum(start * math.prod(shape[i + 1 :]) for i, start in enumerate(a.starts))


def _cut(source: Value, offset: int, shape: tuple[int, ...], result: Value | None = None) -> list[Node]:
    """Nodes that take elements which lie one behind the other; the last one writes `result`, if it is given."""
    size = math.prod(shape)
    nodes = [apply(mv.RESHAPE, [source], mv.ReshapeAttrs((source.type.size,)), f"{source.name}:flat")]
    if size != source.type.size:
        part = mv.SliceAttrs((offset,), (size,), (1,))
        nodes.append(apply(mv.SLICE, [nodes[-1].output], part, f"{source.name}:{offset}"))
    nodes.append(apply(mv.RESHAPE, [nodes[-1].output], mv.ReshapeAttrs(shape), f"{source.name}:rows"))
    if result is not None:
        nodes[-1].outputs = [result]
    return nodes


def _leaves(node: Node, mergeable: Writers, seen: set[Node]) -> list[Value]:
    """What a concatenation, and those that only it reads, put one behind the other; `seen` learns of these."""
    leaves, waiting = list[Value](), [v for v in reversed(node.inputs) if v is not None]
    while waiting:
        value = waiting.pop()
        inner = producer_of(value, mergeable, mv.CONCAT)
        if inner is None or inner.attrs != node.attrs:
            leaves.append(value)
            continue
        seen.add(inner)
        waiting += [v for v in reversed(inner.inputs) if v is not None]
    return leaves


def _walk(leaves: list[Value], concat: Node, mergeable: Writers, writers: Writers) -> list[Node] | None:
    """Nodes that make the concatenation of all rows at once; None if the leaves are not rows of one tensor."""
    if len(leaves) < 2 or math.prod(leaves[0].type.shape[: concat.attrs.axis]) != 1:
        return None
    steps = list[list[Node]]()
    for _ in range(MAX_WALK):
        if any(leaf.type != leaves[0].type for leaf in leaves) or not leaves[0].type.size:
            return None
        spans = [_span(leaf, writers) for leaf in leaves]
        (source, first), size = spans[0], leaves[0].type.size
        if spans == [(source, first + i * size) for i in range(len(leaves))]:
            return _rebuilt(source, first, leaves, steps, concat) if steps else None
        step = [n for leaf in leaves if (n := producer_of(leaf, mergeable, ew.CAST, mv.RESHAPE, mv.PAD)) is not None]
        if len(step) < len(leaves) or not all(_alike(node, step[0]) for node in step):
            return None
        steps.append(step)
        leaves = [node.required_input(0) for node in step]
    return None


def _alike(node: Node, other: Node) -> bool:
    """Whether two nodes do the same to their rows, but for the value that they pad with."""
    if node.op is not other.op or node.attrs == other.attrs:
        return node.op is other.op
    if node.op is not mv.PAD:
        return False
    a, b = node.attrs, other.attrs
    sides = [*a.before, *a.after]
    one_side = sum(side > 0 for side in sides) == 1 and min(sides) == 0
    return bool(one_side and a.mode == b.mode == "constant" and (a.before, a.after) == (b.before, b.after))


def _rebuilt(source: Value, first: int, rows: list[Value], steps: list[list[Node]], concat: Node) -> list[Node] | None:
    nodes = _cut(source, first, (len(rows), *rows[0].type.shape))
    for step in reversed(steps):
        new = _together(step, nodes[-1].output)
        if new is None:
            return None
        nodes.append(new)
    shape = concat.output.type.shape
    nodes.append(apply(mv.RESHAPE, [nodes[-1].output], mv.ReshapeAttrs(shape), concat.label))
    if nodes[-1].output.type != concat.output.type:
        return None
    nodes[-1].outputs = concat.outputs
    return nodes


def _together(step: Sequence[Node], rows: Value) -> Node | None:
    """What each node does to its row, done to all of them."""
    node, count = step[0], len(step)
    op: Op = node.op
    if op is mv.RESHAPE:
        return apply(op, [rows], mv.ReshapeAttrs((count, *node.output.type.shape)), node.label)
    if op is ew.CAST:
        return apply(op, [rows], node.attrs, node.label)
    a = node.attrs
    if all(other.attrs == a for other in step):
        return apply(op, [rows], mv.PadAttrs((0, *a.before), (0, *a.after), a.value, a.mode), node.label)
    axis, sides = next((i, side) for i, side in enumerate(zip(a.before, a.after, strict=True)) if any(side))
    shape = (*rows.type.shape[: axis + 1], sum(sides), *rows.type.shape[axis + 2 :])
    block = _constant([other.attrs.value for other in step], TensorType(shape, rows.type.dtype, rows.type.quant))
    if block is None:
        return None
    return apply(mv.CONCAT, [block, rows] if sides[0] else [rows, block], mv.ConcatAttrs(axis + 1), node.label)


def _constant(values: Sequence[float], type: TensorType) -> Value | None:
    """A row of each value; None if it would be large."""
    if type.size > MAX_CONSTANT:
        return None
    each = type.size // len(values)
    numbers = [v if type.dtype.is_float else int(v) for v in values for _ in range(each)]
    return constant_of("values", type.shape, numbers, type.dtype, type.quant)
