"""Open sizes that a run binds to 0: what the runtime gives, on every backend; an InputError for what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from tests.importers.tflite_writer import Writer  # noqa: E402
from tests.ops.targets import Target  # noqa: E402

import webinfer  # noqa: E402
from webinfer.errors import InputError  # noqa: E402

DRAW = np.random.default_rng(11)


def real(*shape: int) -> Any:
    return DRAW.normal(size=shape).astype(np.float32)


def positions(*shape: int) -> Any:
    return np.zeros(shape, np.int64)


# name → operator, inputs (whose sizes are all open), constants behind them, number of results, attributes
Row = tuple[str, list[Any], list[Any], int, dict[str, Any]]
AXIS_1 = [np.array([1], np.int64)]
REDUCTIONS = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split()
RESULTS: dict[str, Row] = {
    **{f"{op} of nothing": (f"Reduce{op}", [real(2, 0, 3)], AXIS_1, 1, {"keepdims": 0}) for op in REDUCTIONS},
    **{f"{op} beside nothing": (f"Reduce{op}", [real(0, 2, 3)], AXIS_1, 1, {"keepdims": 0}) for op in REDUCTIONS},
    "product over nothing": ("MatMul", [real(2, 0), real(0, 3)], [], 1, {}),
    "product of batches over nothing": ("MatMul", [real(4, 2, 0), real(4, 0, 3)], [], 1, {}),
    "gemm over nothing": ("Gemm", [real(2, 0), real(0, 3), real(3)], [], 1, {}),
    "einsum over nothing": ("Einsum", [real(2, 0), real(0, 3)], [], 1, {"equation": "ij,jk->ik"}),
    "product without rows": ("MatMul", [real(0, 4)], [real(4, 3)], 1, {}),
    "arg max of no rows": ("ArgMax", [real(0, 3)], [], 1, {"axis": 1}),
    "arg max, everything empty": ("ArgMax", [real(3, 0, 0)], [], 1, {"axis": 1}),
    "hardmax of nothing": ("Hardmax", [real(0, 3)], [], 1, {"axis": 0}),
    "top 0 of nothing": ("TopK", [real(2, 0)], [np.array([0], np.int64)], 2, {}),
    "softmax over nothing": ("Softmax", [real(2, 0)], [], 1, {}),
    "layer norm of no rows": ("LayerNormalization", [real(0, 4)], [real(4), real(4)], 1, {}),
    "batch norm of no rows": ("BatchNormalization", [real(0, 3)], [real(3), real(3), real(3), abs(real(3))], 1, {}),
    "instance norm of nothing": ("InstanceNormalization", [real(2, 3, 0)], [real(3), real(3)], 1, {}),
    "conv of no images": ("Conv", [real(0, 3, 8, 8)], [real(4, 3, 3, 3), real(4)], 1, {"pads": [1, 1, 1, 1]}),
    "conv of padding alone": ("Conv", [real(1, 3, 0, 4)], [real(2, 3, 3, 3), real(2)], 1, {"pads": [2, 1, 1, 1]}),
    "transposed conv of no images": ("ConvTranspose", [real(0, 3, 4, 4)], [real(3, 2, 2, 2)], 1, {"strides": [2, 2]}),
    "max pool of no images": ("MaxPool", [real(0, 3, 4, 4)], [], 1, {"kernel_shape": [2, 2]}),
    "average pool of no images": ("AveragePool", [real(0, 3, 4, 4)], [], 1, {"kernel_shape": [2, 2]}),
    "mean of no images": ("GlobalAveragePool", [real(0, 3, 4, 4)], [], 1, {}),
    "resize of no images": ("Resize", [real(0, 3, 4, 4)], [real(0), np.float32([1, 1, 2, 2])], 1, {"mode": "linear"}),
    "resize of no rows": ("Resize", [real(1, 3, 0, 4)], [real(0), np.float32([1, 1, 2, 2])], 1, {"mode": "nearest"}),
    "gather no ids": ("Gather", [positions(0)], [], 1, {}),
    "gather no ids of nothing": ("Gather", [real(0, 3), positions(0)], [], 1, {}),
    "gather nd without axes": ("GatherND", [real(2, 3), positions(4, 0)], [], 1, {}),
    "no updates": ("ScatterElements", [real(2, 3), positions(0, 3), real(0, 3)], [], 1, {"axis": 1}),
    "no updates by position": ("ScatterND", [real(2, 3), positions(0, 1), real(0, 3)], [], 1, {}),
    "one-hot of no ids": ("OneHot", [positions(0)], [np.array([4], np.int64), np.float32([0, 1])], 1, {}),
    "rnn of no steps": ("RNN", [real(0, 2, 3)], [real(1, 4, 3), real(1, 4, 4)], 2, {"hidden_size": 4}),
    "rnn of an empty batch": ("RNN", [real(3, 0, 3)], [real(1, 4, 3), real(1, 4, 4)], 2, {"hidden_size": 4}),
    "determinants of nothing": ("Det", [real(3, 0, 0)], [], 1, {}),
    "quantized at run time": ("DynamicQuantizeLinear", [real(0, 3)], [], 3, {}),
    "padded from nothing": ("Pad", [real(2, 0)], [np.array([0, 1, 0, 1], np.int64)], 1, {}),
    "running sums of nothing": ("CumSum", [real(2, 0)], [np.int64(1)], 1, {}),
    "not one is true": ("NonZero", [real(2, 0)], [], 1, {}),
    "broadcast with nothing": ("Add", [real(1, 3), real(0, 3)], [], 1, {}),
    "a choice of nothing": ("Where", [np.zeros((0, 1), bool), real(1, 3), real(0, 3)], [], 1, {}),
    "an empty past": ("Concat", [real(1, 2, 0, 4), real(1, 2, 3, 4)], [], 1, {"axis": 2}),
    "nothing repeated": ("Tile", [real(2, 0)], [np.array([2, 3], np.int64)], 1, {}),
    "no blocks": ("DepthToSpace", [real(0, 4, 2, 2)], [], 1, {"blocksize": 2}),
    "squeezed by no axes": ("Squeeze", [real(1, 3, 1)], [positions(0)], 1, {}),
}  # fmt: skip
REFUSED: dict[str, tuple[Row, str]] = {
    "arg max of nothing": (("ArgMax", [real(2, 0)], [], 1, {"axis": 1}), r"ArgMax.*axis 1 of \(2, 0\) is empty"),
    "top 1 of nothing": (("TopK", [real(2, 0)], [np.array([1], np.int64)], 2, {}), r"TopK"),
    "max pool of nothing": (("MaxPool", [real(1, 3, 0, 4)], [], 1, {"kernel_shape": [1, 1]}), r"MaxPool.*empty"),
    "max of nothing": (("GlobalMaxPool", [real(1, 3, 0, 4)], [], 1, {}), r"GlobalMaxPool.*only a batch may be empty"),
    "layer norm of nothing": (("LayerNormalization", [real(2, 0)], [real(0)], 1, {}), r"LayerNorm.*nothing to norm"),
    "gather from nothing": (("Gather", [real(0, 3), positions(2)], [], 1, {}), r"Gather.*empty, no position fits"),
    "truth of nothing": (("ReduceMax", [np.zeros((2, 0), bool)], AXIS_1, 1, {"keepdims": 0}), r"no booleans"),
    "edges of nothing": (("Pad", [real(2, 0)], [np.array([0, 1, 0, 1], np.int64)], 1, {"mode": "edge"}), r"Pad"),
}  # fmt: skip


def demand(backend: str) -> None:
    if backend == "webgpu":
        Target(backend).demand()


def saved(row: Row, opset: int = 20) -> tuple[bytes, dict[str, Any]]:
    op, inputs, constants, count, attrs = row
    fed = {f"x{i}": array for i, array in enumerate(inputs)}
    stored = {f"c{i}": np.asarray(array) for i, array in enumerate(constants)}
    if op == "Gather" and len(inputs) == 1:
        stored = {"table": real(10, 4)}
    names = [*stored, *fed] if "table" in stored else [*fed, *stored]
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), [f"{n}_{i}" for i in range(a.ndim)])
        for n, a in fed.items()
    ]
    results = [f"y{i}" for i in range(count)]
    graph = helper.make_graph(
        [helper.make_node(op, names, results, **attrs)], "g", infos,
        [onnx.ValueInfoProto(name=name) for name in results],
        [numpy_helper.from_array(a, n) for n, a in stored.items()],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    return bytes(made.SerializeToString()), fed


def judge_of(data: bytes) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("backend", ["reference", "wasm", "webgpu"])
@pytest.mark.parametrize("name", RESULTS)
def test_an_open_size_may_be_0(name: str, backend: str) -> None:
    demand(backend)
    data, fed = saved(RESULTS[name])
    want = judge_of(data).run(None, fed)
    with webinfer.load_sync(data, backend=backend) as session:
        found = session.run(fed)
        for i, wanted in enumerate(want):
            got = found[f"y{i}"].numpy()
            assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_allclose(got, wanted, atol=1e-5)


@pytest.mark.parametrize("backend", ["reference", "wasm"])
def test_no_steps_leave_a_recurrent_layer_its_states(backend: str) -> None:
    h, c = real(1, 2, 4), real(1, 2, 4)
    weights = [real(1, 16, 3), real(1, 16, 4), real(1, 32), np.zeros(2, np.int32)]
    data, fed = saved(("LSTM", [real(0, 2, 3)], [*weights, h, c], 3, {"hidden_size": 4}))
    with webinfer.load_sync(data, backend=backend) as session:
        found = session.run(fed)
        assert found["y0"].shape == (0, 1, 2, 4)
        np.testing.assert_array_equal(found["y1"].numpy(), h)
        np.testing.assert_array_equal(found["y2"].numpy(), c)


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_runtime_refuses_of_nothing_is_refused_by_name(name: str) -> None:
    row, message = REFUSED[name]
    data, fed = saved(row)
    with pytest.raises(Exception, match=r"ONNXRuntimeError"):
        judge_of(data).run(None, fed)
    with webinfer.load_sync(data, backend="wasm") as session, pytest.raises(InputError, match=message):
        session.run(fed)


def test_a_shape_of_0_that_an_operator_refuses_is_an_input_error_while_loading() -> None:
    data, _ = saved(REFUSED["max of nothing"][0])
    with pytest.raises(InputError, match=r"size 0.*GlobalMaxPool"):
        webinfer.load_sync(data, backend="wasm", shapes={"x0": (1, 3, 0, 4)})


@pytest.mark.parametrize("backend", ["reference", "wasm", "webgpu"])
def test_one_session_runs_with_nothing_and_with_something(backend: str) -> None:
    demand(backend)
    nodes = [
        helper.make_node("Concat", ["past", "k"], ["present"], axis=2),
        helper.make_node("Transpose", ["present"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "kt"], ["s"]),
        helper.make_node("Softmax", ["s"], ["y"], axis=-1),
    ]
    shapes = {"past": [1, 2, "p", 8], "k": [1, 2, "n", 8], "q": [1, 2, "n", 8]}
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("present", "y")]
    graph = helper.make_graph(nodes, "g", infos, ends)
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    judge = judge_of(data)
    with webinfer.load_sync(data, backend=backend) as session:
        for past, new in ((0, 3), (3, 1), (0, 3), (4, 0), (0, 0)):
            fed = {"past": real(1, 2, past, 8), "k": real(1, 2, new, 8), "q": real(1, 2, new, 8)}
            found = session.run(fed)
            for name, wanted in zip(("present", "y"), judge.run(None, fed), strict=True):
                np.testing.assert_allclose(found[name].numpy(), wanted, atol=1e-6)
    with webinfer.load_sync(data, backend=backend, shapes={"past": (1, 2, 0, 8), "k": (1, 2, 2, 8)}) as session:
        assert session.run({"past": b"", "k": real(1, 2, 2, 8), "q": real(1, 2, 2, 8)})["y"].shape == (1, 2, 2, 2)


@pytest.mark.parametrize("backend", ["wasm", "webgpu"])
def test_a_tensorflow_lite_input_may_be_resized_to_0(backend: str) -> None:
    from ai_edge_litert.interpreter import Interpreter

    demand(backend)
    writer = Writer()
    x = writer.input("x", (1, 4), shape_signature=[-1, 4])
    w = writer.constant("w", real(3, 4))
    y = writer.tensor("y", (1, 3), shape_signature=[-1, 3])
    writer.node("FULLY_CONNECTED", [x, w, -1], [y])
    data = writer.finish(y)
    interpreter = Interpreter(model_content=data)
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], [0, 4])
    interpreter.allocate_tensors()
    interpreter.invoke()
    want = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    with webinfer.load_sync(data, backend=backend) as session:
        (got,) = session.run({"x": real(0, 4)}).values()
        assert got.shape == want.shape == (0, 3)
        (again,) = session.run({"x": real(2, 4)}).values()
        assert again.shape == (2, 3)
