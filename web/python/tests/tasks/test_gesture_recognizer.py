"""Gestures: what the models are given of a hand, which classifier is believed, and which bundles are refused."""

from __future__ import annotations

import io
import zipfile
from array import array
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run

import webinfer
from webinfer.errors import ModelFormatError
from webinfer.importers.readers.archive import is_archive, unpack
from webinfer.session.loop_lock import LoopLock
from webinfer.tasks import GestureRecognizer, HandGesture, Landmarks
from webinfer.tasks.base import Box
from webinfer.tasks.gesture_recognizer import CANNED, CUSTOM, LABELS, Classifier, as_object

HAND = np.random.default_rng(2).uniform(50, 250, (21, 3)).astype(np.float32)
WORLD = np.random.default_rng(3).uniform(-0.1, 0.1, (21, 3)).astype(np.float32)
SIZE = (640, 480)


def as_mediapipe_does(points: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """NormalizeObject of landmarks_to_matrix_calculator.cc."""
    moved = points.astype(np.float64) - points[0]
    found: np.ndarray[Any, Any] = moved / (np.ptp(moved[:, :2], axis=0).max() + 1e-5)
    return found


def test_hands_are_given_as_objects_of_their_own_size() -> None:
    width, height = SIZE
    shown = HAND / [width, height, width]  # as MediaPipe holds landmarks: 0..1
    shown = (shown - [0.5, 0.5, 0]) * [width / max(SIZE), height / max(SIZE), 1] + [0.5, 0.5, 0]
    found = np.array(as_object(array("f", HAND.ravel()), (width, width, width))).reshape(21, 3)
    assert found == pytest.approx(as_mediapipe_does(shown), abs=1e-5)
    assert np.ptp(found[:, :2], axis=0).max() == pytest.approx(1, abs=1e-3)
    flat = np.array(as_object(array("f", [0.5] * 63), (1, 1, 1)))
    assert not flat.any()


async def session(weights: dict[str, np.ndarray[Any, Any]]) -> Any:
    """A model whose only output is the sum of its inputs times these weights."""
    builder, total = webinfer.GraphBuilder("sums"), None  # type: Any, Any
    for name, weight in weights.items():
        shape = {"handedness": (1, 1), "embedding": (1, 2)}.get(name, (1, 21, 3))
        x = builder.input(name, shape)
        flat = builder.node("reshape", x, shape=(1, weight.shape[0]))
        part = builder.node("matmul", flat, builder.constant(weight.ravel().tolist(), weight.shape))
        total = part if total is None else builder.node("add", total, part)
    builder.output(total, "y")
    return await webinfer.load(builder, backend="wasm")


async def recognized(*scores: tuple[str, ...], handedness: str = "Left", least: float = 0.0) -> HandGesture:
    """What is told of a hand by classifiers whose last class scores twice what the hand's being a left one does."""
    task = object.__new__(GestureRecognizer)
    task.loop_lock = LoopLock()
    nothing = np.zeros((63, 2))
    task._embedder = await session({"hand": nothing, "handedness": np.array([[2.0, 0.0]]), "world_hand": nothing})
    task._classifiers = []
    for labels in scores:
        weight = np.zeros((2, len(labels)))
        weight[0, -1] = 1.0  # twice how likely a left hand is
        threshold = 0.0 if task._classifiers else least
        task._classifiers.append(Classifier(await session({"embedding": weight}), labels, threshold))
    points, world = Landmarks(array("f", HAND.ravel())), Landmarks(array("f", WORLD.ravel()))
    hand = HandGesture(Box(0, 0, 9, 9), 0.9, handedness, 0.75, points, world, image_size=SIZE)
    found = await task.recognize(hand)
    for part in (task._embedder, *(one.session for one in task._classifiers)):
        part.close()
    assert isinstance(found, HandGesture)
    assert found.landmarks is points
    return found


def test_the_first_classifier_that_sees_a_gesture_is_believed() -> None:
    one = run(recognized(("None", "Victory")))
    assert (one.gesture, one.gesture_score) == ("Victory", pytest.approx(1.5))
    assert run(recognized(("None", "plus"), ("None", "Victory"))).gesture == "plus"
    assert run(recognized(("plus", "None"), ("None", "Victory"))).gesture == "Victory"
    nobody = run(recognized(("plus", "None"), ("x", "y", "None")))
    assert (nobody.gesture, nobody.gesture_score) == ("None", pytest.approx(1.5))
    unsure = run(recognized(("None", "plus"), ("None", "Victory"), least=1.6))
    assert unsure.gesture == "Victory"
    nothing = run(recognized(("None", "plus"), least=1.6))
    assert (nothing.gesture, nothing.gesture_score) == ("None", 0.0)
    right = run(recognized(("None", "Victory"), handedness="Right"))
    assert right.gesture_score == pytest.approx(0.5)  # 1 - 0.75 is how likely it is a left hand


def bundle(**inner: dict[str, bytes]) -> bytes:
    """Bundles in a bundle, aligned as MediaPipe's are: two zeros come first."""
    parts = {}
    for name, files in inner.items():
        parts[f"{name}.task"] = b"\0\0" + zipped(files)
    return b"\0\0" + zipped(parts)


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def test_bundles_are_read_behind_the_zeros_that_align_them() -> None:
    data = bundle(hand_landmarker={"a": b"1"}, other={"b": b"2"})
    assert is_archive(memoryview(data))
    assert not is_archive(memoryview(b"\0" * 8))
    assert not is_archive(memoryview(b""))
    files = unpack(memoryview(data), "x")
    assert {name: bytes(file) for name, file in files.items()} == {"hand_landmarker.task/a": b"1", "other.task/b": b"2"}


def test_what_is_no_bundle_of_gestures_is_refused_with_what_is_missing() -> None:
    def refused(data: bytes, **options: Any) -> None:
        run(GestureRecognizer.create(data, backend="wasm", **options))

    with pytest.raises(ModelFormatError, match=r"it needs hand_landmarker.task/hand_detector.tflite, it has no files"):
        refused(b"TFL3" * 9)
    hands = {"hand_detector.tflite": b"", "hand_landmarks_detector.tflite": b""}
    with pytest.raises(ModelFormatError, match=r"needs .*gesture_embedder.tflite, it has hand_landmarker.task/"):
        refused(bundle(hand_landmarker=hands))
    gestures = {"gesture_embedder.tflite": b"", CANNED.split("/")[1]: b""}
    with pytest.raises(ModelFormatError, match=f"needs {CUSTOM}"):
        refused(bundle(hand_landmarker=hands, hand_gesture_recognizer=gestures), custom_gestures=True)
    assert len(LABELS) == 8
