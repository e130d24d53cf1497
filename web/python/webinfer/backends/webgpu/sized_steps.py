"""What a stored program or a package says of sizes: it is bound to others by writing parameters. Knows no graph."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from webinfer.backends.webgpu.held_rows import EMPTY, AppendedRows, Taken
from webinfer.errors import LimitError, ModelFormatError
from webinfer.graph.ir import Value
from webinfer.host.gpu import GpuProgram, Span
from webinfer.lowering.restored_sizes import RestoredSizes, whole
from webinfer.plan.blocks import ALIGNMENT

GROWTH = 5, 4  # the bytes that buffers get when one is too small, over what is needed


def grown_buffers(
    needs: Iterable[tuple[int, int]], sizes: Sequence[int], places: Collection[int], limit: int, name: str
) -> dict[int, int]:
    """The buffers that are too small, with their new bytes; where one is, others get room as well.

    `needs` are buffers and bytes; `places` have room for more rows already.

    Raises:  LimitError naming the model
    """
    most = dict[int, int]()
    for buffer, need in needs:
        most[buffer] = max(most.get(buffer, 0), need)
    if (largest := max(most.values(), default=0)) > limit:
        raise LimitError(f"a tensor of {name!r} in bytes", largest, limit, "use smaller inputs")
    if all(need <= sizes[buffer] for buffer, need in most.items()):
        return {}
    roomy = {b: need if b in places else -(-need * GROWTH[0] // GROWTH[1]) for b, need in most.items()}
    wanted = {buffer: min(-(-size // ALIGNMENT) * ALIGNMENT, limit) for buffer, size in roomy.items()}
    return {buffer: size for buffer, size in wanted.items() if size > sizes[buffer]}


class SizedSteps:
    """The form of `OpenProgram.form`, over a program of these buffers and parameters, whose runs bind these spans.

    Raises:  ModelFormatError where the form is not kept
    """

    def __init__(
        self, form: Mapping[str, Any], values: Sequence[Value], buffers: list[int], uniforms: bytes,
        spans: Sequence[tuple[Span, ...]],
    ) -> None:  # fmt: skip
        """`values` are inputs and outputs; `buffers` are bytes, which grow in place."""
        self.sizes = sizes = RestoredSizes(form["sizes"], values, [*form["shapes"][0], *form["shapes"][1]])
        self.buffers, self._uniforms, self._first = buffers, uniforms, list(spans)
        number = sizes.number
        self._steps = [
            ([(whole(i), str(kind), number([e])) for i, kind, e in own], tuple(number(g, 0) for g in groups), regions)
            for own, groups, regions in form["steps"]
        ]  # fmt: skip
        if len(self._steps) != len(spans):
            raise ModelFormatError("a stored plan has sizes of other dispatches")
        self._needs = [(self._buffer(b), number(n)) for b, n in form["needs"]]
        self._elements = [
            (self._buffer(b), str(layout), [number(n) for n in row]) for b, layout, row in form["elements"]
        ]
        self.appended = [AppendedRows.read(one, number, len(spans), len(buffers)) for one in form.get("appended", ())]
        self._results = [(self._buffer(b), number(offset, 0)) for b, offset in form["results"]]
        self.restart()

    def restart(self) -> None:
        """The program is a new one: no sizes are bound."""
        self._spans = list(self._first)
        self.sizes.sizes = []

    async def bind(
        self, sizes: Sequence[int], program: GpuProgram, base: int, limit: int, name: str,
        capacities: Sequence[int] = (), skipped: Collection[int] = (), taken: Taken = EMPTY,
    ) -> None:  # fmt: skip
        """Writes parameters and counts of workgroups, and makes buffers anew that are too small.

        `base` is the number of the first dispatch of a run, `limit` the bytes of the largest buffer. `capacities` are
        the rows that places have room for, `skipped` the steps that are left out, `taken` buffers those of others.

        Raises:  LimitError naming the model; what `GpuProgram.rebind` raises
        """
        found, at = self.sizes.evaluate([*sizes, *capacities]), self.sizes.at
        before = self.sizes.sizes, self.sizes.found
        self.sizes.bind(sizes, found)
        try:
            needs = [(buffer, at(need)) for buffer, need in self._needs]
            grown = grown_buffers(needs, self.buffers, {one.buffer for one in self.appended}, limit, name)
            self.buffers[:] = [grown.get(buffer, size) for buffer, size in enumerate(self.buffers)]
            uniforms, steps = bytearray(self._uniforms), list[tuple[int, Any, Any]]()
            for i, (words, groups, regions) in enumerate(self._steps):
                old = self._spans[i]
                spans = (*map(self._region, regions), *old[len(regions) :])
                for place, kind, word in words:
                    struct.pack_into(f"<{kind}", uniforms, old[-1].offset + 4 * place, at(word))
                changed = spans != old or any(span.buffer in grown or span.buffer in taken for span in spans)
                self._spans[i] = spans
                counts = (0, 0, 0) if i in skipped else tuple(map(at, groups))
                steps.append((base + i, spans if changed else None, counts))
            await program.rebind({**grown, **taken}, bytes(uniforms), steps)
            for buffer, layout, row in self._elements:
                program.write(buffer, struct.pack(layout, *map(at, row)))
        except BaseException:
            if before[0]:
                self.sizes.bind(*before)
            raise

    def results(self, outputs: Sequence[Value]) -> list[Span]:
        """Where these outputs lie for the sizes that are bound."""
        at = self.sizes.at
        rows = zip(outputs, self._results, strict=True)
        return [Span(buffer, at(offset), value.type.nbytes) for value, (buffer, offset) in rows]

    def _region(self, row: Sequence[Any]) -> Span:
        buffer = self._buffer(row[0])
        if len(row) == 1:
            return Span(buffer, 0, self.buffers[buffer])
        return Span(buffer, *(self.sizes.at(self.sizes.number(word, 0)) for word in row[1:]))

    def _buffer(self, number: Any) -> int:
        if whole(number) >= len(self.buffers):
            raise ModelFormatError(f"a stored plan names buffer {number} of {len(self.buffers)}")
        return int(number)
