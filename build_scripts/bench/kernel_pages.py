"""Writes a site that times WebGPU kernels alone: every candidate of every distinct product of some models.

The page needs neither Python nor a server of ours: shaders are rendered here, and all that the engine would
ask of a GPU is recorded as plain data that the page replays.
"""

import asyncio
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from build_scripts.bench.base import HOME

SQUARES = (1024, 2048, 4096)
MODELS = ("blazeface_short_range", "pose_landmarks_lite")
BATCHED = ("mobilenet_v2_100_224_quant", 32)  # the shapes of its products in float32, at this batch
INTEROP = ((1, 100, 100, 100), (100, 3, 3, 100))  # input and weights of the interop tests' convolution
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
    features: frozenset[str] = frozenset({"subgroups", "timestamp-query"})
    limits: Mapping[str, int] = field(default_factory=lambda: LIMITS)
    lost: str = ""
    record: dict[str, Any] = field(default_factory=dict)

    async def gpu(self) -> "Recorder":
        """This, as the host's device."""
        return self

    def begin(self, specs: Sequence[Any]) -> list[int]:
        """Numbers of (shader, bindings)."""
        known = self.record.setdefault("pipelines", [])
        numbers = []
        for spec in specs:
            pair = [self.texts.setdefault(spec.code, len(self.texts)), list(spec.bindings)]
            if pair not in known:
                known.append(pair)
            numbers.append(known.index(pair))
        return numbers

    async def ready(self, numbers: Sequence[int]) -> None:
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
        """Remembers which buffers hold constants; the page fills them with noise."""
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
    graph: Any, texts: dict[str, int], choices: Mapping[str, str], features: frozenset[str] = Recorder.features
) -> dict[str, Any]:
    """What the engine asks of a GPU with these features for this graph."""
    from webinfer.backends import webgpu

    recorder = Recorder(texts, features=features)
    executor = asyncio.run(webgpu.build(graph, recorder, tuned=choices))  # type: ignore[arg-type]
    schedule = executor._schedule
    recorder.record["filled"] += [region.block.buffer for region in schedule.inputs.values()]
    recorder.record["output"] = [schedule.outputs[0][1].block.buffer, schedule.outputs[0][0].type.nbytes]
    return recorder.record


def write_kernel_site(site: Path, models: Path) -> int:
    """The site; open its kernels.html on the machine with the GPU. The number of cases."""
    from build_scripts.bench.sums import sum_cases

    texts: dict[str, int] = {}
    files: dict[str, list[dict[str, Any]]] = {"sums": list(sum_cases(texts))}
    for group, label, node in nodes(models):
        case = case_of(label, node, texts)
        if case["variants"]:
            files.setdefault(group, []).append(case)
    for name in MODELS:
        files.setdefault("fused", []).extend(fused_cases(models, name, texts))
        files.setdefault("whole", []).append(whole_of(models, name, texts))
    write_page(site, files, texts)
    return sum(len(cases) for cases in files.values())


def write_page(site: Path, files: Mapping[str, Sequence[dict[str, Any]]], texts: Mapping[str, int]) -> None:
    """The page with the cases of each group and the shaders that they name."""
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(HOME / "kernels", site)
    for group, cases in files.items():
        (site / f"{group}.json").write_text(json.dumps(cases, separators=(",", ":")))
    (site / "shaders.json").write_text(json.dumps(list(texts), separators=(",", ":")))


def case_of(label: str, node: Any, texts: dict[str, int]) -> dict[str, Any]:
    """A node with each of its candidates."""
    from webinfer.backends.webgpu.dispatch import Target
    from webinfer.backends.webgpu.lowerings.variants import TILES, candidates, tuning_key
    from webinfer.graph.ir import Graph

    target, key = Target(LIMITS, Recorder({}).features), tuning_key(node)
    names = list(candidates(node, target))
    if node.op.name == "matmul":
        names = [*(name for name, tile in TILES.items() if tile.fits(target)), "4x8"]
    inputs = [v for v in node.inputs if v is not None and not v.is_constant]
    graph = Graph(label, inputs, node.outputs, [node])
    variants = {name: recorded(graph, texts, {key: name}) for name in names}
    return {"label": label, "key": key, "flops": flops_of([node]), "variants": variants if len(variants) > 1 else {}}


def fused_cases(models: Path, name: str, texts: dict[str, int]) -> Iterator[dict[str, Any]]:
    """Every distinct fusion of a model, with each of its candidates; "separate" takes a dispatch for each node."""
    from webinfer.backends.webgpu.dispatch import Target
    from webinfer.backends.webgpu.fusion import find_fusions
    from webinfer.graph.ir import Graph

    target, seen = Target(LIMITS, Recorder({}).features), set()
    for last, (fusion, _) in find_fusions(_graph(models, name), set(), target).items():
        if fusion.key not in seen:
            seen.add(fusion.key)
            nodes = [*fusion.absorbed, last]
            made = {v for node in nodes for v in node.outputs}
            inputs = dict.fromkeys(v for n in nodes for v in n.inputs if v and not v.is_constant and v not in made)
            variants = {
                choice: recorded(Graph("fused", inputs, last.outputs, nodes), texts, {fusion.key: choice})
                for choice in fusion.candidates(target)
            }
            label = f"{name} {_shape_text(nodes[0])} -> {last.output.type.shape[3]}{' + pool' if fusion.pool else ''}"
            yield {"label": label, "key": fusion.key, "flops": flops_of(nodes), "variants": variants}


def flops_of(nodes: Sequence[Any]) -> int:
    """Arithmetic of some nodes."""
    types = [([v.type if v else None for v in n.inputs], [v.type for v in n.outputs]) for n in nodes]
    return sum(n.op.cost(*t, n.attrs).flops for n, t in zip(nodes, types, strict=True))


def whole_of(models: Path, name: str, texts: dict[str, int]) -> dict[str, Any]:
    """A whole model with the default kernels."""
    graph = _graph(models, name)
    return {
        "label": name,
        "key": name,
        "flops": flops_of(graph.nodes),
        "variants": {"default": recorded(graph, texts, {})},
    }


def nodes(models: Path) -> Iterator[tuple[str, str, Any]]:
    """(group, label, node) of every distinct product."""
    from webinfer.graph.ir import TensorType, Value, apply
    from webinfer.ops import OPS
    from webinfer.ops.activation import Activation
    from webinfer.ops.conv import Conv2dAttrs
    from webinfer.ops.matmul import MatmulAttrs

    for n in SQUARES:
        values = [Value(name, TensorType((n, n))) for name in "ab"]
        yield "matmul", f"matmul {n}", apply(OPS["matmul"], values, MatmulAttrs(), "matmul")
    x, w = INTEROP
    attrs = Conv2dAttrs(pads=(1, 1, 1, 1), activation=Activation.RELU)
    values = [Value("x", TensorType(x)), constant(w), constant((w[0],))]
    yield "interop", "interop 3x3, 100 channels", apply(OPS["conv2d"], values, attrs, "conv")
    for name in (*MODELS, BATCHED[0]):
        seen = set()
        for node in _graph(models, name).nodes:
            if node.op.name in ("conv2d", "depthwise_conv2d"):
                alone = _alone(node, BATCHED[1] if name == BATCHED[0] else 1)
                text = _shape_text(alone)
                if text not in seen:
                    seen.add(text)
                    yield name, text, alone


def _graph(models: Path, name: str) -> Any:
    from webinfer.importers import read_model
    from webinfer.passes.pipeline import optimize

    graph = read_model(memoryview((models / f"{name}.tflite").read_bytes()), name, None)
    optimize(graph)
    return graph


def constant(shape: tuple[int, ...]) -> Any:
    """A float32 constant for the page to fill."""
    from webinfer.dtypes import DType
    from webinfer.graph.ir import Constant, TensorType, Value

    type = TensorType(shape)
    return Value("w", type, Constant(memoryview(bytes(type.nbytes)), DType.FLOAT32))


def _alone(node: Any, batch: int) -> Any:
    """The node in float32 at another batch, on inputs of its own."""
    from webinfer.graph.ir import TensorType, Value, apply

    values: list[Any] = []
    for i, value in enumerate(node.inputs):
        if value is None:
            values.append(None)
        elif value.is_constant:
            values.append(constant(value.type.shape))
        else:
            values.append(Value(f"in{i}", TensorType((batch, *value.type.shape[1:]))))
    return apply(node.op, values, replace(node.attrs, out_type=None), "node")


def _shape_text(node: Any) -> str:
    x, w = node.inputs[0].type.shape, node.inputs[1].type.shape
    residual = " + residual" if len(node.inputs) > 3 and node.inputs[3] is not None else ""
    stride = f"/{node.attrs.stride[0]}" if node.attrs.stride[0] > 1 else ""
    kind = "depthwise" if node.op.name == "depthwise_conv2d" else "conv"
    return f"{kind} {'x'.join(map(str, x))} by {'x'.join(map(str, w))}{stride}{residual}"
