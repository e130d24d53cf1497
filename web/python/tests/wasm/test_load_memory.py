"""What a load leaves in memory: each weight once, as it is computed with; and how much it needs on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import webinfer
from webinfer.backends.wasm import load_steps
from webinfer.backends.wasm.executor import WasmExecutor, lower_graph
from webinfer.backends.wasm.load_steps import in_turns
from webinfer.backends.wasm.memory import KernelMemory
from webinfer.graph.ir import Constant, Graph, TensorType, Value, apply
from webinfer.host.interface import Kernels
from webinfer.host.native import NativeHost
from webinfer.ops import matmul as mm
from webinfer.ops import movement as mv
from webinfer.package import compile_model
from webinfer.plan.blocks import Block, Kind, Ref, Step

SPARE = 4096  # bytes of tables and biases beside the weights


def _model(
    nodes: list[object], constants: dict[str, np.ndarray], shape: list[int], result: list[int] | None = None
) -> bytes:
    tensors = [numpy_helper.from_array(data, name) for name, data in constants.items()]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, own) for name, own in (("x", shape), ("y", result))]
    graph = helper.make_graph(nodes, "m", ends[:1], ends[1:], tensors)
    opsets = [helper.make_opsetid("", 13)]
    data: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    return data


def _chain(op: str, uses: int, **attributes: object) -> list[object]:
    names = ["x", *(f"h{i}" for i in range(uses - 1)), "y"]
    return [helper.make_node(op, [a, "w"], [b], **attributes) for a, b in pairwise(names)]


def _split(uses: int) -> list[object]:
    parts = [f"w{i}" for i in range(uses)]
    products = [helper.make_node("MatMul", ["x", part], [f"y{part}"]) for part in parts]
    joined = helper.make_node("Concat", [f"y{part}" for part in parts], ["y"], axis=1)
    return [helper.make_node("Split", ["w"], parts, axis=1), *products, joined]


DRAWN = np.random.default_rng(3)
MATRIX, WINDOW = (DRAWN.normal(0, 0.02, shape).astype(np.float32) for shape in ((256, 256), (64, 64, 3, 3)))
TURNED = [helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0]), helper.make_node("MatMul", ["x", "t"], ["y"])]
DRAWN_MODELS: dict[str, tuple[Callable[[], list[object]], np.ndarray, list[int]]] = {
    "a matrix": (lambda: _chain("MatMul", 1), MATRIX, [4, 256]),
    "a matrix that eight nodes use": (lambda: _chain("MatMul", 8), MATRIX, [4, 256]),
    "a transposed matrix": (lambda: TURNED, MATRIX, [4, 256]),
    "a matrix in four parts": (lambda: _split(4), MATRIX, [4, 256]),
    "windows of a small picture": (lambda: _chain("Conv", 1, pads=[1] * 4), WINDOW, [1, 64, 3, 3]),
    "windows that eight nodes use": (lambda: _chain("Conv", 8, pads=[1] * 4), WINDOW, [1, 64, 3, 3]),
}


@pytest.mark.parametrize("backend", ["wasm", "webgpu"])
@pytest.mark.parametrize("name", DRAWN_MODELS)
def test_a_weight_lies_in_memory_once(name: str, backend: str) -> None:
    nodes, weights, shape = DRAWN_MODELS[name]
    with webinfer.load_sync(_model(nodes(), {"w": weights}, shape), backend=[backend]) as session:
        constants = session.memory().constants
    assert weights.nbytes <= constants <= weights.nbytes * 1.05 + SPARE


OWN = np.random.default_rng(4)
STORED = OWN.integers(-128, 128, (96, 64, 1, 1))
BY_OUTPUT = {"s": OWN.uniform(0.002, 0.02, 96).astype(np.float32), "z": OWN.integers(-9, 9, 96).astype(np.int8)}
BY_ONE = {"s": np.float32(0.011).reshape(()), "z": np.uint8(121).reshape(())}
# name -> (weights, scales and zero points, height and width, bytes of a weight)
POINTWISE: dict[str, tuple[np.ndarray, dict[str, np.ndarray], tuple[int | str, int | str], int]] = {
    "a scale for each output": (STORED.astype(np.int8), BY_OUTPUT, (5, 7), 1),
    "one scale, unsigned": ((STORED + 128).astype(np.uint8), BY_ONE, (5, 7), 1),
    "open sizes": (STORED.astype(np.int8), BY_OUTPUT, ("h", "w"), 1),
    "one pixel": (STORED.astype(np.int8), BY_OUTPUT, (1, 1), 4),
}


@pytest.mark.parametrize("name", POINTWISE)
def test_weights_of_bytes_stay_bytes_in_convolutions_of_single_pixels(name: str) -> None:
    weights, steps, size, each = POINTWISE[name]
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["real"], axis=0),
        helper.make_node("Conv", ["x", "real", "b"], ["c"]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    constants = {"w": weights, **steps, "b": OWN.normal(size=96).astype(np.float32)}
    tensors = [numpy_helper.from_array(data, constant) for constant, data in constants.items()]
    ends = [
        helper.make_tensor_value_info(end, TensorProto.FLOAT, [1, channels, *size])
        for end, channels in (("x", 64), ("y", 96))
    ]
    graph = helper.make_graph(nodes, "m", ends[:1], ends[1:], tensors)
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString()
    zero, scale = (steps[key].astype(np.float64).reshape(-1, 1) for key in "zs")
    real = (weights[:, :, 0, 0] - zero) * scale
    with webinfer.load_sync(data, backend="wasm") as session:
        for height, width in ((5, 7), (4, 9), (20, 3)) if "h" in size else (size,):
            x = OWN.normal(size=(1, 64, height, width)).astype(np.float32)
            wanted = np.einsum("oc,nchw->nohw", real, x) + constants["b"].reshape(1, -1, 1, 1)
            found = session.run({"x": x})["y"].numpy()
            np.testing.assert_allclose(found, np.maximum(wanted, 0), rtol=1e-4, atol=1e-4)
        assert weights.size * each <= session.memory().constants <= weights.size * each * 1.15 + SPARE


# name -> (a convolution's attributes, its image, bytes of a weight)
WINDOWS: dict[str, tuple[dict[str, object], list[int], int]] = {
    "pads": ({"pads": [1, 1, 1, 1], "strides": [2, 2]}, [1, 16, 16, 17], 1),
    "uneven pads and strides": ({"pads": [0, 2, 1, 3], "strides": [2, 1]}, [2, 16, 9, 5], 1),
    "dilation beyond the image": ({"pads": [4, 4, 4, 4], "dilations": [4, 4], "strides": [1, 2]}, [1, 16, 4, 6], 1),
    "no pads": ({"strides": [3, 2]}, [1, 16, 12, 11], 1),
    "more windows than outputs": ({"pads": [1, 1, 1, 1], "strides": [2, 2]}, [1, 16, 20, 21], 4),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_weights_of_bytes_stay_bytes_where_windows_are_few(name: str) -> None:
    attributes, shape, each = WINDOWS[name]
    weights = OWN.integers(-128, 128, (96, 16, 3, 3)).astype(np.int8)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["real"], axis=0),
        helper.make_node("Conv", ["x", "real", "b"], ["c"], **attributes),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    constants = {"w": weights, **BY_OUTPUT, "b": OWN.normal(size=96).astype(np.float32)}
    data = _model(nodes, constants, shape)
    x = OWN.normal(size=shape).astype(np.float32)
    with webinfer.load_sync(data, backend="reference") as judge, webinfer.load_sync(data, backend="wasm") as session:
        wanted = judge.run({"x": x})["y"].numpy()
        np.testing.assert_allclose(session.run({"x": x})["y"].numpy(), wanted, rtol=1e-4, atol=1e-4)
        assert weights.size * each <= session.memory().constants <= weights.size * each * 1.15 + SPARE


@pytest.mark.parametrize("size", [(7, 9), ("h", "w")], ids=["fixed", "open"])
def test_weights_of_integer_convolutions_take_two_bytes(size: tuple[int | str, int | str]) -> None:
    """16-bit pairs, as integer products read them; float32 took four, and each size of an image its own."""
    weights = OWN.integers(-127, 128, (96, 64, 3, 3)).astype(np.int8)
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("ConvInteger", ["q", "w", "z"], ["i"], pads=[1] * 4),
        helper.make_node("Cast", ["i"], ["y"], to=TensorProto.FLOAT),
    ]
    ends = [
        helper.make_tensor_value_info(end, TensorProto.FLOAT, [1, channels, *size])
        for end, channels in (("x", 64), ("y", 96))
    ]
    graph = helper.make_graph(nodes, "m", ends[:1], ends[1:], [numpy_helper.from_array(weights, "w")])
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString()
    with webinfer.load_sync(data, backend="wasm") as session:
        for height, width in ((7, 9), (8, 5), (12, 12)) if "h" in size else (size,):
            session.run({"x": OWN.normal(size=(1, 64, height, width)).astype(np.float32)})
        assert session.memory().constants <= weights.size * 2 * 1.15 + SPARE


def test_weights_come_and_go_while_they_are_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_steps, "TURN_BYTES", 64 << 10)
    side, count = 64, 40
    x = Value("x", TensorType((1, side)))
    nodes, y = [], x
    for i in range(count):
        data = memoryview(DRAWN.normal(0, 0.1, side * side).astype(np.float32).tobytes())
        w = Value(f"w{i}", TensorType((side, side)), Constant(data, TensorType((1,)).dtype))
        turned = apply(mv.TRANSPOSE, [w], mv.TransposeAttrs((1, 0)))
        nodes += [turned, apply(mm.MATMUL, [y, turned.output], mm.MatmulAttrs())]
        y = nodes[-1].output
    graph, host = Graph("chain", [x], [y], nodes), NativeHost()
    kernels = asyncio.run(host.kernels("simd128", 1))
    before = kernels.size()
    executor = WasmExecutor(graph, host, kernels, lower_graph(graph, "simd128", {}))
    weights = 4 * side * side * count
    assert kernels.size() - before <= 1.5 * weights  # all at once it would be three times
    (found,) = asyncio.run(executor.run({"x": np.ones((1, side), np.float32)})).values()
    want = np.ones((1, side), np.float32)
    for node in nodes[::2]:
        assert node.inputs[0] is not None
        assert node.inputs[0].constant is not None
        want = want @ np.frombuffer(node.inputs[0].constant.data, np.float32).reshape(side, side).T
    np.testing.assert_allclose(found.numpy(), want, rtol=1e-4)
    executor.close()


def test_a_turn_brings_in_what_its_steps_read_first() -> None:
    weights = [Block(f"w{i}", load_steps.TURN_BYTES // 2 + 1, Kind.STAGED) for i in range(3)]
    packed = Block("packed", 1, Kind.CONSTANT)
    steps = [Step("k", (Ref(w), Ref(packed)), 1, 0) for w in (*weights, weights[0])]
    turns, passing = in_turns(steps, weights, at_once=False)
    assert [turn.sources for turn in turns] == [[w] for w in weights]
    assert [len(turn.steps) for turn in turns] == [1, 1, 2]
    assert passing == weights
    assert [(w.first, w.last) for w in weights] == [(0, 2), (1, 1), (2, 2)]
    (turn,), _ = in_turns(steps, weights, at_once=True)
    assert turn.steps == steps


def test_a_package_packs_large_models_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_steps, "TURN_BYTES", 16 << 10)
    weights = {f"w{i}": DRAWN.normal(0, 0.1, (64, 64)).astype(np.float32) for i in range(6)}
    names = ["x", *(f"h{i}" for i in range(5)), "y"]
    nodes = [helper.make_node("MatMul", [a, w], [b]) for (a, b), w in zip(pairwise(names), weights, strict=True)]
    model, x = _model(nodes, weights, [2, 64]), DRAWN.normal(size=(2, 64)).astype(np.float32)
    package = asyncio.run(compile_model(model, backend="wasm", builds=("simd128",), threads=False))
    found = []
    for data in (model, package):
        with webinfer.load_sync(data, backend=["wasm"]) as session:
            found.append(session.run({"x": x})["y"].numpy().copy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-5)  # of another build: sums near 1
    np.testing.assert_allclose(found[0], np.linalg.multi_dot([x, *weights.values()]), rtol=1e-3)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("end", [(1 << 31) - (1 << 15), (1 << 31) + (1 << 20)], ids=["across", "above"])
def test_a_plan_lies_above_two_gigabytes(end: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of which nothing is written cost a test no memory."""
    begin = KernelMemory.__init__

    def far_up(self: KernelMemory, kernels: Kernels) -> None:
        begin(self, kernels)
        self.end = end

    model, x = _model(_chain("Conv", 2, pads=[1] * 4), {"w": WINDOW}, [1, 64, 12, 12]), np.ones((1, 64, 12, 12))
    with webinfer.load_sync(model, backend=["wasm"], threads=threads) as session:
        want = session.run({"x": x.astype(np.float32)})["y"].numpy().copy()
    monkeypatch.setattr(KernelMemory, "__init__", far_up)
    with webinfer.load_sync(model, backend=["wasm"], threads=threads) as session:
        executor = session.executor
        assert isinstance(executor, WasmExecutor)
        assert executor.kernels.size() > end
        for _ in range(2):
            np.testing.assert_array_equal(session.run({"x": x.astype(np.float32)})["y"].numpy(), want)
