"""From a graph to an executor with the choices that are known for this device, or timed now."""

from __future__ import annotations

from collections.abc import Mapping

from webinfer.backends.webgpu.executor import WebGpuExecutor, compiled
from webinfer.backends.webgpu.tuning import Tuner, about, recall
from webinfer.graph.ir import Graph
from webinfer.host.gpu import GpuDevice
from webinfer.host.interface import Host, Progress
from webinfer.tune.log import Log


async def build(
    graph: Graph,
    host: Host,
    progress: Progress | None = None,
    *,
    choices: Mapping[str, str] | None = None,
    tuning_ms: float | None = None,
) -> WebGpuExecutor:
    """A graph compiled for the GPU of this host.

    `choices` names kernels by tuning key; None takes what was timed on this device before, then what is shipped for
    its class. `tuning_ms` is a budget for timing what is not known yet; with 0 nothing that was timed here applies.

    Raises:  BackendUnavailableError; UnsupportedOpError listing every node; LimitError; OutOfMemoryError; GpuError
    """
    device: GpuDevice = await host.gpu()
    if choices is not None:
        return await compiled(graph, host, device, choices, {}, progress)
    tuner = Tuner(graph, host, device, Log(about(device)) if tuning_ms == 0 else await recall(host, device))
    if tuning_ms:
        return await tuner.tune(tuning_ms, progress)
    return await tuner.compiled(tuner.tuned(), progress)
