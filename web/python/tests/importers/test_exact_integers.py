"""Operators on integers are exact on every backend: operands of the whole range, sums beyond what float32 holds.

NumPy's integers are the judge, which wrap around as the formats' runtimes do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx", reason="needs pip onnx")

from onnx import helper, numpy_helper  # noqa: E402
from tests.importers import tfjs_writer  # noqa: E402
from tests.ops.targets import Target  # noqa: E402

import webinfer  # noqa: E402

BACKENDS = ("reference", "wasm", "webgpu")
I32, I64 = np.int32, np.int64
_RNG = np.random.default_rng(17)


def _full(*shape: int, kind: Any = I32) -> Any:
    ends = np.iinfo(kind)
    drawn = _RNG.integers(ends.min, ends.max, shape, kind, endpoint=True)
    return np.where(_RNG.random(shape) < 0.1, _RNG.choice(np.array([ends.min, ends.max], kind), shape), drawn)


def _between(low: int, high: int, *shape: int, kind: Any = I32) -> Any:
    return _RNG.integers(low, high, shape, endpoint=True).astype(kind)


def _cut(a: Any, b: Any) -> Any:
    """The quotient towards zero."""
    down = a // b
    return down + ((down < 0) & (down * b != a))


def _wide(formula: Callable[..., Any]) -> Callable[..., Any]:
    """The formula on Python's integers, then cut to the operands' type."""

    def computed(*operands: Any) -> Any:
        exact = formula(*(x.astype(object) for x in operands))
        bits, kind = 8 * operands[0].dtype.itemsize, operands[0].dtype
        low = np.vectorize(lambda n: int(n) & (2**bits - 1), otypes=[object])(exact)
        return low.astype(np.dtype(f"u{kind.itemsize}")).view(kind)

    return computed


@_wide
def _power(a: Any, b: Any) -> Any:
    return a**b


def _judge(model: Any, given: dict[str, Any], wanted: dict[str, Any], labels: dict[str, str], backend: str) -> None:
    if backend != "reference":
        Target(backend, (("isa", "relaxed"),) if backend == "wasm" else ()).demand()
    with webinfer.load_sync(model, backend=[backend]) as session:
        found = session.run(given)
        for name, array in wanted.items():
            np.testing.assert_array_equal(found[name].numpy(), array, f"{labels[name]} on {backend}")


# ---- ONNX


class Onnx:
    """A graph of nodes that read inputs and constants, and what NumPy makes of them."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.held: list[Any] = []
        self.given: dict[str, Any] = {}
        self.wanted: dict[str, Any] = {}
        self.labels: dict[str, str] = {}

    def node(self, op: str, operands: list[Any], wanted: Any, *held: Any, **attributes: Any) -> None:
        """A node on inputs `operands` and constants `held`."""
        names = []
        for array in operands:
            names.append(f"x{len(self.given)}")
            self.given[names[-1]] = array
        for array in held:
            names.append(f"c{len(self.held)}")
            self.held.append(numpy_helper.from_array(np.asarray(array), names[-1]))
        y = f"y{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, names, [y], **attributes))
        self.wanted[y], self.labels[y] = wanted, f"{op} of {operands[0].dtype}"

    def model(self) -> bytes:
        kinds = {n: helper.np_dtype_to_tensor_dtype(a.dtype) for n, a in self.given.items()}
        ends = [helper.make_tensor_value_info(n, kinds[n], a.shape) for n, a in self.given.items()]
        results = [helper.make_empty_tensor_value_info(n) for n in self.wanted]
        graph = helper.make_graph(self.nodes, "integers", ends, results, self.held)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString()  # type: ignore[no-any-return]


def _onnx_elementwise(g: Onnx, kind: Any) -> None:
    a, b = _full(3, 37, kind=kind), _full(3, 37, kind=kind)
    some = np.where(_between(0, 1, 3, 37).astype(bool), b, _between(1, 9, 3, 37, kind=kind))
    some = np.where((some == 0) | (some == -1), kind(7), some)
    for op, formula in (("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("Max", np.maximum),
                        ("Min", np.minimum), ("Div", _cut), ("Mod", np.mod), ("Less", np.less)):  # fmt: skip
        g.node(op, [a, some], formula(a, some))
    g.node("Mod", [a, some], np.fmod(a, some), fmod=1)
    near = a + _between(0, 1, 3, 37, kind=kind)
    g.node("Equal", [a, near], a == near)
    g.node("GreaterOrEqual", [a, near], a >= near)
    base, power = _between(-12, 12, 3, 37, kind=kind), _between(0, 8, 3, 37, kind=kind)
    g.node("Pow", [base, power], _power(base, power))
    for op, one in (("Abs", np.abs), ("Neg", np.negative), ("Sign", np.sign)):
        g.node(op, [a], one(a))
    g.node("Clip", [a], np.clip(a, -(2**30) - 1, 2**30 + 1), kind(-(2**30) - 1), kind(2**30 + 1))


def _onnx_reductions(g: Onnx, kind: Any) -> None:
    x = _full(2, 520, 4)
    x = x.astype(kind)
    for axes in ((1,), (2,), (0, 1)):
        for op, formula in (("ReduceSum", np.sum), ("ReduceMax", np.max), ("ReduceMin", np.min)):
            g.node(op, [x], formula(x, axis=axes, dtype=kind) if op == "ReduceSum" else formula(x, axis=axes),
                   np.array(axes), keepdims=0)  # fmt: skip
        count = np.prod([x.shape[a] for a in axes])
        total = x.astype(I64).sum(axis=axes)
        g.node("ReduceMean", [x], _cut(total, count).astype(kind), np.array(axes), keepdims=0)
    long = _full(3, 512).astype(kind)
    g.node("ReduceMean", [long], _cut(long.astype(I64).sum(1), 512).astype(kind), np.array([1]), keepdims=0)
    small = _between(-46340, 46340, 3, 300, kind=kind)
    g.node("ReduceSumSquare", [small], (small * small).sum(1, dtype=kind), np.array([1]), keepdims=0)
    g.node("ReduceL1", [small], np.abs(small).sum(1, dtype=kind), np.array([1]), keepdims=0)
    odd = _between(-4, 4, 5, 9, kind=kind) * 2 + 1
    g.node("ReduceProd", [odd], odd.prod(1, dtype=kind), np.array([1]), keepdims=0)
    g.node("CumSum", [x[0]], x[0].cumsum(0, dtype=kind), np.array(0))
    line = kind(2**30) + _between(0, 3, 4, 50, kind=kind)
    g.node("ArgMax", [line], line.argmax(1), axis=1, keepdims=0)


def _onnx_products(g: Onnx, kind: Any) -> None:
    a, b = _between(-50000, 50000, 2, 5, 33, kind=kind), _between(-50000, 50000, 33, 4, kind=kind)
    g.node("MatMul", [a, b], a @ b)
    g.node("MatMul", [a, b[:, 0].copy()], a @ b[:, 0])
    g.node("Einsum", [a, b], np.einsum("nij,jk->nki", a, b), equation="nij,jk->nki")


def _onnx() -> Onnx:
    g = Onnx()
    for kind in (I32, I64):
        _onnx_elementwise(g, kind)
        _onnx_reductions(g, kind)
        _onnx_products(g, kind)
    for kind in (np.uint8, np.uint16, np.uint32):
        a, bits = _full(3, 37, kind=kind), 8 * kind().itemsize
        shift = _between(0, bits - 1, 3, 37, kind=kind)
        g.node("BitShift", [a, shift], a << shift, direction="LEFT")
        g.node("BitShift", [a, shift], a >> shift, direction="RIGHT")
    for kind in (np.uint8, np.int8, np.int16, np.uint32, I32):
        a, b = _full(3, 37, kind=kind), _full(3, 37, kind=kind)
        for op, formula in (("BitwiseAnd", np.bitwise_and), ("BitwiseXor", np.bitwise_xor), ("Add", np.add),
                            ("Mul", np.multiply)):  # fmt: skip
            g.node(op, [a, b], formula(a, b))
        b = np.where((b == 0) | (b.astype(I64) == -1), kind(3), b)
        g.node("Div", [a, b], _cut(a, b).astype(kind))
        g.node("Cast", [a], a.astype(I64), to=7)
    return g


@pytest.mark.parametrize("backend", BACKENDS)
@np.errstate(over="ignore")
def test_onnx_integers_are_exact(backend: str) -> None:
    g = _onnx()
    _judge(g.model(), g.given, g.wanted, g.labels, backend)


# ---- TensorFlow.js


class Tfjs:
    """As `Onnx`, of int32 nodes of TensorFlow.js."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: dict[str, Any] = {}
        self.given: dict[str, Any] = {}
        self.wanted: dict[str, Any] = {}
        self.labels: dict[str, str] = {}

    def node(self, op: str, operands: list[Any], wanted: Any, *held: Any, **attributes: Any) -> None:
        names = []
        for array in operands:
            names.append(f"x{len(self.given)}")
            self.given[names[-1]] = array
            self.nodes.append(tfjs_writer.placeholder(names[-1], array.shape, "DT_INT32"))
        for array in held:
            names.append(f"c{len(self.weights)}")
            self.weights[names[-1]] = np.asarray(array, I32)
        y = f"y{len(self.wanted)}"
        self.nodes.append(tfjs_writer.node(y, op, *names, **attributes))
        self.wanted[y], self.labels[y] = wanted, op


def _tfjs() -> Tfjs:
    g = Tfjs()
    a, b = _full(3, 37), _full(3, 37)
    b = np.where((b == 0) | (b == -1), I32(7), b)
    for op, formula in (("AddV2", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("Maximum", np.maximum),
                        ("Minimum", np.minimum), ("FloorDiv", np.floor_divide), ("RealDiv", np.floor_divide),
                        ("FloorMod", np.mod), ("SquaredDifference", lambda a, b: (a - b) * (a - b)),
                        ("Greater", np.greater), ("Equal", np.equal), ("BitwiseAnd", np.bitwise_and)):  # fmt: skip
        g.node(op, [a, b], formula(a, b))
    base = _between(-12, 12, 20)
    g.node("Pow", [base, np.full(20, 7, I32)], _power(base, np.full(20, 7, I32)))
    for op, one in (("Abs", np.abs), ("Neg", np.negative), ("Sign", np.sign), ("Square", np.square)):
        g.node(op, [a], one(a))
    x = _full(2, 300, 4)
    g.node("Sum", [x], x.sum(1, dtype=I32), [1])
    g.node("Max", [x], x.max(1), [1])
    odd = _between(-4, 4, 5, 9) * 2 + 1
    g.node("Prod", [odd], odd.prod(1, dtype=I32), [1])
    g.node("Prod", [np.array([4097, 4099], I32)], np.array(4097 * 4099, I32), [0])
    g.node("Cumsum", [x[0]], x[0].cumsum(0, dtype=I32), 0)
    g.node("Cumprod", [odd], odd.cumprod(1, dtype=I32), 1)
    p, q = _between(-50000, 50000, 5, 33), _between(-50000, 50000, 4, 33)
    g.node("MatMul", [p, q], p @ q.T, transpose_a=False, transpose_b=True)
    g.node("BatchMatMulV2", [p[None].repeat(2, 0), q.T.copy()], (p @ q.T)[None].repeat(2, 0))
    g.node("Einsum", [p, q], np.einsum("ij,kj->ki", p, q), equation="ij,kj->ki", N=2)
    return g


@pytest.mark.parametrize("backend", BACKENDS)
@np.errstate(over="ignore")
def test_tensorflow_js_int32_is_exact(backend: str) -> None:
    g = _tfjs()
    _judge(tfjs_writer.model(g.nodes, g.weights), g.given, g.wanted, g.labels, backend)


def test_the_reference_takes_logarithms_of_sums_of_integers() -> None:
    """The others refuse them; what is found is cut towards zero."""
    g, x = Onnx(), _between(1, 49, 3, 30)
    g.node("ReduceLogSumExp", [x], np.log(np.exp(x.astype(np.float64)).sum(1)).astype(I32), np.array([1]), keepdims=0)
    g.node("ReduceLogSum", [x], np.log(x.sum(1)).astype(I32), np.array([1]), keepdims=0)
    g.node("ReduceL2", [x], np.sqrt((x * x).sum(1)).astype(I32), np.array([1]), keepdims=0)
    _judge(g.model(), g.given, g.wanted, g.labels, "reference")
