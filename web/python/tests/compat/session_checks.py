"""The module, its models and their runs, as ONNX Runtime's own tests check them: rows of the list."""

from __future__ import annotations

import importlib
import threading
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
from onnx import TensorProto, helper
from tests.compat.onnx_files import model, product
from tests.compat.own_checks import CPU, FLOAT, ORIGINAL, A, B, X, check, conjunction, feed, matmul

# ----- the module


@check()
def version_string(ort, state):
    assert ort.get_version_string() == ort.__version__


@check()
def build_info(ort, state):
    assert "Build Info" in ort.get_build_info()


@check()
def providers(ort, state):
    assert "CPUExecutionProvider" in ort.get_available_providers()
    assert ort.get_all_providers()[-1] == "CPUExecutionProvider"
    session = ort.InferenceSession(product(), providers=ort.get_available_providers())
    assert "CPUExecutionProvider" in session.get_providers()


@check()
def telemetry(ort, state):
    assert ort.disable_telemetry_events() is None
    assert ort.enable_telemetry_events() is None


@check()
def device(ort, state):
    assert "CPU" in ort.get_device() or "GPU" in ort.get_device()


@check()
def logger_callback(ort, state):
    if ort.__name__ == ORIGINAL and not hasattr(ort, "set_default_logger_callback"):
        pytest.skip("onnxruntime has it from 1.32 on")
    records: list[tuple[Any, ...]] = []
    try:
        ort.set_default_logger_callback(lambda *told: records.append(told), severity=0)
        (found,) = feed(ort, product(), {"X": X})
        assert np.allclose(found, X * X)
        assert records
        assert all(list(map(type, one)) == [int, str, str, str, str] for one in records)
        for severity in (0, 4):
            ort.set_default_logger_callback(lambda *told: None, severity=severity)
        for wrong in ((print, 5), (print, -1), ("no function", 2)):
            with pytest.raises(RuntimeError):
                ort.set_default_logger_callback(wrong[0], severity=wrong[1])
        ort.set_default_logger_callback(lambda *told: 1 / 0, severity=0)
        ort.InferenceSession(product(), providers=CPU)
    finally:
        ort.set_default_logger_callback(None)
        ort.set_default_logger_severity(2)


@check()
def provider_arguments(ort, state):
    module = importlib.import_module(f"{ort.__name__}.capi.onnxruntime_inference_collection")

    def normalized(providers, options):
        return module.check_and_normalize_provider_args(providers, options, ["a", "b", "c"])

    for given, wanted in (
        ((None, None), ([], [])),
        ((["a"], None), (["a"], [{}])),
        ((["a", "b"], None), (["a", "b"], [{}, {}])),
        (([("a", {1: 2}), "b"], None), (["a", "b"], [{"1": "2"}, {}])),
        ((["a", "b"], [{1: 2}, {}]), (["a", "b"], [{"1": "2"}, {}])),
    ):
        assert normalized(*given) == wanted
    with pytest.warns(UserWarning, match="Duplicate"):
        assert normalized(["a", "b", "a"], [{"x": 1}, {}, {"y": 2}]) == (["a", "b"], [{"x": "1"}, {}])
    for wrong in (
        (3, None),
        ([3], None),
        (["a"], 3),
        (["a"], ["no dict"]),
        (["a", "b"], [{1: 2}]),
        ([("a", {})], [{}]),
    ):
        with pytest.raises(ValueError, match="provider"):
            normalized(*wrong)


@check()
def arena_settings(ort, state):
    found = ort.OrtArenaCfg(8, 0, 4, 2)
    assert (found.max_mem, found.arena_extend_strategy) == (8, 0)
    assert (found.initial_chunk_size_bytes, found.max_dead_bytes_per_chunk) == (4, 2)
    given = {
        "max_mem": 32, "arena_extend_strategy": 11, "initial_chunk_size_bytes": 18, "max_dead_bytes_per_chunk": 14,
        "initial_growth_chunk_size_bytes": 12, "max_power_of_two_extend_bytes": 17,
    }  # fmt: skip
    found = ort.OrtArenaCfg(given)
    assert {name: getattr(found, name) for name in given} == given


@check()
def devices(ort, state):
    found = ort.OrtDevice.make("cpu", 0)
    numbers = found.device_id(), found.device_type(), found.device_vendor_id(), found.device_mem_type()
    assert numbers == (0, 0, ort.OrtDeviceVendorId.NONE, 0)
    assert ort.OrtDevice.make("cuda", 0).device_vendor_id() == ort.OrtDeviceVendorId.NVIDIA == 0x10DE


def _memory(ort):
    return ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)


def _told(found, ort, name):
    assert (found.name, found.device_id, found.device_vendor_id) == (name, 0, 0)
    assert found.mem_type == ort.OrtMemType.DEFAULT
    assert found.allocator_type == ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR
    assert found.device_mem_type == ort.OrtDeviceMemoryType.DEFAULT


@check()
def memory_info(ort, state):
    _told(_memory(ort), ort, "Cpu")


@check()
def memory_info_of_version_2(ort, state):
    kinds = ort.OrtMemoryInfoDeviceType.CPU, 0, 0, ort.OrtDeviceMemoryType.DEFAULT, 128
    _told(ort.OrtMemoryInfo.create_v2("Test", *kinds, ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR), ort, "Test")


@check()
def shared_allocators(ort, state):
    ort.create_and_register_allocator(_memory(ort), None)
    for entry in ("1", "0"):
        options = ort.SessionOptions()
        options.add_session_config_entry("session.use_env_allocators", entry)
        assert np.allclose(feed(ort, product(), {"X": X}, options)[0], X * X)


# ----- models and runs


@check()
def model_of_a_path_object(ort, state, tmp_path):
    (tmp_path / "model.onnx").write_bytes(product())
    session = ort.InferenceSession(tmp_path / "model.onnx", providers=CPU)
    assert [one.name for one in session.get_inputs()] == ["X"]


@check()
def model_is_run(ort, state):
    session = ort.InferenceSession(product(), providers=CPU)
    ((given,), (found,)) = session.get_inputs(), session.get_outputs()
    assert (given.name, given.shape, found.name, found.shape) == ("X", [3, 2], "Y", [3, 2])
    for infos in (session.get_input_memory_infos(), session.get_output_memory_infos()):
        assert len(infos) == 1
        assert infos[0] is not None
    assert len(session.get_input_epdevices()) == 1
    assert np.allclose(session.run(["Y"], {"X": X})[0], X * X)


@check()
def model_of_bytes(ort, state):
    assert np.allclose(feed(ort, product(), {"X": X})[0], X * X)


@check()
def matrix_product(ort, state):
    session = ort.InferenceSession(matmul(), providers=CPU)
    assert session.get_outputs()[0].shape == [3, 1]
    assert np.allclose(session.run(["Y"], {"X": X})[0], [[5], [11], [17]])


@check()
def matrix_product_of_strided_rows(ort, state):
    strided = X[:, [1, 0]][:, [1, 0]]
    for given in (strided, np.ascontiguousarray(strided), np.asfortranarray(X)):
        assert np.allclose(feed(ort, matmul(), {"X": given})[0], [[5], [11], [17]])


@check()
def open_sizes(ort, state):
    session = ort.InferenceSession(matmul("None"), providers=CPU)
    assert session.get_inputs()[0].shape == ["None", 2]
    assert session.get_outputs()[0].shape == ["None", 1]
    assert np.allclose(session.run(None, {"X": X})[0], [[5], [11], [17]])


@check()
def asynchronous_run(ort, state):
    done, seen = threading.Event(), []

    def callback(results, data, error):
        seen.append((results, data, error))
        done.set()

    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    session = ort.InferenceSession(product(), options, providers=CPU)
    mark = object()
    session.run_async(["Y"], {"X": X}, callback, mark)
    assert done.wait(30)
    ((results, data, error),) = seen
    assert (data, error) == (mark, "")
    assert np.allclose(results[0], X * X)


@check()
def threads_of_one_session(ort, state):
    options = ort.SessionOptions()
    options.log_verbosity_level, options.logid = 1, "threads"
    session, found = ort.InferenceSession(product(), sess_options=options, providers=CPU), []

    def work(name):
        told = ort.RunOptions()
        told.logid = name
        found.append(session.run([], {"X": X}, run_options=told)[0])

    threads = [threading.Thread(target=work, args=(f"thread{i}",)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert all(np.allclose(one, X * X) for one in found)


@check()
def lists_as_inputs(ort, state):
    assert np.allclose(feed(ort, product(), {"X": X.tolist()})[0], X * X)


@check()
def truth_values_in_the_order_of_the_file(ort, state):
    session = ort.InferenceSession(conjunction(), providers=CPU)
    told = [(one.name, one.shape, one.type) for one in (*session.get_inputs(), *session.get_outputs())]
    assert told == [(name, [2, 2], "tensor(bool)") for name in ("input1:0", "input:0", "output:0")]
    assert np.array_equal(session.run(["output:0"], {"input1:0": A, "input:0": B})[0], A & B)


@check()
def missing_inputs(ort, state):
    with pytest.raises(
        ValueError, match=r"Required inputs \(\['input1:0'\]\) are missing from input feed \(\['input:0'\]\)"
    ):
        feed(ort, conjunction(), {"input:0": A})


@check()
def metadata(ort, state):
    found = ort.InferenceSession(product(), providers=CPU).get_modelmeta()
    told = found.producer_name, found.graph_name, found.domain, found.description, found.graph_description
    assert told == ("tests", "product", "org.example", "a product", "")


@check()
def base_model_with_run_options(ort, state):
    assert np.allclose(feed(ort, product(), {"X": X}, run_options=ort.RunOptions())[0], X * X)


@check()
def outputs_do_not_alias_inputs(ort, state):
    size = [1, 2, 2, 2]
    ends = [("x", FLOAT, size)], [("plus", FLOAT, size), ("x", FLOAT, size)]
    data = model([helper.make_node("Add", ["x", "ten"], ["plus"])], *ends, [("ten", np.float32(10).reshape(()))])
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session, kept = ort.InferenceSession(data, sess_options=options, providers=CPU), []
    for run in range(7):
        given = np.full(size, run, np.float32)
        kept.append(session.run(None, {"x": given}))
        assert not np.shares_memory(kept[-1][1], given)
    for run, (plus, through) in enumerate(kept):
        assert np.array_equal(plus, np.full(size, run + 10, np.float32))
        assert np.array_equal(through, np.full(size, run, np.float32))


@check()
def outputs_are_not_copied(ort, state):
    assert feed(ort, product(), {"X": X})[0].base is not None


@check()
def leaves_without_a_tree(ort, state):
    def ensemble(modes, values, true, false, trees, nodes, weights):
        node = helper.make_node(
            "TreeEnsembleClassifier", ["X"], ["label", "probs"], domain="ai.onnx.ml", nodes_treeids=[0] * len(modes),
            nodes_nodeids=list(range(len(modes))), nodes_featureids=[0] * len(modes), nodes_values=values,
            nodes_modes=modes, nodes_truenodeids=true, nodes_falsenodeids=false, class_treeids=trees,
            class_nodeids=nodes, class_ids=[0] * len(weights), class_weights=weights, classlabels_int64s=[0, 1],
            post_transform="LOGISTIC", base_values=[-0.405],
        )  # fmt: skip
        value = helper.make_tensor_value_info
        outs = [value("label", TensorProto.INT64, [None]), value("probs", FLOAT, [None, 2])]
        graph = helper.make_graph([node], "trees", [value("X", FLOAT, [None, 3])], outs)
        sets = [helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 3)]
        return bytes(helper.make_model(graph, opset_imports=sets, ir_version=8).SerializeToString())

    for data, margin in (
        (
            ensemble(["BRANCH_LT", "LEAF", "LEAF"], [0.5, 0.0, 0.0], [1, 0, 0], [2, 0, 0], [0, 0], [1, 2], [0.3, -0.3]),
            -0.105,
        ),
        (ensemble(["LEAF"], [0.0], [0], [0], [0], [0], [0.0]), -0.405),
        (ensemble(["LEAF"], [0.0], [0], [0], [0], [0], [-1e-9]), -0.405),
    ):
        found = feed(ort, data, {"X": np.array([[0.1, 0, 0]], np.float32)})[1]
        assert np.allclose(np.asarray(found)[0, 1], 1 / (1 + np.exp(-margin)), atol=1e-5)
