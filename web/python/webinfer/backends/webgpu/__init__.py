"""The WebGPU backend: graphs become dispatches, dispatches become one recorded submit.

`lowerings` says what runs, `schedule` on which blocks, `memory` and `aliasing` where they lie,
`executor` loads and replays, `tuning` chooses kernels by timing, `compilation` builds with what is known.
Knows no model format and no other backend; the device is the host's.
"""

from webinfer.backends.base import Backend, BuildOptions
from webinfer.backends.webgpu import tuning
from webinfer.backends.webgpu.compilation import build
from webinfer.backends.webgpu.executor import WebGpuExecutor
from webinfer.backends.webgpu.lowerings import LOWERINGS, UNSUPPORTED
from webinfer.graph.ir import Graph
from webinfer.host.interface import Host

__all__ = ["BACKEND", "LOWERINGS", "UNSUPPORTED", "WebGpuExecutor", "build"]


class WebGpuBackend(Backend):
    """Compiles graphs for the host's GPU, with the kernels that won there."""

    async def build(self, graph: Graph, host: Host, options: BuildOptions) -> WebGpuExecutor:
        """The graph, compiled for the device that the host shares."""
        return await build(graph, host, options.progress, tuning_ms=options.tuning_ms, float16=options.float16)

    async def export_tuning(self, host: Host) -> str:
        """What was found on this host's device, as JSON lines."""
        return await tuning.export_log(host)

    async def import_tuning(self, host: Host, text: str) -> tuple[int, int]:
        """How many lines were added to what is known of this host's device, and how many belong to others."""
        given = await tuning.import_log(host, text)
        return len(given.winners) + len(given.verdicts), given.skipped

    async def forget_tuning(self, host: Host) -> None:
        """Forgets what was found on this host's device."""
        await tuning.forget(host)


BACKEND = WebGpuBackend()
