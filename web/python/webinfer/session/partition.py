"""A graph that no single backend runs whole: cut where one refuses, run the pieces in turn.

The plan says which steps run elsewhere and why. Tensors cross through host memory, which costs; a
session that must not pay for it is loaded with `strict=True`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Mapping, Sequence

from webinfer.backends.base import Executor, MemoryReport, PlanRow
from webinfer.graph.ir import Graph, Node, Value
from webinfer.lazy_dataclass import dataclass
from webinfer.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a graph that one backend runs. `home` is False where the preferred backend refused."""

    graph: Graph
    home: bool


def cut(graph: Graph, refused: Sequence[object]) -> list[Piece]:
    """The graph as pieces in the order they run: pieces of the preferred backend and of the other in turn.

    A node's piece is the earliest that its inputs allow, so independent branches share pieces.
    """
    elsewhere = set(map(id, refused))
    level: dict[Value, int] = {}
    pieces: dict[int, list[Node]] = {}
    for node in graph.nodes:
        parity = int(id(node) in elsewhere)
        earliest = max((level.get(v, 0) for v in node.inputs if v is not None), default=0)
        own = earliest + (earliest % 2 != parity)
        pieces.setdefault(own, []).append(node)
        level.update(dict.fromkeys(node.outputs, own))
    _name_apart(graph)
    return [Piece(_piece(graph, nodes, level, number), number % 2 == 0) for number, nodes in sorted(pieces.items())]


def _name_apart(graph: Graph) -> None:
    """Values cross between pieces by name: no two may share one."""
    taken = {v.name for v in (*graph.inputs, *graph.outputs)}
    keep = set(graph.inputs) | set(graph.outputs)
    for number, value in enumerate(v for node in graph.nodes for v in node.outputs):
        while value not in keep and value.name in taken:
            value.name = f"{value.name} ({number})"
        taken.add(value.name)


def _piece(graph: Graph, nodes: Sequence[Node], level: Mapping[Value, int], number: int) -> Graph:
    made = {v for node in nodes for v in node.outputs}
    read = dict.fromkeys(v for n in nodes for v in n.inputs if v is not None and not v.is_constant and v not in made)
    wanted = set(graph.outputs) | {
        v for node in graph.nodes if any(level[o] != number for o in node.outputs) for v in node.inputs if v is not None
    }
    results = [v for node in nodes for v in node.outputs if v in wanted]
    return Graph(f"{graph.name} part {number + 1}", list(read), results, nodes)


class PartitionedExecutor(Executor):
    """Pieces on two backends, run one after the other. Has none of the interfaces of either."""

    def __init__(self, graph: Graph, parts: Sequence[tuple[Piece, Executor]], reasons: Mapping[str, str]) -> None:
        self.graph, self._parts, self._reasons = graph, list(parts), dict(reasons)
        self.backend = "+".join(dict.fromkeys(executor.backend for _, executor in parts))

    async def run(self, inputs: Mapping[str, memoryview]) -> dict[str, Tensor]:
        """The outputs by name."""
        results: dict[str, Tensor] = {}
        for piece, executor in self._parts:
            results |= await executor.run(self._inputs(piece, inputs, results))
        by_name = {v.name: v for v in self.graph.inputs}
        return {
            v.name: results[v.name] if v.name in results else _as_tensor(by_name[v.name], inputs)
            for v in self.graph.outputs
        }

    def _inputs(
        self, piece: Piece, inputs: Mapping[str, memoryview], results: Mapping[str, Tensor]
    ) -> dict[str, memoryview]:
        own = set(self.graph.inputs)  # an output may have the name of an input
        return {v.name: inputs[v.name] if v in own else results[v.name].flat().cast("B") for v in piece.graph.inputs}

    def rows(self) -> Sequence[PlanRow]:
        """The plan of all pieces, step by step."""
        rows: list[PlanRow] = []
        for piece, executor in self._parts:
            for row in executor.rows():
                why = row.why if piece.home else self._reasons.get(row.label, "next to a step that runs here")
                rows.append(dataclasses.replace(row, index=len(rows), why=why))
        return rows

    def memory(self) -> MemoryReport:
        """The sums over all pieces."""
        return MemoryReport.total(executor for _, executor in self._parts)

    async def probe(self, inputs: Mapping[str, memoryview]) -> AsyncIterator[tuple[Node, Value, Tensor]]:
        """Runs piece by piece, node by node, and yields every result."""
        results: dict[str, Tensor] = {}
        for piece, executor in self._parts:
            own = self._inputs(piece, inputs, results)
            async for found in executor.probe(own):
                yield found
            results |= await executor.run(own)

    async def profile(self, inputs: Mapping[str, memoryview], rounds: int) -> list[float]:
        """Median milliseconds of each row."""
        times: list[float] = []
        results: dict[str, Tensor] = {}
        for piece, executor in self._parts:
            own = self._inputs(piece, inputs, results)
            times += await executor.profile(own, rounds)
            results |= await executor.run(own)
        return times

    async def pass_ms(self, inputs: Mapping[str, memoryview], repeats: int) -> float:
        """Milliseconds of all pieces' steps, once; the average of `repeats` passes."""
        total, results = 0.0, dict[str, Tensor]()
        for piece, executor in self._parts:
            own = self._inputs(piece, inputs, results)
            total += await executor.pass_ms(own, repeats)
            results |= await executor.run(own)
        return total

    def close(self) -> None:
        """Frees every piece."""
        for _, executor in self._parts:
            executor.close()


def _as_tensor(value: Value, inputs: Mapping[str, memoryview]) -> Tensor:
    return Tensor(inputs[value.name], value.type.shape, value.type.dtype, value.type.quant)
