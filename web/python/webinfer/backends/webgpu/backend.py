"""What the registry knows of the WebGPU backend: how graphs are built and tuned, and plans stored."""

from collections.abc import Mapping, Sequence
from typing import Any

from webinfer.backends.base import (
    BindingBackend,
    BuildOptions,
    Executor,
    ReadGraph,
    RegimeExecutor,
    StoredPlan,
    StoredRegimes,
    TunableBackend,
)
from webinfer.backends.webgpu import tuning
from webinfer.backends.webgpu.compilation import build, opened
from webinfer.backends.webgpu.default_tunings import default_tunings
from webinfer.backends.webgpu.dispatch import Target
from webinfer.backends.webgpu.executor import WebGpuExecutor
from webinfer.backends.webgpu.loaded_program import LoadedProgram
from webinfer.backends.webgpu.open_program import OpenProgram, build_open
from webinfer.backends.webgpu.schedule import Schedule, make_schedule, release_after_load
from webinfer.backends.webgpu.stored_plan import deserialize, requirements
from webinfer.backends.webgpu.stored_regimes import MAGIC, restored_open, serialize_open
from webinfer.graph.ir import Cost, Graph, Node, TensorType, Tolerance, Value
from webinfer.graph.trace import Trace
from webinfer.host.gpu import GpuDevice
from webinfer.host.interface import Host
from webinfer.lazy_dataclass import dataclass
from webinfer.lowering.appended import Appended
from webinfer.ops.custom import CustomOp, Form

_INVOCATIONS = 1 << 17  # of the measurement of the arithmetic: half of what an H100 can have at work
_TURNS = 8  # of its loop, for each unit of work
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


class WebGpuBackend(TunableBackend, BindingBackend):
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
            beside=options.beside,
        )

    async def build_open(self, graph: Graph, trace: Trace, host: Host, options: BuildOptions) -> OpenProgram | None:
        """The graph as a program that can be bound to sizes; none in float16."""
        if options.float16 or graph.states or graph.resident or graph.parts:
            return None
        device: GpuDevice = await (host.gpu(options.device) if options.device else host.gpu())
        target = Target.of(device, default_tunings(device.name, device.software))
        return await build_open(
            graph, trace, host, device, lambda own, appended: _scheduled(own, target, appended), dict, options.beside
        )

    def deserialize(self, data: Any, identity: str) -> StoredPlan | StoredRegimes | None:
        """The plan in these bytes, if they are whole and this engine's."""
        return deserialize(data, identity) or StoredRegimes.read("webgpu", MAGIC, data, identity)

    def serialize_open(self, executors: Sequence[Executor], host: Host, about: Mapping[str, Any]) -> bytes:
        """The bytes to store of programs with symbols."""
        device = executors[-1].device
        return b"" if device is None else serialize_open(executors, _fits(host, device), about)

    async def restore_open(
        self, stored: StoredRegimes, host: Host, options: BuildOptions, read: ReadGraph
    ) -> Sequence[RegimeExecutor]:
        """Stored programs, each of which comes onto the device when it is bound."""
        if options.float16:
            return []
        device: GpuDevice = await (host.gpu(options.device) if options.device else host.gpu())
        fits = stored.facts["fits"] == _fits(host, device)
        return restored_open(stored, host, device, build, read) if fits else []

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


def _fits(host: Host, device: GpuDevice) -> list[Any]:
    """What must be equal for a program with symbols to hold: none is tuned on the device."""
    return requirements(host, device, default_tunings(device.name, device.software), "")


def _scheduled(graph: Graph, target: Target, appended: Sequence[Appended]) -> Schedule:
    schedule = make_schedule(graph, target, appended=appended)
    release_after_load(schedule)
    return schedule


BACKEND = WebGpuBackend()
