"""Model files → graph. One row in formats.py and one folder a format, each a table of converters over core/.

Reads bytes that nobody vouches for: every index, size and offset is checked before use. Never imports
passes or backends, never opens files, never touches weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from webinfer.graph.compiled import CompiledGraph
from webinfer.graph.ir import Graph
from webinfer.graph.verify import verify
from webinfer.importers import formats
from webinfer.importers.core.partial_evaluation import DataDependentValue, KnownValues
from webinfer.importers.formats import chosen, unpacked

if TYPE_CHECKING:
    from webinfer.importers.core.caches import Caches


def read_model(
    data: memoryview | bytes,
    name: str = "model",
    shapes: Mapping[str, Sequence[int]] | None = None,
    signature: str | None = None,
    files: Mapping[str, memoryview] | None = None,
    known_values: KnownValues | None = None,
) -> Graph:
    """The model as a graph. Constants are views of `data`, which must stay alive and unchanged. It may be zipped.

    `shapes` binds the sizes of inputs by name, for models that leave them open. `signature` names one of the ways
    to run a model that has several. `files` are the bytes of files beside the model, by the names it gives them.
    With `known_values`, sizes and conditions may depend on data: DataDependentValue names the value to observe first.

    Raises:  ModelFormatError if the bytes are not a model or break a rule of their format; UnsupportedOpError
             listing everything that webinfer lacks; ShapeError if `shapes` does not fit; LimitError;
             OpenSizes if sizes are left open;
             InputError if the model has no such signature
    """
    whole, inside = formats.unpacked(memoryview(data).cast("B").toreadonly(), name)
    beside = {**inside, **(files or {})}
    return _verified(lambda: formats.read(whole, name, shapes or {}, signature, beside, known_values))


def _verified(read: Callable[[], Graph]) -> Graph:
    """The graph that is read, now or when reading goes on, verified."""
    try:
        graph = read()
    except DataDependentValue as unknown:
        if (resume := unknown.resume) is not None:
            unknown.resume = lambda known: _verified(lambda: resume(known))
        raise
    if not isinstance(graph, CompiledGraph):
        verify(graph)
    return graph


def signature_names(data: memoryview | bytes, name: str = "model") -> tuple[str, ...]:
    """The names of a model's signatures, its ways to be run; none if its format or its writer has none.

    Raises:  ModelFormatError; LimitError
    """
    return formats.signature_names(memoryview(data).cast("B").toreadonly(), name)


def format_name(data: memoryview | bytes, name: str = "model") -> str:
    """The name of a model's format.

    Raises:  ModelFormatError if it is none that is known
    """
    return formats.format_name(memoryview(data).cast("B").toreadonly(), name)


def metadata(data: memoryview | bytes, name: str = "model") -> dict[str, str]:
    """The properties that a model's writer left in its file: ONNX's `metadata_props`, what is appended to TFLite.

    Raises:  ModelFormatError; LimitError
    """
    return formats.metadata(memoryview(data).cast("B").toreadonly(), name)


def caches(data: memoryview | bytes, name: str = "model") -> Caches | None:
    """The inputs that come back longer among the outputs, as a decoder's past; None where the format does not tell.

    Raises:  ModelFormatError; LimitError
    """
    return formats.caches(memoryview(data).cast("B").toreadonly(), name)


def files_beside(data: memoryview | bytes, name: str = "model") -> tuple[str, ...]:
    """The names of files that a model needs beside its own, relative to its folder.

    Raises:  ModelFormatError if one would leave the folder, or the model breaks a rule; LimitError
    """
    return formats.files_beside(memoryview(data).cast("B").toreadonly(), name)


__all__ = ["chosen", "files_beside", "read_model", "signature_names", "unpacked"]
