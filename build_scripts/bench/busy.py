"""Times models on one thread, on a team that shares every run, and on one that yields, beside busy processes."""

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from build_scripts.files import write_json
from build_scripts.paths import ROOT

TURN_S = 0.5  # of a way's turn: long beside what a system gives a process at a time
WAYS = ("one thread", "team", "team that yields")


@dataclass(frozen=True)
class Timing:
    """Runs of a model in one way, beside so many busy processes.

    Units: milliseconds
    """

    model: str
    busy: int
    way: str
    runs: int
    least: float
    median: float
    mean: float


def bench_busy(paths: Sequence[Path], busy: int, threads: int, rounds: int, json: Path | None) -> int:
    """Prints the table and writes it as JSON too; always 0. This process keeps to as many cores as it has threads."""
    for folder in (ROOT / "web" / "python", ROOT):  # the engine and its threads outside a browser, from the checkout
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    cores = sorted(os.sched_getaffinity(0))[:threads]
    os.sched_setaffinity(0, cores)
    timings = [t for path in paths for count in (0, busy) for t in timings_of(path, cores[:count], threads, rounds)]
    print(table(timings))
    if json is not None:
        write_json(json, [asdict(timing) for timing in timings])
    return 0


def timings_of(path: Path, busy: Sequence[int], threads: int, rounds: int, turn_s: float = TURN_S) -> list[Timing]:
    """A model's times in each way, in turns, while a process runs on each of the `busy` cores."""
    with ExitStack() as stack:
        plans = asyncio.run(_plans(path, threads))
        for plan in plans.values():
            stack.callback(plan.close)
        for core in busy:
            stack.enter_context(_busy_process(core))
        times: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(rounds):
            for way, plan in plans.items():
                end = time.perf_counter() + turn_s
                while (start := time.perf_counter()) < end:
                    plan.execute()
                    times[way].append((time.perf_counter() - start) * 1e3)
    figures = ((way, len(t), min(t), statistics.median(t), statistics.mean(t)) for way, t in times.items())
    return [Timing(path.stem, len(busy), *row) for row in figures]


async def _plans(path: Path, threads: int) -> dict[str, Any]:
    """The model's plan in each way, with inputs of noise."""
    import webinfer
    from webinfer.backends.wasm.executor import WasmExecutor, build_of, lower_graph
    from webinfer.host.native import NativeHost
    from webinfer.host.threads_native import ThreadPoolKernels

    session, host = await webinfer.load(path, backend="wasm", threads=1), NativeHost()
    (graph,), inputs = session.graphs(), session.noise()
    assert isinstance(session.executor, WasmExecutor)
    isa = session.executor.kernels.isa
    kernels = [await host.kernels(isa), ThreadPoolKernels(isa, threads), ThreadPoolKernels(isa, threads)]
    plans = [WasmExecutor(graph, host, found, lower_graph(graph, build_of(found), {})) for found in kernels]
    plans[1].pace = None
    for plan in plans:
        await plan.run({v.name: inputs[v.name] for v in graph.inputs})
    session.close()
    return dict(zip(WAYS, plans, strict=True))


@contextmanager
def _busy_process(core: int) -> Iterator[None]:
    text = f"import os; os.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    process = subprocess.Popen([sys.executable, "-c", text])
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def table(timings: Sequence[Timing]) -> str:
    """The timings as Markdown, one row a model and number of busy processes: mean (median), milliseconds."""
    lines = [f"| model | busy cores | {' | '.join(WAYS)} |", "|---|--:|" + "--:|" * len(WAYS)]
    for model, busy in dict.fromkeys((t.model, t.busy) for t in timings):
        row = {t.way: f"{t.mean:.2f} ({t.median:.2f})" for t in timings if (t.model, t.busy) == (model, busy)}
        lines.append(f"| {model} | {busy} | {' | '.join(row[way] for way in WAYS)} |")
    return "\n".join(lines)
