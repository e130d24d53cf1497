"""What the engine asks of a GPU for a graph, as plain data that a page replays without Python."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

LIMITS = {  # what the page asks of a device; a variant that a device refuses is reported as such
    "maxBufferSize": 1 << 31, "maxStorageBufferBindingSize": 1 << 31, "maxStorageBuffersPerShaderStage": 8,
    "maxComputeWorkgroupStorageSize": 49152, "maxComputeInvocationsPerWorkgroup": 1024,
    "maxComputeWorkgroupsPerDimension": 65535, "minStorageBufferOffsetAlignment": 256,
    "minUniformBufferOffsetAlignment": 256,
}  # fmt: skip


@dataclass
class Recorder:
    """A GPU device and program that only write down what they are asked (host.gpu)."""

    texts: dict[str, int]  # shader text -> number, shared by all recordings
    name: str = "recorder"
    software: bool = False
    notes_load: bool = True
    features: frozenset[str] = frozenset({"subgroups", "timestamp-query"})
    limits: Mapping[str, int] = field(default_factory=lambda: LIMITS)
    lost: str = ""
    record: dict[str, Any] = field(default_factory=dict)

    async def gpu(self) -> "Recorder":
        """This, as the host's device."""
        return self

    def start_pipelines(self, specs: Sequence[Any]) -> list[int]:
        """Numbers of (shader, bindings)."""
        known = self.record.setdefault("pipelines", [])
        numbers = []
        for spec in specs:
            pair = [self.texts.setdefault(spec.code, len(self.texts)), list(spec.bindings)]
            if pair not in known:
                known.append(pair)
            numbers.append(known.index(pair))
        return numbers

    async def pipelines_ready(self, numbers: Sequence[int]) -> None:
        """Nothing is made of them."""

    async def program(
        self, label: str, buffers: Sequence[int], uniforms: bytes, dispatches: Sequence[Any]
    ) -> "Recorder":
        """Takes sizes, parameters and dispatches."""
        self.record |= {
            "buffers": list(buffers), "uniforms": uniforms.hex(), "filled": [], "prepare": 0,
            "dispatches": [
                [d.pipeline, [[s.buffer, s.offset, s.nbytes] for s in d.bindings], list(d.groups)] for d in dispatches
            ],
        }  # fmt: skip
        return self

    def write(self, buffer: int, data: Any) -> None:
        """Remembers which buffers hold constants; the page fills them with random numbers."""
        self.record["filled"].append(buffer)

    async def run(self, first: int, count: int, reads: Sequence[Any]) -> list[memoryview]:
        """The load's own dispatches."""
        self.record["prepare"] = count
        return []

    def free(self, buffers: Sequence[int], dispatches: int) -> None:
        """Nothing: a recording keeps all."""

    async def time(self, first: int, count: int, repeats: int) -> float:
        """Recordings have no time."""
        return 0.0

    def close(self) -> None:
        """Nothing is open."""


def recorded(
    graph: Any, texts: dict[str, int], tuned: Mapping[str, str], features: frozenset[str] = Recorder.features
) -> dict[str, Any]:
    """What the engine asks of a GPU with these features for this graph."""
    from webinfer.backends import webgpu

    recorder = Recorder(texts, features=features)
    executor = asyncio.run(webgpu.build(graph, recorder, tuned=tuned))
    schedule = executor._schedule
    recorder.record["filled"] += [region.block.buffer for region in schedule.inputs.values()]
    recorder.record["output"] = [schedule.outputs[0][1].block.buffer, schedule.outputs[0][0].type.nbytes]
    return recorder.record


def flops_of(nodes: Sequence[Any]) -> int:
    """Arithmetic of some nodes."""
    return sum(node.cost().flops for node in nodes)


def constant(shape: tuple[int, ...]) -> Any:
    """A float32 constant for the page to fill."""
    from webinfer.dtypes import DType
    from webinfer.graph.ir import Constant, TensorType, Value

    type = TensorType(shape)
    return Value("w", type, Constant(memoryview(bytes(type.nbytes)), DType.FLOAT32))
