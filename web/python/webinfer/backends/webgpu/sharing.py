"""Constants belong to the model: programs for other sizes bind the buffers that a program of the same model has filled.

What a buffer holds after a load is told by its bytes, or by the dispatches that write it and what these read.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from webinfer.backends.webgpu.recipe import Order, Recipe
from webinfer.lazy_dataclass import dataclass
from webinfer.plan.marks import Marks, digest
from webinfer.plan.plan_bytes import MAX_BYTES
from webinfer.spans import FileSpan

Mark = tuple[bytes, int]  # of a buffer's contents, and its bytes
VIEWS = Marks()


def marks_of(recipe: Recipe, changing: Collection[int]) -> dict[int, Mark]:
    """What tells apart the contents of buffers that only runs read. `changing` are written when sizes are bound."""
    sizes = (memoryview(data).nbytes for _, data in recipe.writes if not isinstance(data, FileSpan))
    lasting = sum(sizes) <= MAX_BYTES  # more is not stored
    marks = {buffer: _content(data, lasting) for buffer, data in recipe.writes}
    for order in recipe.orders[: recipe.prepare]:
        _, targets = _bound(order, recipe)
        parts = [order.pipeline.code.encode(), repr(order.groups).encode(), _parameters(order, recipe)]
        for span in order.bindings:
            if span.buffer < len(recipe.sizes):
                parts += [marks.get(span.buffer, b""), b"%d %d" % (span.offset, span.nbytes)]
        made = digest(*parts)
        for i, buffer in enumerate(targets):
            marks[buffer] = digest(made, b"%d" % i)
    passing = {*changing, *recipe.staged, *recipe.given, *(end.span.buffer for end in recipe.inputs.values())}
    for order in recipe.orders[recipe.prepare :]:
        passing.update(_bound(order, recipe)[1])
    return {buffer: (mark, recipe.sizes[buffer]) for buffer, mark in marks.items() if buffer not in passing}


@dataclass(frozen=True, slots=True)
class Load:
    """What a load does where some buffers are there already: dispatches that run once, and bytes to upload."""

    prepare: list[Order]
    writes: list[tuple[int, Any]]
    needless: set[int]  # staged buffers that nothing reads


def load_of(recipe: Recipe, shared: Collection[int]) -> Load | None:
    """The load of a recipe without these buffers; None if a dispatch writes one of them and another one."""
    wanted = {buffer for buffer in range(len(recipe.sizes)) if buffer not in shared} - {*recipe.staged}
    prepare = list[Order]()
    for order in reversed(recipe.orders[: recipe.prepare]):
        sources, targets = _bound(order, recipe)
        if wanted.isdisjoint(targets):
            continue
        if not {*targets}.isdisjoint(shared):
            return None
        wanted.update(source for source in sources if source not in shared)
        prepare.append(order)
    writes = [(buffer, data) for buffer, data in recipe.writes if buffer in wanted]
    return Load(prepare[::-1], writes, {*recipe.staged} - wanted)


def _content(data: Any, lasting: bool) -> bytes:
    """A mark of bytes; those of a large file are not read: all programs of a model have them of the same file."""
    if isinstance(data, FileSpan):
        return digest(b"file", b"%d %d %d" % (id(data.file), data.at, data.nbytes))
    return VIEWS.of(data, lasting) if isinstance(data, memoryview) else digest(b"bytes", data)


def _bound(order: Order, recipe: Recipe) -> tuple[list[int], list[int]]:
    """The buffers that a dispatch reads, and those that it writes."""
    rows = [(kind, span.buffer) for kind, span in zip(order.pipeline.bindings, order.bindings, strict=False)]
    own = [(kind, buffer) for kind, buffer in rows if buffer < len(recipe.sizes)]
    return [buffer for kind, buffer in own if kind == "read"], [buffer for kind, buffer in own if kind == "write"]


def _parameters(order: Order, recipe: Recipe) -> bytes:
    return b"".join(
        recipe.uniforms[span.offset : span.offset + span.nbytes]
        for span in order.bindings
        if span.buffer == len(recipe.sizes)
    )
