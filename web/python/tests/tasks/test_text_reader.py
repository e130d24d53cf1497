"""Text in pictures: shapes in a mask, and small models in the place of the real ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import TARGETS, Target

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import webinfer  # noqa: E402
from webinfer.dtypes import DType  # noqa: E402
from webinfer.errors import InputError, ModelFormatError  # noqa: E402
from webinfer.tasks import TextReader  # noqa: E402
from webinfer.tasks.crop import Region  # noqa: E402
from webinfer.tasks.text_lines import direction, found_quads, reading_order, turned, upright  # noqa: E402
from webinfer.tasks.text_pixels import Quad  # noqa: E402
from webinfer.tasks.text_regions import (  # noqa: E402
    components,
    corners_of,
    grown,
    hull,
    hull_of,
    in_reading_order,
    mean_inside,
    smallest_rectangle,
)
from webinfer.tensor import Tensor  # noqa: E402

EVERYWHERE = [t for t in TARGETS if dict(t.options).get("isa", "relaxed") == "relaxed"]
LETTERS = "abc"
LEVELS = (0.0, 0.4, 0.7, 1.0, 9.0)  # of nothing, the letters and the space, in a picture's -1..1


def mask_of(*rows: str) -> tuple[bytes, int]:
    return bytes(c == "#" for row in rows for c in row), len(rows[0])


@pytest.mark.parametrize(
    ("rows", "sizes"),
    [
        ((".....", "....."), []),
        (("##.##", "##.##"), [4, 4]),
        (("#..", ".#.", "..#"), [3]),  # by the corners
        (("..#", ".#.", "#.."), [3]),
        (("#.#", "#.#", "###"), [7]),  # two that meet further down
        (("#.#.#", "#####"), [8]),
        (("#####", "#.#.#"), [8]),
        (("#.##.", ".....", "####."), [1, 2, 4]),
        (("..###", "#....", ".####"), [3, 5]),
        (("....#", "#...."), [1, 1]),  # the ends of rows do not touch
    ],
)
def test_pixels_that_touch_belong_together(rows: tuple[str, ...], sizes: list[int]) -> None:
    found = components(*mask_of(*rows))
    assert sorted(sum(last - first + 1 for _, first, last in runs) for runs in found) == sizes


@pytest.mark.parametrize("angle", [0.0, 0.3, -0.7, 0.75])
def test_the_smallest_rectangle_is_found_as_it_is_turned(angle: float) -> None:
    y, x = np.mgrid[:200, :300]
    cos, sin = math.cos(angle), math.sin(angle)
    along, across = (x - 150) * cos + (y - 100) * sin, (y - 100) * cos - (x - 150) * sin
    inside = (np.abs(along) <= 60) & (np.abs(across) <= 15)
    (runs,) = components(inside.astype(np.uint8).tobytes(), 300)
    region = smallest_rectangle(hull(runs))
    assert (region.x, region.y) == pytest.approx((150, 100), abs=1)
    assert (region.width, region.height) == pytest.approx((120, 30), abs=2)
    assert region.rotation == pytest.approx(angle, abs=0.03)
    values = np.where(inside, 0.8, 0.0)
    sums = memoryview(values.astype(np.float32).cumsum(axis=1, dtype=np.float32).ravel())
    assert mean_inside(corners_of(region), sums, 300, 200) == pytest.approx(0.8, abs=0.03)
    wide = corners_of(Region(region.x, region.y, 2 * region.width, region.height, region.rotation))
    assert mean_inside(wide, sums, 300, 200) == pytest.approx(0.4, abs=0.03)


def test_shapes_that_are_points_and_lines_have_rectangles_too() -> None:
    assert smallest_rectangle(hull([(3, 5, 5)])) == Region(5, 3, 0, 0)
    line = smallest_rectangle(hull([(3, 5, 9)]))
    assert (line.width, line.height) == (4, 0)


def test_shapes_grow_as_clipper_lets_them_grow() -> None:
    box = [(0.9, 0.9), (100.9, 0.9), (100.9, 20.9), (0.9, 20.9)]
    # what pyclipper 1.4.0 makes of this box and 10.3, less the points on its sides
    want = "104,-9 108,-7 110,-3 110,20 109,24 107,28 103,30 0,30 -4,29 -8,27 -10,23 -10,0 -9,-4 -7,-8 -3,-10 100,-10"
    points = {tuple(map(float, point.split(","))) for point in want.split()}
    assert set(grown(box, 10.3)) == set(hull_of(points))
    assert grown([(3.2, 4.0), (3.9, 4.9)], 5.0) == [(3.0, 4.0)]  # nothing to grow


@pytest.mark.parametrize("start", range(4))
def test_corners_go_around_from_the_left_upper_one(start: int) -> None:
    for quad in (((0, 1), (9, 2), (8, 6), (1, 5)), ((0, 7), (5, 0), (9, 4), (3, 9))):
        assert upright(turned(quad, start)) in (quad, turned(quad, 1))
        assert upright(turned(quad, start)) == upright(quad)


def test_boxes_are_read_row_by_row() -> None:
    boxes = [(50, 2, 90, 12), (0, 30, 40, 40), (0, 0, 40, 10), (60, 33, 90, 43), (0, 18, 90, 26)]
    assert in_reading_order([tuple(map(float, b)) for b in boxes]) == [2, 0, 4, 1, 3]  # type: ignore[misc]


SIDE = 320


def quads_of(*lines: tuple[float, float, float, float, float]) -> list[Quad]:
    """What is found where lines lie: the middle, length, height and direction in degrees of each."""
    y, x = np.mgrid[:SIDE, :SIDE]
    inside = np.zeros((SIDE, SIDE), bool)
    for middle_x, middle_y, length, height, degrees in lines:
        cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        along, across = (x - middle_x) * cos + (y - middle_y) * sin, (y - middle_y) * cos - (x - middle_x) * sin
        inside |= (np.abs(along) <= length / 2) & (np.abs(across) <= height / 2)
    sums = inside.astype(np.float32).cumsum(axis=1, dtype=np.float32)
    outputs = {
        "mask": Tensor(inside.astype(np.uint8).data, inside.shape, DType.UINT8),
        "sums": Tensor(sums.data, sums.shape, DType.FLOAT32),
    }
    return found_quads(outputs, (SIDE, SIDE), 0.4)


@pytest.mark.parametrize("degrees", range(-84, 95, 13))
def test_lines_are_read_towards_the_right_however_they_are_turned(degrees: int) -> None:
    (quad,) = quads_of((160, 160, 120, 20, degrees))
    assert math.degrees(direction(quad)) == pytest.approx(degrees, abs=2)
    (climbing,) = quads_of((160, 160, 120, 20, degrees + 180))
    assert climbing == quad  # which of the two it is, the classifier says
    assert turned(turned(quad, 3), 1) == quad
    assert direction(turned(quad, 2)) == pytest.approx(
        math.remainder(direction(quad) + math.pi, math.tau),
        abs=0.02,  # corners are whole pixels
    )


@pytest.mark.parametrize("degrees", [0, -60, 70])
def test_short_words_are_read_along_the_long_lines(degrees: int) -> None:
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    long, short = quads_of((160, 160, 120, 20, degrees), (160 - 60 * sin, 160 + 60 * cos, 24, 22, degrees))
    assert math.degrees(direction(short)) == pytest.approx(degrees, abs=4)
    assert reading_order([short, long]) == [1, 0]
    assert reading_order([turned(short, 2), turned(long, 2)]) == [0, 1]  # the page is upside down


def saved(nodes: list[Any], shape: list[Any], constants: dict[str, Any], **metadata: str) -> bytes:
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    helper.set_model_props(model, metadata)
    return bytes(model.SerializeToString())


def finder() -> bytes:
    """Bright pixels are text."""
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["m"], axes=[1]),
        helper.make_node("Mul", ["m", "ten"], ["t"]),
        helper.make_node("Sigmoid", ["t"], ["y"]),
    ]
    return saved(nodes, ["n", 3, "h", "w"], {"ten": np.float32(10)})


def reader(**metadata: str) -> bytes:
    """Each 8 columns are a place; its class is the nearest of LEVELS to the brightest pixel there."""
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["m"], axes=[1]),
        helper.make_node("MaxPool", ["m"], ["p"], kernel_shape=[48, 8], strides=[48, 8]),
        helper.make_node("Reshape", ["p", "shape"], ["q"]),
        helper.make_node("Sub", ["q", "levels"], ["d"]),
        helper.make_node("Abs", ["d"], ["a"]),
        helper.make_node("Mul", ["a", "minus"], ["s"]),
        helper.make_node("Softmax", ["s"], ["y"], axis=2),
    ]
    levels = np.array(LEVELS, np.float32).reshape(1, 1, 5)
    constants = {"shape": np.array([1, -1, 1]), "levels": levels, "minus": np.float32(-40)}
    return saved(nodes, ["n", 3, 48, "w"], constants, **metadata)


def classifier() -> bytes:
    """A line is upside down if it is brighter at its left end than in the middle."""
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["m"], axes=[1, 2], keepdims=0),
        helper.make_node("Gather", ["m", "places"], ["g"], axis=1),
        helper.make_node("Mul", ["g", "fifty"], ["s"]),
        helper.make_node("Softmax", ["s"], ["y"], axis=1),
    ]
    constants = {"places": np.array([90, 40]), "fifty": np.float32(50)}
    return saved(nodes, [None, 3, "?", "?"], constants)  # as Paddle2ONNX names two sizes that it does not know


WRITTEN = {"character": "\n".join(LETTERS)}


def page(*lines: tuple[int, int, list[int]]) -> np.ndarray[Any, Any]:
    """Black paper; a line, 40 pixels high, begins at x, y: a white frame, inside fields of 40 x 20 of grey levels."""
    paper = np.zeros((320, 640, 3), np.uint8)
    for x, y, greys in lines:
        paper[y : y + 40, x : x + 40 * len(greys)] = np.repeat(greys, 40)[None, :, None]
    return paper


A, B, C = (round(127.5 + 127.5 * level) for level in LEVELS[1:4])


def create(backend: str = "wasm", **options: Any) -> TextReader:
    made: TextReader = run(
        TextReader.create(reader(**WRITTEN), detector=finder(), **{"classifier": None, **options}, backend=backend)
    )
    return made


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
def test_lines_are_found_and_read(target: Target) -> None:
    target.demand()
    with create(target.backend, min_score=0.2) as task:
        lines = run(task.read(page((100, 200, [C, B, C, B]), (60, 40, [B, B, C]))))
        assert [line.text.strip("a") for line in lines] == ["bc", "cbcb"]  # the dark edges may be a letter
        assert lines[1].box.left == pytest.approx(100 - 15, abs=8)
        assert lines[1].box.width == pytest.approx(160 + 30, abs=14)
        assert lines[1].quad[0] == pytest.approx((lines[1].box.left, lines[1].box.top))
        assert all(0.2 <= line.score <= 1 for line in lines)
        assert run(task.run(page())) == []
        assert set(task.times) == {"prepare_ms", "infer_ms", "decode_ms"}


def test_upright_lines_are_read_downwards() -> None:
    with create(min_score=0.2) as task:
        turned = np.rot90(page((100, 200, [C, B, C, B])), -1)  # the right of the page is down now
        (line,) = run(task.read(np.ascontiguousarray(turned)))
        assert line.text.strip("a") == "cbcb"
        assert line.quad[0][0] > line.quad[3][0]  # its upper side is on the right
        assert line.quad[0][1] < line.quad[1][1]


def test_upside_down_lines_are_turned_and_pages_are_read_from_their_own_top() -> None:
    picture = page((100, 60, [B, A, C, C]), (300, 200, [B, B, C, C]))
    with create(min_score=0.2, classifier=classifier()) as task:
        for image in (picture, np.ascontiguousarray(picture[::-1, ::-1])):
            lines = run(task.read(image))
            assert [line.text.strip("a") for line in lines] == ["bac", "bc"]
    assert all(line.quad[0][0] > line.quad[1][0] and line.quad[0][1] > line.quad[3][1] for line in lines)


def test_a_line_of_any_length_is_read_and_filling_is_not() -> None:
    with create(min_score=0.2, most_side=640) as task:
        (line,) = run(task.read(page((20, 100, [C, B] * 7))))
        assert line.text.strip("a") == "cb" * 7


def test_unlikely_places_and_lines_are_not_told() -> None:
    picture = page((60, 40, [B, B, C]))
    with create(min_score=1.0) as task:
        assert run(task.read(picture)) == []
    with create(min_box_score=1.0) as task:
        assert run(task.read(picture)) == []


def test_what_cannot_read_is_refused() -> None:
    def refused(model: Any, **options: Any) -> None:
        run(TextReader.create(model, detector=finder(), **{"classifier": None, **options}, backend="wasm"))

    with pytest.raises(InputError, match="which letters it can read"):
        refused(reader())
    with pytest.raises(ModelFormatError, match="5 classes apart; 2 letters"):
        refused(reader(), letters="ab")
    with pytest.raises(InputError, match="most_side"):
        refused(reader(**WRITTEN), most_side=8)
    with pytest.raises(ModelFormatError, match="two probabilities"):
        refused(reader(**WRITTEN), classifier=finder())
    other = webinfer.GraphBuilder()
    other.output(other.node("relu", other.input("x", (1, 8))), "y")
    with pytest.raises(ModelFormatError, match="any width"):
        refused(other, letters="abcdef")
