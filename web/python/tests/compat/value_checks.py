"""Values, bindings, and what the stand-in lacks, as ONNX Runtime's own tests check them: rows of the list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
from onnx import TensorProto, helper
from tests.compat.onnx_files import product, same
from tests.compat.own_checks import CHECKS, CPU, FLOAT, Check, X, check, feed

# ----- values


@check()
def values_of_arrays(ort, state):
    value = ort.OrtValue.ortvalue_from_numpy(X)
    told = value.device_name(), value.shape(), value.data_type(), value.is_tensor(), value.tensor_size_in_bytes()
    assert told == ("cpu", [3, 2], "tensor(float)", True, 24)
    assert np.array_equal(feed(ort, product(), {"X": value})[0], X * X)
    assert np.array_equal(value.numpy(), X)
    typed = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(X, 1)
    assert (typed.is_tensor(), typed.element_type(), typed.shape()) == (True, 1, [3, 2])


@check()
def values_are_arrays(ort, state):
    value = ort.OrtValue.ortvalue_from_numpy(X)
    for array in (np.asarray(value), np.asarray(value, dtype=np.float32)):
        assert np.array_equal(array, X)
        assert array.ctypes.data == value.data_ptr()
    assert np.array_equal(np.array(value), X)
    assert np.asarray(value, dtype=np.float64).dtype == np.float64
    for array in (np.array([1, 2, 3], np.int64), np.array([True, False])):
        found = np.asarray(ort.OrtValue.ortvalue_from_numpy(array))
        assert (found.dtype, found.tolist()) == (array.dtype, array.tolist())


@check()
def dlpack_in_and_out(ort, state):
    value = ort.OrtValue.ortvalue_from_numpy(X)
    again = ort.OrtValue.from_dlpack(value.__dlpack__())
    assert again.data_ptr() == value.data_ptr()
    assert np.array_equal(again.numpy(), X)


@check()
def dlpack_of_nothing(ort, state):
    for shape in ((1, 8, 0, 128), (0,), (0, 4), (4, 0)):
        value = ort.OrtValue.from_dlpack(np.zeros(shape, np.float32))
        assert value.shape() == list(shape)
        assert ort.OrtValue.from_dlpack(value.__dlpack__()).shape() == list(shape)


@check()
def dlpack_protocol(ort, state):
    value = ort.OrtValue.ortvalue_from_numpy(X)
    assert tuple(value.__dlpack_device__()) == (1, 0)
    assert np.array_equal(ort.OrtValue.from_dlpack(value.__dlpack__()).numpy(), X)


@check()
def dlpack_of_objects(ort, state):
    array = np.arange(4, dtype=np.float32)
    value = ort.OrtValue.from_dlpack(array)
    assert np.array_equal(value.numpy(), array)
    source = ort.OrtValue.ortvalue_from_numpy(array)
    assert ort.OrtValue.from_dlpack(source).data_ptr() == source.data_ptr()


@check()
def dlpack_of_truth_values(ort, state):
    for array in (np.array([True, False, True]), np.array([1, 2, 255], np.uint8)):
        found = ort.OrtValue.from_dlpack(ort.OrtValue.ortvalue_from_numpy(array)).numpy()
        assert (found.dtype, found.tolist()) == (array.dtype, array.tolist())


# ----- bindings


def _bound(ort, bind) -> tuple[Any, Any]:
    session = ort.InferenceSession(product(), providers=CPU)
    binding = session.io_binding()
    bind(binding)
    binding.synchronize_inputs()
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    return session, binding


@check()
def bound_arrays(ort, state):
    _, binding = _bound(ort, lambda one: (one.bind_cpu_input("X", X), one.bind_output("Y")))
    assert np.array_equal(binding.copy_outputs_to_cpu()[0], X * X)


@check()
def bound_types(ort, state):
    kinds = "float32 float64 int32 uint32 int64 uint64 int16 uint16 int8 uint8 float16 bool".split()
    for kind in kinds:
        array = np.arange(2).astype(kind)
        number = helper.np_dtype_to_tensor_dtype(array.dtype)
        session = ort.InferenceSession(same(number), providers=CPU)
        binding = session.io_binding()
        binding.bind_ortvalue_input("X", ort.OrtValue.ortvalue_from_numpy(array))
        binding.bind_output("Y", "cpu")
        session.run_with_iobinding(binding)
        found = binding.get_outputs()[0].numpy()
        assert (found.dtype, found.tolist()) == (array.dtype, array.tolist()), kind


@check()
def bound_memory(ort, state):
    value = ort.OrtValue.ortvalue_from_numpy(X)

    def bind(one):
        one.bind_input("X", "cpu", 0, np.float32, [3, 2], value.data_ptr())
        one.bind_output("Y")

    assert np.array_equal(_bound(ort, bind)[1].copy_outputs_to_cpu()[0], X * X)


@check()
def bound_memory_of_outputs(ort, state):
    value, place = ort.OrtValue.ortvalue_from_numpy(X), ort.OrtValue.ortvalue_from_shape_and_type([3, 2], np.float32)

    def bind(one):
        one.bind_input("X", "cpu", 0, np.float32, [3, 2], value.data_ptr())
        one.bind_output("Y", "cpu", 0, np.float32, [3, 2], place.data_ptr())

    assert np.array_equal(_bound(ort, bind)[1].copy_outputs_to_cpu()[0], X * X)
    assert np.array_equal(place.numpy(), X * X)


@check()
def bound_outputs_of_new_memory(ort, state):
    first, second = (ort.OrtValue.ortvalue_from_numpy(one) for one in (X, 2 * X))

    def bind(one, value=first):
        one.bind_input("X", "cpu", 0, np.float32, [3, 2], value.data_ptr())
        one.bind_output("Y", "cpu")

    session, binding = _bound(ort, bind)
    for _ in range(2):
        (found,) = binding.get_outputs()
        assert (found.device_name(), found.numpy().tolist()) == ("cpu", (X * X).tolist())
    bind(binding, second)
    session.run_with_iobinding(binding)
    assert np.array_equal(binding.get_outputs()[0].numpy(), 2 * X * X)


@check()
def bound_values(ort, state):
    place = ort.OrtValue.ortvalue_from_shape_and_type([3, 2], np.float32)

    def bind(one):
        one.bind_ortvalue_input("X", ort.OrtValue.ortvalue_from_numpy(X))
        one.bind_ortvalue_output("Y", place)

    session, binding = _bound(ort, bind)
    assert np.array_equal(place.numpy(), X * X)
    binding.bind_ortvalue_input("X", ort.OrtValue.ortvalue_from_numpy(2 * X))
    session.run_with_iobinding(binding)
    assert np.array_equal(place.numpy(), 2 * X * X)


# ----- what the stand-in does not have


def _texts(given) -> Check:
    def passes_through(ort, state):
        assert feed(ort, same(TensorProto.STRING, [2, 2]), {"X": given})[0].shape == (2, 2)

    return passes_through


WORDS = np.array(["this", "is", "identity", "test"]).reshape(2, 2)
TEXTS = {
    "a list": WORDS.tolist(),
    "texts": WORDS,
    "texts of other alphabets": np.array(["Olá", "你好", "여보세요", "hello"]).reshape(2, 2),
    "bytes": WORDS.astype("S"),
    "objects": WORDS.astype(object),
    "raw bytes": np.array([b"must", b"have", b"same", b"size"], dtype=np.void).reshape(2, 2),
}
for _kind, _given in TEXTS.items():
    CHECKS[f"strings_{_kind}"] = _texts(_given), ""


def _sequences(nodes, inputs, outputs) -> bytes:
    def value(name, kind, sequence):
        tensor = helper.make_tensor_type_proto(kind, None)
        return helper.make_value_info(name, helper.make_sequence_type_proto(tensor) if sequence else tensor)

    graph = helper.make_graph(nodes, "sequences", [value(*one) for one in inputs], [value(*one) for one in outputs])
    return bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8).SerializeToString()
    )


@check("sequences")
def length_of_a_sequence(ort, state):
    data = _sequences([helper.make_node("SequenceLength", ["X"], ["Y"])], [("X", FLOAT, True)], [("Y", 7, False)])
    assert feed(ort, data, {"X": [X, X]})[0] == 2


@check("sequences")
def sequence_of_tensors(ort, state):
    node = helper.make_node("SequenceConstruct", ["a", "b"], ["y"])
    data = _sequences([node], [("a", FLOAT, False), ("b", FLOAT, False)], [("y", FLOAT, True)])
    assert np.array_equal(feed(ort, data, {"a": X, "b": 2 * X})[0], [X, 2 * X])


@check("sequences")
def insertion_into_a_sequence(ort, state):
    node = helper.make_node("SequenceInsert", ["s", "a"], ["y"])
    data = _sequences([node], [("s", FLOAT, True), ("a", FLOAT, False)], [("y", FLOAT, True)])
    assert np.array_equal(feed(ort, data, {"s": [], "a": X})[0], [X])


@check("sequences")
def optional_sequences(ort, state):
    data = _sequences([helper.make_node("Identity", ["x"], ["y"])], [("x", FLOAT, True)], [("y", FLOAT, True)])
    assert np.array_equal(feed(ort, data, {"x": [X]})[0], [X])


@check("sparse tensors")
def sparse_tensors_by_coordinates(ort, state):
    place, values = ort.OrtDevice.make("cpu", 0), np.array([1, 2, 3], np.float32)
    found = ort.SparseTensor.sparse_coo_from_numpy([9, 9], values, np.array([3, 5, 15], np.int64), place)
    assert np.array_equal(found.values(), values)


@check("sparse tensors")
def sparse_tensors_by_rows(ort, state):
    place, values = ort.OrtDevice.make("cpu", 0), np.array([1, 2, 3], np.float32)
    rows = np.array([1, 1, 1], np.int64), np.array([0, 1, 2, 3, 3, 3, 3, 3, 3, 3], np.int64)
    assert np.array_equal(ort.SparseTensor.sparse_csr_from_numpy([9, 9], values, *rows, place).values(), values)


@check("LoRA adapters")
def adapters_are_written_and_read(ort, state, tmp_path):
    made = ort.AdapterFormat()
    made.set_adapter_version(1)
    made.set_model_version(1)
    made.set_parameters({"p": ort.OrtValue.ortvalue_from_numpy_with_onnx_type(X, 1)})
    made.export_adapter(str(tmp_path / "adapter"))
    found = ort.AdapterFormat.read_adapter(str(tmp_path / "adapter")).get_parameters()
    assert np.array_equal(found["p"].numpy(), X)


@check("LoRA adapters")
def runs_with_adapters(ort, state):
    assert ort.LoraAdapter() is not None
    assert callable(ort.RunOptions().add_active_adapter)


@check("custom operator libraries")
def libraries_of_operators(ort, state):
    """Neither here nor there is a library: the original says that the file is missing, not that it takes none."""
    with pytest.raises(state.Fail, match="no_such_library"):
        ort.SessionOptions().register_custom_ops_library("no_such_library.so")
