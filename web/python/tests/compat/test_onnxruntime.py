"""What ONNX Runtime's Python interface is documented to do; each test runs on the stand-in and on the original."""

from __future__ import annotations

import importlib
import pickle
import threading

import numpy as np
import pytest

pytest.importorskip("onnx")
from onnx import TensorProto
from tests.compat.onnx_files import product, same, sums, unknown_operator

STAND_IN, ORIGINAL = "webinfer.compat.onnxruntime", "onnxruntime"
X = np.arange(6, dtype=np.float32).reshape(3, 2)
Y = X * np.arange(1, 7, dtype=np.float32).reshape(3, 2)
CPU = ["CPUExecutionProvider"]


@pytest.fixture(params=[STAND_IN, ORIGINAL], scope="module")
def ort(request):
    return pytest.importorskip(request.param)


@pytest.fixture(scope="module")
def state(ort):
    """The module of errors."""
    return importlib.import_module(f"{ort.__name__}.capi.onnxruntime_pybind11_state")


@pytest.fixture(scope="module")
def session(ort):
    return ort.InferenceSession(product(), providers=CPU)


@pytest.fixture(scope="module")
def pair(ort):
    return ort.InferenceSession(sums(), providers=CPU)


# ----- sessions


def test_a_model_is_bytes_a_path_or_a_path_object(ort, tmp_path):
    file = tmp_path / "product.onnx"
    file.write_bytes(product())
    for source in (product(), str(file), file):
        assert np.array_equal(ort.InferenceSession(source, providers=CPU).run(None, {"X": X})[0], Y)


def test_other_sources_are_type_errors(ort):
    with pytest.raises(TypeError, match="Unable to load from type"):
        ort.InferenceSession(12, providers=CPU)


def test_a_missing_file_is_no_such_file(ort, state):
    with pytest.raises(state.NoSuchFile, match="3 : NO_SUCHFILE"):
        ort.InferenceSession("there is none.onnx", providers=CPU)


def test_bytes_that_are_no_model_are_invalid_protobuf(ort, state, tmp_path):
    (tmp_path / "bad.onnx").write_bytes(b"this is not a model, it is text")
    for source in (b"this is not a model, it is text", tmp_path / "bad.onnx"):
        with pytest.raises(state.InvalidProtobuf, match="7 : INVALID_PROTOBUF"):
            ort.InferenceSession(source, providers=CPU)


def test_an_unknown_operator_is_an_error_of_the_state_module(ort, state):
    with pytest.raises((state.NotImplemented, state.Fail, state.InvalidGraph), match="NoSuchOperator"):
        ort.InferenceSession(unknown_operator(), providers=CPU)


def test_external_data_lies_beside_the_file(ort, tmp_path):
    import onnx

    loaded = onnx.load_from_string(product())
    onnx.save_model(
        loaded, tmp_path / "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0
    )
    assert (tmp_path / "weights.bin").exists()
    assert np.array_equal(ort.InferenceSession(str(tmp_path / "model.onnx"), providers=CPU).run(None, {"X": X})[0], Y)


def test_inputs_and_outputs_say_what_they_are(session, pair):
    (given,), (out,) = session.get_inputs(), session.get_outputs()
    assert (given.name, given.type, given.shape) == ("X", "tensor(float)", [3, 2])
    assert (out.name, out.type, out.shape) == ("Y", "tensor(float)", [3, 2])
    assert str(given) == "NodeArg(name='X', type='tensor(float)', shape=[3, 2])"
    assert [arg.shape for arg in pair.get_inputs()] == [["batch", 2], ["batch", 2]]
    assert [arg.name for arg in pair.get_outputs()] == ["S", "D"]
    assert session.get_overridable_initializers() == []


def test_sizes_without_a_name_are_none(ort):
    made = ort.InferenceSession(same(TensorProto.FLOAT, (None, 2)), providers=CPU)
    assert made.get_inputs()[0].shape == [None, 2]


def test_metadata_is_the_files(session):
    meta = session.get_modelmeta()
    assert dict(meta.custom_metadata_map) == {"labels": "a\nb", "stride": "32"}
    assert (meta.producer_name, meta.graph_name, meta.domain) == ("tests", "product", "org.example")
    assert (meta.version, meta.description) == (7, "a product")


# ----- runs


def test_outputs_are_arrays_in_the_order_of_their_names(session, pair):
    (found,) = session.run(None, {"X": X})
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.float32
    assert np.array_equal(found, Y)
    a, b = np.float32([[1, 2]]), np.float32([[10, 20]])
    for names, expected in (
        (None, [a + b, a - b]),
        ([], [a + b, a - b]),
        (["D", "S"], [a - b, a + b]),
        (["D"], [a - b]),
    ):
        results = pair.run(names, {"A": a, "B": b})
        assert isinstance(results, list)
        assert all(np.array_equal(x, y) for x, y in zip(results, expected, strict=True))


def test_outputs_may_be_written_and_are_kept(session):
    (first,) = session.run(None, {"X": X})
    first += 1
    session.run(None, {"X": 0 * X})
    assert np.array_equal(first, Y + 1)


def test_open_sizes_may_change_from_run_to_run(pair):
    for batch in (1, 3, 2, 3):
        a = np.random.default_rng(batch).random((batch, 2), np.float32)
        assert np.array_equal(pair.run(["S"], {"A": a, "B": a})[0], a + a)
    assert pair.get_inputs()[0].shape == ["batch", 2]


@pytest.mark.parametrize(
    "given", [X.tolist(), np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2]], ids=["list", "F", "strided"]
)
def test_inputs_may_be_lists_and_arrays_of_any_strides(session, given):
    assert np.array_equal(session.run(None, {"X": given})[0], Y)


TYPES = (
    "float32",
    "float16",
    "float64",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "bool",
)
NAMES = {"float32": "float", "float64": "double"}


@pytest.mark.parametrize("name", TYPES)
def test_types_pass_through(ort, name):
    from onnx import helper

    made = ort.InferenceSession(same(helper.np_dtype_to_tensor_dtype(np.dtype(name))), providers=CPU)
    given = np.array([0, 1], name)
    (found,) = made.run(None, {"X": given})
    assert (found.dtype, found.tolist()) == (given.dtype, given.tolist())
    assert made.get_inputs()[0].type == f"tensor({NAMES.get(name, name)})"


def test_scalars_have_no_axes(ort):
    made = ort.InferenceSession(same(TensorProto.FLOAT, ()), providers=CPU)
    (found,) = made.run(None, {"X": np.array(2.5, np.float32)})
    assert (found.shape, float(found)) == ((), 2.5)
    assert made.get_inputs()[0].shape == []


def test_several_threads_may_run_one_session(session):
    found = []
    threads = [
        threading.Thread(target=lambda k=k: found.append((k, session.run(None, {"X": X * k})[0]))) for k in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 8
    assert all(np.array_equal(result, Y * k) for k, result in found)


def test_run_async_calls_back(session):
    done, told = threading.Event(), []

    def callback(results, user_data, error):
        told.append((results[0], user_data, error))
        done.set()

    session.run_async(["Y"], {"X": X}, callback, "mine")
    assert done.wait(60)
    assert np.array_equal(told[0][0], Y)
    assert told[0][1:] == ("mine", "")


# ----- what is refused


def test_a_missing_input_is_a_value_error(session, pair):
    with pytest.raises(ValueError, match=r"Required inputs \(\['X'\]\) are missing from input feed \(\[\]\)"):
        session.run(None, {})
    with pytest.raises(ValueError, match="'B'"):
        pair.run(None, {"A": X[:1]})


@pytest.mark.parametrize(
    ("names", "feed", "text"),
    [
        (None, {"X": X, "Z": X}, "Z"),
        (["Z"], {"X": X}, "Z"),
        (None, {"X": X.astype(np.float64)}, r"Actual: \(tensor\(double\)\) , expected: \(tensor\(float\)\)"),
        (None, {"X": X[0]}, "Invalid rank for input: X Got: 1 Expected: 2"),
        (None, {"X": X[:2]}, "Got invalid dimensions for input: X for the following indices"),
        (None, {"X": X.T}, "index: 0 Got: 2 Expected: 3"),
    ],
    ids=["name", "output", "type", "rank", "size", "transposed"],
)  # fmt: skip
def test_inputs_that_do_not_fit_are_invalid_arguments(session, state, names, feed, text):
    with pytest.raises(state.InvalidArgument, match=text) as caught:
        session.run(names, feed)
    assert "2 : INVALID_ARGUMENT" in str(caught.value)
    assert np.array_equal(session.run(None, {"X": X})[0], Y)


def test_errors_are_plain_exceptions(state):
    names = "Fail InvalidArgument NoSuchFile NoModel EngineError RuntimeException InvalidProtobuf ModelLoaded EPFail"
    for name in (*names.split(), "NotImplemented", "InvalidGraph"):
        assert getattr(state, name).__mro__[1] is Exception


def test_sessions_do_not_pickle(session):
    with pytest.raises(TypeError):
        pickle.dumps(session)


# ----- options


def test_session_options_are_as_documented(ort):
    options = ort.SessionOptions()
    level = ort.GraphOptimizationLevel
    assert options.graph_optimization_level == level.ORT_ENABLE_ALL
    assert (options.intra_op_num_threads, options.inter_op_num_threads, options.enable_profiling) == (0, 0, False)
    assert options.execution_mode == ort.ExecutionMode.ORT_SEQUENTIAL
    options.intra_op_num_threads, options.graph_optimization_level = 1, level.ORT_ENABLE_BASIC
    options.execution_mode, options.log_severity_level, options.logid = ort.ExecutionMode.ORT_PARALLEL, 3, "mine"
    options.enable_mem_pattern = options.enable_cpu_mem_arena = False
    assert (options.intra_op_num_threads, options.logid) == (1, "mine")
    assert options.graph_optimization_level == level.ORT_ENABLE_BASIC
    made = ort.InferenceSession(product(), sess_options=options, providers=CPU)
    assert np.array_equal(made.run(None, {"X": X})[0], Y)
    assert made.get_session_options().logid == "mine"


def test_session_options_refuse_unknown_names_and_types(ort):
    options = ort.SessionOptions()
    with pytest.raises(AttributeError):
        options.no_such_option = 1
    with pytest.raises(TypeError):
        options.intra_op_num_threads = "four"


@pytest.mark.parametrize(("kind", "verb"), [("SessionOptions", "session"), ("RunOptions", "run")])
def test_configuration_entries_are_kept(ort, kind, verb):
    options = getattr(ort, kind)()
    getattr(options, f"add_{verb}_config_entry")("a.key", "1")
    assert getattr(options, f"get_{verb}_config_entry")("a.key") == "1"
    with pytest.raises(RuntimeError, match="does not have"):
        getattr(options, f"get_{verb}_config_entry")("another")
    with pytest.raises(TypeError):
        getattr(options, f"add_{verb}_config_entry")("a.key", 1)


def test_free_dimensions_are_fixed_by_name(ort, state):
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("batch", 4)
    made = ort.InferenceSession(sums(), options, providers=CPU)
    assert made.get_inputs()[0].shape == [4, 2]
    a = np.ones((4, 2), np.float32)
    assert np.array_equal(made.run(["S"], {"A": a, "B": a})[0], a + a)
    with pytest.raises(state.InvalidArgument):
        made.run(["S"], {"A": a[:2], "B": a[:2]})


def test_a_run_that_is_terminated_fails(ort, session, state):
    options = ort.RunOptions()
    assert (options.terminate, options.log_verbosity_level, options.logid) == (False, 0, "")
    assert np.array_equal(session.run(None, {"X": X}, options)[0], Y)
    options.terminate = True
    with pytest.raises(state.Fail, match="terminate"):
        session.run(None, {"X": X}, options)


def test_profiling_writes_a_file_of_events(ort, tmp_path):
    import json

    options = ort.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "profile")
    made = ort.InferenceSession(product(), options, providers=CPU)
    made.run(None, {"X": X})
    assert made.get_profiling_start_time_ns() > 0
    with open(made.end_profiling(), encoding="utf-8") as file:
        events = json.load(file)
    assert any(event["args"].get("op_name") and event["dur"] >= 0 for event in events if event.get("cat") == "Node")


# ----- providers


def test_the_cpu_is_always_there(ort, session):
    assert "CPUExecutionProvider" in ort.get_available_providers()
    assert set(ort.get_available_providers()) <= set(ort.get_all_providers())
    assert ort.get_all_providers()[-1] == "CPUExecutionProvider"
    assert session.get_providers() == CPU
    assert session.get_provider_options() == {"CPUExecutionProvider": {}}
    assert ort.get_device().startswith("CPU")


def test_a_provider_that_is_not_there_is_a_warning(ort):
    with pytest.warns(UserWarning, match="'CUDAExecutionProvider' is not in available provider names"):
        made = ort.InferenceSession(product(), providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
    assert made.get_providers() == CPU


@pytest.mark.parametrize(
    ("providers", "options", "text"),
    [
        ({"CPUExecutionProvider"}, None, "should be a sequence"),
        ([1], None, "must be either strings or"),
        ([("CPUExecutionProvider", 1)], None, "must be either strings or"),
        (CPU, [{}, {}], "should be the same length"),
        (CPU, {}, "should be a sequence"),
        (CPU, [1], "must be dicts"),
        ([("CPUExecutionProvider", {})], [{}], "Only string values"),
    ],
)
def test_providers_of_other_forms_are_refused(ort, providers, options, text):
    with pytest.raises(ValueError, match=text):
        ort.InferenceSession(product(), providers=providers, provider_options=options, enable_fallback=0)


def test_providers_may_carry_options_and_be_set_again(ort):
    made = ort.InferenceSession(product(), providers=[("CPUExecutionProvider", {"use_arena": 1})])
    assert made.get_provider_options()["CPUExecutionProvider"].get("use_arena", "1") == "1"
    made.set_providers(CPU)
    assert np.array_equal(made.run(None, {"X": X})[0], Y)


# ----- values and bindings


def test_ort_values_hold_arrays(ort):
    value = ort.OrtValue.ortvalue_from_numpy(X.copy())
    assert (value.shape(), value.data_type(), value.element_type()) == ([3, 2], "tensor(float)", 1)
    assert (value.device_name().lower(), value.is_tensor(), value.has_value()) == ("cpu", True, True)
    assert (value.is_sparse_tensor(), value.is_tensor_sequence()) == (False, False)
    assert (value.tensor_size_in_bytes(), value.data_ptr() > 0) == (24, True)
    assert np.array_equal(value.numpy(), X)
    value.update_inplace(X + 1)
    assert np.array_equal(value.numpy(), X + 1)


@pytest.mark.parametrize("kind", [np.float32, np.int64, 7], ids=["float32", "int64", "number"])
def test_ort_values_are_made_of_shape_and_type(ort, kind):
    value = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], kind, "cpu", 0)
    assert value.shape() == [2, 3]
    assert value.data_type() == ("tensor(float)" if kind is np.float32 else "tensor(int64)")


def test_devices_have_names(ort):
    with pytest.raises(Exception, match="Unsupported device type"):
        ort.OrtValue.ortvalue_from_numpy(X, "toaster", 0)


def test_runs_take_and_give_ort_values(ort, session):
    (found,) = session.run_with_ort_values(["Y"], {"X": ort.OrtValue.ortvalue_from_numpy(X)})
    assert isinstance(found, ort.OrtValue)
    assert np.array_equal(found.numpy(), Y)
    assert np.array_equal(session.run(None, {"X": ort.OrtValue.ortvalue_from_numpy(X)})[0], Y)


def test_bound_arrays_go_in_and_come_out(session):
    binding = session.io_binding()
    binding.bind_cpu_input("X", X)
    binding.bind_output("Y")
    binding.synchronize_inputs()
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    assert np.array_equal(binding.copy_outputs_to_cpu()[0], Y)
    assert np.array_equal(binding.get_outputs()[0].numpy(), Y)


def test_bound_memory_is_read_and_written_at_each_run(session):
    given, out = X.copy(), np.zeros_like(Y)
    binding = session.io_binding()
    binding.bind_input("X", "cpu", 0, np.float32, given.shape, given.ctypes.data)
    binding.bind_output("Y", "cpu", 0, np.float32, out.shape, out.ctypes.data)
    session.run_with_iobinding(binding)
    assert np.array_equal(out, Y)
    given *= 2
    session.run_with_iobinding(binding)
    assert np.array_equal(out, 2 * Y)
    with pytest.raises(ValueError, match="element_type"):
        binding.bind_output("Y", "cpu", 0, buffer_ptr=out.ctypes.data)


def test_bound_ort_values_are_written_in_place(ort, session):
    out = ort.OrtValue.ortvalue_from_numpy(np.zeros_like(Y))
    binding = session.io_binding()
    binding.bind_ortvalue_input("X", ort.OrtValue.ortvalue_from_numpy(X))
    binding.bind_ortvalue_output("Y", out)
    session.run_with_iobinding(binding)
    assert np.array_equal(out.numpy(), Y)
    binding.clear_binding_inputs()
    binding.clear_binding_outputs()


def test_outputs_come_in_the_order_of_binding(pair):
    binding = pair.io_binding()
    for name in "AB":
        binding.bind_cpu_input(name, X)
    for name in ("D", "S"):
        binding.bind_output(name)
    pair.run_with_iobinding(binding)
    found = binding.copy_outputs_to_cpu()
    assert [array.tolist() for array in found] == [(X - X).tolist(), (X + X).tolist()]


def test_a_binding_belongs_to_its_session(ort, session):
    other = ort.InferenceSession(product(), providers=CPU)
    with pytest.raises(ValueError, match="IOBinding must be used with the session"):
        other.run_with_iobinding(session.io_binding())


def test_names_that_are_not_there_cannot_be_bound(session):
    binding = session.io_binding()

    def bound(bind):
        bind()
        session.run_with_iobinding(binding)

    for bind in (lambda: binding.bind_cpu_input("Z", X), lambda: binding.bind_output("Z")):
        with pytest.raises(Exception, match="Z"):
            bound(bind)


# ----- the module


def test_the_module_says_what_it_is(ort):
    assert ort.__version__ == ort.get_version_string()
    assert tuple(map(int, ort.__version__.split(".")[:2])) >= (1, 17)
    assert isinstance(ort.get_build_info(), str)
    ort.set_seed(1)
    ort.disable_telemetry_events()
    ort.set_default_logger_severity(2)
    with pytest.raises(RuntimeError):
        ort.set_default_logger_severity(9)


def test_older_homes_of_classes_and_errors(ort, state):
    old = importlib.import_module(f"{ort.__name__}.capi._pybind_state")
    collection = importlib.import_module(f"{ort.__name__}.capi.onnxruntime_inference_collection")
    assert old.InvalidArgument is state.InvalidArgument
    assert collection.InferenceSession is ort.InferenceSession
