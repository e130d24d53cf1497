"""Cases of the kernel page: every distinct product of some models with each of its candidates, fusions, models."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from build_scripts.bench.recorder import LIMITS, Recorder, constant, flops_of, recorded

SQUARES = (1024, 2048, 4096)
MODELS = ("blazeface_short_range", "pose_landmarks_lite")
BATCHED = ("mobilenet_v2_100_224_quant", 32)  # the shapes of its products in float32, at this batch
INTEROP = ((1, 100, 100, 100), (100, 3, 3, 100))  # input and weights of the interop tests' convolution


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
    from webinfer.backends.webgpu.fused_groups import find_fusions
    from webinfer.graph.ir import Graph

    target, seen = Target(LIMITS, Recorder({}).features), set()
    for last, (fusion, _) in find_fusions(_graph(models, name), target).items():
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
                single = _single_node(node, BATCHED[1] if name == BATCHED[0] else 1)
                text = _shape_text(single)
                if text not in seen:
                    seen.add(text)
                    yield name, text, single


def _graph(models: Path, name: str) -> Any:
    from webinfer.importers import read_model
    from webinfer.passes.pipeline import optimize

    graph = read_model(memoryview((models / f"{name}.tflite").read_bytes()), name, None)
    optimize(graph)
    return graph


def _single_node(node: Any, batch: int) -> Any:
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
