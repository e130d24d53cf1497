"""Moves that change nothing disappear, and two reshapes or two transposes in a row become one."""

from __future__ import annotations

from webinfer.graph.ir import Graph, Node, Value
from webinfer.graph.queries import remove, resolve, substitute
from webinfer.ops import elementwise as ew
from webinfer.ops import movement as mv


def merge_moves(graph: Graph) -> int:
    """Number of nodes that were removed or shortened."""
    producers = graph.producers()
    inputs, outputs = set(graph.inputs), set(graph.outputs)
    replacements: dict[Value, Value] = {}
    removed: set[Node] = set()
    count = 0
    for node in graph.nodes:
        node.inputs = [None if v is None else resolve(v, replacements) for v in node.inputs]
        count += _simplify(node)
        if _shorten(node, producers):
            count += 1  # what it reads now may have been replaced since its predecessor was looked at
            node.inputs = [None if v is None else resolve(v, replacements) for v in node.inputs]
        source = node.inputs[0] if node.inputs else None
        if source is None or not _changes_nothing(node, source):
            continue
        if node.output not in outputs:
            replacements[node.output] = source
        elif source in producers and source not in outputs and source not in inputs:
            _take_over(producers[source], source, node.output)  # the output keeps its name
            replacements[source] = node.output
            producers[node.output] = producers[source]
        else:
            continue
        removed.add(node)
        count += 1
    remove(graph, removed)
    substitute(graph, replacements)
    return count


def _take_over(writer: Node, old: Value, new: Value) -> None:
    writer.outputs = [new if value is old else value for value in writer.outputs]


def _changes_nothing(node: Node, source: Value) -> bool:
    """Whether the result has the same type and the same elements in the same order."""
    if len(node.outputs) != 1 or not _keeps_order(node):
        return False
    return source.type == node.outputs[0].type  # asked last: an open size would be kept from the one that is equal


def _keeps_order(node: Node) -> bool:
    """Whether a result of the operand's type has the same elements in the same order."""
    op, a = node.op, node.attrs
    if op in (ew.IDENTITY, mv.RESHAPE, mv.EXPAND, mv.PAD, ew.CAST):
        return True
    if op is mv.CONCAT:
        return len(node.inputs) == 1
    if op is mv.TRANSPOSE:
        return bool(a.perm == tuple(range(len(a.perm))))
    if op is mv.SLICE:
        return all(step == 1 for step in a.steps)
    if op in (mv.DEPTH_TO_SPACE, mv.SPACE_TO_DEPTH):
        return bool(a.block == 1)
    return op is mv.TILE


def _simplify(node: Node) -> int:
    """1 if a transpose that only moves axes of size 1 became a reshape."""
    if node.op is not mv.TRANSPOSE:
        return 0
    shape = node.output.type.shape  # the axis of x behind each axis of y is perm
    moved = [axis for axis, size in zip(node.attrs.perm, shape, strict=True) if size != 1]
    if moved != sorted(moved) or node.attrs.perm == tuple(range(len(shape))):
        return 0
    node.op, node.attrs = mv.RESHAPE, mv.ReshapeAttrs(shape)
    return 1


def _shorten(node: Node, producers: dict[Value, Node]) -> bool:
    """Whether the node now reads past its predecessor."""
    source = node.inputs[0] if node.inputs else None
    before = producers.get(source) if source is not None else None
    if before is None or before.op is not node.op:
        return False
    if node.op is mv.TRANSPOSE:
        node.attrs = mv.TransposeAttrs(tuple(before.attrs.perm[i] for i in node.attrs.perm))
    elif node.op is not mv.RESHAPE:
        return False
    node.inputs = list(before.inputs)
    return True
