"""Plans of a GPU in the plan cache, stored for the next visit: recipe, rows and constants in one file.

The bytes: magic, length of the header; the header as JSON; the constants one behind the other. Hosts notice bytes that
are damaged; those of another engine, device or tuning are not a plan.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from webinfer.backends.base import BufferBinding, MemoryReport, PlanRow, probe_anew
from webinfer.backends.webgpu.executor import WebGpuExecutor
from webinfer.backends.webgpu.loaded_program import LoadedProgram
from webinfer.backends.webgpu.recipe import Order, Recipe
from webinfer.graph.ir import Graph, Node, TensorType, Value
from webinfer.graph.stored_types import can_be_stored, ends_form, ends_of
from webinfer.host.gpu import GpuDevice, PipelineSpec, Span
from webinfer.host.interface import Host
from webinfer.lazy_dataclass import dataclass
from webinfer.plan.plan_bytes import MAX_BYTES, pack, unpack
from webinfer.tensor import Tensor

MAGIC = b"WIG1"
Facts = dict[str, Any]


@dataclass(frozen=True, slots=True)
class GpuStoredPlan:
    """A stored plan. `fits` names what it was made for: engine, device, tunings."""

    fits: list[Any]
    inputs: list[tuple[str, TensorType]]
    outputs: list[tuple[str, TensorType]]
    notes: list[str]
    facts: Facts  # of the recipe, as JSON has them
    rows: list[list[Any]]
    constants: memoryview

    def recipe(self) -> Recipe:
        """The recipe, whose constants are these bytes."""
        pieces, at = list[Any](), 0
        for _, nbytes in self.facts["writes"]:
            pieces.append(self.constants[at : at + nbytes])
            at += nbytes
        specs = specs_of(self.facts["pipelines"])
        return recipe_of(self.facts, specs, [name for name, _ in self.inputs], pieces)


def specs_of(rows: Iterable[Any]) -> list[PipelineSpec]:
    """The shaders of a stored plan."""
    return [PipelineSpec(label, code, tuple(bindings)) for label, code, bindings in rows]


def recipe_of(
    facts: Mapping[str, Any], specs: Sequence[PipelineSpec], inputs: Sequence[str], pieces: Sequence[Any]
) -> Recipe:
    """The recipe that facts of a header tell; `pieces` are the bytes that load uploads, in order."""
    orders = [
        Order(specs[number], tuple(Span(*span) for span in spans), (groups[0], groups[1], groups[2]))
        for number, spans, groups in facts["orders"]
    ]
    writes = [(buffer, data) for (buffer, _), data in zip(facts["writes"], pieces, strict=True)]
    ends = {name: BufferBinding(Span(*span), False) for name, span in zip(inputs, facts["inputs"], strict=True)}
    outputs = [BufferBinding(Span(*span), False) for span in facts["outputs"]]
    uniforms, memory = bytes.fromhex(facts["uniforms"]), MemoryReport(*facts["memory"])
    sizes, prepare, staged = facts["sizes"], facts["prepare"], facts["staged"]
    return Recipe(sizes, uniforms, orders, prepare, writes, staged, [], ends, outputs, memory)


def facts_of(recipe: Recipe, graph: Graph, numbers: dict[PipelineSpec, int]) -> Facts:
    """What a header says of a recipe. Shaders are numbered in `numbers`; the bytes that load uploads are not in it."""
    orders = [
        [numbers.setdefault(o.pipeline, len(numbers)), [_row(span) for span in o.bindings], o.groups]
        for o in recipe.orders
    ]
    return {
        "sizes": recipe.sizes, "uniforms": recipe.uniforms.hex(), "orders": orders, "prepare": recipe.prepare,
        "writes": [[buffer, data.nbytes] for buffer, data in recipe.writes], "staged": recipe.staged,
        "inputs": [_row(recipe.inputs[value.name].span) for value in graph.inputs],
        "outputs": [_row(end.span) for end in recipe.outputs], "memory": list(asdict(recipe.memory).values()),
    }  # fmt: skip


def pipelines_form(numbers: Mapping[PipelineSpec, int]) -> list[Any]:
    """Numbered shaders, for `specs_of`."""
    return [[spec.label, spec.code, spec.bindings] for spec in numbers]


def requirements(host: Host, device: GpuDevice, kernels: Mapping[str, str], tuned: str) -> list[Any]:
    """What must be equal for a plan to hold. `kernels` are the default tunings, `tuned` the log of the device's own."""
    limits, features = sorted(device.limits.items()), sorted(device.features)
    known = json.dumps([limits, features, sorted(kernels.items()), tuned])
    digest = hashlib.sha256(known.encode()).hexdigest()
    return [host.identity(), device.name, device.runtime, device.software, digest]


def serialize(executor: WebGpuExecutor, fits: list[Any]) -> bytes:
    """The bytes to store of a plan; none of a plan that is too large, or holds more than a recipe says."""
    graph, recipe = executor.graph, executor.recipe
    if recipe.given or graph.parts or graph.resident or not can_be_stored(graph):
        return b""
    constants = [data for _, data in recipe.writes]
    if not all(isinstance(data, memoryview) for data in constants) or sum(map(len, constants)) > MAX_BYTES:
        return b""
    numbers: dict[PipelineSpec, int] = {}
    facts = facts_of(recipe, graph, numbers) | {"pipelines": pipelines_form(numbers)}
    header = {
        "fits": fits,
        "inputs": ends_form(graph.inputs),
        "outputs": ends_form(graph.outputs),
        "notes": graph.notes,
        "facts": facts,
        "rows": [list(asdict(row).values()) for row in executor.rows()],
    }
    return pack(MAGIC, header, (data.cast("B") for data in constants))


def _row(span: Span) -> list[int]:
    return [span.buffer, span.offset, span.nbytes]


def deserialize(data: Any, identity: str) -> GpuStoredPlan | None:
    """The plan in these bytes; None if they are none, or not by the engine of this identity."""
    found = unpack(data, MAGIC, identity)
    if found is None:
        return None
    header, body = found
    for ends in ("inputs", "outputs"):
        header[ends] = ends_of(header[ends])
    return GpuStoredPlan(**header, constants=body)


class RestoredProgram(LoadedProgram):
    """A stored plan put back onto a device; its graph is not read unless it is needed."""

    def __init__(
        self,
        stored: GpuStoredPlan,
        graph: Graph,
        host: Host,
        device: GpuDevice,
        compile_anew: Callable[[Graph, Host], Awaitable[WebGpuExecutor]],
    ) -> None:
        super().__init__(graph, host, device, stored.recipe())
        self._rows, self._compile_anew = stored.rows, compile_anew

    def rows(self) -> Sequence[PlanRow]:
        """The plan, dispatch by dispatch."""
        return [PlanRow(*row) for row in self._rows]

    def probe(self, inputs: Mapping[str, memoryview]) -> AsyncIterator[tuple[Node, Value, Tensor]]:
        """Runs node by node, in a plan made anew, and yields every result as it is computed."""
        return probe_anew(lambda: self._compile_anew(self.graph, self._host), inputs)
