"""What a tuner may try on the wasm backend: the tiles of each distinct convolution."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from webinfer.backends.wasm.builder import Builder
from webinfer.backends.wasm.executor import WasmExecutor, lower_graph
from webinfer.backends.wasm.kernel_table import KERNELS
from webinfer.backends.wasm.lowerings.conv import candidates, tuning_key
from webinfer.errors import ModelFormatError
from webinfer.flags import debug
from webinfer.graph.ir import Graph, Node
from webinfer.host.interface import Host, Kernels
from webinfer.tune.log import from_lines, to_lines
from webinfer.tune.search import Run, Trial, Winner, compare
from webinfer.tune.single_node import graph_of_nodes
from webinfer.version import VERSION

MIN_MS = 0.1  # a timing shorter than this is repeated until it is not
ROUNDS = 7  # interleaved; the least of a tile counts: a busy machine makes timings longer, never shorter
MARGIN = 0.1  # share by which a tile must beat the default


def trials(graph: Graph) -> dict[str, tuple[Trial, Node]]:
    """Each distinct shape that several tiles fit, by tuning key, with a node of that shape."""
    found: dict[str, tuple[Trial, Node]] = {}
    for node in graph.nodes:
        tiles = candidates(node) if all(v is None or v.type.dtype.is_float for v in node.inputs) else []
        if len(tiles) < 2:
            continue
        key = tuning_key(node)
        if key not in found:
            found[key] = (Trial(key, tuple(tiles), node.cost().flops), node)
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


async def recall_tuned(graph: Graph, host: Host) -> Mapping[str, str]:
    """The tiles that beat the default on this device, for the shapes of this graph."""
    possible = trials(graph)
    return _changed(possible, await _recall_log(host)) if possible else {}


async def tune(graph: Graph, host: Host, isa: str, budget_ms: float) -> tuple[Mapping[str, str], int]:
    """The tiles that beat the default, after a search among the shapes nobody timed; and how many are left of those.

    Winners are remembered by the host under its fingerprint and the kernels' interface. A budget of 0 searches
    nothing, and nothing is left to do.
    """
    possible = trials(graph) if budget_ms > 0 else {}
    if not possible:
        return {}, 0
    remembered = await _recall_log(host)
    missing = [trial for key, (trial, _) in possible.items() if key not in remembered]
    if missing:

        async def prepare(trial: Trial, tile: str) -> Run:
            await host.pause()
            graph = graph_of_nodes([possible[trial.key][1]])
            kernels = await host.kernels(isa)
            executor = WasmExecutor(graph, host, kernels, _built(graph, kernels, trial.key, tile))
            return _NodeRun(executor, host.now_ms)

        winners = await _search(missing, prepare, host.now_ms, budget_ms)
        remembered |= {w.key: w for w in winners}
        await host.remember(_log_name(host), to_lines(remembered.values()))
    return _changed(possible, remembered), sum(key not in remembered for key in possible)


async def _search(
    trials: Sequence[Trial], prepare: Callable[[Trial, str], Awaitable[Run]], clock: Callable[[], float], ms: float
) -> list[Winner]:
    """The winners of the heaviest shapes. A shape that the budget of `ms` cuts short is left for the next time, but
    for the first, whose default then stays."""
    deadline, winners = clock() + ms, list[Winner]()
    for trial in sorted(trials, key=lambda t: -t.weight):
        default, runs = trial.candidates[0], dict[str, Run]()
        try:
            for tile in trial.candidates:
                runs[tile] = await prepare(trial, tile)
            times = await compare(runs, MIN_MS, lambda: clock() >= deadline, ROUNDS)
        finally:
            for run in runs.values():
                run.close()
        best = {tile: min(found) for tile, found in times.items()}
        winner, late = min(best, key=lambda tile: best[tile]), clock() >= deadline
        if late and winners:
            break
        if late or best[winner] > best[default] * (1 - MARGIN):
            winner = default
        winners.append(Winner(trial.key, winner, best[winner], best[default], default))
        if late:
            break
    return winners


def _log_name(host: Host) -> str:
    return f"tuning-wasm-{VERSION}-{KERNELS.abi}-{host.fingerprint()}"


async def _recall_log(host: Host) -> dict[str, Winner]:
    try:
        return {w.key: w for w in from_lines(await host.recall(_log_name(host)) or "")}
    except ModelFormatError as error:
        debug(1, f"the tuning log is not used: {error}")
        return {}


def _changed(possible: Collection[str], remembered: Mapping[str, Winner]) -> Mapping[str, str]:
    return {w.key: w.choice for w in remembered.values() if w.key in possible and w.changed}


def _built(graph: Graph, kernels: Kernels, key: str, tile: str) -> Builder:
    return lower_graph(graph, kernels.isa, {key: tile})
