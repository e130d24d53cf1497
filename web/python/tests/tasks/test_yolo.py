"""Models as Ultralytics exports them: the layouts of their heads, and the way of a picture into them and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import webinfer  # noqa: E402
from webinfer.errors import ModelFormatError  # noqa: E402
from webinfer.graph.ir import Graph  # noqa: E402
from webinfer.session.plan_cache import WithPostprocessing  # noqa: E402
from webinfer.tasks import Category, DetectedObject, ImageClassifier, ObjectDetector  # noqa: E402
from webinfer.tasks.crop import Region  # noqa: E402
from webinfer.tasks.yolo import TFLITE, Yolo, extend_with_rows, yolo_of  # noqa: E402
from webinfer.tasks.yolo_objects import Place, letterbox, placed, to_picture  # noqa: E402

WIDTH, HEIGHT = 64, 32  # of the models' input
PICTURE = np.zeros((96, 96, 3), np.uint8)  # lies in columns 16 to 48 of it, 3 of its pixels to each
NAMES = "{0: 'cat', 1: 'dog'}"


def saved(table: Any, *more: Any, corner: bool = False, **metadata: str) -> bytes:
    """A model whose outputs are these, whatever it sees; with `corner`, the first pixel is added to number 4."""
    table, flat = np.asarray(table, np.float32), np.zeros(np.shape(table), np.float32)
    flat.reshape(-1)[4:5] = corner
    nodes = [
        helper.make_node("Slice", ["images", "starts", "ends"], ["pixel"]),
        helper.make_node("ReduceSum", ["pixel"], ["sum"], keepdims=0),
        helper.make_node("Mul", ["sum", "where"], ["added"]),
        helper.make_node("Add", ["added", "table"], ["output0"]),
    ]
    constants = {"starts": np.array([0] * 4), "ends": np.array([1] * 4), "where": flat, "table": table}
    for number, values in enumerate(more, 1):
        constants[f"more{number}"] = np.asarray(values, np.float32)
        nodes.append(helper.make_node("Identity", [f"more{number}"], [f"output{number}"]))
    inputs = [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, HEIGHT, WIDTH])]
    outputs = [helper.make_tensor_value_info(f"output{i}", TensorProto.FLOAT, None) for i in range(1 + len(more))]
    tensors = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    model = helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs, tensors),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=9,
    )  # fmt: skip
    helper.set_model_props(model, {"stride": "32", "names": NAMES, **metadata})
    return bytes(model.SerializeToString())


def found(model: bytes, **options: Any) -> list[DetectedObject]:
    async def detect() -> list[DetectedObject]:
        with await ObjectDetector.create(model, backend="wasm", **options) as task:
            return await task.detect(PICTURE)

    return run(detect())  # type: ignore[no-any-return]


def told(objects: list[DetectedObject]) -> list[tuple[str, list[float], float]]:
    boxes = [(o.box.left, o.box.top, o.box.left + o.box.width, o.box.top + o.box.height) for o in objects]
    return [
        (o.category.label, [round(n, 3) for n in b], round(o.score, 4)) for o, b in zip(objects, boxes, strict=True)
    ]


# Centre x, y, width, height in pixels of the input; scores of cats and dogs.
RAW = [
    (32, 16, 10, 8, 0.9, 0.1), (33, 16, 10, 8, 0.8, 0.2), (32, 16, 10, 8, 0.3, 0.7), (46, 4, 12, 12, 0.6, 0.1),
    (32, 16, 2, 2, 0.2, 0.1),
]  # fmt: skip
SEEN = [
    ("cat", [33, 36, 63, 60], 0.9), ("dog", [33, 36, 63, 60], 0.7),
    ("cat", [72, 0, 96, 30], 0.6),  # what reaches into the filling ends at the picture's edge
]  # fmt: skip


def test_boxes_of_a_class_that_overlap_give_way_to_the_best() -> None:
    table = np.array(RAW).T[None]
    assert told(found(saved(table, task="detect", end2end="False"))) == SEEN
    assert told(found(saved(table.transpose(0, 2, 1), task="detect", end2end="False"))) == SEEN
    assert len(found(saved(table, task="detect"), overlap=0.95)) == 4
    assert told(found(saved(table, task="detect"), min_score=0.65, deny=["dog"])) == SEEN[:1]
    assert told(found(saved(table, task="detect"), most=1, labels=["a", "b"])) == [("a", *SEEN[0][1:])]


def test_yolo_5_says_how_likely_there_is_an_object() -> None:
    table = [[(*row[:4], 0.5, *(min(2 * s, 1) for s in row[4:])) for row in RAW]]
    assert [label for label, _, _ in told(found(saved(table), min_score=0.1))] == ["cat", "dog", "cat", "cat"]
    assert told(found(saved(table), min_score=0.45))[0][2] == 0.5


def test_final_boxes_are_not_suppressed() -> None:
    rows = [(27, 12, 37, 20, 0.9, 0), (28, 12, 37, 20, 0.8, 0), (0, 0, 0, 0, 0, 0)]
    for metadata in ({"end2end": "True"}, {}):
        objects = told(found(saved([rows], task="detect", **metadata)))
        assert objects == [("cat", [33, 36, 63, 60], 0.9), ("cat", [36, 36, 63, 60], 0.8)]


def test_the_picture_lies_in_the_middle_of_grey() -> None:
    (seen,) = found(saved([[(27, 12, 37, 20, 0, 0)]], task="detect", end2end="True", corner=True), min_score=0.1)
    assert seen.score == pytest.approx(114 / 255, abs=1e-4)
    assert placed(Region.whole(1920, 1278), 192, 160) == Place(0, 16, 192, 128)
    assert placed(Region.whole(500, 610), 192, 160) == Place(30, 0, 131, 160)  # of 61 columns the odd one is right
    crop = letterbox(192, 160).crop(None, (500, 610))
    assert crop.to_image(30 / 192, 0) == pytest.approx((0, 0))
    assert crop.to_image(161 / 192, 1) == pytest.approx((500, 610))


def test_key_points_have_places_and_scores() -> None:
    row = (32, 16, 10, 8, 0.9, 0.1, 30, 14, 0.7, 60, 18, 0.2)
    table, shape = np.array([row]).T[None], "[2, 3]"
    (seen,) = found(saved(table, task="pose", kpt_shape=shape))
    assert np.allclose(seen.keypoints, [(42, 42, 0.7), (96, 54, 0.2)])  # the second lies beyond the picture
    final = [[(27, 12, 37, 20, 0.9, 0, 30, 14, 60, 18)]]
    (seen,) = found(saved(final, task="pose", kpt_shape="[2, 2]", end2end="True"))
    assert np.allclose(seen.keypoints, [(42, 42, 1), (96, 54, 1)])


def test_masks_are_sums_of_prototypes_inside_their_boxes() -> None:
    prototypes = np.zeros((1, 2, 8, 16), np.float32)
    prototypes[0, 0], prototypes[0, 1, :, 8:] = 6, 12
    rows = np.array([(32, 16, 16, 8, 0.9, 0, 1, 0), (32, 16, 16, 16, 0, 0.8, 1, -1)]).T[None]
    cat, dog = found(saved(rows, prototypes, task="segment"))
    assert cat.mask is not None
    assert dog.mask is not None
    assert (cat.mask.width, cat.mask.height) == (32, 32)
    whole, left = (np.array(o.mask.values).reshape(32, 32) > 0.5 for o in (cat, dog) if o.mask is not None)
    assert whole.sum() == 16 * 8
    assert whole[12:20, 8:24].all()
    assert left.sum() == 16 * 8
    assert left[8:24, 8:16].all()


def test_turned_boxes_give_way_to_better_ones_of_their_class() -> None:
    quarter = math.pi / 4
    rows = [
        (32, 16, 12, 4, 0.9, 0.1, quarter), (32.4, 16, 12, 4, 0.8, 0.1, quarter), (32, 16, 12, 4, 0.7, 0, -quarter),
        (32, 16, 12, 4, 0.1, 0.6, quarter),
    ]  # fmt: skip
    objects = found(saved(np.array(rows).T[None], task="obb"))
    assert [(o.category.label, round(o.score, 3)) for o in objects] == [("cat", 0.9), ("cat", 0.7), ("dog", 0.6)]
    across, down = 3 * 8 / math.sqrt(2), 3 * 4 / math.sqrt(2)  # sums and differences of half the sides, turned
    expected = [(48 - down, 48 - across), (48 + across, 48 + down), (48 + down, 48 + across), (48 - across, 48 - down)]
    assert np.allclose(objects[0].corners, expected, atol=1e-3)
    assert objects[0].rotation == pytest.approx(quarter)
    final = [[(32, 16, 12, 4, 0.9, 0, quarter), (32, 16, 12, 4, 0.8, 0, quarter)]]
    assert len(found(saved(final, task="obb", end2end="True"))) == 2


@pytest.mark.parametrize(("planes", "final"), [(False, False), (True, False), (False, True), (True, True)])
def test_exports_for_tensorflow_lite_tell_parts_of_the_input(planes: bool, final: bool) -> None:
    builder = webinfer.GraphBuilder()
    shape = (1, 3, HEIGHT, WIDTH) if planes else (1, HEIGHT, WIDTH, 3)
    nothing = builder.node("mul", builder.node("reduce_max", builder.input("x", shape), axes=(1, 2, 3)), 0.0)
    pixels = final and planes
    size = (1, 1) if pixels else (WIDTH, HEIGHT)
    row = (27, 12, 37, 20, 0.9, 0) if final else (32, 16, 10, 8, 0.9, 0)
    table = [n / size[i % 2] if i < 4 else n for i, n in enumerate(row)]
    constant = builder.constant(table, (1, 1, 6) if final else (1, 6, 1))
    builder.output(builder.node("add", constant, builder.node("reshape", nothing, shape=(1, 1, 1))), "y")

    def extend(graph: Graph) -> None:
        graph.format = TFLITE
        extend_with_rows(graph, Yolo("detect", ("cat", "dog"), final=final), 0.7)

    async def rows() -> list[float]:
        with await webinfer.load(WithPostprocessing(builder, "yolo", extend), backend="wasm") as session:
            inputs = {info.name: np.zeros(info.shape, np.float32) for info in session.inputs}
            return (await session.run(inputs))["objects"].flat().tolist()[:6]  # type: ignore[no-any-return]

    assert np.allclose(run(rows()), [27 / WIDTH, 12 / HEIGHT, 37 / WIDTH, 20 / HEIGHT, 0.9, 0])


def test_metadata_are_read_and_what_does_not_fit_them_is_refused() -> None:
    assert yolo_of({"author": "a user", "names": "x"}) is None
    yolo = yolo_of({"names": "{'1': 'b', '0': 'a'}", "task": "pose", "kpt_shape": "(5, 2)", "end2end": "True"})
    assert yolo == Yolo("pose", ("a", "b"), (5, 2), True)
    with pytest.raises(ModelFormatError, match="the task 'depth'; known: detect"):
        yolo_of({"names": NAMES, "task": "depth"})
    with pytest.raises(ModelFormatError, match="where a list is needed"):
        yolo_of({"names": "{0: 'a'", "task": "detect"})
    with pytest.raises(ModelFormatError, match="2 classes, which does not fit outputs of shapes"):
        found(saved(np.zeros((1, 9, 20)), task="detect"))
    with pytest.raises(ModelFormatError, match="does not fit"):
        found(saved(np.array(RAW).T[None], task="segment"))
    with pytest.raises(ModelFormatError, match="make an ImageClassifier"):
        found(saved([[0.1, 0.9]], task="classify"))
    with pytest.raises(ModelFormatError, match="make an ObjectDetector"):
        run(ImageClassifier.create(saved(np.array(RAW).T[None], task="detect"), backend="wasm"))


def test_classifiers_see_the_middle_of_a_picture_and_know_their_labels() -> None:
    async def classify() -> list[Category]:
        with await ImageClassifier.create(saved([[0.1, 0.2]], task="classify"), backend="wasm", most=2) as task:
            assert task.spec.crop(None, (96, 96)).region == Region(48, 48, 96, 48)
            assert task.spec.crop(None, (200, 50)).region == Region(100, 25, 100, 50)
            return await task.classify(PICTURE)  # type: ignore[no-any-return]

    assert [(c.label, round(c.score, 3)) for c in run(classify())] == [("dog", 0.2), ("cat", 0.1)]


def test_boxes_come_back_by_the_scale_before_sides_are_whole_pixels() -> None:
    crop = letterbox(192, 160).crop(None, (500, 610))
    scale = 160 / 610
    assert to_picture(crop, 161 / 192, 1) == pytest.approx(((161 - 30) / scale, 610))
    assert to_picture(crop, 30 / 192, 0) == pytest.approx((0, 0))
    turned = letterbox(192, 160).crop(Region(250, 305, 610, 500, math.pi / 2), (500, 610))
    assert to_picture(turned, 0.5, 0.5) == pytest.approx((250, 305), abs=3)
