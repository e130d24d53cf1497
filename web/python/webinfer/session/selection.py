"""Which backend runs a graph: an order to try, or the fastest by measurement on this device."""

from __future__ import annotations

import importlib
import logging
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from webinfer.backends import python
from webinfer.backends.base import Executor
from webinfer.errors import BackendUnavailableError, GpuError, InputError, LimitError, UnsupportedOpError
from webinfer.graph.ir import Graph, Node
from webinfer.host.interface import Host, Progress
from webinfer.ops.custom import CustomOp
from webinfer.session.partition import PartitionedExecutor, Piece, cut

log = logging.getLogger("webinfer")
BACKENDS = ("webgpu", "wasm", "webnn", "reference")
PRECISIONS = ("float32", "float16")
AUTO = ("webgpu", "wasm")  # candidates of the calibration
CALIBRATION_RUNS = 5
FALLBACK_ERRORS = (BackendUnavailableError, UnsupportedOpError, LimitError, GpuError)


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """What `load` was told besides the backend. None: what suits the machine (`threads`), the backend (`tuning_ms`)."""

    strict: bool = False
    progress: Progress | None = None
    threads: int | None = None
    tuning_ms: float | None = None  # budget for timing kernels on this device
    float16: bool = False  # how webgpu stores weights and what lies between nodes


@dataclass(slots=True)
class Attempt:
    """An executor, and in one sentence why it was chosen."""

    executor: Executor
    reason: str


def order_of(backend: str | Sequence[str], precision: str = "float32") -> list[str]:
    """The backends to try, in order; ["auto"] asks for a measurement.

    Raises:  InputError if a name or the precision is unknown, or if none of the backends has that precision
    """
    names = [backend] if isinstance(backend, str) else list(backend)
    if unknown := [n for n in names if n not in (*BACKENDS, "auto")]:
        raise InputError(f"no backend is called {unknown[0]!r}; there are auto, {', '.join(BACKENDS)}")
    if not names or ("auto" in names and len(names) > 1):
        raise InputError(f"backend={names!r}: give one name, 'auto', or a list of names without 'auto'")
    if precision not in PRECISIONS:
        raise InputError(f"precision={precision!r} is unknown; choose {' or '.join(PRECISIONS)}")
    if precision == "float16" and not {*names} & {"auto", "webgpu"}:
        raise InputError(f"precision='float16' is for webgpu; {', '.join(names)} computes in float32: leave it out")
    return names


async def choose(graph: Graph, host: Host, order: Sequence[str], options: LoadOptions) -> Attempt:
    """The graph compiled on the backend that the order names, or that is fastest for ["auto"].

    Raises:  the first backend's error if `options.strict`, else the last one's
    """
    if list(order) == ["auto"]:
        return await _measure(graph, host, options)
    refused: list[str] = []
    for i, name in enumerate(order):
        try:
            executor = await _build(name, graph, host, options)
        except UnsupportedOpError as error:
            others = [n for n in order[i + 1 :] or _helpers(name, error.nodes) if n != name]
            if options.strict or not error.nodes or not others:
                raise
            try:
                return await _divide(graph, host, name, others[0], error, options)
            except BackendUnavailableError as missing:
                raise error from missing
        except FALLBACK_ERRORS as error:
            if options.strict or i == len(order) - 1:
                raise
            refused.append(f"{name}: {error}")
            log.warning("%s falls back from %s: %s", graph.name, name, error)
            continue
        reason = f"{name} was asked for" if not refused else f"{name}, because {'; '.join(refused)}"
        return Attempt(executor, reason)
    raise InputError("no backend was named")


def _helpers(name: str, refused: Sequence[object]) -> Sequence[str]:
    """Who runs what a backend refused, where the caller named nobody: shaders of custom operators need a GPU."""
    custom = all(isinstance(node, Node) and isinstance(node.op, CustomOp) for node in refused)
    return ("wasm",) if name != "wasm" else ("webgpu",) if custom else ()


async def _divide(
    graph: Graph, host: Host, name: str, other: str, error: UnsupportedOpError, options: LoadOptions
) -> Attempt:
    """The graph on two backends: `other` runs what `name` refused. Costs a copy at every cut."""
    pieces = cut(graph, error.nodes)
    parts: list[tuple[Piece, Executor]] = []
    try:
        for piece in pieces:
            executor = await _build(name if piece.home else other, piece.graph, host, options)
            parts.append((piece, executor))
    except BaseException:
        for _, executor in parts:
            executor.close()
        raise
    labels = {
        node.label: problem
        for node, problem in zip(error.nodes, error.problems, strict=False)
        if isinstance(node, Node)
    }
    count = f"{len(error.nodes)} of {len(graph.nodes)} nodes"
    text = f"{name} for all but {count}, which run on {other}: {'; '.join(error.problems[:3])}"
    log.warning("%s: %s", graph.name, text)
    return Attempt(PartitionedExecutor(graph, parts, labels), text)


async def _build(name: str, graph: Graph, host: Host, options: LoadOptions) -> Executor:
    try:
        backend = importlib.import_module(f"webinfer.backends.{name}")
        build = backend.build
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("webinfer"):
            raise BackendUnavailableError(f"backend {name} is not part of this build of webinfer") from error
        raise BackendUnavailableError(f"backend {name} needs {error.name}: pip install {error.name}") from error
    except AttributeError as error:
        raise BackendUnavailableError(f"backend {name} is not part of this build of webinfer") from error
    extra: dict[str, Any] = {"threads": options.threads} if name == "wasm" else {}
    if name in ("wasm", "webgpu") and options.tuning_ms is not None:
        extra["tuning_ms"] = options.tuning_ms
    if name == "webgpu" and options.float16:
        extra["float16"] = True
    try:
        executor: Executor = await build(graph, host, options.progress, **extra)
    except UnsupportedOpError as error:
        if options.strict or name == "python" or not error.nodes or not all(map(python.runs, error.nodes)):
            raise
        return (await _divide(graph, host, name, "python", error, options)).executor
    return executor


async def _measure(graph: Graph, host: Host, options: LoadOptions) -> Attempt:
    """Builds every candidate that is worth it, times a few runs, keeps the fastest."""
    timed: list[tuple[float, Executor]] = []
    notes: list[str] = []
    for name in reversed(AUTO):
        try:
            if name == "webgpu" and (await host.gpu()).software:
                notes.append("webgpu would run on a software adapter")
                continue
            executor = await _build(name, graph, host, options)
            timed.append((await _time(graph, host, executor), executor))
        except FALLBACK_ERRORS as error:
            notes.append(f"{name} cannot run it: {error}")
    if not timed:
        raise BackendUnavailableError(f"no backend can run {graph.name!r}: {'; '.join(notes)}")
    timed.sort(key=lambda pair: pair[0])
    for _, loser in timed[1:]:
        loser.close()
    figures = ", ".join(f"{e.backend} {ms:.2f} ms" for ms, e in timed)
    reason = f"auto chose {timed[0][1].backend}: measured {figures}" + "".join(f"; {note}" for note in notes)
    if notes:
        log.warning("%s: %s", graph.name, reason)
    return Attempt(timed[0][1], reason)


async def _time(graph: Graph, host: Host, executor: Executor) -> float:
    """Median milliseconds of a run on zeros, after one that warms up."""
    inputs = {v.name: memoryview(bytes(v.type.nbytes)) for v in graph.inputs}
    await executor.run(inputs)
    times = []
    for _ in range(CALIBRATION_RUNS):
        start = host.now_ms()
        await executor.run(inputs)
        times.append(host.now_ms() - start)
    return statistics.median(times)
