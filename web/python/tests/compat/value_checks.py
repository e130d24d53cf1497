"""Values, bindings, and what the stand-in lacks, as ONNX Runtime's own tests check them: rows of the list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
from onnx import TensorProto, helper
from tests.compat.onnx_files import model, product, same
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


@check()
def length_of_a_sequence(ort, state):
    data = _sequences([helper.make_node("SequenceLength", ["X"], ["Y"])], [("X", FLOAT, True)], [("Y", 7, False)])
    assert feed(ort, data, {"X": [X, X]})[0] == 2


@check()
def sequence_of_tensors(ort, state):
    node = helper.make_node("SequenceConstruct", ["a", "b"], ["y"])
    data = _sequences([node], [("a", FLOAT, False), ("b", FLOAT, False)], [("y", FLOAT, True)])
    assert np.array_equal(feed(ort, data, {"a": X, "b": 2 * X})[0], [X, 2 * X])


@check()
def insertion_into_a_sequence(ort, state):
    node = helper.make_node("SequenceInsert", ["s", "a"], ["y"])
    data = _sequences([node], [("s", FLOAT, True), ("a", FLOAT, False)], [("y", FLOAT, True)])
    assert np.array_equal(feed(ort, data, {"s": [], "a": X})[0], [X])


@check()
def optional_sequences(ort, state):
    data = _sequences([helper.make_node("Identity", ["x"], ["y"])], [("x", FLOAT, True)], [("y", FLOAT, True)])
    assert np.array_equal(feed(ort, data, {"x": [X]})[0], [X])
    session = ort.InferenceSession(data, providers=CPU)
    (given,), (found,) = session.get_inputs(), session.get_outputs()
    assert (given.type, given.shape) == (found.type, found.shape) == ("seq(tensor(float))", [])
    assert session.run(None, {"x": []}) == [[]]
    for sizes in ([1, 2, 3], [4], [2, 2]):
        (parts,) = session.run(None, {"x": [X[:1, :1] * size for size in sizes]})
        assert [part.tolist() for part in parts] == [[[size]] for size in sizes]
    with pytest.raises(state.InvalidArgument, match="expected to be of type"):
        session.run(None, {"x": X})
    for wrong in ([X.astype(np.float64)], [[1.0, 2.0]]):
        with pytest.raises(RuntimeError):
            session.run(None, {"x": wrong})


def sequences_out_of_tensors(ort, state):
    """Lengths come from sizes and from data; another output is a tensor, and values carry the type of sequences."""
    nodes = [
        helper.make_node("SplitToSequence", ["x", "n"], ["parts"], axis=0),
        helper.make_node("SequenceLength", ["parts"], ["count"]),
    ]
    ends = [("x", FLOAT, False), ("n", TensorProto.INT64, False)], [("parts", FLOAT, True), ("count", 7, False)]
    session = ort.InferenceSession(_sequences(nodes, *ends), providers=CPU)
    for rows, size in ((6, 2), (5, 2), (5, 5), (3, 1)):
        x, n = np.arange(2 * rows, dtype=np.float32).reshape(rows, 2), np.array(size)
        parts, count = session.run(None, {"x": x, "n": n})
        assert count == len(parts) == -(-rows // size)
        assert np.array_equal(np.concatenate(parts), x)
        assert len(parts[0]) == size
    value = session.run_with_ort_values(
        ["parts"], {"x": ort.OrtValue.ortvalue_from_numpy(x), "n": ort.OrtValue.ortvalue_from_numpy(n)}
    )[0]
    assert value.is_tensor_sequence()
    assert not value.is_tensor()
    assert value.data_type() == "seq(tensor(float))"
    assert value.element_type() == FLOAT
    with pytest.raises(RuntimeError):
        value.numpy()


def products_of_sparse_tensors(ort, state):
    """As wrapped values only, by coordinates or by rows."""
    sparse = helper.make_sparse_tensor_type_proto(FLOAT, [9, 9])
    node = helper.make_node("SparseToDenseMatMul", ["A", "B"], ["Y"], domain="com.microsoft", alpha=2.0, transA=1)
    ends = [helper.make_value_info("A", sparse), helper.make_tensor_value_info("B", FLOAT, [9, 2])]
    graph = helper.make_graph([node], "sparse", ends, [helper.make_tensor_value_info("Y", FLOAT, [9, 2])])
    opsets = [helper.make_opsetid("", 16), helper.make_opsetid("com.microsoft", 1)]
    data = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    session = ort.InferenceSession(bytes(data), providers=CPU)
    assert session.get_inputs()[0].type == "sparse_tensor(float)"
    assert session.get_inputs()[0].shape == [9, 9]
    place, values = ort.OrtDevice.make("cpu", 0), np.array([1, 2, 3], np.float32)
    pairs = ort.SparseTensor.sparse_coo_from_numpy([9, 9], values, np.array([[0, 3], [0, 5], [1, 6]]), place)
    rows = np.array([3, 5, 6], np.int64), np.array([0, 2, 3, 3, 3, 3, 3, 3, 3, 3], np.int64)
    by_rows = ort.SparseTensor.sparse_csr_from_numpy([9, 9], values, *rows, place)
    dense, other = np.zeros((9, 9), np.float32), np.arange(18, dtype=np.float32).reshape(9, 2)
    dense[[0, 0, 1], [3, 5, 6]] = values
    for found in (pairs, by_rows):
        inputs = {"A": ort.OrtValue.ort_value_from_sparse_tensor(found), "B": ort.OrtValue.ortvalue_from_numpy(other)}
        assert np.allclose(session.run_with_ort_values(None, inputs)[0].numpy(), 2 * dense.T @ other)
    with pytest.raises(state.InvalidArgument, match="expected to be of type"):
        session.run(None, {"A": dense, "B": other})
    with pytest.raises(RuntimeError):
        session.run(None, {"A": pairs, "B": other})


BESIDE = {check.__name__: check for check in (sequences_out_of_tensors, products_of_sparse_tensors)}


@check()
def sparse_tensors_by_coordinates(ort, state):
    place, values = ort.OrtDevice.make("cpu", 0), np.array([1, 2, 3], np.float32)
    found = ort.SparseTensor.sparse_coo_from_numpy([9, 9], values, np.array([3, 5, 15], np.int64), place)
    assert np.array_equal(found.values(), values)
    assert found.dense_shape() == [9, 9]
    assert found.data_type() == "sparse_tensor(float)"
    assert found.format() == ort.OrtSparseFormat.ORT_SPARSE_COO
    assert found.device_name() == "cpu"
    assert found.as_coo_view().indices().tolist() == [3, 5, 15]
    pairs = ort.SparseTensor.sparse_coo_from_numpy([9, 9], values, np.array([[0, 3], [0, 5], [1, 6]]), place)
    assert pairs.as_coo_view().indices().tolist() == [[0, 3], [0, 5], [1, 6]]
    wrapped = ort.OrtValue.ort_value_from_sparse_tensor(pairs)
    assert wrapped.is_sparse_tensor()
    assert not wrapped.is_tensor()
    assert wrapped.shape() == [9, 9]
    assert np.array_equal(wrapped.as_sparse_tensor().values(), values)
    for refused in (found.as_csrc_view, found.as_blocksparse_view, wrapped.numpy, lambda: found.to_cuda(place)):
        with pytest.raises(RuntimeError):
            refused()
    with pytest.raises(RuntimeError, match="Index size: 2"):
        ort.SparseTensor.sparse_coo_from_numpy([9, 9], values, np.array([3, 5], np.int64), place)


@check()
def sparse_tensors_by_rows(ort, state):
    place, values = ort.OrtDevice.make("cpu", 0), np.array([1, 2, 3], np.float32)
    rows = np.array([1, 1, 1], np.int64), np.array([0, 1, 2, 3, 3, 3, 3, 3, 3, 3], np.int64)
    found = ort.SparseTensor.sparse_csr_from_numpy([9, 9], values, *rows, place)
    assert np.array_equal(found.values(), values)
    view = found.as_csrc_view()
    assert (view.inner().tolist(), view.outer().tolist()) == ([1, 1, 1], [0, 1, 2, 3, 3, 3, 3, 3, 3, 3])
    with pytest.raises(RuntimeError, match="COO"):
        found.as_coo_view()


@check()
def adapters_are_written_and_read(ort, state, tmp_path):
    made, path = ort.AdapterFormat(), str(tmp_path / "adapter")
    made.set_adapter_version(3)
    made.set_model_version(4)
    given = {"p": X, "a longer name": np.arange(3), "half": X.astype(np.float16)[:1]}
    wrap = ort.OrtValue.ortvalue_from_numpy
    made.set_parameters({name: wrap(array) for name, array in given.items()})
    made.export_adapter(path)
    found = ort.AdapterFormat.read_adapter(path)
    assert (found.get_format_version(), found.get_adapter_version(), found.get_model_version()) == (1, 3, 4)
    parameters = {name: value.numpy() for name, value in found.get_parameters().items()}
    assert parameters.keys() == given.keys()
    assert all(np.array_equal(parameters[name], array) for name, array in given.items())
    (tmp_path / "adapter").write_bytes(b"no adapter at all")
    for wrong in (path, str(tmp_path / "missing")):
        with pytest.raises(RuntimeError):
            ort.AdapterFormat.read_adapter(wrong)


@check()
def runs_with_adapters(ort, state, tmp_path):
    ends = [("X", FLOAT, [3, 2]), ("W", FLOAT, [2, 1])], [("Y", FLOAT, [3, 1])]
    weights = np.array([[1], [2]], np.float32)
    data = model([helper.make_node("MatMul", ["X", "W"], ["Y"])], *ends, [("W", weights)])
    session = ort.InferenceSession(data, providers=CPU)
    assert [arg.name for arg in session.get_inputs()] == ["X"]
    assert [arg.name for arg in session.get_overridable_initializers()] == ["W"]
    made, path, adapter, options = ort.AdapterFormat(), str(tmp_path / "a"), ort.LoraAdapter(), ort.RunOptions()
    made.set_parameters({"W": ort.OrtValue.ortvalue_from_numpy(10 * weights)})
    made.export_adapter(path)
    adapter.Load(path)
    options.add_active_adapter(adapter)
    assert np.array_equal(session.run(None, {"X": X}, options)[0], 10 * X @ weights)
    assert np.array_equal(session.run(None, {"X": X, "W": 3 * weights})[0], 3 * X @ weights)
    assert np.array_equal(session.run(None, {"X": X})[0], X @ weights)
    with pytest.raises(state.InvalidArgument, match="index: 1 Got: 4 Expected: 1"):
        session.run(None, {"X": X, "W": np.ones((2, 4), np.float32)})


@check("custom operator libraries")
def libraries_of_operators(ort, state):
    """Neither here nor there is a library: the original says that the file is missing, not that it takes none."""
    with pytest.raises(state.Fail, match="no_such_library"):
        ort.SessionOptions().register_custom_ops_library("no_such_library.so")
