"""The verifier at the door: every way in which a TFLite file can break its own rules is refused by name.

The situations are those of TFLite's verifier tests and of the defects found in readers of such files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flatbuffers
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from tests.importers import sample_models
from tests.importers.tflite_writer import Writer, single

from webinfer.dtypes import DType
from webinfer.errors import LimitError, ModelFormatError, UnsupportedOpError, WebinferError
from webinfer.importers import read_model
from webinfer.importers.core.limits import MAX_TENSOR_BYTES, check_bytes

Change = Callable[[Any], None]
INT_MAX, INT_MIN = 2**31 - 1, -(2**31)


def edited(data: bytes, change: Change) -> bytes:
    """The file with its object form changed."""
    model = schema.ModelT.InitFromPackedBuf(data, 0)
    change(model)
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def refused(data: bytes, kind: type[WebinferError] = ModelFormatError) -> str:
    """The message of the error that reading must raise; a good file is read after it."""
    with pytest.raises(kind) as caught:
        read_model(data, "bad.tflite")
    assert read_model(sample_models.residual(), "good.tflite").nodes
    return str(caught.value)


def _at(model: Any, way: list[str]) -> Any:
    for step in way:
        model = model[int(step)] if step.isdigit() else getattr(model, step)
    return model


def _set(path: str, value: Any) -> Change:
    """A change of one field: `subgraphs.0.operators.1.inputs.0`."""

    def change(model: Any) -> None:
        *way, last = path.split(".")
        if last.isdigit():  # vectors are read-only arrays
            owner, field = _at(model, way[:-1]), way[-1]
            numbers = list(getattr(owner, field))
            numbers[int(last)] = value
            setattr(owner, field, numbers)
        else:
            setattr(_at(model, way), last, value)

    return change


INDICES = (  # path of the field, whether -1 is allowed there, words of the message
    ("subgraphs.0.inputs.0", False, "graph input 0"),
    ("subgraphs.0.outputs.0", False, "graph output 0"),
    ("subgraphs.0.operators.1.inputs.0", False, "operator 1 CONV_2D"),
    ("subgraphs.0.operators.1.inputs.2", True, "operator 1 CONV_2D: input 2"),
    ("subgraphs.0.operators.1.outputs.0", False, "operator 1 CONV_2D: output 0"),
    ("subgraphs.0.operators.1.opcodeIndex", False, "operator 1: opcode_index"),
    ("subgraphs.0.tensors.0.buffer", False, "tensor 0 image: buffer"),
    ("metadata.0.buffer", False, "metadata 0: buffer"),
    ("metadataBuffer.0", False, "metadata_buffer 0"),
    ("signatureDefs.0.subgraphIndex", False, "signature 0: subgraph_index"),
    ("signatureDefs.0.inputs.0.tensorIndex", False, "signature 0: tensor_index"),
    ("signatureDefs.0.outputs.0.tensorIndex", False, "signature 0: tensor_index"),
)
UNSIGNED = ("opcodeIndex", "buffer", "subgraphIndex", "tensorIndex")


@pytest.mark.parametrize(("path", "optional", "words"), INDICES, ids=[row[0] for row in INDICES])
@pytest.mark.parametrize("value", [-2, -1, 1000, INT_MAX, INT_MIN])
def test_index_out_of_range_is_refused_by_name(path: str, optional: bool, words: str, value: int) -> None:
    if path.rpartition(".")[2] in UNSIGNED:
        value %= 2**32
    data = edited(sample_models.residual(), _set(path, value))
    if optional and value == -1:
        read_model(data, "no bias")
        return
    message = refused(data)
    assert words in message or "is missing" in message


def test_required_input_may_not_be_absent() -> None:
    message = refused(edited(sample_models.residual(), _set("subgraphs.0.operators.1.inputs.0", -1)))
    assert "operator 1 CONV_2D: input 0 is missing" in message


SHAPES = (
    ([1, -1, 8, 3], ModelFormatError, "negative size"),
    ([65536, 65536, 1, 1], LimitError, "bytes of shape"),
    ([0, INT_MAX, INT_MAX, 3], LimitError, "bytes of shape"),
    ([1, 1, 1, 1, 1, 1, 1, 1, 1], LimitError, "rank"),
    ([1] * 33, LimitError, "rank"),
    ([8, 8, 3], ModelFormatError, "rank 4"),
    ([], ModelFormatError, "rank 4"),
)


@pytest.mark.parametrize(("shape", "kind", "words"), SHAPES, ids=[str(row[0])[:30] for row in SHAPES])
def test_impossible_shape_is_refused(shape: list[int], kind: type[WebinferError], words: str) -> None:
    def change(model: Any) -> None:
        tensor = model.subgraphs[0].tensors[0]
        tensor.shape, tensor.shapeSignature = shape, None

    assert words in refused(edited(sample_models.residual(), change), kind)


def test_shape_that_contradicts_its_signature_is_refused() -> None:
    message = refused(edited(sample_models.residual(), _set("subgraphs.0.tensors.0.shapeSignature", [1, -1, -1, 4])))
    assert "contradicts its signature" in message


@pytest.mark.parametrize("change", [-1, 1, 4])
def test_constant_of_another_length_than_its_shape_is_refused(change: int) -> None:
    def resize(model: Any) -> None:
        buffer = model.buffers[1]
        buffer.data = np.resize(buffer.data, len(buffer.data) + change)

    assert "its buffer has" in refused(edited(sample_models.residual(), resize))


@pytest.mark.parametrize(
    ("offset", "size"), [(10**6, 216), (2**64 - 1, 216), (64, 10**6), (64, 2**64 - 1), (2**63, 2**63)]
)
def test_buffer_outside_the_file_is_refused(offset: int, size: int) -> None:
    def move(model: Any) -> None:
        model.buffers[1].data, model.buffers[1].offset, model.buffers[1].size = None, offset, size

    assert "would be bytes" in refused(edited(sample_models.residual(), move))


def test_buffer_behind_the_flatbuffer_is_read() -> None:
    original = schema.ModelT.InitFromPackedBuf(sample_models.residual(), 0)
    weights = bytes(original.buffers[1].data)

    def place(offset: int) -> bytes:
        def change(model: Any) -> None:
            model.buffers[1].data, model.buffers[1].offset, model.buffers[1].size = None, offset, len(weights)

        return edited(sample_models.residual(), change)

    size = len(place(10**6))
    graph = read_model(place(size) + weights, "big.tflite")
    constant = graph.nodes[0].inputs[0].constant  # type: ignore[union-attr]
    assert constant is not None
    assert bytes(constant.data) == weights


OPTIONS = (
    ("subgraphs.0.operators.1.builtinOptions.strideH", 0, "stride_h is 0"),
    ("subgraphs.0.operators.1.builtinOptions.strideW", -1, "stride_w is -1"),
    ("subgraphs.0.operators.1.builtinOptions.dilationHFactor", 0, "dilation_h_factor is 0"),
    ("subgraphs.0.operators.3.builtinOptions.dilationWFactor", INT_MAX, "dilation_w_factor is 2147483647"),
    ("subgraphs.0.operators.1.builtinOptions.padding", 7, "padding is 7"),
    ("subgraphs.0.operators.7.builtinOptions.filterWidth", 0, "filter_width is 0"),
    ("subgraphs.0.operators.7.builtinOptions.filterHeight", INT_MAX, "filter_height is 2147483647"),
    ("subgraphs.0.operators.10.builtinOptions.axis", 2, "axis 2"),
    ("subgraphs.0.operators.10.builtinOptions.axis", -3, "axis -3"),
    ("subgraphs.0.operators.1.builtinOptions", None, "stride_h is 0"),
)


@pytest.mark.parametrize(
    ("path", "value", "words"), OPTIONS, ids=[f"{row[0].rpartition('.')[2]}={row[1]}" for row in OPTIONS]
)
def test_impossible_option_is_refused(path: str, value: Any, words: str) -> None:
    assert words in refused(edited(sample_models.residual(), _set(path, value)))


def _ints(*numbers: Any) -> np.ndarray[Any, Any]:
    return np.array(numbers, np.int32)


F = ((2, 6), "float32")
PARAMETERS: list[tuple[str, bytes, str]] = [
    ("permutation", single("TRANSPOSE", [F, _ints(0, 0)], [F]), "not a permutation"),
    ("two -1", single("RESHAPE", [F, _ints(-1, -1)], [F]), "one -1"),
    ("reshape", single("RESHAPE", [F, _ints(5, 3)], [F]), "does not"),
    ("reshape to -2", single("RESHAPE", [F, _ints(-2, -6)], [F]), "negative"),
    ("split", single("SPLIT_V", [F, _ints(1, 2), _ints(1)], [F, F], num_splits=2), "do not make"),
    ("split count", single("SPLIT", [_ints(1), F], [F, F, F, F], num_splits=4), "does not split"),
    ("no range", single("FAKE_QUANT", [F], [F], min=1.0, max=1.0, num_bits=8), "make no levels"),
    ("one bit", single("FAKE_QUANT", [F], [F], min=-1.0, max=1.0, num_bits=1), "make no levels"),
    ("concat", single("CONCATENATION", [F, ((3, 5), "float32")], [F], axis=1), "do not fit"),
    ("reflect", single("MIRROR_PAD", [F, _ints([2, 0], [0, 0])], [F], mode=0), "larger"),
    ("symmetric", single("MIRROR_PAD", [F, _ints([3, 0], [0, 0])], [F], mode=1), "larger"),
    ("mirror mode", single("MIRROR_PAD", [F, _ints([1, 0], [0, 0])], [F], mode=9), "mode is 9"),
    ("float shape", single("RESHAPE", [F, np.array([4, 3], np.float32)], [F]), "needs integers"),
    ("float slice", single("SLICE", [F, np.zeros(2, np.float32), _ints(1, 1)], [F]), "needs integers"),
    ("negative pad", single("PAD", [F, _ints([-1, 0], [0, 0])], [F]), "paddings"),
    ("axis", single("SUM", [F, _ints(2)], [F]), "axis 2"),
    ("slice", single("SLICE", [F, _ints(1, 5), _ints(1, 3)], [F]), "leaves an axis"),
    ("slice size", single("SLICE", [F, _ints(0, 0), _ints(-2, 3)], [F]), "leaves an axis"),
    ("step 0", single("STRIDED_SLICE", [F, _ints(0), _ints(1), _ints(0)], [F]), "strides"),
    ("shrink", single("STRIDED_SLICE", [F, _ints(7), _ints(8), _ints(1)], [F], shrink_axis_mask=1), "position 7"),
    ("block", single("DEPTH_TO_SPACE", [((1, 2, 2, 6), "float32")], [F], block_size=0), "block_size is 0"),
    (
        "blocks",
        single("SPACE_TO_BATCH_ND", [((1, 4, 4, 1), "float32"), _ints(0, 2), _ints([0, 0], [0, 0])], [F]),
        "blocks",
    ),
    ("tile", single("TILE", [F, _ints(-1, 2)], [F]), "repeats"),
    ("broadcast", single("ADD", [F, ((2, 5), "float32")], [F]), "do not broadcast"),
    ("mixed types", single("ADD", [F, ((2, 6), "int32")], [F]), "the same type"),
    (
        "groups",
        single(
            "CONV_2D", [((1, 4, 4, 4), "float32"), np.ones((2, 1, 1, 3), np.float32), None], [F], stride_h=1, stride_w=1
        ),
        "channels",
    ),
    (
        "no channels",
        single(
            "CONV_2D", [((1, 4, 4, 0), "float32"), np.ones((2, 1, 1, 0), np.float32), None], [F], stride_h=1, stride_w=1
        ),
        "channels",
    ),
    ("k", single("TOPK_V2", [F, _ints(9)], [F, ((2, 9), "int32")]), "top_k"),
    ("resize", single("RESIZE_BILINEAR", [((1, 4, 4, 1), "float32"), _ints(0, 3)], [F]), "cannot resize"),
    (
        "transposed size",
        single(
            "TRANSPOSE_CONV",
            [_ints(1, 16, 8, 1), np.ones((1, 2, 2, 4), np.float32), ((1, 7, 4, 4), "float32")],
            [F],
            padding=1,
            stride_h=2,
            stride_w=2,
        ),
        "belongs to an x of 8",
    ),
    ("rows", single("FULLY_CONNECTED", [F, np.ones((3, 5), np.float32), None], [F]), "does not split into rows"),
    ("result type", single("ABS", [F], [((2, 6), "int32")]), "is declared int32"),
    ("too many outputs", single("ABS", [F], [F, F]), "2 outputs are listed"),
]


@pytest.mark.parametrize(("data", "words"), [row[1:] for row in PARAMETERS], ids=[row[0] for row in PARAMETERS])
def test_impossible_parameter_is_refused_with_the_operator(data: bytes, words: str) -> None:
    message = refused(data)
    assert words in message
    assert "operator 0" in message


def test_result_larger_than_memory_is_refused_before_it_is_made() -> None:
    data = single("TILE", [((1000, 1000), "float32"), _ints(1000, 1000)], [((1, 1), "float32")])
    assert "limit is" in refused(data, LimitError)


QUANTS = (
    ({"scale": [0.0]}, "scale 0.0"),
    ({"scale": [float("nan")]}, "scale nan"),
    ({"scale": [float("inf")]}, "scale inf"),
    ({"scale": [-0.5]}, "scale -0.5"),
    ({"zeroPoint": [200]}, "outside int8"),
    ({"zeroPoint": [-129]}, "outside int8"),
    ({"zeroPoint": []}, "0 zero points"),
    ({"scale": [0.1, 0.2, 0.3], "zeroPoint": [0, 0, 0]}, "do not fit shape"),
    ({"scale": [0.1, 0.2], "zeroPoint": [0, 0], "quantizedDimension": 4}, "along axis 4"),
    ({"scale": [0.1, 0.2], "zeroPoint": [0, 0], "quantizedDimension": -1}, "along axis -1"),
)


@pytest.mark.parametrize(("fields", "words"), QUANTS, ids=[str(row[0]) for row in QUANTS])
def test_impossible_scale_is_refused(fields: dict[str, Any], words: str) -> None:
    def change(model: Any) -> None:
        for name, value in fields.items():
            setattr(model.subgraphs[0].tensors[0].quantization, name, value)

    assert words in refused(edited(sample_models.quantized(), change))


def test_quantised_arithmetic_without_a_scale_is_refused() -> None:
    message = refused(edited(sample_models.quantized(), _set("subgraphs.0.tensors.0.quantization", None)))
    assert "has no scale" in message


def test_scale_that_a_move_would_change_is_refused() -> None:
    data = single("RESHAPE", [((2, 6), "int8", (0.1, 0)), _ints(12)], [((12,), "int8", (0.2, 0))])
    assert "scale differs" in refused(data, UnsupportedOpError)


def _chain(*links: tuple[int, int]) -> bytes:
    """Nodes that each read one of four tensors and write another; tensor 0 is the graph's input, 3 its output."""
    w = Writer()
    x = w.input("t0", (2,))
    tensors = [x, *(w.tensor(f"t{i}", (2,)) for i in range(1, 4))]
    for source, target in links:
        w.node("ABS", [tensors[source]], [tensors[target]])
    return w.finish(tensors[3])


ORDERS = (
    ("use before write", [(1, 2), (0, 1), (2, 3)], "nothing has written before"),
    ("self-loop", [(0, 1), (2, 2), (1, 3)], "nothing has written before"),
    ("cycle", [(2, 1), (1, 2), (1, 3)], "nothing has written before"),
    ("two writers", [(0, 1), (0, 1), (1, 3)], "written before"),
    ("input written", [(0, 1), (1, 0), (1, 3)], "written before"),
    ("output not written", [(0, 1), (1, 2)], "is written by no operator"),
)


@pytest.mark.parametrize(("links", "words"), [row[1:] for row in ORDERS], ids=[row[0] for row in ORDERS])
def test_impossible_order_is_refused(links: list[tuple[int, int]], words: str) -> None:
    assert words in refused(_chain(*links))


def test_constant_that_is_written_or_an_input_is_refused() -> None:
    w = Writer()
    x, c = w.input("x", (2,)), w.constant("c", [1.0, 2.0])
    w.node("ABS", [x], [c])
    assert "which is a constant" in refused(w.finish(c))
    w = Writer()
    c, y = w.constant("c", [1.0, 2.0]), w.tensor("y", (2,))
    w.graph.inputs = [c]
    w.node("ABS", [c], [y])
    assert "which is a constant" in refused(w.finish(y))


def test_model_without_subgraphs_is_refused() -> None:
    assert "no subgraph" in refused(edited(sample_models.residual(), lambda m: setattr(m, "subgraphs", [])))


def test_other_schema_version_is_refused() -> None:
    assert "schema version 4" in refused(edited(sample_models.residual(), _set("version", 4)))


SPARSITY = (
    ("traversalOrder", [0, 0], "traversal order"),
    ("traversalOrder", [0, 1, 2], "traversal order"),
    ("blockMap", [5], "traversal order"),
    ("dimMetadata.0.denseSize", 5, "has size 5"),
    ("dimMetadata.0.format", 1, "lacks its array_segments"),
    ("dimMetadata.1.format", 3, "neither dense nor CSR"),
    ("dimMetadata.1.arraySegments.values", [0, 2, 2, 5, 4], "segments"),
    ("dimMetadata.1.arraySegments.values", [0, 2, 4, 5], "segments"),
    ("dimMetadata.1.arrayIndices.values", [1, 6, 0, 3, 8], "leaves a level of 8"),
    ("dimMetadata.1.arrayIndices.values", [1, 6, 0, 3], "segments"),
)


@pytest.mark.parametrize(("path", "value", "words"), SPARSITY, ids=[f"{row[0]}={row[1]}" for row in SPARSITY])
def test_impossible_sparse_layout_is_refused(path: str, value: Any, words: str) -> None:
    data = sample_models.sparse()
    sparse = next(i for i, t in enumerate(schema.ModelT.InitFromPackedBuf(data, 0).subgraphs[0].tensors) if t.sparsity)
    assert words in refused(edited(data, _set(f"subgraphs.0.tensors.{sparse}.sparsity.{path}", value)))


def test_sparse_constant_is_dense_in_the_graph() -> None:
    graph = read_model(sample_models.sparse(), "sparse.tflite")
    weights = graph.nodes[0].inputs[1]
    assert weights is not None
    assert weights.type.shape == (4, 8)
    assert weights.constant is not None
    assert weights.constant.sparsity is not None
    assert weights.constant.sparsity.formats[0] == ("dense", 4)
    assert list(weights.constant.sparsity.formats[1][2]) == [1, 6, 0, 3, 7]


def test_custom_options_that_are_no_map_are_refused() -> None:
    for options in (b"", b"\x00", b"\xff" * 40, sample_models.SIZE_3_4[:-1], sample_models.SIZE_3_4[5:]):

        def change(model: Any, options: bytes = options) -> None:
            model.subgraphs[0].operators[0].customOptions = np.frombuffer(options, np.uint8)

        assert "operator 0 TransformTensorBilinear" in refused(edited(sample_models.custom(), change))


def test_large_custom_options_are_checked_against_the_file() -> None:
    def far(model: Any) -> None:
        node = model.subgraphs[0].operators[0]
        node.customOptions, node.largeCustomOptionsOffset, node.largeCustomOptionsSize = None, 2**63, 2**62

    assert "large custom options" in refused(edited(sample_models.custom(), far))


def test_everything_unsupported_is_listed_at_once() -> None:
    w = Writer()
    x = w.input("x", (2, 3))
    a, b, c, d = (w.tensor(name, (2, 3)) for name in "abcd")
    w.node("SKIP_GRAM", [x], [a])
    w.custom("MyOwn<script>", [a], [b])
    w.node("ADD", [b, x], [c], fused_activation_function=9)
    w.node("SKIP_GRAM", [c], [d])
    w.graph.tensors.append(schema.TensorT())
    with pytest.raises(UnsupportedOpError) as caught:
        read_model(w.finish(d), "strange.tflite")
    assert caught.value.problems == [
        "SKIP_GRAM: not supported (operators 0, 3)",
        "MyOwn{3c}script{3e}: a custom operator; register_operator can add it (operator 1)",
    ]
    message = str(caught.value)
    assert "<script>" not in message
    w.graph.operators[2].inputs = [x, x]
    with pytest.raises(UnsupportedOpError, match="ADD: fused activation number 9"):
        read_model(w.finish(d), "strange.tflite")


@pytest.mark.parametrize("type_code", [5, 8, 11, 17, 18, 100, -1])
def test_unknown_element_type_is_refused_by_name(type_code: int) -> None:
    message = refused(edited(_chain((0, 3)), _set("subgraphs.0.tensors.0.type", type_code)), UnsupportedOpError)
    assert "input t0: type" in message


@pytest.mark.parametrize("version", [0, -1, 9, INT_MAX])
def test_unknown_version_is_refused_by_number(version: int) -> None:
    data = edited(sample_models.residual(), _set("operatorCodes.1.version", version))
    message = refused(data, UnsupportedOpError)
    assert f"CONV_2D: version {version}; known are versions up to 8 (operator 1)" in message


def test_names_are_neutralised_in_messages_and_kept_for_the_api() -> None:
    name = "</script>\u202e\n\"'" + "x" * 10_000
    w = Writer()
    x, y = w.input(name, (2,)), w.tensor(name, (3,))
    w.node("ABS", [x], [y])
    graph = read_model(w.finish(y), name)
    assert graph.inputs[0].name.startswith("</script>\u202e\n")
    assert len(graph.inputs[0].name) <= 512
    w.graph.operators[0].inputs = [x, x]
    w.node("ADD", [y, w.constant("c", [1.0, 2.0, 3.0])], [w.tensor("z", (3,))])
    message = refused(w.finish(y))
    assert "\u202e" not in message
    assert "\n" not in message
    assert len(message) < 500


def test_duplicate_and_empty_names_become_distinct() -> None:
    w = Writer()
    inputs = [w.input(name, (2,)) for name in ("x", "x", "", "")]
    y = w.tensor("y", (2,))
    w.node("ADD_N", inputs, [y])
    graph = read_model(w.finish(y, y, inputs[0]), "names.tflite")
    assert [v.name for v in graph.inputs] == ["x", "x_1", "input_2", "input_3"]
    assert [v.name for v in graph.outputs] == ["y", "y_1", "x"]
    assert len({id(v) for v in graph.outputs}) == 3


def test_an_unknown_type_as_the_models_output_is_a_typed_error() -> None:
    w = Writer()
    w.input("x", (2,))
    with pytest.raises(UnsupportedOpError, match="type STRING"):
        read_model(w.finish(w.tensor("state", (2,), "string", is_variable=True)))


def test_a_tensor_of_the_most_bytes_is_let_in() -> None:
    check_bytes((MAX_TENSOR_BYTES,), DType.UINT8, "x")
    with pytest.raises(LimitError, match="x: bytes of shape"):
        check_bytes((MAX_TENSOR_BYTES + 1,), DType.UINT8, "x")


def test_weights_of_sparse_blocks_are_read() -> None:
    """Rows of [4, 8] in blocks of 4 columns: three blocks are stored, their columns are a third level."""

    def change(model: Any) -> None:
        tensor = next(t for t in model.subgraphs[0].tensors if t.sparsity)
        layout, level = tensor.sparsity, schema.DimensionMetadataT()
        level.format, level.denseSize = 0, 4
        layout.traversalOrder, layout.blockMap = [0, 1, 2], [1]
        layout.dimMetadata.append(level)
        layout.dimMetadata[1].arraySegments.values, layout.dimMetadata[1].arrayIndices.values = (
            [0, 1, 1, 2, 3],
            [1, 0, 1],
        )
        model.buffers[tensor.buffer].data = np.arange(12, dtype="<f4").view(np.uint8)

    weights = read_model(edited(sample_models.sparse(), change), "blocks.tflite").nodes[0].inputs[1]
    assert weights is not None
    assert weights.constant is not None
    layout = weights.constant.sparsity
    assert layout is not None
    assert (layout.formats[0], layout.formats[2], layout.block_map) == (("dense", 4), ("dense", 4), (1,))
    assert list(layout.formats[1][2]) == [1, 0, 1]
