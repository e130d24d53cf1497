"""Plans with symbols in the plan cache: the regimes of one model that lie in one memory, in one file.

The bytes: magic, length of the header; the header as JSON; the memory of constants and programs, area by area. They go
back to the addresses where they lay, which a kernel instance of the same build has free. What follows sizes is written
when sizes are bound. The model is read only by who looks into a plan, or when sizes come for which no regime holds.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from webinfer.backends.base import Executor, PlanRow, ReadGraph, StoredRegimes, probe_anew
from webinfer.backends.wasm.memory import Held, KernelMemory
from webinfer.backends.wasm.restored_words import RestoredSizedExecutor, RestoredWords
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Graph, Node, Value
from webinfer.graph.stored_types import can_be_stored
from webinfer.host.interface import Host, Kernels
from webinfer.kernel_constants import MEMORY_MAX_BYTES
from webinfer.lowering.restored_sizes import ShowsDeferredGraph, ends_graph
from webinfer.plan.blocks import ALIGNMENT
from webinfer.plan.plan_bytes import MAX_BYTES, pack
from webinfer.tensor import Tensor

if TYPE_CHECKING:
    from webinfer.backends.wasm.executor import WasmExecutor
    from webinfer.backends.wasm.open_plan import OpenExecutor

MAGIC = b"WIR1"
CompileAnew = Callable[[Graph, Host, str], Awaitable["WasmExecutor"]]


def serialize_open(executors: Sequence[Executor], fits: Sequence[Any], about: Mapping[str, Any]) -> bytes:
    """The bytes to store of the plans with symbols that lie where the last one does; none where they are too large."""
    from webinfer.backends.wasm.open_plan import OpenExecutor  # and lowerings with it, which restoring does without

    plans = [one for one in executors if isinstance(one, OpenExecutor | RestoredRegime) and not one.closed]
    memory = plans[-1].memory_of_kernels if plans else None
    kernels = memory.kernels if memory is not None else None
    if memory is None or kernels is None or not all(can_be_stored(one.graph) for one in plans):
        return b""
    plans = [one for one in plans if one.memory_of_kernels is memory]
    areas = {address: nbytes for one in plans for address, nbytes in one.areas.items() if nbytes}
    if sum(areas.values()) > MAX_BYTES:
        return b""
    places = [[mark.hex(), address] for mark, address in memory.places().items() if address in areas]
    rows = sorted(areas.items())
    header = {
        "fits": fits, "about": about, "areas": rows, "places": places, "regimes": [_form(one) for one in plans],
    }  # fmt: skip
    return pack(MAGIC, header, (kernels.read(address, nbytes) for address, nbytes in rows))


def _form(plan: OpenExecutor | RestoredRegime) -> Mapping[str, Any]:
    if isinstance(plan, RestoredRegime):
        return plan.facts
    layout = plan.layout
    return {
        "program": [layout.program, layout.steps], "memory": list(asdict(layout.memory).values()),
        "areas": [address for address, nbytes in plan.areas.items() if nbytes], **plan.shown_form(), **plan.form(),
    }  # fmt: skip


def restored_open(
    stored: StoredRegimes, host: Host, kernels: Kernels, compile_anew: CompileAnew, read: ReadGraph
) -> list[RestoredRegime]:
    """The plans in the memory of a fresh kernel instance, not bound yet.

    Raises:  ModelFormatError, LookupError, TypeError, ValueError where facts are missing or of other types
    """
    facts, at = stored.facts, 0
    areas = {int(address): int(nbytes) for address, nbytes in facts["areas"]}
    end = kernels.heap_base
    for address, nbytes in sorted(areas.items()):
        if not end <= address <= MEMORY_MAX_BYTES - nbytes or nbytes < 0:
            raise ModelFormatError(f"a stored plan has {nbytes} bytes at {address}, behind {end}")
        end = address + nbytes
    if sum(areas.values()) != len(stored.body):
        raise ModelFormatError(f"a stored plan has {len(stored.body)} bytes for areas of {sum(areas.values())}")
    kernels.grow(end)
    for address, nbytes in areas.items():
        kernels.write(address, stored.body[at : at + nbytes])
        at += nbytes
    memory = KernelMemory(kernels)
    memory.end = -(-end // ALIGNMENT) * ALIGNMENT
    memory.arena = memory.end, 0
    memory.know({bytes.fromhex(mark): int(address) for mark, address in facts["places"]})
    made = list[RestoredRegime]()
    for own in facts["regimes"]:
        if made:
            memory.join()
        made.append(RestoredRegime(own, host, memory, areas, compile_anew, read))
        made[-1].together = made
    return made


class RestoredRegime(ShowsDeferredGraph, RestoredSizedExecutor):
    """One regime out of the plan cache."""

    shareable = True  # plans of other regimes may be made beside it

    def __init__(
        self, facts: dict[str, Any], host: Host, memory: KernelMemory, areas: Held, compile_anew: CompileAnew,
        read: ReadGraph,
    ) -> None:  # fmt: skip
        ends = ends_graph(facts)
        words, own = RestoredWords(facts, ends.inputs, ends.outputs), {at: areas[at] for at in facts["areas"]}
        super().__init__(ends, facts, words, host, memory, own)
        memory.hold(own)
        self.facts, self._axes = facts, words.sizes.axes(facts["axes"])
        self._compile_anew, self._read = compile_anew, read

    async def bind(self, sizes: Sequence[int]) -> None:
        """As every one; the graph, if it was read, was that of the sizes before."""
        self._graph = None
        await super().bind(sizes)

    def rows(self) -> Sequence[PlanRow]:
        """The plan for the sizes that are bound."""
        return [PlanRow(*row) for row in self._listed_rows()]

    def probe(self, inputs: Mapping[str, memoryview]) -> AsyncIterator[tuple[Node, Value, Tensor]]:
        """Runs node by node, in a plan made anew, and yields every result as it is computed."""
        return probe_anew(lambda: self._compile_anew(self.graph, self._host, self._instance().isa), inputs)
