"""WebNN descriptions: what becomes what, as printed IR, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from webinfer.dtypes import DType
from webinfer.errors import LimitError, ModelFormatError, UnsupportedOpError
from webinfer.graph.printer import print_graph
from webinfer.graph.verify import verify
from webinfer.importers import read_model
from webinfer.importers.core.steps import pack
from webinfer.importers.webnn import read_graph

Described = dict[str, Any]


def operand(*shape: int, dtype: str = "float32", data: Any = None) -> Described:
    constant = {} if data is None else {"constant": True, "data": data}
    return {"descriptor": {"shape": list(shape), "dataType": dtype}, **constant}


def one(name: str, inputs: Described, *arguments: Described, outputs: Any = "y", **options: Any) -> Described:
    """A description of one operator."""
    call = {"name": name, "arguments": [*arguments, {"options": options}], "outputs": outputs}
    return {"inputs": inputs, "operators": [call], "outputs": [outputs] if isinstance(outputs, str) else outputs}


def printed(description: Described) -> list[str]:
    graph = read_graph(description, "made")
    verify(graph)
    return [line.strip() for line in print_graph(graph).strip().splitlines()[1:-1]]


def test_channels_first_convolutions_are_turned_at_the_door() -> None:
    inputs = {"x": operand(1, 3, 8, 8), "w": operand(4, 3, 3, 3, data=0.5)}
    got = printed(one("conv2d", inputs, {"input": "x"}, {"filter": "w"}, padding=[1, 1, 1, 1], strides=[2, 2]))
    assert got == [
        "%y/transpose.1 = transpose(%x) perm=0,2,3,1 -> float32[1x8x8x3]",
        "%y/transpose.2 = transpose(const [4x3x3x3]) perm=0,2,3,1 -> float32[4x3x3x3]",
        "%y/conv2d.3 = conv2d(%y/transpose.1, %y/transpose.2) stride=2x2 pads=1,1,1,1 -> float32[1x4x4x4]",
        "%y = transpose(%y/conv2d.3) perm=0,3,1,2 -> float32[1x4x4x4]",
        "return %y",
    ]


@pytest.mark.parametrize(("options", "bounds"), [({"minValue": float("nan")}, "a=-inf b=2"), ({}, "clamp(%x) b=2")])
def test_a_bound_that_is_not_a_number_is_none(options: Described, bounds: str) -> None:
    got = printed(one("clamp", {"x": operand(3)}, {"input": "x"}, **{"minValue": 0, "maxValue": 2} | options))
    assert got[0].split(" -> ")[0].endswith(bounds)


def test_channels_last_convolutions_need_no_turn() -> None:
    inputs = {"x": operand(1, 8, 8, 3), "w": operand(4, 1, 1, 3)}
    got = printed(one("conv2d", inputs, {"input": "x"}, {"filter": "w"}, inputLayout="nhwc", filterLayout="ohwi"))
    assert got == ["%y = conv2d(%x, %w) -> float32[1x8x8x4]", "return %y"]


def test_one_filter_a_channel_is_a_depthwise_convolution() -> None:
    inputs = {"x": operand(1, 8, 8, 3), "w": operand(1, 3, 3, 3)}
    described = one(
        "conv2d", inputs, {"input": "x"}, {"filter": "w"}, groups=3, inputLayout="nhwc", filterLayout="ihwo"
    )
    assert any("depthwise_conv2d" in line for line in printed(described))


def test_integers_are_dequantised_by_blocks() -> None:
    inputs = {
        "x": operand(2, 4, dtype="int8"),
        "s": operand(2, 2, data=[0.5, 0.25, 1.0, 2.0]),
        "z": operand(1, 1, dtype="int8", data=[3]),
    }
    got = printed(one("dequantizeLinear", inputs, {"input": "x"}, {"scale": "s", "zeroPoint": "z"}))
    assert got == [
        "%y/cast.1 = cast(%x) dtype=float32 -> float32[2x4]",
        "%y/cast.2 = cast(const int8 [1x1]{3}) dtype=float32 -> float32[1x1]",
        "%y/sub.3 = sub(%y/cast.1, %y/cast.2) -> float32[2x4]",
        "%y/reshape.4 = reshape(const [2x2]{0.5, 0.25, 1, 2}) shape=2x1x2x1 -> float32[2x1x2x1]",
        "%y/expand.5 = expand(%y/reshape.4) shape=2x1x2x2 -> float32[2x1x2x2]",
        "%y/reshape.6 = reshape(%y/expand.5) shape=2x4 -> float32[2x4]",
        "%y = mul(%y/sub.3, %y/reshape.6) -> float32[2x4]",
        "return %y",
    ]


def test_comparisons_are_bytes_outside_and_facts_inside() -> None:
    inputs = {"a": operand(2), "b": operand(2)}
    assert printed(one("greater", inputs, {"a": "a"}, {"b": "b"})) == [
        "%y/greater.1 = greater(%a, %b) -> bool[2]",
        "%y = cast(%y/greater.1) dtype=uint8 -> uint8[2]",
        "return %y",
    ]


def test_rounding_up_adds_a_window_and_its_padding() -> None:
    x = {"x": operand(1, 5, 5, 1)}
    up = read_graph(
        one("maxPool2d", x, {"input": "x"}, windowDimensions=[2, 2], strides=[2, 2], layout="nhwc", roundingType="ceil")
    )
    assert up.outputs[0].type.shape == (1, 3, 3, 1)
    assert up.nodes[0].attrs.pads == (0, 1, 0, 1)
    new_name = one(
        "maxPool2d",
        x,
        {"input": "x"},
        windowDimensions=[2, 2],
        strides=[2, 2],
        layout="nhwc",
        outputShapeRounding="ceil",
    )
    assert read_graph(new_name).nodes[0].attrs == up.nodes[0].attrs


def test_strided_windows_shrink() -> None:
    got = read_graph(one("slice", {"x": operand(9)}, {"input": "x"}, {"starts": [1]}, {"sizes": [7]}, strides=[3]))
    assert got.outputs[0].type.shape == (3,)


def test_both_directions_of_an_lstm_are_stacked() -> None:
    inputs = {"x": operand(3, 2, 4), "w": operand(2, 20, 4), "r": operand(2, 20, 5)}
    arguments = [{"input": "x"}, {"weight": "w"}, {"recurrentWeight": "r"}, {"steps": 3}, {"hiddenSize": 5}]
    graph = read_graph(
        one("lstm", inputs, *arguments, outputs=["h", "c", "all"], direction="both", returnSequence=True)
    )
    verify(graph)
    assert [v.type.shape for v in graph.outputs] == [(2, 2, 5), (2, 2, 5), (3, 2, 2, 5)]


def test_an_operand_that_passes_through_keeps_its_name() -> None:
    graph = read_graph(one("reduceSum", {"x": operand(2)}, {"input": "x"}, axes=[]))
    assert graph.inputs[0].name == "x"
    assert graph.outputs[0].name == "y"


def test_everything_unsupported_is_listed_at_once() -> None:
    described = one("blend", {"x": operand(2), "n": operand(2, dtype="bool4")}, {"input": "x"})
    described["operators"].append({"name": "warp", "arguments": [], "outputs": "z"})
    with pytest.raises(UnsupportedOpError) as raised:
        read_graph(described)
    assert raised.value.problems == ["operator blend", "operator warp", "operand 'n': data type bool4"]


@pytest.mark.parametrize(
    ("described", "says"),
    [
        (one("relu", {"x": operand(2)}, {"input": "q"}), "no operand 'q'"),
        (one("relu", {"x": operand(2)}), "argument 'input' is missing"),
        (one("relu", {"x": operand(2)}, {"input": "x"}, outputs="x"), "two operands are called 'x'"),
        (one("relu", {"x": {"data": [1]}}, {"input": "x"}), "no descriptor"),
        (one("relu", {"x": operand(0)}, {"input": "x"}), "must be positive integers"),
        (one("relu", {"x": operand(3, data=[1, 2])}, {"input": "x"}), "has 2 numbers, its shape (3,) needs 3"),
        (one("softmax", {"x": operand(2, 2)}, {"input": "x"}, {"axis": 2}), "axis 2 is not an axis"),
        (one("split", {"x": operand(5)}, {"input": "x"}, {"splits": 2}), "do not split into 2"),
        (one("split", {"x": operand(4)}, {"input": "x"}, {"splits": [1, 3]}), "gives 2 results, 1 are named"),
        (one("transpose", {"x": operand(4, 2)}, {"input": "x"}, permutation=[0]), "not a permutation"),
        (one("conv2d", {"x": operand(1, 1, 2, 2), "w": operand(1, 1, 1, 1)}, {"input": "x"}, {"filter": "w"},
            inputLayout="chwn"), "neither nchw nor nhwc"),
        (one("pad", {"x": operand(4)}, {"input": "x"}, {"beginningPadding": [1]}, {"endingPadding": [1]},
            mode="wrap"), "pad mode 'wrap'"),
        (one("gather", {"x": operand(4), "i": operand(1, dtype="int32")}, {"input": "x"}, {"indices": "i"},
            axis="first"), "gather -> y"),
        (one("slice", {"x": operand(4)}, {"input": "x"}, {"starts": [0]}, {"sizes": [4]}, strides=[0]), "slice -> y"),
        (one("relu", {"x": operand(2, data=["a", "b"])}, {"input": "x"}), "not made of numbers"),
        (one("relu", {"x": operand(1, dtype="uint8", data=[300])}, {"input": "x"}),
            "not made of numbers of type uint8"),
        ({"inputs": {"x": operand(2)}, "operators": [], "outputs": ["y"]}, "computed by no operator"),
        ({"inputs": {}, "operators": [{"name": "relu", "arguments": []}], "outputs": []}, "has no output"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_in_words(described: Described, says: str) -> None:
    with pytest.raises(ModelFormatError) as raised:
        read_graph(described)
    assert says in str(raised.value)


def test_a_constant_too_large_for_memory_is_refused_before_it_is_made() -> None:
    with pytest.raises(LimitError, match="constant 'x' in bytes"):
        read_graph(one("relu", {"x": operand(100_000, 100_000, data=1.0)}, {"input": "x"}))


def test_numbers_beyond_a_float_type_become_infinite() -> None:
    assert pack([70000.0, -1.0], DType.FLOAT16) == b"\x00\x7c\x00\xbc"
    assert pack([1e39], DType.FLOAT32) == b"\x00\x00\x80\x7f"


def test_images_are_resampled_by_pixel_centres() -> None:
    for mode in ("linear", "nearest-neighbor"):
        got = printed(one("resample2d", {"x": operand(1, 2, 4, 4)}, {"input": "x"}, mode=mode, sizes=[6, 6]))
        assert any("half_pixel_centers" in line for line in got), got


def test_softmax_of_a_matrix_is_by_rows_unless_told_otherwise() -> None:
    assert printed(one("softmax", {"x": operand(2, 3)}, {"input": "x"}))[0].startswith("%y = softmax(%x) axis=1")


def test_a_description_needs_nothing_beside_inputs_and_operators() -> None:
    described = one("neg", {"x": {"descriptor": {"shape": [2], "dataType": "float32"}}}, {"input": "x"})
    del described["outputs"]
    assert read_model(json.dumps(described).encode(), "bare").nodes[0].op.name == "neg"
