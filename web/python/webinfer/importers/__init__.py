"""Model files → graph. One folder or file a format, each a table of converters.

Reads bytes that nobody vouches for: every index, size and offset is checked before use. Never imports
passes or backends, never opens files, never touches weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from webinfer.graph.ir import Graph
from webinfer.graph.verify import verify
from webinfer.importers.formats import refuse
from webinfer.importers.tflite.convert import read_tflite
from webinfer.importers.tflite.schema import IDENTIFIER


def read_model(
    data: memoryview | bytes, name: str = "model", shapes: Mapping[str, Sequence[int]] | None = None
) -> Graph:
    """The model as a graph. Constants are views of `data`, which must stay alive and unchanged.

    `shapes` binds the sizes of inputs by name, for models that leave them open.

    Raises:  ModelFormatError if the bytes are no model or break a rule of their format; UnsupportedOpError
             listing everything that webinfer lacks; ShapeError if `shapes` does not fit; LimitError.
    """
    view = memoryview(data).cast("B").toreadonly()
    if bytes(view[4:8]) != IDENTIFIER:
        raise refuse(view, name)
    graph = read_tflite(view, name, shapes or {})
    verify(graph)
    return graph


__all__ = ["read_model"]
