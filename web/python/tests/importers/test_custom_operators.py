"""Custom operators: what their options, maps or raw structs, become in the graph."""

from __future__ import annotations

import numpy as np
import pytest
from flatbuffers import flexbuffers
from tests.importers.litert import computed, judged
from tests.importers.tflite_writer import Writer

from webinfer.errors import ModelFormatError, UnsupportedOpError
from webinfer.graph.printer import print_graph
from webinfer.importers import read_model


def _struct(*numbers: int) -> bytes:
    return np.array(numbers, "<i4").tobytes()


def _map(**options: object) -> bytes:
    builder = flexbuffers.Builder()
    with builder.Map():
        for key, value in options.items():
            builder.Key(key)
            if isinstance(value, list):
                builder.TypedVectorFromElements(value)
            else:
                builder.Add(value)
    return bytes(builder.Finish())


def _nodes(data: bytes) -> list[str]:
    return [line.strip() for line in print_graph(read_model(data, "g")).splitlines()[1:-2]]


def _pool(padding: int, size: int, *tail: int) -> bytes:
    w = Writer()
    x, y, taps = w.input("x", (1, size, size, 2)), w.tensor("y", (1, 2, 2, 2)), w.tensor("taps", (1, 2, 2, 2))
    w.custom("MaxPoolingWithArgmax2D", [x], [y, taps], _struct(padding, 2, 2, 3, 3, *tail))
    return w.finish(y, taps)


def test_max_pool_with_argmax_reads_the_struct_of_a_pool() -> None:
    assert _nodes(_pool(1, 4, 1, 0, 0, 0, 0)) == [
        "%y, %taps = max_pool_with_argmax2d(%x) window=3x3 stride=2x2 pads=0,1,0,1 relu by_columns"
        " -> float32[1x2x2x2], float32[1x2x2x2]"
    ]
    assert _nodes(_pool(2, 5, 0)) == [
        "%y, %taps = max_pool_with_argmax2d(%x) window=3x3 stride=2x2 by_columns -> float32[1x2x2x2], float32[1x2x2x2]"
    ]


@pytest.mark.parametrize(("numbers", "words"), [((0, 4, 0), "padding is 0"), ((1, 4), "20 bytes, need 24")])
def test_struct_that_is_no_pool_is_refused(numbers: tuple[int, ...], words: str) -> None:
    with pytest.raises(ModelFormatError, match=words):
        read_model(_pool(numbers[0], numbers[1], *numbers[2:]))


def test_activation_that_a_pool_does_not_carry_is_refused() -> None:
    with pytest.raises(UnsupportedOpError, match="fused activation number 4"):
        read_model(_pool(1, 4, 4))


def test_what_was_pooled_goes_back_where_it_came_from() -> None:
    w = Writer()
    x, y, taps = w.input("x", (1, 4, 4, 1)), w.tensor("y", (1, 2, 2, 1)), w.tensor("taps", (1, 2, 2, 1))
    w.custom("MaxPoolingWithArgmax2D", [x], [y, taps], _struct(1, 2, 2, 2, 2, 0))
    back = w.tensor("back", (1, 4, 4, 1))
    w.custom("MaxUnpooling2D", [y, taps], [back], _struct(1, 2, 2, 2, 2, 0))
    data = w.finish(back)
    assert _nodes(data)[1] == (
        "%back = max_unpool2d(%y, %taps) window=2x2 stride=2x2 pads=0,0 size=4x4 -> float32[1x4x4x1]"
    )
    image = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    expected = np.where(np.isin(image, [5, 7, 13, 15]), image, 0)
    np.testing.assert_array_equal(computed(read_model(data), [image])[0], expected)


@pytest.mark.parametrize(("high", "wide"), [(2, 2), (3, 2), (2, 3)])
def test_of_equal_elements_the_one_that_litert_takes_is_put_back(high: int, wide: int) -> None:
    """Flat parts of photos are full of such; [[0, 1], [1, 0]] gives the lower left one."""
    w = Writer()
    x, y, taps = w.input("x", (1, 6, 6, 5)), *(w.tensor(n, (1, 6 // high, 6 // wide, 5)) for n in ("y", "taps"))
    w.custom("MaxPoolingWithArgmax2D", [x], [y, taps], _struct(2, wide, high, wide, high, 0))
    back = w.tensor("back", (1, 6, 6, 5))
    w.custom("MaxUnpooling2D", [y, taps], [back], _struct(2, wide, high, wide, high, 0))
    data = w.finish(back)
    image = np.random.default_rng(2).integers(1, 4, (1, 6, 6, 5)).astype(np.float32)
    (wanted,) = judged(data, [image])
    np.testing.assert_array_equal(computed(read_model(data), [image])[0], wanted)


@pytest.mark.parametrize(
    ("padding", "size", "pads", "result"),
    [(1, 4, "0,0,0,0", "8x8"), (1, 3, "0,1,0,1", "5x5"), (2, 3, "0,0,0,0", "6x6")],
)
def test_transposed_convolution_with_bias_sizes_itself(padding: int, size: int, pads: str, result: str) -> None:
    w = Writer()
    x, y = w.input("x", (1, size, size, 2)), w.tensor("y", (1, 8, 8, 3))
    weights, bias = w.constant("w", np.ones((3, 2, 2, 2), np.float32)), w.constant("b", np.zeros(3, np.float32))
    w.custom("Convolution2DTransposeBias", [x, weights, bias], [y], _struct(padding, 2, 2))
    (line,) = _nodes(w.finish(y))
    shown = "" if pads == "0,0,0,0" else f" pads={pads}"
    assert line == (
        f"%y = conv_transpose2d(%x, const [3x2x2x2], const [3]{{0, 0, 0}}) stride=2x2{shown} -> float32[1x{result}x3]"
    )


ROTATION = {
    "left_rotation_idx": 1, "right_rotation_idx": 3, "subset_idxs": [0, 2, 4], "output_height": 16,
    "output_width": 12, "scale_x": 1.5, "scale_y": 1.25, "target_rotation_radians": 0.0,
}  # fmt: skip


def _rotation(version: int = 2, **changes: object) -> bytes:
    w = Writer()
    x, y = w.input("x", (1, 5, 3)), w.tensor("y", (1, 4, 4))
    options = {key: value for key, value in {**ROTATION, **changes}.items() if value is not None}
    w.custom("Landmarks2TransformMatrix", [x], [y], _map(**options), version)
    return w.finish(y)


def test_landmarks_options_are_read_by_name() -> None:
    assert _nodes(_rotation()) == [
        "%y = landmarks_to_transform_matrix(%x) left=1 right=3 subset=0,2,4 size=16x12 scale=1.5,1.25 -> float32[1x4x4]"
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"scale_x": None}, "option scale_x is None"),
        ({"output_height": 2.5}, "output_height is 2.5, needs a whole number"),
        ({"scale_y": float("nan")}, "option scale_y is nan"),
        ({"subset_idxs": 3}, "subset_idxs is 3, needs a vector"),
        ({"subset_idxs": [5]}, "not one of 5 landmarks"),
        ({"left_rotation_idx": -1}, "not one of 5 landmarks"),
        ({"output_width": 0}, "must be positive"),
    ],
    ids=str,
)
def test_landmarks_options_that_fit_nothing_are_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(ModelFormatError, match=f"operator 0 Landmarks2TransformMatrix.*{words}"):
        read_model(_rotation(**changes))


def test_another_version_of_a_custom_operator_is_refused() -> None:
    with pytest.raises(UnsupportedOpError, match="Landmarks2TransformMatrix: version 1; only version 2 is known"):
        read_model(_rotation(version=1))


def _poses(most: int) -> bytes:
    w = Writer()
    parts = [w.input(f"p{i}", (1, 3, 3, c), "uint8", (0.1, 128)) for i, c in enumerate((17, 34, 64))]
    outputs = [w.tensor(f"o{i}", ()) for i in range(4)]
    options = _map(max_detections=most, score_threshold=0.25, stride=16, nms_radius=20.0)
    w.custom("PosenetDecoderOp", parts, outputs, options)
    return w.finish(*outputs)


def test_pose_decoder_finds_a_thousand_poses_at_most() -> None:
    assert "max_detections=1000 " in _nodes(_poses(1000))[-1]
    for most in (0, 1001):
        with pytest.raises(ModelFormatError, match=f"max_detections is {most}, allowed are 1 to 1000"):
            read_model(_poses(most))


def test_pose_decoder_reads_quantised_maps_as_floats() -> None:
    lines = _nodes(_poses(5))
    assert [line.split(" = ")[1].split("(")[0] for line in lines] == ["dequantize"] * 3 + ["posenet_decoder"]
    assert lines[-1].endswith(
        "max_detections=5 score_threshold=0.25 stride=16 nms_radius=20"
        " -> float32[1x5x17x2], float32[1x5x17], float32[1x5], float32[1]"
    )


def test_windows_that_overlap_are_put_back_in_the_middle() -> None:
    w = Writer()
    x, taps = w.input("x", (1, 3, 4, 1)), w.input("taps", (1, 3, 4, 1))
    y = w.tensor("y", (1, 6, 4, 1))
    w.custom("MaxUnpooling2D", [x, taps], [y], _struct(1, 2, 3, 1, 2, 0))
    assert _nodes(w.finish(y)) == [
        "%y = max_unpool2d(%x, %taps) window=2x1 stride=3x2 pads=1,1 size=6x4 -> float32[1x6x4x1]"
    ]
