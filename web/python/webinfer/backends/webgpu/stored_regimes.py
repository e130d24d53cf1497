"""Programs with symbols in the plan cache: the regimes of one model on one device, in one file.

The bytes: magic, length of the header; the header as JSON; the constants, each once, whatever number of regimes upload
it. A regime comes onto the device when sizes come for which it holds.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from webinfer.backends.base import (
    BufferBinding,
    Executor,
    PlanRow,
    ReadGraph,
    RegimeExecutor,
    StoredRegimes,
    probe_anew,
)
from webinfer.backends.webgpu.executor import WebGpuExecutor
from webinfer.backends.webgpu.held_rows import EMPTY, RowProgram, Taken
from webinfer.backends.webgpu.loaded_program import LoadedProgram
from webinfer.backends.webgpu.open_program import OpenProgram
from webinfer.backends.webgpu.recipe import Recipe
from webinfer.backends.webgpu.sized_steps import SizedSteps
from webinfer.backends.webgpu.stored_plan import facts_of, pipelines_form, recipe_of, specs_of
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Graph, Node, Value
from webinfer.graph.stored_types import can_be_stored
from webinfer.host.gpu import GpuDevice, PipelineSpec
from webinfer.host.interface import Host, Progress
from webinfer.lowering.restored_sizes import ShowsDeferredGraph, ends_graph
from webinfer.plan.plan_bytes import MAX_BYTES, pack
from webinfer.tensor import Tensor

MAGIC = b"WIH1"
CompileAnew = Callable[[Graph, Host], Awaitable[WebGpuExecutor]]


def serialize_open(executors: Sequence[Executor], fits: Sequence[Any], about: Mapping[str, Any]) -> bytes:
    """The bytes to store of the programs with symbols among these executors; none where they are too large."""
    plans = [one for one in executors if isinstance(one, OpenProgram | RestoredRegime) and not one.closed]
    writes = [data for plan in plans for _, data in plan.recipe.writes]
    if not plans or not all(can_be_stored(plan.graph) for plan in plans):
        return b""
    if not all(isinstance(data, bytes | bytearray | memoryview) for data in writes):  # of a large file, read in parts
        return b""
    pieces: dict[bytes, int] = {}
    numbers: dict[PipelineSpec, int] = {}
    regimes = []
    for plan in plans:
        own = [pieces.setdefault(bytes(data), len(pieces)) for _, data in plan.recipe.writes]
        said = plan.facts if isinstance(plan, RestoredRegime) else {**plan.shown_form(), "open": plan.form()}
        regimes.append({**said, "recipe": facts_of(plan.recipe, plan.ends, numbers), "pieces": own})
    if sum(map(len, pieces)) > MAX_BYTES:
        return b""
    header = {
        "fits": fits, "about": about, "regimes": regimes, "pipelines": pipelines_form(numbers),
        "pieces": list(map(len, pieces)),
    }  # fmt: skip
    return pack(MAGIC, header, pieces)


def restored_open(
    stored: StoredRegimes, host: Host, device: GpuDevice, compile_anew: CompileAnew, read: ReadGraph
) -> list[RestoredRegime]:
    """The programs, none of which is on the device yet.

    Raises:  ModelFormatError, LookupError, TypeError, ValueError where facts are missing or of other types
    """
    facts, at, pieces = stored.facts, 0, list[memoryview]()
    for nbytes in facts["pieces"]:
        pieces.append(stored.body[at : at + nbytes])
        at += nbytes
    if at != len(stored.body):
        raise ModelFormatError(f"a stored plan has {len(stored.body)} bytes of constants, not {at}")
    specs, made = specs_of(facts["pipelines"]), list[RestoredRegime]()
    for own in facts["regimes"]:
        names = [name for name, _ in own["ends"][0]]
        recipe = recipe_of(own["recipe"], specs, names, [pieces[number] for number in own["pieces"]])
        made.append(RestoredRegime(own, recipe, host, device, compile_anew, read))
        made[-1].together = made
    return made


class RestoredRegime(ShowsDeferredGraph, RowProgram, RegimeExecutor):
    """One regime out of the plan cache."""

    def __init__(
        self, facts: dict[str, Any], recipe: Recipe, host: Host, device: GpuDevice, compile_anew: CompileAnew,
        read: ReadGraph,
    ) -> None:  # fmt: skip
        self.facts, self.ends = facts, ends_graph(facts)
        self._read, self._compile_anew = read, compile_anew
        super().__init__(self.ends, host, device, recipe)
        values = [*self.ends.inputs, *self.ends.outputs]
        spans = [order.bindings for order in recipe.orders[recipe.prepare :]]
        self._steps = SizedSteps(facts["open"], values, recipe.sizes, recipe.uniforms, spans)
        self._sizes, self.trace = self._steps.sizes, self._steps.sizes.trace
        self._axes = self._sizes.axes(facts["axes"])
        self.appended = self._steps.appended
        self.changing = frozenset(buffer for buffer, _, _ in facts["open"]["elements"])

    async def load(self, progress: Progress | None = None) -> None:
        """As every program; then for the sizes that were bound, if it was on a device before."""
        before = self._sizes.sizes
        self.share_with(self.regimes())
        await super().load(progress)
        self._steps.restart()
        if before:
            await self._bind(before, (), (), EMPTY)

    async def bind(self, sizes: Sequence[int]) -> None:
        """Writes parameters and counts of workgroups, and makes buffers anew that are too small."""
        if self._program is None and not self._sizes.sizes:
            await self.load()
        await super().bind(sizes)

    def _sizes_bound(self) -> list[int]:
        return self._steps.sizes.sizes

    def _evaluated(self, sizes: Sequence[int], capacities: Sequence[int]) -> list[int]:
        return self._steps.sizes.evaluate([*sizes, *capacities])

    async def _bind(
        self, sizes: Sequence[int], capacities: Sequence[int], skipped: Collection[int], taken: Taken
    ) -> None:
        program = await LoadedProgram._ready(self)
        await self._steps.bind(
            sizes, program, self._base, self._limit, self.ends.name, capacities=capacities, skipped=skipped, taken=taken
        )
        self._graph, outputs = None, self.ends.outputs
        spans = self._steps.results(outputs)
        self._found = [i for i, value in enumerate(outputs) if value.type.size]
        self._reads, self._page_runs = [spans[i] for i in self._found], None
        self.recipe = replace(self.recipe, outputs=[BufferBinding(span, False) for span in spans])

    def rows(self) -> Sequence[PlanRow]:
        """The plan for the sizes that are bound."""
        return [PlanRow(*row) for row in self._listed_rows()]

    def probe(self, inputs: Mapping[str, memoryview]) -> AsyncIterator[tuple[Node, Value, Tensor]]:
        """Runs node by node, in a plan made anew, and yields every result as it is computed."""
        return probe_anew(lambda: self._compile_anew(self.graph, self._host), inputs)
