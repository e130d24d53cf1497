"""What every backend's executor offers, and the rows of a plan that people read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from webinfer.graph.ir import Node, Value
from webinfer.tensor import Tensor


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One step of a plan: what runs where, on what, and why."""

    index: int
    label: str
    op: str
    backend: str
    kernel: str
    shapes: str
    flops: int
    bytes: int
    why: str


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """Bytes of a plan. `arena_bound` is what lives at the busiest step: no plan can need less."""

    constants: int
    arena: int
    arena_bound: int


class Executor(Protocol):
    """A compiled graph on one backend."""

    backend: str
    overlaps: bool  # whether a run may begin before the one before it has ended

    async def run(self, inputs: Mapping[str, memoryview]) -> dict[str, Tensor]:
        """The outputs by name. Inputs are checked bytes, one entry for each graph input."""
        ...

    def rows(self) -> Sequence[PlanRow]:
        """The plan, step by step."""
        ...

    def memory(self) -> MemoryReport:
        """What the plan needs."""
        ...

    def probe(self, inputs: Mapping[str, memoryview]) -> AsyncIterator[tuple[Node, Value, Tensor]]:
        """Runs node by node and yields every result as it is computed."""
        ...

    async def profile(self, inputs: Mapping[str, memoryview], rounds: int) -> list[float]:
        """Median milliseconds of each row of `rows()`."""
        ...

    async def pass_ms(self, inputs: Mapping[str, memoryview], repeats: int) -> float:
        """Milliseconds of all steps, once, without the ways in and out; the average of `repeats` passes."""
        ...

    def close(self) -> None:
        """Frees what the executor holds; a second call does nothing."""
        ...


def shapes_text(node: Node) -> str:
    """The node's shapes as `1x4x4x8, 16x1x1x8 -> 1x4x4x16`."""
    inputs = ", ".join("x".join(map(str, v.type.shape)) or "1" for v in node.inputs if v is not None)
    outputs = ", ".join("x".join(map(str, v.type.shape)) or "1" for v in node.outputs)
    return f"{inputs} -> {outputs}"
