"""Numbers of 64 bits that 32 bits do not hold: they count in full, or an error names them."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx", reason="needs pip onnx")

from onnx import helper, numpy_helper  # noqa: E402
from tests.ops.targets import Target  # noqa: E402

import webinfer  # noqa: E402
from webinfer.errors import InputError, LimitError, ModelFormatError  # noqa: E402
from webinfer.importers import read_model  # noqa: E402

BACKENDS = ("reference", "wasm", "webgpu")
FAR = (2**62, 2**32, 2**32 + 1, -(2**32), -(2**62), 1, -1)


def _whole(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


def _model(nodes: list[Any], given: dict[str, Any], held: dict[str, Any], results: int) -> bytes:
    ends = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in given.items()
    ]
    outputs = [helper.make_empty_tensor_value_info(f"y{i}") for i in range(results)]
    constants = [numpy_helper.from_array(np.asarray(a), n) for n, a in held.items()]
    graph = helper.make_graph(nodes, "wide", ends, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString()  # type: ignore[no-any-return]


def _run(backend: str, data: bytes, given: dict[str, Any]) -> list[Any]:
    if backend != "reference":
        Target(backend, (("isa", "relaxed"),) if backend == "wasm" else ()).demand()
    with webinfer.load_sync(data, backend=[backend]) as session:
        return [tensor.numpy() for tensor in session.run(given).values()]


@pytest.mark.parametrize("backend", BACKENDS)
def test_numbers_beyond_32_bits_count_in_full(backend: str) -> None:
    """Marks of positions far outside, fills near 2^63, and quotients of constants that no float holds."""
    places, big = _whole(*FAR), _whole(2**40, -(2**63), 2**63 - 1)
    held = {
        "depth": _whole(3), "marks": np.array([0, 1], np.float32), "known": places, "edges": _whole(1, 1),
        "most": np.array(2**63 - 1), "odd": np.array(2**53 + 1), "a": _whole(2**62, -(2**63), 7),
        "b": _whole(7, 13, -2),
    }  # fmt: skip
    nodes = [
        helper.make_node("OneHot", ["x", "depth", "marks"], ["y0"]),
        helper.make_node("OneHot", ["known", "depth", "marks"], ["y1"]),
        helper.make_node("Pad", ["z", "edges", "most"], ["y2"]),
        helper.make_node("Pad", ["z", "edges", "odd"], ["y3"]),
        helper.make_node("Div", ["a", "b"], ["y4"]),
    ]
    marked = np.array([[0, 0, 0]] * 5 + [[0, 1, 0], [0, 0, 1]], np.float32)
    wanted = [
        marked, marked, np.pad(big, 1, constant_values=2**63 - 1), np.pad(big, 1, constant_values=2**53 + 1),
        _whole(2**62 // 7, -(2**63 // 13), -3),
    ]  # fmt: skip
    given = {"x": places, "z": big}
    for found, array in zip(_run(backend, _model(nodes, given, held, 5), given), wanted, strict=True):
        np.testing.assert_array_equal(found, array)


def _gather(op: str, position: int, known: bool) -> tuple[bytes, dict[str, Any]]:
    given, held = {"x": np.arange(12, dtype=np.float32).reshape(3, 4)}, {}
    (held if known else given)["p"] = _whole(position, 0, 1, 0).reshape(1, 4)
    nodes = [helper.make_node("Reshape", ["p", "shape"], ["q"]), helper.make_node(op, ["x", "q"], ["y0"], axis=0)]
    return _model(nodes, given, {"shape": _whole(1, 4), **held}, 1), given


@pytest.mark.parametrize("op", ["Gather", "GatherElements"])
@pytest.mark.parametrize("position", [2**32 + 1, -(2**32), 3, -4])
def test_a_position_outside_its_axis_is_an_error_that_names_it(op: str, position: int) -> None:
    with pytest.raises(ModelFormatError, match=f"position {position} is not one of 3"):
        read_model(_gather(op, position, True)[0])
    data, given = _gather(op, position, False)
    with webinfer.load_sync(data, backend="reference") as session:
        with pytest.raises(InputError, match=f"'p' holds {position}, .* an axis of 3; give numbers from -3 to 2"):
            session.run(given)
        found = session.run({**given, "p": _whole(-3, 2, 1, 0).reshape(1, 4)})["y0"].numpy()
        assert found.ravel()[:2].tolist() == ([0, 1] if op == "Gather" else [0, 9])


def test_a_depth_that_no_memory_holds_is_a_limit() -> None:
    nodes = [helper.make_node("OneHot", ["x", "depth", "marks"], ["y0"])]
    held = {"depth": _whole(2**32 + 3), "marks": np.array([0, 1], np.float32)}
    with pytest.raises(LimitError, match=r"bytes of shape \(2, 4294967299\)"):
        read_model(_model(nodes, {"x": _whole(0, 1)}, held, 1))


def test_a_fill_that_its_type_does_not_hold_is_an_error() -> None:
    nodes = [helper.make_node("Pad", ["x"], ["y0"], pads=[1, 1], value=300.0)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 2, (3,))],
                              [helper.make_empty_tensor_value_info("y0")])  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 10)], ir_version=8)
    with pytest.raises(ModelFormatError, match=r"the value 300\.0 does not fit uint8"):
        read_model(model.SerializeToString())


@pytest.mark.parametrize("key", [1, 4, 6])
def test_a_scale_without_a_number_is_an_error(key: int) -> None:
    held = {
        f"i{k}": np.array(0.5 if k in (1, 4, 6) else 0, np.float32 if k in (1, 4, 6) else np.uint8) for k in range(1, 8)
    }
    held |= {"i3": np.ones((3, 2), np.uint8), f"i{key}": np.zeros(0, np.float32), f"i{key + 1}": np.zeros(0, np.uint8)}
    nodes = [helper.make_node("QLinearMatMul", [f"i{k}" for k in range(8)], ["y0"])]
    given = {"i0": np.ones((2, 3), np.uint8)}
    with pytest.raises(ModelFormatError, match=f"input {key} holds no scale"):
        read_model(_model(nodes, given, held, 1))


@pytest.mark.parametrize("backend", BACKENDS)
def test_powers_beyond_float16_are_summed_in_float32(backend: str) -> None:
    x = (np.random.default_rng(5).standard_normal((1, 3, 6, 6)) * 200).astype(np.float16)
    nodes = [
        helper.make_node("GlobalLpPool", ["x"], ["y0"], p=3),
        helper.make_node("LpPool", ["x"], ["y1"], p=3, kernel_shape=[6, 6]),
        helper.make_node("LRN", ["x"], ["y2"], size=3, alpha=1.0),
        helper.make_node("MeanVarianceNormalization", ["x"], ["y3"]),
    ]
    wide = x.astype(np.float64)
    root = (np.abs(wide) ** 3).sum((2, 3), keepdims=True) ** (1 / 3)
    squares = np.pad(wide**2, ((0, 0), (1, 1), (0, 0), (0, 0)))
    near = squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]
    centred = wide - wide.mean((0, 2, 3), keepdims=True)
    normed = centred / np.sqrt((centred**2).mean((0, 2, 3), keepdims=True))
    for found, array in zip(
        _run(backend, _model(nodes, {"x": x}, {}, 4), {"x": x}),
        [root, root, wide / (1 + near / 3) ** 0.75, normed], strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(found.astype(np.float64), array, rtol=4e-3, atol=4e-3)
