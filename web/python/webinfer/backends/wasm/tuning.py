"""What the wasm backend lets a tuner try: the tiles of each distinct convolution."""

from __future__ import annotations

from collections.abc import Mapping

from webinfer.backends.wasm.builder import Builder
from webinfer.backends.wasm.executor import WasmExecutor, lower_graph
from webinfer.backends.wasm.kernel_table import ABI
from webinfer.backends.wasm.lowerings.conv import candidates, tuning_key
from webinfer.graph.ir import Graph, Node, Value
from webinfer.host.interface import Host, Kernels
from webinfer.tune.log import choices_of, from_lines, to_lines
from webinfer.tune.search import Run, Trial, search

DEFAULT_BUDGET_MS = 200.0


def trials(graph: Graph) -> dict[str, tuple[Trial, Node]]:
    """Each distinct shape that has a choice, with a node of that shape."""
    found: dict[str, tuple[Trial, Node]] = {}
    for node in graph.nodes:
        tiles = candidates(node) if all(v is None or v.type.dtype.is_float for v in node.inputs) else []
        if len(tiles) < 2:
            continue
        key = tuning_key(node)
        if key not in found:
            types = [v.type if v is not None else None for v in node.inputs]
            flops = node.op.cost(types, [v.type for v in node.outputs], node.attrs).flops
            found[key] = (Trial(key, tuple(tiles), flops), node)
    return found


class _NodeRun:
    """One node with one tile, in a kernel instance of its own."""

    def __init__(self, executor: WasmExecutor) -> None:
        self._executor = executor

    def __call__(self, repeats: int) -> None:
        for _ in range(repeats):
            self._executor.execute()

    def close(self) -> None:
        self._executor.close()


async def tuned_choices(graph: Graph, host: Host, isa: str | None, budget_ms: float) -> Mapping[str, str]:
    """The tile for each shape: remembered ones, and what a search within the budget finds for the rest.

    Winners are remembered by the host under its fingerprint and the kernels' interface.
    """
    possible = trials(graph)
    if not possible or budget_ms <= 0:
        return {}
    name = f"tuning-wasm-{ABI}-{host.fingerprint()}"
    remembered = {w.key: w for w in from_lines(await host.recall(name) or "")}
    missing = [trial for key, (trial, _) in possible.items() if key not in remembered]
    if missing:

        async def prepare(trial: Trial, tile: str) -> Run:
            alone = _alone(possible[trial.key][1])
            kernels = await host.kernels(isa)
            return _NodeRun(WasmExecutor(alone, host, kernels, _built(alone, kernels, trial.key, tile)))

        winners = await search(missing, prepare, host.now_ms, budget_ms)
        remembered |= {w.key: w for w in winners}
        await host.remember(name, to_lines(remembered.values()))
    return choices_of(w for w in remembered.values() if w.key in possible)


def _built(graph: Graph, kernels: Kernels, key: str, tile: str) -> Builder:
    return lower_graph(graph, kernels.isa, {key: tile})


def _alone(node: Node) -> Graph:
    """A graph of this node only; what it reads besides constants becomes an input."""
    copies: dict[Value, Value] = {}
    for value in node.inputs:
        if value is not None and not value.is_constant:
            copies.setdefault(value, Value(f"in{len(copies)}", value.type))
    outputs = [Value(f"out{i}", v.type) for i, v in enumerate(node.outputs)]
    inputs = [copies.get(v, v) if v is not None else None for v in node.inputs]
    return Graph("trial", copies.values(), outputs, [Node(node.op, inputs, outputs, node.attrs, "trial")])
