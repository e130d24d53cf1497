"""Options of sessions and runs, as ONNX Runtime's own tests check them: rows of the list."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx
from onnx import TensorProto, helper, numpy_helper
from tests.compat.onnx_files import model, product
from tests.compat.own_checks import CPU, FLOAT, A, B, X, check, conjunction, feed, matmul

# ----- options


@check()
def optimization_levels(ort, state):
    options = ort.SessionOptions()
    assert options.graph_optimization_level == ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    assert options.graph_optimization_level == ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    assert np.array_equal(feed(ort, conjunction(), {"input1:0": A, "input:0": B}, options)[0], A & B)


@check()
def execution_modes(ort, state):
    options = ort.SessionOptions()
    assert options.execution_mode == ort.ExecutionMode.ORT_SEQUENTIAL
    options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
    assert options.execution_mode == ort.ExecutionMode.ORT_PARALLEL


@check()
def configuration_entries(ort, state):
    options = ort.SessionOptions()
    options.add_session_config_entry("KEY", "VALUE")
    assert options.get_session_config_entry("KEY") == "VALUE"


@check()
def unknown_configuration_entries(ort, state):
    with pytest.raises(RuntimeError, match="SessionOptions does not have configuration with key: KEY"):
        ort.SessionOptions().get_session_config_entry("KEY")


@check()
def configuration_of_a_run(ort, state):
    told = ort.RunOptions()
    told.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    assert told.get_run_config_entry("memory.enable_memory_arena_shrinkage") == "cpu:0"
    assert np.allclose(feed(ort, product(), {"X": X}, run_options=told)[0], X * X)


@check()
def profiles_have_a_line_an_event(ort, state, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ort.SessionOptions()
    options.enable_profiling = True
    session = ort.InferenceSession(product(), sess_options=options, providers=CPU)
    session.run([], {"X": X})
    text = (tmp_path / session.end_profiling()).read_text()
    first, *lines, last = text.splitlines()
    assert ("[" in first, "]" in last) == (True, True)
    assert lines
    assert all(word in line for line in lines for word in ("pid", "dur", "ts", "ph", "X", "name", "args"))
    assert isinstance(json.loads(text), list)


@check()
def profiles_start_one_after_the_other(ort, state, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    times = []
    for _ in range(3):
        options = ort.SessionOptions()
        options.enable_profiling = True
        session = ort.InferenceSession(product(), sess_options=options, providers=CPU)
        times.append(session.get_profiling_start_time_ns())
        session.end_profiling()
    assert times == sorted(times)


def _open_sizes() -> bytes:
    ends = [("x", FLOAT, ["Dim1", "Dim2", 5])], [("y", FLOAT, ["Dim1", "Dim2", 5])]
    return model([helper.make_node("Abs", ["x"], ["y"])], *ends)


@check()
def sizes_by_name(ort, state):
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("Dim1", 4)
    options.add_free_dimension_override_by_name("Dim2", 6)
    session = ort.InferenceSession(_open_sizes(), sess_options=options, providers=CPU)
    assert session.get_inputs()[0].shape == [4, 6, 5]


@check()
def sizes_by_denotation(ort, state):
    made = onnx.load_from_string(_open_sizes())
    for size, denotation in zip(
        made.graph.input[0].type.tensor_type.shape.dim, ("DATA_BATCH", "DATA_CHANNEL"), strict=False
    ):
        size.denotation = denotation
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_denotation("DATA_BATCH", 3)
    options.add_free_dimension_override_by_denotation("DATA_CHANNEL", 5)
    session = ort.InferenceSession(made.SerializeToString(), sess_options=options, providers=CPU)
    assert session.get_inputs()[0].shape == [3, 5, 5]


@check()
def options_of_the_model(ort, state, tmp_path, monkeypatch):
    monkeypatch.setenv("ORT_LOAD_CONFIG_FROM_MODEL", "1")
    made = onnx.load_from_string(product())
    config = {"session_options": {"inter_op_num_threads": 5, "intra_op_num_threads": 2}}
    helper.set_model_props(made, {"ort_config": json.dumps(config)})
    options = ort.InferenceSession(made.SerializeToString(), providers=CPU).get_session_options()
    assert (options.inter_op_num_threads, options.intra_op_num_threads) == (5, 2)


@check()
def optimized_models_are_written(ort, state, tmp_path):
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    ort.InferenceSession(product(), sess_options=options, providers=CPU)
    data = (tmp_path / "optimized.onnx").read_bytes()
    assert np.allclose(feed(ort, data, {"X": X})[0], X * X)


def _external(folder, ort, least: str):
    """Writes an optimized model whose weights lie beside it, and the names of both files."""
    made = onnx.load_from_string(matmul())
    made.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.ones((2, 64), np.float32), "W"))
    made.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 64
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "weights.bin")
    options.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", least)
    ort.InferenceSession(made.SerializeToString(), sess_options=options, providers=CPU)
    return folder / "optimized.onnx", folder / "weights.bin"


def _written(ort, folder, monkeypatch, least="100"):
    monkeypatch.chdir(folder)
    for file in _external(folder, ort, least):
        assert file.is_file()


@check()
def optimized_models_with_weights_beside_them(ort, state, tmp_path, monkeypatch):
    _written(ort, tmp_path, monkeypatch)


@check()
def optimized_models_with_weights_in_a_folder(ort, state, tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    _written(ort, tmp_path / "inner", monkeypatch)


@check()
def optimized_models_of_models_with_weights_beside_them(ort, state, tmp_path, monkeypatch):
    _written(ort, tmp_path, monkeypatch, least="20")


@check()
def optimized_models_of_optimized_models(ort, state, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _external(tmp_path, ort, "100")
    assert (tmp_path / "weights.bin").is_file()
    session = ort.InferenceSession(str(tmp_path / "optimized.onnx"), providers=CPU)
    assert session.run(None, {"X": X})[0].shape == (3, 64)


@check()
def other_values_for_initializers(ort, state):
    options = ort.SessionOptions()
    value = ort.OrtValue.ortvalue_from_numpy(np.array([[2, 1], [4, 3], [6, 5]], np.float32))
    options.add_initializer("W", value)
    assert np.array_equal(
        feed(ort, product(), {"X": X}, options)[0], np.array([[2, 2], [12, 12], [30, 30]], np.float32)
    )


def _absent_weights() -> bytes:
    """A sum with an initializer whose file is not there."""
    made = onnx.load_from_string(model(
        [helper.make_node("Add", ["x", "w"], ["y"])], [("x", FLOAT, [4])], [("y", FLOAT, [4])],
        [("w", np.zeros(4, np.float32))],
    ))  # fmt: skip
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "weights.bin"), ("offset", "0"), ("length", "16")):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    return bytes(made.SerializeToString())


@check()
def values_for_initializers_whose_file_is_missing(ort, state):
    options = ort.SessionOptions()
    value = ort.OrtValue.ortvalue_from_numpy(np.arange(4, dtype=np.float32))
    options.add_external_initializers(["w"], [value])
    assert feed(ort, _absent_weights(), {"x": np.ones(4, np.float32)}, options)[0].tolist() == [1, 2, 3, 4]


@check()
def files_of_weights_in_memory(ort, state, tmp_path):
    (tmp_path / "model.onnx").write_bytes(_absent_weights())
    data = np.arange(4, dtype=np.float32).tobytes()
    options = ort.SessionOptions()
    options.add_external_initializers_from_files_in_memory(["weights.bin"], [data], [len(data)])
    session = ort.InferenceSession(str(tmp_path / "model.onnx"), sess_options=options, providers=CPU)
    assert session.run(None, {"x": np.ones(4, np.float32)})[0].tolist() == [1, 2, 3, 4]


@check()
def providers_of_nodes(ort, state):
    options = ort.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    session = ort.InferenceSession(product(), sess_options=options, providers=CPU)
    ((node,),) = [one.get_nodes() for one in session.get_provider_graph_assignment_info()]
    assert node.op_type == "Mul"


@check()
def providers_of_nodes_were_not_asked_for(ort, state):
    session = ort.InferenceSession(product(), providers=CPU)
    text = re.escape('session.record_ep_graph_assignment_info\' must be set to "1"')
    with pytest.raises(state.Fail, match=text):
        session.get_provider_graph_assignment_info()
