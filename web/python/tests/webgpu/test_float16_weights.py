"""Float16 weights of a float32 model: half the memory, the same results, by every kernel that keeps them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import Target as RingTarget
from tests.webgpu.disguised import HOST, disguised

from webinfer.backends import webgpu
from webinfer.backends.webgpu.lowerings import epilogue, fused
from webinfer.backends.webgpu.lowerings.variants import GEMVS, READ_FLOAT16, TILES, tuning_key
from webinfer.codegen.elements import Element
from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Graph, Sparsity, TensorType, Value, apply
from webinfer.importers import read_model
from webinfer.ops import OPS
from webinfer.ops.activation import Activation
from webinfer.ops.conv import Conv2dAttrs
from webinfer.ops.matmul import MatmulAttrs
from webinfer.passes.pipeline import optimize

SHARED = Path(__file__).parents[5] / "shared" / "models"
TALL = "tiled_32x32x16_4x4_1_16"
SAME = Conv2dAttrs(pads=(1, 1, 1, 1))
ODD = Conv2dAttrs(stride=(2, 2), pads=(0, 1, 1, 0), activation=Activation.RELU6)
PRODUCTS = {  # op, x, w, attributes, kernels that keep float16
    "3x3": ("conv2d", (2, 7, 9, 20), (36, 3, 3, 20), SAME, ("split_k", "gemv_4_32", TALL)),
    "odd channels": ("conv2d", (1, 9, 7, 15), (13, 3, 3, 15), ODD, (TALL,)),
    "1x1": ("conv2d", (1, 5, 7, 260), (40, 1, 1, 260), Conv2dAttrs(), ("4x8", "split_k", "tiled_32x32x32_4x4_1_32")),
    "1x1, odd columns": ("conv2d", (1, 5, 7, 64), (13, 1, 1, 64), Conv2dAttrs(), ("split_k", "gemv_1_32")),
    "depthwise": ("depthwise_conv2d", (1, 9, 11, 8), (1, 3, 3, 8), SAME, ("4x1",)),
    "matrix": ("matmul", (37, 132), (132, 40), MatmulAttrs(), ("4x8", "gemv_1_32", TALL)),
    "transposed": ("matmul", (3, 64), (13, 64), MatmulAttrs(transpose_b=True), ("split_k", "gemv_1_32")),
}
CASES = [pytest.param(*row[:4], name, id=f"{label}, {name}") for label, row in PRODUCTS.items() for name in row[4]]


@pytest.fixture(autouse=True)
def _adapter() -> None:
    RingTarget("webgpu").demand()


def numbers(*shape: int) -> Any:
    """Float16 numbers, among them zero, the smallest and the largest."""
    found = np.random.default_rng(7).uniform(-1, 1, shape).astype(np.float16)
    found.reshape(-1)[:5] = 0.0, 6e-8, -6e-8, 65504.0, -1e-4
    return found


def stored(w: Any, dtype: DType) -> Value:
    data = w.astype(dtype.value).tobytes()
    return Value("w", TensorType(w.shape), Constant(memoryview(data), dtype))


def results(graph: Graph, host: Any, choices: Any) -> tuple[bytes, int, list[str]]:
    """The output's bytes, bytes of constants, kernels that read float16."""
    executor = run(webgpu.build(graph, host, tuned=choices))
    x = np.random.default_rng(1).uniform(-1, 1, graph.inputs[0].type.shape).astype(np.float32)
    out = run(executor.run({"x": memoryview(x.reshape(-1)).cast("B")}))
    float16_kernels = [s.dispatch.shader for s in executor._schedule.run if _reads_float16(s)]
    executor.close()
    return out[graph.outputs[0].name].tobytes(), executor.memory().constants, float16_kernels


def _reads_float16(step: Any) -> bool:
    return any(b.slot.element is Element.F16 for b in step.dispatch.bindings)


def one_node(op: str, x: tuple[int, ...], w: Value, attrs: Any) -> Graph:
    value = Value("x", TensorType(x))
    node = apply(OPS[op], [value, w], attrs, op)
    return Graph(op, [value], node.outputs, [node])


@pytest.mark.parametrize(("op", "x", "w", "attrs", "kernel"), CASES)
def test_results_are_those_of_float32_weights(
    op: str, x: tuple[int, ...], w: tuple[int, ...], attrs: Any, kernel: str
) -> None:
    wide, narrow = (one_node(op, x, stored(numbers(*w), t), attrs) for t in (DType.FLOAT32, DType.FLOAT16))
    choices = {tuning_key(wide.nodes[0]): kernel}
    want, wide_bytes, float16_kernels = results(wide, disguised(), choices)
    assert not float16_kernels
    got, narrow_bytes, float16_kernels = results(narrow, disguised(), choices)
    assert got == want
    assert float16_kernels
    assert narrow_bytes <= wide_bytes / 2 + 16


@pytest.mark.parametrize("kernel", ["vec4_1", TALL, "tiled_32x64x16_4x4_1_16"])
def test_kernels_that_would_wait_for_them_keep_float32(kernel: str) -> None:
    graph = one_node("conv2d", (1, 5, 7, 8), stored(numbers(12, 1, 1, 8), DType.FLOAT16), Conv2dAttrs())
    assert not results(graph, disguised(), {tuning_key(graph.nodes[0]): kernel})[2]
    assert not results(graph, HOST, {})[2], "so do software adapters"


def test_every_kernel_that_keeps_them_is_tried() -> None:
    tried = {name for row in PRODUCTS.values() for name in row[4]}
    assert set(READ_FLOAT16) == tried - TILES.keys() - GEMVS.keys()
    assert tried & GEMVS.keys()


@pytest.mark.parametrize("channels", [8, 6])
def test_fused_convolutions_keep_both_weights(channels: int) -> None:
    found = []
    for dtype in (DType.FLOAT32, DType.FLOAT16):
        x = Value("x", TensorType((1, 7, 9, channels)))
        depthwise = apply(OPS["depthwise_conv2d"], [x, stored(numbers(1, 3, 3, channels), dtype)], SAME, "depthwise")
        w = stored(numbers(13, 1, 1, channels), dtype)
        pointwise = apply(OPS["conv2d"], [depthwise.output, w], Conv2dAttrs(), "pointwise")
        found.append(results(Graph("g", [x], pointwise.outputs, [depthwise, pointwise]), disguised(), {}))
    assert [float16_kernels for *_, float16_kernels in found] == [[], ["depthwise_pointwise"]]
    assert len({data for data, *_ in found}) == 1


def test_sparse_weights_are_spread_and_kept() -> None:
    dense = numbers(8, 1, 1, 8).reshape(8, 8)
    dense[:, ::2] = 0
    segments, columns = tuple(range(0, 36, 4)), (1, 3, 5, 7) * 8
    sparsity = Sparsity((0, 1, 2, 3), (), (("dense", 8), ("dense", 1), ("dense", 1), ("csr", segments, columns)))
    data = memoryview(dense[:, 1::2].tobytes())
    sparse = Value("w", TensorType((8, 1, 1, 8)), Constant(data, DType.FLOAT16, sparsity))
    plain = stored(dense.reshape(8, 1, 1, 8), DType.FLOAT32)
    graphs = [one_node("conv2d", (1, 5, 7, 8), w, Conv2dAttrs()) for w in (plain, sparse)]
    choices = {tuning_key(graphs[0].nodes[0]): "4x8"}
    want, _, _ = results(graphs[0], disguised(), choices)
    assert results(graphs[1], disguised(), choices) == (want, 8 * 8 * 2, ["conv2d_1x1_4x8"])


def test_a_real_model_gives_the_same_from_half_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "blazeface_short_range"
    path = SHARED / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"{path} is missing")
    graph = read_model(memoryview(path.read_bytes()), name)
    optimize(graph)
    graph.inputs[0].name = "x"
    got, narrow_bytes, float16_kernels = results(graph, disguised(), {})
    for module in (epilogue, fused):
        monkeypatch.setattr(module, "float_weights", lambda w, target: w)
    want, wide_bytes, _ = results(graph, disguised(), {})
    assert got == want
    assert len(float16_kernels) > 15
    assert narrow_bytes < 0.6 * wide_bytes
