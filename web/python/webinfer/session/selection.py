"""Which backend runs a graph: the first of an order that can, or the fastest by measurement on this device."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace

from webinfer.backends import registry
from webinfer.backends.base import BuildOptions, Executor, PlanEntry, TunableBackend
from webinfer.backends.registry import AUTO
from webinfer.errors import (
    REPORT,
    BackendUnavailableError,
    CompilerError,
    DeviceLostError,
    InputError,
    IsolationError,
    OutOfMemoryError,
    UnsupportedOpError,
    WebinferError,
    meant,
    named,
)
from webinfer.graph.compiled import CompiledGraph
from webinfer.graph.ir import Graph, Node
from webinfer.host.interface import Capability, Host, Progress
from webinfer.lazy_dataclass import dataclass
from webinfer.session.backend_benchmark import FALLBACK_ERRORS, BackendBenchmark
from webinfer.session.partition import PartitionedExecutor, Piece, cut
from webinfer.session.stages import StagedExecutor, StagedGraph

log = logging.getLogger("webinfer")
PRECISIONS = ("float32", "float16")


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """What `load` was told besides the order of backends; each backend gets those of them that it takes."""

    strict: bool = False  # never fall back
    progress: Progress | None = None
    threads: int | None = None  # None: what suits the machine
    tuning_ms: float | None = None  # budget for timing kernels on this device; None: what suits the backend
    float16: bool = False  # store weights and intermediate results in half the memory
    device: str = ""  # the kind of device that is asked for; "" for any
    plan_entry: PlanEntry | None = None  # of the whole model in the plan cache
    beside: Sequence[Executor] = ()  # of the model for other sizes of inputs
    shared_memory_with: Executor | None = None  # of another model of the task

    def of(self, name: str) -> BuildOptions:
        """The options that a backend takes."""
        row = registry.ROWS[name]
        taken = {option: getattr(self, option) for option in row.options}
        entry = self.plan_entry and self.plan_entry.of(row.plan_suffix)
        return BuildOptions(
            self.progress, entry, beside=self.beside, shared_memory_with=self.shared_memory_with, **taken
        )


@dataclass(slots=True)
class Selection:
    """An executor, and in one sentence why it was selected; `benchmark` if a faster one is still looked for."""

    executor: Executor
    reason: str
    benchmark: BackendBenchmark | None = None


def order_of(backend: str | Sequence[str], precision: str = "float32") -> list[str]:
    """The backends to try, in order; ["auto"] asks for a measurement.

    Raises:  InputError if a name or the precision is unknown, or if none of the backends has that precision
    """
    if not isinstance(backend, (str, Iterable)):
        raise InputError(f"backend={backend!r}: give a name or a list of names; there are {AUTO}, {_known()}")
    names, known = [backend] if isinstance(backend, str) else list(backend), registry.names()
    if unknown := [n for n in names if n not in (*known, AUTO)]:
        near = meant(str(unknown[0]), (*known, AUTO))
        raise InputError(f"no backend is called {unknown[0]!r}; there are {AUTO}, {_known()}{near}")
    if not names or (AUTO in names and len(names) > 1):
        raise InputError(f"backend={names!r}: give one name, {AUTO!r}, or a list of names without {AUTO!r}")
    if precision not in PRECISIONS:
        raise InputError(f"precision={precision!r} is unknown; choose {' or '.join(PRECISIONS)}")
    able = registry.taking("float16")
    if precision == "float16" and not {*names} & {AUTO, *able}:
        told = f"precision='float16' is for {' or '.join(able)}"
        raise InputError(f"{told}; {', '.join(names)} computes in float32: leave it out")
    return names


def _known() -> str:
    return ", ".join(registry.names())


async def choose(
    graph: Graph, host: Host, order: Sequence[str], options: LoadOptions, *, later: bool = False
) -> Selection:
    """The graph compiled on the first backend of the order that can run it, or on the fastest for ["auto"].

    Where a backend refuses some nodes, the next of the order, or its stand-in, runs those. With `later` the caller
    sees to what is left of "auto": the selection has the backend that is ready first, and a benchmark.

    Raises:  the first backend's error if `options.strict`, else the last one's; IsolationError if `options.strict`
             asks for threads and the page cannot have them
    """
    if isinstance(graph, StagedGraph):
        return await _in_parts(graph, host, order, options)
    selection = await _select(graph, host, order, options, later)
    missing = _missing_threads(host, options)
    if missing is not None and options.strict and selection.executor.backend in registry.taking("threads"):
        selection.executor.close()
        raise IsolationError(f"threads={options.threads} was asked for, but {missing.reason}; {missing.fix}")
    selection.reason = with_wishes(selection.reason, selection.executor.backend, host, options)
    if missing is not None and selection.reason.endswith(missing.reason):
        log.warning("%s: %s", graph.name, selection.reason)
    return selection


def with_wishes(reason: str, backend: str, host: Host, options: LoadOptions) -> str:
    """A reason, and what the backend makes of the device and the threads that were asked for."""
    if options.device:
        takes = backend in registry.taking("device")
        reason += f"; device={options.device!r} was asked for" + ("" if takes else f", which {backend} cannot choose")
    missing = _missing_threads(host, options)
    if missing is not None and backend in registry.taking("threads"):
        reason += f"; on one thread, because {missing.reason}"
    return reason


async def _in_parts(graph: StagedGraph, host: Host, order: Sequence[str], options: LoadOptions) -> Selection:
    """A staged graph, each of its parts on the backend that suits it; later parts are compiled by runs."""
    # Weak: an executor that held those before it would hold all that there ever were.
    others = [weakref.ref(other) for other in options.beside if isinstance(other, StagedExecutor)]
    options = replace(options, plan_entry=None, shared_memory_with=None, beside=())

    async def build(part: Graph) -> Executor:
        kept = [executor, *(other for ref in others if (other := ref()) is not None)]
        beside = [one for staged in reversed(kept) for one in staged.kept()]
        found = await choose(part, host, order, replace(options, beside=beside))
        if found.reason not in selection.reason:
            selection.reason += f"; {found.reason}"
        return found.executor

    executor = StagedExecutor(graph, build, order[0])
    selection = Selection(executor, "in parts, because its control flow depends on data")
    await executor.open()
    return selection


def _missing_threads(host: Host, options: LoadOptions) -> Capability | None:
    """What keeps a page from the threads that were asked for by number, or None."""
    if options.threads is None or options.threads <= 1:
        return None
    return next((c for c in host.capabilities() if c.name == "threads" and not c.present), None)


async def _select(graph: Graph, host: Host, order: Sequence[str], options: LoadOptions, later: bool) -> Selection:
    if list(order) == [AUTO]:
        return await _measured(graph, host, options, later and host.settles_later and not options.strict)
    refused: list[str] = []
    for i, name in enumerate(order):
        try:
            executor = await _build(name, graph, host, options)
        except UnsupportedOpError as error:
            others = [n for n in order[i + 1 :] or _stand_ins(name, error.nodes) if n != name]
            if options.strict or not error.nodes or not others:
                raise
            try:
                return await _divide(graph, host, name, others[0], error, options)
            except BackendUnavailableError as missing:
                raise error from missing
            except FALLBACK_ERRORS as failed:
                if i == len(order) - 1:
                    raise
                refused.append(f"{name} with {others[0]}: {failed}")
                log.warning("%s falls back from %s with %s: %s", graph.name, name, others[0], failed)
                continue
        except FALLBACK_ERRORS as error:
            if options.strict or i == len(order) - 1:
                raise
            refused.append(named(name, error))
            log.warning("%s falls back from %s: %s", graph.name, name, error)
            continue
        reason = f"{name} was asked for" if not refused else f"{name}, because {'; '.join(refused)}"
        return Selection(executor, reason)
    raise InputError("no backend was named")


def _stand_ins(name: str, refused: Sequence[object]) -> list[str]:
    """Who may run what a backend refused, where the caller named nobody."""
    from webinfer.ops.custom import CustomOp  # and all operators with it

    return registry.fallbacks(name, all(isinstance(n, Node) and isinstance(n.op, CustomOp) for n in refused))


async def _divide(
    graph: Graph, host: Host, name: str, other: str, error: UnsupportedOpError, options: LoadOptions
) -> Selection:
    """The graph on two backends: `other` runs what `name` refused. Costs a copy at every cut."""
    options = replace(options, plan_entry=None, shared_memory_with=None)  # both are for whole models
    parts: list[tuple[Piece, Executor]] = []
    try:
        for piece in cut(graph, error.nodes):
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
    return Selection(PartitionedExecutor(graph, parts, labels), text)


async def _build(name: str, graph: Graph, host: Host, options: LoadOptions) -> Executor:
    """The graph on one backend, or on it and on an assistant that accepts all nodes that it refuses.

    A device that is lost meanwhile is replaced once: drivers restart, and the next device is another one.

    Raises:  as `Backend.build`; CompilerError instead of what no backend should raise
    """
    try:
        try:
            return await _built(name, graph, host, options)
        except DeviceLostError as error:
            log.warning("%s on %s: %s; it is built again", graph.name, name, error)
            return await _built(name, graph, host, options)
    except WebinferError:
        raise
    except MemoryError as error:
        raise OutOfMemoryError(f"{graph.name!r} on {name}: {str(error) or 'no memory'}; use a smaller model") from error
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        raise CompilerError(f"{graph.name!r} cannot be compiled for {name}: {told}; {REPORT}") from error


async def _built(name: str, graph: Graph, host: Host, options: LoadOptions) -> Executor:
    if isinstance(graph, CompiledGraph):
        compiled: Executor = await graph.build(name, host, options.of(name))
        return compiled
    try:
        return await registry.open_backend(name).build(graph, host, options.of(name))
    except UnsupportedOpError as error:
        nodes = [node for node in error.nodes if isinstance(node, Node)]
        if options.strict or not nodes or len(nodes) < len(error.nodes):
            raise
        for row in registry.helper_backends():
            if row.name != name and all(map(registry.open_backend(row.name).accepts, nodes)):
                return (await _divide(graph, host, name, row.name, error, options)).executor
        raise


async def _measured(graph: Graph, host: Host, options: LoadOptions, later: bool) -> Selection:
    """The backend that is ready first, with a benchmark still to run; or the fastest, if that cannot wait."""
    benchmark = BackendBenchmark(graph, host, lambda name: _build(name, graph, host, options))
    best = await benchmark.next()
    if best is None:
        raise benchmark.failure()
    if later and benchmark.open:
        reason = f"{AUTO} starts with {best.backend}, which is ready first; {benchmark.open} is measured later"
        return Selection(best, reason, benchmark)
    while (rival := await benchmark.next()) is not None:
        winner = await benchmark.faster(best, rival, nullcontext)
        (rival if winner is best else best).close()
        best = winner
    reason = benchmark.outcome(best)
    if benchmark.missed:
        log.warning("%s: %s", graph.name, reason)
    return Selection(best, reason)


def tuned_backend(preferred: str) -> TunableBackend:
    """The preferred backend if it is tuned by hand, else one that is."""
    able = registry.able(TunableBackend)
    backend = registry.open_backend(preferred if preferred in able else able[0])
    assert isinstance(backend, TunableBackend)
    return backend
