"""Integer products that ONNX calls exact: every sum is, with extreme operands and more products than float32 adds."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx", reason="needs pip onnx")

from onnx import helper, numpy_helper  # noqa: E402
from tests.ops.targets import Target  # noqa: E402

import webinfer  # noqa: E402

_RNG = np.random.default_rng(11)
U8, I8 = np.uint8, np.int8


def _extreme(kind: Any, *shape: int) -> Any:
    """Mostly the largest number, so that sums are long ones."""
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    drawn = _RNG.integers(low, high, shape, endpoint=True)
    return np.where(_RNG.random(shape) < 0.8, high, drawn).astype(kind)


def _convolved(x: Any, w: Any, pads: tuple[int, ...], strides: tuple[int, ...], group: int) -> Any:
    """The convolution of [N, C, H, W] in int64."""
    x = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    co, ci, kh, kw = w.shape
    oh, ow = ((s - k) // t + 1 for s, k, t in zip(x.shape[2:], (kh, kw), strides, strict=True))
    y = np.zeros((x.shape[0], group, co // group, oh, ow), np.int64)
    for i in range(kh):
        for j in range(kw):
            part = x[
                :, :, i : i + (oh - 1) * strides[0] + 1 : strides[0], j : j + (ow - 1) * strides[1] + 1 : strides[1]
            ]
            parts = part.reshape(len(x), group, ci, oh, ow)
            y += np.einsum("ngchw,goc->ngohw", parts, w[:, :, i, j].reshape(group, -1, ci))
    return y.reshape(x.shape[0], co, oh, ow)


class Products:
    """A graph of products, its operands, and what they amount to modulo 2**32."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.held: list[Any] = []
        self.given: dict[str, Any] = {}
        self.wanted: dict[str, Any] = {}

    def _hold(self, array: Any) -> str:
        self.held.append(numpy_helper.from_array(array, f"c{len(self.held)}"))
        return str(self.held[-1].name)

    def _give(self, array: Any) -> str:
        name = f"x{len(self.given)}"
        self.given[name] = array
        return name

    def _node(self, op: str, operands: list[Any], run_time: set[int], wanted: Any, **attributes: Any) -> None:
        names = ["" if a is None else (self._give if i in run_time else self._hold)(a) for i, a in enumerate(operands)]
        y = f"y{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, names, [y], **attributes))
        self.wanted[y] = wanted.astype(np.int32)

    def matmul(self, x: Any, w: Any, zx: Any = None, zw: Any = None, run_time: tuple[int, ...] = (0,)) -> None:
        a, b = (v.astype(np.int64) - (0 if z is None else z.astype(np.int64)) for v, z in ((x, zx), (w, zw)))
        self._node("MatMulInteger", [x, w, zx, zw], set(run_time), a @ b)

    def conv(
        self, x: Any, w: Any, zx: Any = None, zw: Any = None, pads: tuple[int, ...] = (0, 0, 0, 0),
        strides: tuple[int, ...] = (1, 1), group: int = 1, run_time: tuple[int, ...] = (0,),
    ) -> None:  # fmt: skip
        a = x.astype(np.int64) - (0 if zx is None else zx.astype(np.int64))
        b = w.astype(np.int64) - (0 if zw is None else zw.astype(np.int64).reshape(-1, 1, 1, 1))
        options = {"pads": pads, "strides": strides, "group": group}
        self._node("ConvInteger", [x, w, zx, zw], set(run_time), _convolved(a, b, **options), **options)

    def model(self) -> bytes:
        kinds = {n: helper.np_dtype_to_tensor_dtype(a.dtype) for n, a in self.given.items()}
        ends = [helper.make_tensor_value_info(n, kinds[n], a.shape) for n, a in self.given.items()]
        results = [helper.make_empty_tensor_value_info(n) for n in self.wanted]
        graph = helper.make_graph(self.nodes, "products", ends, results, self.held)
        opsets = [helper.make_opsetid("", 13)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()  # type: ignore[no-any-return]


def _products() -> Products:
    p, same = Products(), (1, 1, 1, 1)
    for x, w in ((U8, U8), (I8, I8)):
        last = np.array(np.iinfo(x).max, x)
        p.matmul(_extreme(x, 3, 700), _extreme(w, 700, 8), last, _extreme(w, 8))
        p.conv(_extreme(x, 1, 64, 9, 8), _extreme(w, 8, 64, 3, 3), last, None, same)
    middle = np.array(128, U8)
    p.matmul(_extreme(U8, 2, 530), _extreme(I8, 530, 8), middle, None, (0, 1))  # both operands come with the run
    p.matmul(_extreme(U8, 2, 530), _extreme(I8, 530, 8), middle, None, (0, 2))  # a zero point does
    p.matmul(_extreme(U8, 2, 9000), _extreme(U8, 9000, 8), None, np.array(1, U8))  # sums up to 2**29
    p.conv(_extreme(U8, 1, 512, 8, 8), _extreme(I8, 16, 512, 3, 3), np.array(7, U8), None, same)
    p.conv(_extreme(U8, 1, 128, 5, 6), _extreme(I8, 8, 64, 3, 3), None, np.full(8, 3, I8), same, group=2)
    p.conv(_extreme(U8, 1, 48, 6, 9), _extreme(I8, 8, 48, 1, 3), middle, np.array(5, I8), (0, 1, 0, 1))
    p.conv(_extreme(U8, 1, 20, 9, 9), _extreme(I8, 20, 1, 3, 3), middle, None, same, group=20)
    p.conv(_extreme(U8, 1, 3, 24, 24), _extreme(I8, 16, 3, 5, 5), middle, None, (2, 2, 2, 2), (2, 2))
    p.conv(_extreme(U8, 1, 16, 9, 8), _extreme(I8, 8, 16, 3, 3), middle, None, same, run_time=(0, 1))
    each = _RNG.integers(-9, 9, 12).astype(I8)
    p.conv(_extreme(U8, 1, 32, 9, 8), _extreme(I8, 12, 32, 3, 3), middle, each, (1, 0, 2, 1), (2, 1), run_time=(0, 2))
    p.conv(_extreme(I8, 2, 300, 4, 5), _extreme(U8, 9, 300, 1, 1), np.array(-3, I8), np.array(200, U8), run_time=(0, 2))
    return p


_ALL = [("reference", "float32"), ("wasm", "float32"), ("webgpu", "float32"), ("webgpu", "float16")]


@pytest.mark.parametrize(("backend", "precision"), _ALL)
def test_every_integer_is_exact(backend: str, precision: str) -> None:
    if backend != "reference":
        Target(backend, (("isa", "relaxed"),) if backend == "wasm" else ()).demand()
    products = _products()
    with webinfer.load_sync(products.model(), backend=[backend], precision=precision, strict=True) as session:
        found = session.run(products.given)
        for i, (name, wanted) in enumerate(products.wanted.items()):
            np.testing.assert_array_equal(found[name].numpy(), wanted, str(products.nodes[i])[:200])
