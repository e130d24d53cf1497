"""Object detectors of each kind, on models that say where their boxes are; and what plans make of pixels."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import TARGETS, Target

import webinfer
from build_scripts.paths import ZOO
from webinfer.dtypes import DType
from webinfer.errors import InputError, ModelFormatError
from webinfer.graph.ir import Quantization, TensorType
from webinfer.importers import read_model
from webinfer.models.labels import COCO, COCO_NUMBERS
from webinfer.models.layouts import PLAIN, SIGNED, Pixels
from webinfer.tasks import DetectedObject, ObjectDetector
from webinfer.tasks.base import Box
from webinfer.tasks.object_models import ssd_anchors
from webinfer.tasks.pixels import PICTURE, take_pixels

EVERYWHERE = [t for t in TARGETS if dict(t.options).get("isa", "relaxed") == "relaxed"]
LABELS = ("cup", "hat", "dog")
WALL = np.full((100, 200, 3), 90, np.uint8)
Array = np.ndarray[Any, Any]


def model(outputs: list[Array], picture: TensorType | None = None) -> webinfer.GraphBuilder:
    """A model that puts out these numbers, whatever it sees."""
    builder = webinfer.GraphBuilder("objects")
    seen = builder.input("x", picture or TensorType((1, 32, 32, 3)))
    if not seen.type.dtype.is_float:
        seen = builder.node("cast", seen, dtype="float32")
    nothing = builder.node("mul", builder.node("reduce_mean", seen, axes=(0, 1, 2, 3)), 0.0)
    for i, array in enumerate(outputs):
        builder.output(builder.node("add", builder.constant(array.astype(np.float32)), nothing), f"y{i}")
    return builder


def post_processed() -> webinfer.GraphBuilder:
    """What TFLite_Detection_PostProcess gives: three objects and an empty row."""
    boxes = [(0.1, 0.2, 0.5, 0.6), (0.0, 0.0, 1.0, 0.5), (0.5, 0.5, 0.75, 1.0), (0, 0, 0, 0)]
    numbers = [np.array([boxes]), np.array([[2, 0, 1, 0]]), np.array([[0.9, 0.6, 0.3, 0]]), np.array([3])]
    return model(numbers)


def detector(source: Any, target: Target = EVERYWHERE[0], **options: Any) -> ObjectDetector:
    target.demand()
    made: ObjectDetector = run(ObjectDetector.create(source, backend=target.backend, **{"labels": LABELS} | options))
    return made


def found(source: Any, target: Target = EVERYWHERE[0], **options: Any) -> list[DetectedObject]:
    with detector(source, target, **options) as task:
        objects: list[DetectedObject] = run(task.detect(WALL))
        return objects


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
def test_boxes_of_an_ssd_with_its_post_processing_are_in_pixels_and_have_names(target: Target) -> None:
    dog, cup, hat = found(post_processed(), target, min_score=0.0)
    corners = [n for o in (dog, cup, hat) for n in (o.box.left, o.box.top, o.box.width, o.box.height)]
    assert corners == pytest.approx([40, 10, 80, 40, 0, 0, 100, 100, 100, 50, 100, 25], abs=1e-3)
    assert [(o.category.index, o.category.label) for o in (dog, cup, hat)] == [(2, "dog"), (0, "cup"), (1, "hat")]
    assert dog.score == dog.category.score == pytest.approx(0.9)


def test_options_choose_what_is_told() -> None:
    def told(**options: Any) -> list[str]:
        return [o.category.label for o in found(post_processed(), **{"min_score": 0.0} | options)]

    assert told(min_score=0.5) == ["dog", "cup"]
    assert told(most=1) == ["dog"]
    assert told(allow=("hat", "cup")) == ["cup", "hat"]
    assert told(deny=("cup",), most=2) == ["dog", "hat"]
    assert told(labels=("cup",)) == ["", "cup", ""]
    square = found(post_processed(), keep_aspect=True)[0].box  # the wall fitted into a square: 50 pixels above it
    assert (square.left, square.top, square.width, square.height) == pytest.approx((40, -30, 80, 80), abs=1e-3)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"most": 0}, "most"), ({"min_score": 2}, "min_score"), ({"allow": ["cup"], "deny": ["hat"]}, "both"),
        ({"allow": ["cap"]}, "'cap' is not a label of the model; it has cup, hat, dog"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused_before_anything_is_loaded(
    options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(InputError, match=complaint):
        run(ObjectDetector.create("no such file", labels=LABELS, **options))


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
def test_a_table_of_boxes_in_pixels_of_the_input_is_read(target: Target) -> None:
    table = np.array([[(8, 16, 24, 32, 0.7, 1), (0, 0, 32, 8, 0.8, 2)]])
    dog, hat = found(model([np.zeros((1, 4, 4, 2)), table]), target)
    assert dog.category.label == "dog"
    assert hat.box == Box(*map(pytest.approx, (50, 50, 100, 100)))  # the wall is fitted into a square
    (_, stretched) = found(model([np.zeros((1, 4, 4, 2)), table]), target, keep_aspect=False)
    assert stretched.box == Box(*map(pytest.approx, (50, 50, 100, 50)))


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
def test_raw_boxes_are_relative_to_the_anchors(target: Target) -> None:
    anchors = ssd_anchors(32)
    best, beside = len(anchors) - 30, len(anchors) - 24  # of the same shape, in two grids
    boxes, scores = np.zeros((1, len(anchors), 4)), np.zeros((1, len(anchors), 5))
    boxes[0, best] = (1.0, -2.0, 5 * math.log(0.5), 0)
    scores[0, best, 3], scores[0, beside, 1] = 0.8, 0.6
    dog, cup = found(model([scores, boxes]), target)
    y, x, height, width = anchors[best]
    middle = dog.box.left + dog.box.width / 2, dog.box.top + dog.box.height / 2
    assert middle == pytest.approx((200 * (x - 0.2 * width), 100 * (y + 0.1 * height)), abs=1e-3)
    assert (dog.box.width, dog.box.height) == pytest.approx((200 * width, 50 * height), abs=1e-3)
    assert (dog.category.label, cup.category.label) == ("dog", "cup")


def test_anchors_are_those_that_a_published_detector_carries() -> None:
    path = ZOO.with_name("models_more") / "ssd_mobilenet_v1_coco_quant_postprocess.tflite"
    if not path.is_file():
        pytest.skip("../shared/models_more has no SSD MobileNet")
    graph = read_model(path.read_bytes(), "ssd")
    (node,) = [n for n in graph.nodes if n.op.name == "detection_postprocess"]
    producers = graph.producers()
    raw = node.required_input(2)
    quantized = producers[raw].required_input(0) if raw.constant is None else raw
    assert quantized.constant is not None
    stored = np.frombuffer(quantized.constant.data, quantized.type.dtype.value).reshape(-1, 4).astype(np.float64)
    if quantized.type.quant is not None:
        stored = (stored - quantized.type.quant.zero_points[0]) * quantized.type.quant.scales[0]
    ours = np.array(ssd_anchors(300))
    assert ours.shape == stored.shape == (1917, 4)
    assert np.abs(ours - stored).max() < 0.006  # half a step of its scale


def nanodet(outputs: list[Array], side: int) -> list[tuple[float, int, list[float]]]:
    """Score, class and corners of each box, by the letter of the description; of overlapping ones the best."""
    boxes = []
    for scores, raw in zip(outputs[:2], outputs[2:], strict=True):
        cells = math.isqrt(scores.shape[1])
        for i in range(cells * cells):
            bins = np.exp(raw[0, i].astype(np.float64).reshape(4, -1))
            left, top, right, bottom = (bins * np.arange(bins.shape[1])).sum(1) / bins.sum(1) * side / cells
            x, y = (i % cells + 0.5) * side / cells, (i // cells + 0.5) * side / cells
            kind = int(scores[0, i].argmax())
            boxes.append((float(scores[0, i, kind]), kind, [x - left, y - top, x + right, y + bottom]))
    kept: list[tuple[float, int, list[float]]] = []
    for score, kind, corners in sorted(boxes, key=lambda b: -b[0]):
        if all(kind != other or iou(corners, c) < 0.6 for _, other, c in kept):
            kept.append((score, kind, corners))
    return kept


def iou(a: list[float], b: list[float]) -> float:
    common = max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    first, second = ((c[2] - c[0]) * (c[3] - c[1]) for c in (a, b))
    return common / (first + second - common)


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
def test_distances_of_a_nanodet_are_the_means_of_their_distributions(target: Target) -> None:
    random = np.random.default_rng(3)
    sizes = [(16, 3), (64, 3), (16, 32), (64, 32)]
    outputs = [random.uniform(0, 1, (1, *s)) if s[1] == 3 else random.normal(0, 2, (1, *s)) for s in sizes]
    shuffled = [outputs[i] for i in (3, 0, 2, 1)]
    planes = TensorType((1, 3, 64, 64))
    objects = found(model(shuffled, planes), target, min_score=0.3, keep_aspect=False)
    want = [row for row in nanodet(outputs, 64) if row[0] >= 0.3]
    assert len(want) < 80, "nothing was suppressed"
    assert [o.category.index for o in objects] == [kind for _, kind, _ in want]
    for one, (score, _, (left, top, right, bottom)) in zip(objects, want, strict=True):
        assert one.score == pytest.approx(score, abs=1e-5)
        box = one.box
        size = (box.left, box.top, box.width, box.height)
        scaled = left * 200, top * 100, (right - left) * 200, (bottom - top) * 100
        assert size == pytest.approx([n / 64 for n in scaled], abs=0.01)


def test_a_model_that_detects_no_objects_is_refused_with_what_was_found() -> None:
    for outputs in ([np.zeros((1, 1001))], [np.zeros((1, 7, 4)), np.zeros((1, 7, 5))], [np.zeros((1, 5, 8))] * 2):
        with pytest.raises(ModelFormatError, match=r"not an object detector that is known.*\(1, 32, 32, 3\)"):
            found(model(outputs))


def test_the_classes_of_coco_have_two_numberings() -> None:
    assert len(COCO) == len(set(COCO)) == 80
    assert [COCO_NUMBERS.index(name) for name in ("person", "stop sign", "cat", "toothbrush")] == [0, 12, 16, 89]
    assert tuple(filter(None, COCO_NUMBERS)) == COCO


CHANNELS = Pixels(mean=(10.0, 20.0, 30.0), deviation=(2.0, 4.0, 5.0), bgr=True)
STEP = Quantization((0.5,), (3,))


@pytest.mark.parametrize("target", EVERYWHERE, ids=str)
@pytest.mark.parametrize(
    ("wanted", "pixels", "made"),
    [
        (TensorType((1, 4, 5, 3)), SIGNED, lambda x: x / 127.5 - 1),
        (TensorType((1, 4, 5, 3)), CHANNELS, lambda x: (x[..., ::-1] - [10, 20, 30]) / [2, 4, 5]),
        (TensorType((1, 3, 4, 5)), PLAIN, lambda x: x.transpose(0, 3, 1, 2)),
        (TensorType((1, 4, 5, 3), DType.INT32), SIGNED, np.trunc),
        (TensorType((1, 4, 5, 3), DType.UINT8, STEP), SIGNED, lambda x: np.rint(x)),
        (TensorType((1, 4, 5, 3), DType.INT8, STEP), SIGNED, lambda x: np.rint(x) - 128),
    ],
    ids=["signed", "by channel", "planes", "whole numbers", "uint8", "int8"],
)
def test_plans_make_what_models_want_of_pixels(target: Target, wanted: TensorType, pixels: Pixels, made: Any) -> None:
    target.demand()
    builder = webinfer.GraphBuilder("pixels")
    x = builder.input("x", wanted)
    if wanted.quant is not None:
        x = builder.node("dequantize", x, dtype="float32")
    builder.output(builder.node("cast", x, dtype="float32") if not wanted.quant else x, "y")
    graph = builder.graph()
    take_pixels(graph, pixels)
    picture = (np.random.default_rng(1).integers(0, 255, (1, 4, 5, 3)) + 0.3).astype(np.float32)

    class Made(webinfer.GraphBuilder):
        def graph(self) -> Any:
            return graph

    with run(webinfer.load(Made("pixels"), backend=target.backend)) as session:
        assert [i.name for i in session.inputs] == [PICTURE]
        got = np.array(run(session.run({PICTURE: picture}))["y"].flat())
    want = made(picture.astype(np.float64))
    if wanted.quant is not None:
        want = 0.5 * (want - 3)
    assert got == pytest.approx(np.asarray(want).ravel(), abs=1e-4)


def test_results_can_be_written_as_json() -> None:
    from dataclasses import asdict

    (dog, *_) = found(post_processed())
    assert json.loads(json.dumps(asdict(dog)))["category"]["label"] == "dog"
