"""The caches of ONNX decoders: what `Concat` appends to an input, in a branch too, and what attention appends."""

from __future__ import annotations

from collections.abc import Mapping

from webinfer.importers.core.caches import CacheRow, Caches, Declared, by_name
from webinfer.importers.onnx.model import GraphInfo, NodeInfo, read_file

# Attention that appends by itself: for each such result the input that it follows, and the axis of both.
ATTENTION = {
    "Attention": {1: (4, 2), 2: (5, 2)},
    "com.microsoft.GroupQueryAttention": {1: (3, 2), 2: (4, 2)},
    "com.microsoft.MultiHeadAttention": {1: (6, 2), 2: (7, 2)},
    "com.microsoft.Attention": {1: (4, 3)},
}


def caches(data: memoryview, name: str) -> Caches:
    """The inputs that the model appends to, or gives a next value for by its name.

    Raises:  ModelFormatError if the bytes break a rule; LimitError
    """
    graph = read_file(data, name).graph
    shapes: dict[str, Declared] = {
        info.name: tuple(info.shape or ()) for info in graph.inputs if info.name not in graph.tensors
    }
    found, made = dict[str, tuple[str, int]](), _makers(graph)
    for info in graph.outputs:
        grown = _grown(info.name, made, shapes)
        if grown is not None and grown[0] not in found:
            found[grown[0]] = info.name, grown[1]
    rows = [CacheRow(past, output, axis) for past, (output, axis) in found.items()]
    taken = {row.output for row in rows}
    for past, output in by_name(shapes, [info.name for info in graph.outputs]).items():
        if past not in found and output not in taken:
            open_axes = [i for i, size in enumerate(shapes[past]) if not isinstance(size, int)]
            rows.append(CacheRow(past, output, open_axes[-1] if open_axes else None))
    return Caches(tuple(sorted(rows, key=lambda row: list(shapes).index(row.input))), shapes)


Makers = Mapping[str, tuple[NodeInfo, int]]


def _makers(graph: GraphInfo) -> Makers:
    return {name: (node, i) for node in graph.nodes for i, name in enumerate(node.outputs) if name}


def _grown(name: str, made: Makers, shapes: Mapping[str, Declared]) -> tuple[str, int] | None:
    """The input of the model that a value is with something appended, and the axis; None if it is no such value."""
    if name not in made:
        return None
    node, place = made[name]
    if node.full_name == "Identity":
        return _grown(node.inputs[0], made, shapes)
    if node.full_name == "Concat" and node.inputs and "axis" in node.attributes:
        past, axis = _origin(node.inputs[0], made), int(node.attributes["axis"].value)
        return None if past not in shapes or not shapes[past] else (past, axis % len(shapes[past]))
    if node.full_name == "If":
        for attribute in node.attributes.values():
            branch = attribute.value
            if isinstance(branch, GraphInfo) and place < len(branch.outputs):
                grown = _grown(branch.outputs[place].name, {**made, **_makers(branch)}, shapes)
                if grown is not None:
                    return grown
    past_place, axis = ATTENTION.get(node.full_name, {}).get(place, (-1, 0))
    past = _origin(node.inputs[past_place], made) if 0 <= past_place < len(node.inputs) else ""
    return (past, axis) if past in shapes else None


def _origin(name: str, made: Makers) -> str:
    """The value that this one is, behind nodes that change nothing; PyTorch joins the first layer's past to nothing."""
    while name in made and made[name][0].full_name in ("Identity", "Concat") and len(made[name][0].inputs) == 1:
        name = made[name][0].inputs[0]
    return name
