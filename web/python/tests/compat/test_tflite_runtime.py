"""What LiteRT's documentation says its interpreter does; each test runs on the stand-in and on the original."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert.schema_py_generated")
from ai_edge_litert import schema_py_generated as schema
from tests.importers.sample_models import quantized
from tests.importers.test_variables import ADDING
from tests.importers.tflite_writer import Writer

STAND_IN, ORIGINAL = "webinfer.compat.tflite_runtime.interpreter", "ai_edge_litert.interpreter"


def _sum_and_difference(shape=(2, 3), open_batch=False) -> bytes:
    w = Writer()
    told = {"shape_signature": [-1, *shape[1:]]} if open_batch else {}
    x, y = w.input("x", shape, **told), w.input("y", shape, **told)
    total, difference = w.tensor("total", shape, **told), w.tensor("difference", shape, **told)
    w.node("ADD", [x, y], [total])
    w.node("SUB", [x, y], [difference])
    w.graph.outputs = [total, difference]
    signature = schema.SignatureDefT()
    signature.signatureKey, signature.subgraphIndex = "both", 0
    signature.inputs = [_entry("left", x), _entry("right", y)]
    signature.outputs = [_entry("sum", total), _entry("minus", difference)]
    w.model.signatureDefs = [signature]
    return w.finish()


def _entry(name: str, index: int):
    entry = schema.TensorMapT()
    entry.name, entry.tensorIndex = name, index
    return entry


BOTH = _sum_and_difference()
A, B = np.arange(6, dtype=np.float32).reshape(2, 3), np.full((2, 3), 10, np.float32)


@pytest.fixture(params=[STAND_IN, ORIGINAL], scope="module")
def litert(request):
    return importlib.import_module(request.param)


@pytest.fixture
def interpreter(litert):
    made = litert.Interpreter(model_content=BOTH)
    made.allocate_tensors()
    return made


def _set(interpreter, *arrays) -> None:
    for details, array in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.set_tensor(details["index"], array)


def _outputs(interpreter) -> list:
    return [interpreter.get_tensor(one["index"]) for one in interpreter.get_output_details()]


def test_a_model_is_content_or_a_path(litert, tmp_path):
    (tmp_path / "both.tflite").write_bytes(BOTH)
    for given in ({"model_content": BOTH}, {"model_path": str(tmp_path / "both.tflite")}):
        made = litert.Interpreter(**given, num_threads=1)
        made.allocate_tensors()
        _set(made, A, B)
        made.invoke()
        total, difference = _outputs(made)
        assert np.array_equal(total, A + B)
        assert np.array_equal(difference, A - B)


@pytest.mark.parametrize(
    "given",
    [{}, {"model_content": BOTH, "model_path": "x"}, {"model_path": "there is none"}, {"model_content": b"no model"},
     {"model_content": BOTH, "num_threads": "2"}],
    ids=["neither", "both", "missing", "damaged", "threads"],
)  # fmt: skip
def test_what_is_no_model_is_a_value_error(litert, given):
    with pytest.raises(ValueError, match=r"."):
        litert.Interpreter(**given)


def test_details_of_tensors(interpreter):
    x, y = interpreter.get_input_details()
    assert (x["name"], x["index"], y["index"]) == ("x", 0, 1)
    assert (x["shape"].tolist(), x["shape"].dtype, x["shape_signature"].tolist()) == ([2, 3], np.int32, [2, 3])
    assert (x["dtype"], x["quantization"], x["sparsity_parameters"]) == (np.float32, (0.0, 0), {})
    assert x["quantization_parameters"]["scales"].size == 0
    assert [one["name"] for one in interpreter.get_output_details()] == ["total", "difference"]
    assert {"x", "y", "total", "difference"} <= {one["name"] for one in interpreter.get_tensor_details()}


def test_quantized_tensors_have_scales_and_equal_results(litert):
    made = litert.Interpreter(model_content=quantized())
    made.allocate_tensors()
    (given,), original = made.get_input_details(), importlib.import_module(ORIGINAL)
    scale, zero = given["quantization"]
    assert scale > 0
    assert given["quantization_parameters"]["scales"].tolist() == [np.float32(scale)]
    assert given["quantization_parameters"]["zero_points"].tolist() == [zero]
    values = np.random.default_rng(0).integers(0, 100, given["shape"]).astype(given["dtype"])
    truth = original.Interpreter(model_content=quantized())
    truth.allocate_tensors()
    for one in (made, truth):
        _set(one, values)
        one.invoke()
    for found, expected in zip(_outputs(made), _outputs(truth), strict=True):
        assert np.abs(found.astype(float) - expected.astype(float)).max() <= 1


def test_tensors_keep_their_values_and_copies_are_copies(interpreter):
    _set(interpreter, A, B)
    interpreter.invoke()
    copy = interpreter.get_tensor(0)
    copy += 1
    assert np.array_equal(interpreter.get_tensor(0), A)
    interpreter.set_tensor(1, A)
    interpreter.invoke()
    assert np.array_equal(_outputs(interpreter)[0], A + A)


def test_tensor_gives_the_array_itself(interpreter):
    given, out = interpreter.tensor(0), interpreter.tensor(interpreter.get_output_details()[0]["index"])
    interpreter.set_tensor(1, B)
    given()[...] = 3
    interpreter.invoke()
    assert np.array_equal(out(), B + 3)


@pytest.mark.parametrize(
    ("value", "text"),
    [(A.astype(np.float64), "type"), (A[:1], "[Dd]imension"), (A[0], "[Dd]imension")],
    ids=["type", "size", "rank"],
)
def test_values_that_do_not_fit_are_value_errors(interpreter, value, text):
    with pytest.raises(ValueError, match=text):
        interpreter.set_tensor(0, value)


def test_nothing_runs_before_tensors_are_allocated(litert):
    made = litert.Interpreter(model_content=BOTH)
    with pytest.raises(ValueError, match="allocate"):
        made.set_tensor(0, A)
    with pytest.raises(RuntimeError, match="not ready"):
        made.invoke()


@pytest.mark.parametrize("open_batch", [True, False], ids=["open", "fixed"])
def test_inputs_are_resized(litert, open_batch):
    made = litert.Interpreter(model_content=_sum_and_difference(open_batch=open_batch))
    big = np.arange(15, dtype=np.float32).reshape(5, 3)
    for index in (0, 1):
        made.resize_tensor_input(index, [5, 3])
    made.allocate_tensors()
    assert made.get_input_details()[0]["shape"].tolist() == [5, 3]
    assert made.get_input_details()[0]["shape_signature"].tolist() == ([-1, 3] if open_batch else [5, 3])
    _set(made, big, big)
    made.invoke()
    assert np.array_equal(_outputs(made)[0], 2 * big)
    assert made.get_output_details()[0]["shape"].tolist() == [5, 3]


def test_strict_resizing_keeps_fixed_sizes(litert):
    made = litert.Interpreter(model_content=_sum_and_difference(open_batch=True))
    made.resize_tensor_input(0, [4, 3], strict=True)
    with pytest.raises(RuntimeError, match="unknown dimensions"):
        made.resize_tensor_input(0, [4, 4], strict=True)


def test_signatures_are_called_by_name(interpreter):
    assert interpreter.get_signature_list() == {
        "both": {"inputs": ["left", "right"], "outputs": ["minus", "sum"]}
    } or interpreter.get_signature_list() == {"both": {"inputs": ["left", "right"], "outputs": ["sum", "minus"]}}
    for runner in (interpreter.get_signature_runner(), interpreter.get_signature_runner("both")):
        found = runner(right=B, left=A)
        assert set(found) == {"sum", "minus"}
        assert np.array_equal(found["minus"], A - B)
        assert runner.get_input_details()["left"]["shape"].tolist() == [2, 3]
        assert set(runner.get_output_details()) == {"sum", "minus"}
        with pytest.raises(ValueError, match=r"number of inputs|Invalid number"):
            runner(left=A)
        with pytest.raises(ValueError, match="Invalid Input name"):
            runner(left=A, middle=B)
    with pytest.raises(ValueError, match="Invalid signature_key"):
        interpreter.get_signature_runner("neither")


def test_variables_live_until_they_are_reset(litert):
    made = litert.Interpreter(model_content=ADDING)
    made.allocate_tensors()
    seen = []
    for _ in range(2):
        _set(made, np.array([1, 2], np.float32))
        made.invoke()
        seen.append(_outputs(made)[0].tolist())
    assert seen == [[1.5, 0.5], [2.5, 2.5]]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the original's
def test_delegates_are_refused(litert):
    with pytest.raises((ValueError, OSError)):
        litert.load_delegate("libnone.so")
