"""Plans in the plan cache, stored for the next visit: layout, rows, constants and program in one file.

The bytes: magic, length of the header; the header as JSON; the memory from the plan's base to the end of the
program. A plan may be put back at another base: its program's addresses are moved. Hosts notice bytes that are damaged;
those of another kernel build are not a plan.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from webinfer.backends.base import MemoryReport, PlanRow, probe_anew
from webinfer.backends.wasm.kernel_table import KERNELS
from webinfer.backends.wasm.loaded_plan import Layout, LoadedPlan, Place
from webinfer.backends.wasm.memory import KernelMemory
from webinfer.graph.ir import Graph, Node, TensorType, Value
from webinfer.graph.stored_types import type_of
from webinfer.host.interface import Host, Kernels
from webinfer.lazy_dataclass import dataclass
from webinfer.plan import program
from webinfer.plan.blocks import ALIGNMENT
from webinfer.plan.plan_bytes import MAX_BYTES, pack, unpack
from webinfer.tensor import Tensor

if TYPE_CHECKING:
    from webinfer.backends.wasm.executor import WasmExecutor

MAGIC = b"WIP2"
THREADS = 3  # where their number stands in what a plan was made for


@dataclass(frozen=True, slots=True)
class WasmStoredPlan:
    """A stored plan. `fits` names what it was made for: engine, kernel instance, settings.

    `tuned` are the tuned kernels in it, by tuning key; `untried` counts the shapes that no tuner has come to yet.
    """

    fits: list[Any]
    tuned: dict[str, str]
    untried: int
    layout: Layout
    rows: list[list[Any]]
    fixed: memoryview
    notes: list[str]

    @property
    def threads(self) -> int:
        """How many threads it was made for."""
        return int(self.fits[THREADS])

    @property
    def inputs(self) -> list[tuple[str, TensorType]]:
        """Names and types of the graph's inputs."""
        return [(place.name, place.type) for place in self.layout.inputs]

    @property
    def outputs(self) -> list[tuple[str, TensorType]]:
        """Names and types of the graph's outputs."""
        return [(place.name, place.type) for place in self.layout.outputs]


def requirements(host: Host, kernels: Kernels, tuned: bool) -> list[Any]:
    """What must be equal for a plan's addresses, kernels and packed weights to hold."""
    form = kernels.call("dots_of_bytes")  # the processor's and the engine's: a newer browser may have another
    return [host.identity(), KERNELS.abi, kernels.isa, kernels.threads, kernels.heap_base, tuned, form]


def serialize(
    executor: WasmExecutor | RestoredExecutor, fits: list[Any], tuned: Mapping[str, str], untried: int
) -> bytes:
    """The bytes to store of a plan; none of a plan that is too large or whose inputs and outputs are not distinct."""
    layout, ends = executor.layout, [*executor.graph.inputs, *executor.graph.outputs]
    if (
        layout.fixed_end - layout.base > MAX_BYTES
        or len({*ends}) < len(ends)
        or any(value.is_constant for value in ends)
    ):
        return b""
    rows = [list(asdict(row).values()) for row in executor.rows()]
    facts = {
        "fits": fits,
        "tuned": dict(tuned),
        "untried": untried,
        "layout": asdict(layout),
        "rows": rows,
        "notes": executor.graph.notes,
    }
    return pack(MAGIC, facts, [executor.fixed()])


def deserialize(data: Any, identity: str) -> WasmStoredPlan | None:
    """The plan in these bytes; None if they are none, or not by the engine of this identity."""
    found = unpack(data, MAGIC, identity)
    if found is None:
        return None
    header, body = found
    layout = header["layout"]
    for ends in ("inputs", "outputs"):
        layout[ends] = tuple(Place(row["name"], type_of(row["type"]), row["address"]) for row in layout[ends])
    layout["memory"] = MemoryReport(**layout["memory"])
    return WasmStoredPlan(**{**header, "layout": Layout(**layout)}, fixed=body)


class RestoredExecutor(LoadedPlan):
    """A stored plan put back into the memory of a kernel instance; its graph is not read unless it is needed.

    `compile_anew` compiles a graph for kernels of an instruction set, on one thread.
    """

    def __init__(
        self,
        stored: WasmStoredPlan,
        graph: Graph,
        host: Host,
        kernels: Kernels,
        compile_anew: Callable[[Graph, Host, str], Awaitable[WasmExecutor]],
        memory: KernelMemory | None = None,
    ) -> None:
        """`memory` is that of `kernels`, if the plan is a guest of another model's memory."""
        base = -(-(memory.end if memory else kernels.heap_base) // ALIGNMENT) * ALIGNMENT
        by = base - stored.layout.base
        layout = stored.layout.moved(by)
        super().__init__(layout, host, kernels, memory)
        self.is_guest = memory is not None
        self.graph, self._rows, self._compile_anew = graph, stored.rows, compile_anew
        kernels.grow(layout.top)
        kernels.write(base, stored.fixed)
        if by:
            kernels.write(
                layout.program,
                program.moved(bytes(stored.fixed[stored.layout.program - stored.layout.base :]), by, KERNELS),
            )
        if memory is not None:
            memory.end = max(memory.end, layout.top)

    def rows(self) -> Sequence[PlanRow]:
        """The plan, step by step."""
        return [PlanRow(*row) for row in self._rows]

    def probe(self, inputs: Mapping[str, memoryview]) -> AsyncIterator[tuple[Node, Value, Tensor]]:
        """Runs node by node, in a plan made anew, and yields every result as it is computed."""
        return probe_anew(lambda: self._compile_anew(self.graph, self._host, self._instance().isa), inputs)
