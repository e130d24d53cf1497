"""From a graph to an executor, with the kernels that are tuned for this device or are timed now."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from webinfer.backends.base import Executor, PlanEntry
from webinfer.backends.webgpu.default_tunings import default_tunings
from webinfer.backends.webgpu.executor import WebGpuExecutor, compiled
from webinfer.backends.webgpu.float16 import in_float16
from webinfer.backends.webgpu.loaded_program import LoadedProgram
from webinfer.backends.webgpu.speculative_lowering import SpeculativeLowering
from webinfer.backends.webgpu.stored_plan import GpuStoredPlan, RestoredProgram, requirements, serialize
from webinfer.backends.webgpu.tuning import Tuner, known
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Graph, Node
from webinfer.host.gpu import GpuDevice, GpuOffer
from webinfer.host.interface import Host, Progress

_later: set[asyncio.Task[None]] = set()


async def opened(
    graph: Graph,
    host: Host,
    progress: Progress | None = None,
    *,
    tuning_ms: float | None = None,
    float16: bool = False,
    kind: str = "",
    entry: PlanEntry | None = None,
    beside: Sequence[Executor] = (),
) -> LoadedProgram:
    """As `build`, or the plan in `entry` if it fits; with an entry a new plan is stored for the next visit.

    Raises:  as `build`
    """
    if entry is None or tuning_ms or float16:
        return await build(graph, host, progress, tuning_ms=tuning_ms, float16=float16, kind=kind, beside=beside)
    stored = entry.take(GpuStoredPlan)
    ahead = await _ahead(graph, host, tuning_ms) if stored is None and not kind else None
    opening = host.gpu(kind) if kind else host.gpu()
    device: GpuDevice = await (opening if ahead is None else ahead.until(opening))
    log = ahead.log if ahead and ahead.offered(device) else await known(host, device, tuning_ms)

    def fits() -> list[Any]:
        return requirements(host, device, default_tunings(device.name, device.software), log.text())

    if stored is not None and stored.fits == fits():
        restored = RestoredProgram(stored, graph, host, device, build)
        await restored.load(progress)
        return restored
    tuner = Tuner(graph, host, device, log)
    executor = await tuner.compiled(tuner.tuned(), progress, ahead=ahead)
    if host.settles_later:
        _store_later(executor, host, entry.name, fits())
    else:
        await _store(executor, host, entry.name, fits())
    return executor


async def _ahead(graph: Graph, host: Host, tuning_ms: float | None) -> SpeculativeLowering | None:
    """What lowers the graph while the device is being opened; None where nobody knows what that will be, or kernels
    were timed there."""
    offer: GpuOffer | None = await host.gpu_offer()
    if offer is None:
        return None
    log = await known(host, offer, tuning_ms)
    return (
        None
        if log.winners
        else SpeculativeLowering(graph, offer, dict(default_tunings(offer.name, offer.software)), log)
    )


def _store_later(executor: WebGpuExecutor, host: Host, name: str, fits: list[Any]) -> None:
    """Stores a plan when nobody waits; not if the loop ends before, or the session is closed."""
    loop = asyncio.get_running_loop()

    def start() -> None:
        if not executor.closed and not executor.lost:
            task = loop.create_task(_store(executor, host, name, fits))
            _later.add(task)
            task.add_done_callback(_later.discard)

    loop.call_later(host.idle_delay_s, start)


async def _store(executor: WebGpuExecutor, host: Host, name: str, fits: list[Any]) -> None:
    data = serialize(executor, fits)
    if data:
        await host.remember_bytes(name, data)


async def build(
    graph: Graph,
    host: Host,
    progress: Progress | None = None,
    *,
    tuned: Mapping[str, str] | None = None,
    tuning_ms: float | None = None,
    float16: bool = False,
    kind: str = "",
    given_ends: bool = False,
    beside: Sequence[Executor] = (),
) -> WebGpuExecutor:
    """A graph compiled for the GPU of this host.

    `tuned` names kernels by tuning key; None takes those that won on this device, then the default tunings of its
    class. `tuning_ms` is a budget for timing what is not known yet; with 0 nothing that was timed here applies.
    With `float16` weights and values between nodes are stored in that type. `kind` is the kind of device to choose.
    `given_ends` is for who replays the executor's `recording` on buffers of his own; such a plan is not timed. A plan
    that is not timed shares constants with those of `beside`, plans of the same model for other sizes.

    Raises:  BackendUnavailableError; UnsupportedOpError listing every node; LimitError; OutOfMemoryError; GpuError
    """
    if float16:
        return await _in_float16(graph, host, progress, tuned, tuning_ms, kind)
    device: GpuDevice = await (host.gpu(kind) if kind else host.gpu())
    if tuned is not None:
        return await compiled(graph, host, device, tuned, dict, progress)
    log = await known(host, device, tuning_ms)
    tuner = Tuner(graph, host, device, log)
    if tuning_ms:
        return await tuner.tune(tuning_ms, progress)
    return await tuner.compiled(tuner.tuned(), progress, given_ends=given_ends, beside=beside)


async def _in_float16(
    graph: Graph,
    host: Host,
    progress: Progress | None,
    tuned: Mapping[str, str] | None,
    tuning_ms: float | None,
    kind: str,
) -> WebGpuExecutor:
    """As `build`, of a float16 copy of the graph; errors and results still name the given graph's nodes and values."""
    copy, originals = in_float16(graph)
    try:
        executor = await build(copy, host, progress, tuned=tuned, tuning_ms=tuning_ms, kind=kind)
    except UnsupportedOpError as error:
        nodes = dict(zip(copy.nodes, graph.nodes, strict=True))
        raise UnsupportedOpError(error.problems, [nodes[n] for n in error.nodes if isinstance(n, Node)]) from error
    executor.originals = originals
    return executor
