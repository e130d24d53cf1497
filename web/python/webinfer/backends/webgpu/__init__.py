"""The WebGPU backend: graphs become dispatches, dispatches become one recorded submit.

`lowerings` says what runs, `schedule` on which blocks, `memory` and `aliasing` where they lie, `executor` makes a
`recipe` of it, `loaded_program` loads and replays that, `stored_plan` brings it into the plan cache and back, `tuning`
chooses kernels by timing, `compilation` builds with what is known, `ahead` begins before the device is there.
Knows no model format and no other backend; the device is the host's.
"""

from dataclasses import dataclass
from typing import Any

from webinfer.backends.base import BuildOptions, StoredPlan, TunableBackend
from webinfer.backends.webgpu import tuning
from webinfer.backends.webgpu.compilation import build, opened
from webinfer.backends.webgpu.executor import WebGpuExecutor
from webinfer.backends.webgpu.loaded_program import LoadedProgram
from webinfer.backends.webgpu.lowerings import LOWERINGS, UNSUPPORTED
from webinfer.backends.webgpu.stored_plan import deserialize
from webinfer.graph.ir import Cost, Graph, Node, TensorType, Tolerance, Value
from webinfer.host.interface import Host
from webinfer.ops.custom import CustomOp, Form

__all__ = ["BACKEND", "LOWERINGS", "UNSUPPORTED", "WebGpuExecutor", "build"]

_INVOCATIONS = 1 << 17
_TURNS = 8
_CHAINS = """
    var a = load4_x(q); var b = a + 1.0; var c = a + 2.0; var d = a + 3.0;
    var e = a + 4.0; var f = a + 5.0; var g = a + 6.0; var h = a + 7.0;
    for (var i = 0; i < params.turns; i++) {
        a = fma(a, b, c); b = fma(b, c, d); c = fma(c, d, e); d = fma(d, e, f);
        e = fma(e, f, g); f = fma(f, g, h); g = fma(g, h, a); h = fma(h, a, b);
    }
    return a + b + c + d + e + f + g + h;
"""


@dataclass(frozen=True, slots=True)
class _Arithmetic:
    turns: int


class WebGpuBackend(TunableBackend):
    """Compiles graphs for the host's GPU, with the kernels that won there."""

    executor = WebGpuExecutor

    async def build(self, graph: Graph, host: Host, options: BuildOptions) -> LoadedProgram:
        """The graph's stored plan where it fits the device that the host shares, else the graph compiled now."""
        return await opened(
            graph,
            host,
            options.progress,
            tuning_ms=options.tuning_ms,
            float16=options.float16,
            kind=options.device,
            entry=options.plan_entry,
        )

    def deserialize(self, data: Any, identity: str) -> StoredPlan | None:
        """The plan in these bytes, if they are whole and this engine's."""
        return deserialize(data, identity)

    def arithmetic(self, work: int) -> Graph:
        """Chains of fused multiplications and additions in registers, eight an invocation."""
        x = Value("x", TensorType((4 * _INVOCATIONS,)))
        cost = Cost(_INVOCATIONS * work * _TURNS * 8 * 4 * 2, 2 * x.type.nbytes)
        names = (("x",), ("y",), _CHAINS, Form.QUAD)
        op = CustomOp("arithmetic", _Arithmetic, lambda *_: (x.type,), lambda *_: cost, Tolerance(), (), *names)
        node = Node(op, [x], [Value("y", x.type)], _Arithmetic(work * _TURNS), "arithmetic")
        return Graph("arithmetic", [x], [node.output], [node])

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
