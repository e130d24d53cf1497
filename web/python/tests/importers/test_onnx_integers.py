"""Models that dequantise, compute and quantise again: integers all the way, and ONNX Runtime's results."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx", reason="needs pip onnx")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs pip onnxruntime")

from onnx import helper, numpy_helper  # noqa: E402
from tests.importers.int8_range import int8_ends  # noqa: E402

import webinfer  # noqa: E402
from webinfer.importers import read_model  # noqa: E402
from webinfer.passes.pipeline import optimize  # noqa: E402

_RNG = np.random.default_rng(3)
U8, I8 = np.uint8, np.int8
_FLOAT = {"dequantize", "quantize", "round_even", "div", "cast"}


def _bytes(kind: Any, *shape: int) -> Any:
    least, most = int8_ends() if kind is I8 else (0, 255)
    return _RNG.integers(least, most + 1, shape).astype(kind)


class Chain:
    """Nodes from stored inputs to stored outputs, each operator between a DequantizeLinear and a QuantizeLinear."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.held: list[Any] = []
        self.given: dict[str, Any] = {}
        self.results: list[str] = []
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def node(self, op: str, inputs: list[str], **attributes: Any) -> str:
        y = self.name()
        domain, _, kind = op.rpartition(".")
        self.nodes.append(helper.make_node(kind, inputs, [y], domain=domain, **attributes))
        return y

    def hold(self, array: Any) -> str:
        name = self.name()
        self.held.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def give(self, array: Any) -> str:
        name = f"x{len(self.given)}"
        self.given[name] = array
        return name

    def scales(self, scale: Any, zero: Any, kind: Any) -> list[str]:
        return [self.hold(np.float32(scale)), self.hold(np.asarray(zero, kind))]

    def real(self, array: Any, scale: Any, zero: Any, **attributes: Any) -> str:
        """Real numbers of stored ones: of an input, or of a constant where an axis is given."""
        stored = self.hold(array) if attributes else self.give(array)
        return self.node("DequantizeLinear", [stored, *self.scales(scale, zero, array.dtype)], **attributes)

    def end(self, value: str, scale: float, zero: int, kind: Any) -> str:
        y = self.node("QuantizeLinear", [value, *self.scales(scale, zero, kind)])
        self.results.append(y)
        return y

    def model(self) -> Any:
        kinds = {n: helper.np_dtype_to_tensor_dtype(a.dtype) for n, a in self.given.items()}
        ends = [helper.make_tensor_value_info(n, kinds[n], a.shape) for n, a in self.given.items()]
        results = [helper.make_empty_tensor_value_info(n) for n in self.results]
        graph = helper.make_graph(self.nodes, "chains", ends, results, self.held)
        domains = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=domains, ir_version=9).SerializeToString()

    def wanted(self) -> list[Any]:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(self.model(), options, providers=["CPUExecutionProvider"])
        return session.run(self.results, self.given)  # type: ignore[no-any-return]

    def weights(self, kind: Any, shape: tuple[int, ...], axis: int | None) -> str:
        """Constant weights with one scale, or with one for each part of an axis."""
        array = _bytes(kind, *shape)
        if axis is None:
            return self.real(array, 0.011, 5 if kind is U8 else 0, axis=0)
        n = shape[axis]
        return self.real(array, 0.004 + 0.001 * np.arange(n), np.zeros(n), axis=axis)

    def bias(self, n: int, x: float, w: Any) -> str:
        scale = np.float32(x) * np.float32(w)
        stored = _RNG.integers(-9000, 9000, n).astype(np.int32)
        return self.real(stored, scale, np.zeros(np.shape(scale)), axis=0)


def _chains() -> Chain:
    c = Chain()
    for kind, zero, axis in ((U8, 7, None), (U8, 131, 0), (I8, -5, 0)):
        x = c.real(_bytes(kind, 1, 6, 7, 8), 0.02, zero)
        scale = 0.011 if axis is None else 0.004 + 0.001 * np.arange(5)
        wide = c.bias(5, 0.02, scale if axis is None else scale.astype(np.float32))
        y = c.node("Conv", [x, c.weights(U8 if axis is None else I8, (5, 6, 3, 3), axis), wide], pads=[1, 0, 1, 2])
        c.end(c.node("Relu", [y]), 0.05, 0 if kind is U8 else -128, kind)
        deep = c.node("Conv", [x, c.weights(I8, (6, 1, 3, 3), axis)], group=6, strides=[2, 1])
        c.end(deep, 0.03, 100 if kind is U8 else 3, kind)
    c.end(c.node("ConvTranspose", [x, c.weights(I8, (6, 4, 2, 2), None)], strides=[2, 2]), 0.06, 3, I8)
    row = c.real(_bytes(U8, 1, 6, 11), 0.02, 128)
    c.end(c.node("Conv", [row, c.weights(I8, (4, 6, 3), 0)]), 0.06, 120, U8)  # quantised behind a reshape
    table = c.real(_bytes(U8, 2, 5, 12), 0.013, 120)
    for axis in (None, 1):
        c.end(c.node("MatMul", [table, c.weights(I8, (12, 9), axis)]), 0.04, 128, U8)
    other = c.real(_bytes(U8, 2, 12, 6), 0.017, 99)
    c.end(c.node("MatMul", [table, other]), 0.02, 110, U8)
    flat = c.real(_bytes(I8, 3, 12), 0.02, 4)
    gemm = c.node(
        "Gemm", [flat, c.weights(I8, (9, 12), 0), c.hold(_RNG.uniform(-1, 1, 9).astype(np.float32))], transB=1
    )
    c.end(gemm, 0.09, -3, I8)
    peer = c.real(_bytes(I8, 1, 6, 7, 8), 0.031, 9)
    c.end(c.node("Add", [x, peer]), 0.0413, 1, I8)
    c.end(c.node("Mul", [x, peer]), 0.07, 1, I8)
    c.end(c.node("Sigmoid", [x]), 1 / 256, -128, I8)
    c.end(c.node("Tanh", [x]), 1 / 128, 0, I8)
    c.end(c.node("Clip", [x, c.hold(np.float32(0)), c.hold(np.float32(1.3))]), 0.01, -100, I8)
    c.end(c.node("Softmax", [flat]), 1 / 256, -128, I8)
    c.end(c.node("MaxPool", [x], kernel_shape=[3, 2], pads=[1, 0, 1, 1]), 0.02, -5, I8)
    c.end(c.node("GlobalAveragePool", [x]), 0.005, 2, I8)
    c.end(c.node("Concat", [x, peer], axis=1), 0.0327, 5, I8)
    c.end(c.node("Reshape", [c.node("Transpose", [x], perm=[0, 2, 3, 1]), c.hold(np.array([7, 48]))]), 0.02, -5, I8)
    sizes = [c.hold(np.array([], np.float32)), c.hold(np.array([1, 1, 2, 2], np.float32))]
    c.end(c.node("Resize", [x, *sizes], mode="nearest", coordinate_transformation_mode="asymmetric"), 0.02, -5, I8)
    return c


def _named_scales() -> Chain:
    """Operators that are given the scales of what they read and write."""
    c = Chain()
    image, peer = c.give(_bytes(U8, 1, 6, 7, 8)), c.give(_bytes(U8, 1, 6, 7, 8))
    x, y = [image, *c.scales(0.02, 120, U8)], [peer, *c.scales(0.031, 99, U8)]
    w = [c.hold(_bytes(I8, 5, 6, 3, 3)), *c.scales(0.004 + 0.001 * np.arange(5), np.zeros(5), I8)]
    bias = c.hold(_RNG.integers(-9000, 9000, 5).astype(np.int32))
    micro = "com.microsoft."

    def result(op: str, inputs: list[str], **attributes: Any) -> None:
        c.results.append(c.node(op, inputs, **attributes))

    result("QLinearConv", [*x, *w, *c.scales(0.05, 128, U8), bias], pads=[1, 0, 1, 2])
    left, right = c.give(_bytes(U8, 2, 5, 12)), c.hold(_bytes(I8, 12, 9))
    a, b = [left, *c.scales(0.013, 120, U8)], [right, *c.scales(0.011, 0, I8)]
    result("QLinearMatMul", [*a, *b, *c.scales(0.04, 128, U8)])
    result(micro + "QLinearAdd", [*x, *y, *c.scales(0.0413, 111, U8)])
    result(micro + "QLinearMul", [*x, *y, *c.scales(0.07, 111, U8)])
    result(micro + "QLinearConcat", [*c.scales(0.0327, 111, U8), *x, *y], axis=1)
    result(micro + "QLinearSigmoid", [*x, *c.scales(1 / 256, 0, U8)])
    result(micro + "QLinearLeakyRelu", [*x, *c.scales(0.0197, 60, U8)], alpha=0.2)
    result(micro + "QLinearAveragePool", [*x, *c.scales(0.0173, 120, U8)], kernel_shape=[3, 2])
    result(micro + "QLinearGlobalAveragePool", [*x, *c.scales(0.0051, 100, U8)])
    result(micro + "QLinearSoftmax", [*a, *c.scales(1 / 256, 0, U8)], axis=-1, opset=13)
    flat = c.give(_bytes(U8, 3, 12))
    c_bias = c.hold(_RNG.integers(-900, 900, 9).astype(np.int32))
    result(micro + "QGemm", [flat, *c.scales(0.013, 120, U8), *b, c_bias, *c.scales(0.041, 128, U8)])
    result("MatMulInteger", [left, c.hold(_bytes(U8, 12, 9)), *c.scales(0, 7, U8)[1:], *c.scales(0, 131, U8)[1:]])
    long = c.give(_bytes(U8, 2, 700))
    result("MatMulInteger", [long, c.hold(_bytes(I8, 700, 5))])
    return c


@pytest.mark.parametrize("backend", ["reference", "wasm"])
def test_operators_with_named_scales_are_onnx_runtimes(backend: str) -> None:
    assert wrong(_named_scales(), backend) == []


def wrong(c: Chain, backend: str) -> list[str]:
    """The operators whose results are more than a step beside ONNX Runtime's, or beside them too often."""

    async def run() -> dict[str, Any]:
        session = await webinfer.load(c.model(), backend=backend, strict=True)
        return await session.run(c.given)

    got, problems = asyncio.run(run()), []
    for name, want in zip(c.results, c.wanted(), strict=True):
        steps = np.abs(np.asarray(got[name]).astype(int) - want.astype(int))
        if steps.max() > 1 or (steps > 0).mean() > 0.005:
            node = next(n for n in c.nodes if name in n.output)
            before = next((n.op_type for n in c.nodes if node.input[0] in n.output), node.op_type)
            problems.append(f"{before}: up to {steps.max()} steps, {(steps > 0).mean():.1%} of {steps.size}")
    return problems


@pytest.fixture(scope="module")
def chains() -> Chain:
    return _chains()


def test_operators_between_scales_compute_on_integers(chains: Chain) -> None:
    graph = read_model(memoryview(chains.model()), "chains")
    optimize(graph)
    left = [node for node in graph.nodes if node.op.name in _FLOAT and not all(v.is_constant for v in node.inputs if v)]
    plain = [n for n in left if n.op.name == "cast" and n.attrs.dtype is n.inputs[0].type.dtype]
    assert [n for n in left if n not in plain] == []


@pytest.mark.parametrize("backend", ["reference", "wasm"])
def test_integers_are_onnx_runtimes(backend: str, chains: Chain) -> None:
    assert wrong(chains, backend) == []


def test_real_numbers_are_not_rounded_where_a_user_wants_none() -> None:
    c = Chain()
    x = c.give(_RNG.uniform(-1, 1, (3, 4)).astype(np.float32))
    stored = c.node("QuantizeLinear", [x, *c.scales(0.5, 0, I8)])
    c.results.append(c.node("DequantizeLinear", [stored, *c.scales(0.5, 0, I8)]))

    async def run(**options: Any) -> Any:
        session = await webinfer.load(c.model(), backend="reference", **options)
        return next(iter((await session.run(c.given)).values()))

    assert np.array_equal(np.asarray(asyncio.run(run())), c.wanted()[0])
    assert np.array_equal(np.asarray(asyncio.run(run(dequantize=True))), c.given["x0"])


def _weights_only() -> Chain:
    """Weights of 8 bits that the model makes floats: a table of rows, and a matrix with a scale for each column."""
    c = Chain()
    table, matrix = _bytes(I8, 40, 16), _bytes(I8, 16, 24)
    parts = []
    for array, scale in ((table, _RNG.uniform(0.01, 0.02, (40, 1))), (matrix, _RNG.uniform(0.01, 0.02, (1, 24)))):
        real = c.node("Cast", [c.hold(array)], to=onnx.TensorProto.FLOAT)
        parts.append(c.node("Mul", [real, c.hold(scale.astype(np.float32))]))
    rows = c.node("Gather", [parts[0], c.give(np.array([[3, 39, 0, 7, 7]]))])
    c.results.append(c.node("MatMul", [rows, parts[1]]))
    return c


def test_weights_of_eight_bits_stay_bytes() -> None:
    c = _weights_only()
    graph = read_model(memoryview(c.model()), "weights")
    optimize(graph)
    matrices = {n.inputs[i].type for n in graph.nodes for op, i in (("gather", 0), ("matmul", 1)) if n.op.name == op}
    assert {(t.shape, str(t.dtype)) for t in matrices} == {
        ((40, 16), "int8"), ((40, 1), "float32"), ((16, 24), "int8")
    }  # fmt: skip

    async def run(backend: str) -> Any:
        session = await webinfer.load(c.model(), backend=backend, strict=True)
        return np.asarray(next(iter((await session.run(c.given)).values())))

    for backend in ("reference", "wasm"):
        assert np.allclose(asyncio.run(run(backend)), c.wanted()[0], rtol=1e-5, atol=1e-5)


def test_a_model_of_real_numbers_multiplies_the_integers_that_it_rounds_to() -> None:
    """Inputs and outputs are floats, so that no integers stand at its ends; the last product is not rounded."""
    c = Chain()
    value, scale, zero = c.give(_RNG.uniform(-1, 1, (2, 9, 40)).astype(np.float32)), 0.008, 128
    for columns in (24, 13):
        parts = c.scales(scale, zero, U8)
        value = c.node("DequantizeLinear", [c.node("QuantizeLinear", [value, *parts]), *parts])
        value = c.node("MatMul", [value, c.weights(I8, (40 if columns == 24 else 24, columns), 1)])
        scale = 0.4
    c.results.append(value)
    graph = read_model(memoryview(c.model()), "products")
    optimize(graph)
    ops = [node.op.name for node in graph.nodes]
    assert ops == ["quantize", "matmul", "stored_matmul"]

    async def run(backend: str) -> Any:
        session = await webinfer.load(c.model(), backend=backend, strict=True)
        return np.asarray(next(iter((await session.run(c.given)).values())))

    for backend in ("reference", "wasm"):
        assert np.allclose(asyncio.run(run(backend)), c.wanted()[0], rtol=1e-5, atol=0.4)  # a step of 0.4 may tie


@pytest.mark.parametrize("backend", ["reference", "wasm"])
def test_data_that_are_quantised_in_the_run_are_multiplied_as_integers(backend: str) -> None:
    """DynamicQuantizeLinear's zero point is known to the run alone; the sums of 700 products need three parts."""
    x, w, zeros = _RNG.uniform(-1, 3, (5, 700)).astype(np.float32), _bytes(I8, 700, 6), np.int8([3, 0, -7, 1, 2, 9])
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "w", "z", "wz"], ["i"]),
        helper.make_node("DynamicQuantizeMatMul", ["x", "w", "ws", "wz", "b"], ["f"], domain="com.microsoft"),
    ]
    held = {"w": w, "wz": zeros, "ws": np.linspace(0.01, 0.02, 6, dtype=np.float32), "b": np.ones(6, np.float32)}
    ends = [helper.make_tensor_value_info("x", 1, x.shape)]
    results = [helper.make_tensor_value_info("i", 6, (5, 6)), helper.make_tensor_value_info("f", 1, (5, 6))]
    graph = helper.make_graph(nodes, "g", ends, results, [numpy_helper.from_array(a, n) for n, a in held.items()])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    data = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    names = [node.op.name for node in read_model(data, "g").nodes]
    assert names.count("stored_matmul") == 6
    assert "matmul" not in names
    want = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": x})

    async def computed() -> dict[str, Any]:
        with await webinfer.load(data, backend=backend) as session:
            return {name: y.numpy().copy() for name, y in (await session.run({"x": x})).items()}

    got = asyncio.run(computed())
    np.testing.assert_array_equal(got["i"], want[0])
    np.testing.assert_allclose(got["f"], want[1], rtol=1e-5, atol=1e-5)
