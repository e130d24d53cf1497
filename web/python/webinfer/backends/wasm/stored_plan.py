"""Plans that are kept from one visit to the next: layout, rows, constants and program as one sealed text of bytes.

The bytes: magic, BLAKE2 digest of the rest, length of the header; the header as JSON; the memory from the
kernels' heap to the end of the program. An entry that is damaged, or of another kernel build, is none.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from webinfer.backends.base import MemoryReport, PlanRow
from webinfer.backends.wasm.executor import WasmExecutor
from webinfer.backends.wasm.kernel_table import ABI
from webinfer.backends.wasm.placed_plan import Layout, Place, PlacedPlan
from webinfer.dtypes import DType
from webinfer.graph.ir import Graph, Node, Quantization, TensorType, Value
from webinfer.host.interface import Host, Kernels
from webinfer.tensor import Tensor

MAGIC = b"WIP1"
DIGEST_BYTES = 16
LARGEST = 32 << 20  # bytes of constants and program: above, reading them back costs more than it saves


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """A plan as it is kept. `fits` names what it was made for: engine, kernel instance, settings.

    `choices` are the tuned ones in it; `untried` counts the shapes that no tuner has come to yet.
    """

    fits: list[Any]
    choices: dict[str, str]
    untried: int
    layout: Layout
    rows: list[list[Any]]
    fixed: memoryview


def requirements(host: Host, kernels: Kernels, tuned: bool) -> list[Any]:
    """What must be equal for a plan's addresses, kernels and choices to hold."""
    return [host.identity(), ABI, kernels.isa, kernels.threads, kernels.heap_base, tuned]


def seal(executor: WasmExecutor | KeptExecutor, fits: list[Any], choices: Mapping[str, str], untried: int) -> bytes:
    """The bytes to keep of a plan; none of a plan that is too large or whose inputs and outputs are not distinct."""
    layout, fixed = executor.layout, executor.fixed()
    ends = [*executor.graph.inputs, *executor.graph.outputs]
    if len(fixed) > LARGEST or len({*ends}) < len(ends) or any(value.is_constant for value in ends):
        return b""
    rows = [list(asdict(row).values()) for row in executor.rows()]
    facts = {"fits": fits, "choices": dict(choices), "untried": untried, "layout": asdict(layout), "rows": rows}
    header = json.dumps(facts).encode()
    body = struct.pack("<I", len(header)) + header + fixed
    return MAGIC + hashlib.blake2b(body, digest_size=DIGEST_BYTES).digest() + body


def unseal(data: Any, identity: str) -> KeptPlan | None:
    """The plan in these bytes; None if they are not all that was sealed, or not by the engine of this identity."""
    view = memoryview(data or b"").cast("B")
    begin = len(MAGIC) + DIGEST_BYTES
    digest, body = view[len(MAGIC) : begin], view[begin:]
    if view[: len(MAGIC)] != MAGIC or hashlib.blake2b(body, digest_size=DIGEST_BYTES).digest() != digest:
        return None
    (length,) = struct.unpack_from("<I", body)
    header = json.loads(bytes(body[4 : 4 + length]))
    if header["fits"][0] != identity:
        return None
    layout = header["layout"]
    layout |= {ends: tuple(_place(**place) for place in layout[ends]) for ends in ("inputs", "outputs")}
    layout["memory"] = MemoryReport(**layout["memory"])
    return KeptPlan(**{**header, "layout": Layout(**layout)}, fixed=body[4 + length :])


def _place(name: str, type: dict[str, Any], address: int) -> Place:
    quant = type["quant"]
    if quant is not None:
        quant = Quantization(tuple(quant["scales"]), tuple(quant["zero_points"]), quant["axis"])
    return Place(name, TensorType(tuple(type["shape"]), DType(type["dtype"]), quant), address)


class KeptExecutor(PlacedPlan):
    """A kept plan put back into the memory of a kernel instance; its graph is not read unless it is needed.

    `anew` compiles a graph for kernels of an instruction set, on one thread.
    """

    def __init__(
        self,
        kept: KeptPlan,
        graph: Graph,
        host: Host,
        kernels: Kernels,
        anew: Callable[[Graph, Host, str], Awaitable[WasmExecutor]],
    ) -> None:
        super().__init__(kept.layout, host, kernels)
        self.graph, self._rows, self._anew = graph, kept.rows, anew
        kernels.grow(kept.layout.top)
        kernels.write(kernels.heap_base, kept.fixed)

    def rows(self) -> Sequence[PlanRow]:
        """The plan, step by step."""
        return [PlanRow(*row) for row in self._rows]

    async def probe(self, inputs: Mapping[str, memoryview]) -> AsyncIterator[tuple[Node, Value, Tensor]]:
        """Runs node by node, in a plan made anew, and yields every result as it is computed."""
        whole = await self._anew(self.graph, self._host, self._instance().isa)
        try:
            async for result in whole.probe(inputs):
                yield result
        finally:
            whole.close()
