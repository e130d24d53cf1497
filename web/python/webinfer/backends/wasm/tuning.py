"""What the wasm backend lets a tuner try: the tiles of each distinct convolution."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from webinfer.backends.wasm.builder import Builder
from webinfer.backends.wasm.executor import WasmExecutor, lower_graph
from webinfer.backends.wasm.kernel_table import ABI
from webinfer.backends.wasm.lowerings.conv import candidates, tuning_key
from webinfer.graph.ir import Graph, Node
from webinfer.host.interface import Host, Kernels
from webinfer.tune.alone import alone
from webinfer.tune.log import choices_of, from_lines, to_lines
from webinfer.tune.search import Run, Trial, search

DEFAULT_BUDGET_MS = 200.0
LEAST_MS = 0.05  # a timing shorter than this is repeated until it is not


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

    def __init__(self, executor: WasmExecutor, clock: Callable[[], float]) -> None:
        self._executor, self._clock = executor, clock

    async def elapsed(self, repeats: int) -> float:
        begin = self._clock()
        for _ in range(repeats):
            self._executor.execute()
        return self._clock() - begin

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
            graph = alone(possible[trial.key][1])
            kernels = await host.kernels(isa)
            executor = WasmExecutor(graph, host, kernels, _built(graph, kernels, trial.key, tile))
            return _NodeRun(executor, host.now_ms)

        winners = await search(missing, prepare, host.now_ms, budget_ms, least_ms=LEAST_MS)
        remembered |= {w.key: w for w in winners}
        await host.remember(name, to_lines(remembered.values()))
    return choices_of(w for w in remembered.values() if w.key in possible)


def _built(graph: Graph, kernels: Kernels, key: str, tile: str) -> Builder:
    return lower_graph(graph, kernels.isa, {key: tile})
