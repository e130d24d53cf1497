"""The caches of ONNX decoders: what `Concat` appends to an input, in a branch too, and what attention appends.

Of layers with a window, caches may be cut to its last rows before, behind, or both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from webinfer.errors import ModelFormatError
from webinfer.importers.core.caches import CacheRow, Caches, Declared, by_name
from webinfer.importers.core.problems import Refusal
from webinfer.importers.onnx.model import GraphInfo, NodeInfo, Tensor, read_file
from webinfer.importers.onnx.tensors import constant_of
from webinfer.lazy_dataclass import dataclass

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
    found, known = dict[str, tuple[str, int]](), _Known(_makers(graph), graph.tensors, shapes)
    for info in graph.outputs:
        grown = _grown(info.name, known)
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
TO_THE_END = 2**31 - 1  # of a slice's end: no axis is longer


@dataclass(frozen=True, slots=True)
class _Known:
    """Which node makes each value of a graph, the graph's constants, and the shapes of the model's inputs."""

    made: Makers
    tensors: Mapping[str, Tensor]
    shapes: Mapping[str, Declared]

    def inside(self, branch: GraphInfo) -> _Known:
        """The same in a branch."""
        return _Known({**self.made, **_makers(branch)}, {**self.tensors, **branch.tensors}, self.shapes)

    def number(self, name: str) -> float | None:
        """The only element of a constant; None of what is none."""
        tensor = self.tensors.get(name)
        if tensor is None and name in self.made and self.made[name][0].full_name == "Constant":
            attribute = self.made[name][0].attributes.get("value")
            tensor = None if attribute is None else attribute.value
        if not isinstance(tensor, Tensor) or tensor.is_external or math.prod(tensor.dims) != 1:
            return None
        try:
            return float(constant_of(tensor, name, {}).numbers()[0])
        except (Refusal, ModelFormatError):  # the importer says it, with its place
            return None

    def uncut(self, name: str) -> tuple[str, int | None]:
        """The value whose last rows a value is, and their axis; the value itself, and None, if it is no such part."""
        node = self.made[name][0] if name in self.made else None
        if node is None or node.full_name != "Slice" or len(node.inputs) < 4:
            return name, None
        start, end, along, step = (self.number(key) if key else 1.0 for key in [*node.inputs[1:], ""][:4])
        if start is None or end is None or along is None or step != 1.0 or start >= 0 or end < TO_THE_END:
            return name, None
        return node.inputs[0], int(along)


def _makers(graph: GraphInfo) -> Makers:
    return {name: (node, i) for node in graph.nodes for i, name in enumerate(node.outputs) if name}


def _grown(name: str, known: _Known) -> tuple[str, int] | None:
    """The input of the model that a value is with something appended, and the axis; None if it is no such value."""
    name, cut = known.uncut(name)
    if name not in known.made:
        return None
    node, place = known.made[name]
    if cut is not None and node.full_name != "Concat":
        return None
    if node.full_name == "Identity":
        return _grown(node.inputs[0], known)
    if node.full_name == "Concat" and node.inputs and "axis" in node.attributes:
        axis = int(node.attributes["axis"].value)
        past = _origin(node.inputs[0], known)
        rank = len(known.shapes.get(past, ()))
        return None if not rank or (cut is not None and (cut - axis) % rank) else (past, axis % rank)
    if node.full_name == "If":
        for attribute in node.attributes.values():
            branch = attribute.value
            if isinstance(branch, GraphInfo) and place < len(branch.outputs):
                grown = _grown(branch.outputs[place].name, known.inside(branch))
                if grown is not None:
                    return grown
    past_place, axis = ATTENTION.get(node.full_name, {}).get(place, (-1, 0))
    past = _origin(node.inputs[past_place], known) if 0 <= past_place < len(node.inputs) else ""
    return (past, axis) if past in known.shapes else None


def _origin(name: str, known: _Known) -> str:
    """The value that this one is, or has the last rows of, behind nodes that change nothing.

    PyTorch joins the first layer's past to nothing.
    """
    while True:
        before, _ = known.uncut(name)
        if before in known.made and _passes(known.made[before][0]):
            before = known.made[before][0].inputs[0]
        if before == name:
            return name
        name = before


def _passes(node: NodeInfo) -> bool:
    return node.full_name in ("Identity", "Concat") and len(node.inputs) == 1
