"""Landmarks in packages: a detector and a model of points, one in the other, tell what the engine tells."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.tasks import test_gesture_recognizer as gesture_models

import webinfer
from build_scripts.tests.in_node import node
from build_scripts.tests.test_player_tasks import played, told_box
from webinfer import tasks
from webinfer.models.layouts import BLAZEFACE_SHORT_RANGE, BODY, SsdLayout
from webinfer.package import compile_model, compile_wasm
from webinfer.tasks.holistic_landmarker import HandRecropper
from webinfer.tasks.landmarks import LandmarkModel
from webinfer.tasks.ssd import attributes

__all__ = ["node"]  # a fixture
SCENE = np.random.default_rng(5).integers(0, 256, (120, 200, 3), np.uint8)
TASKS = {
    "face-landmarker": tasks.FaceLandmarker, "hand-landmarker": tasks.HandLandmarker,
    "pose-landmarker": tasks.PoseLandmarker,
}  # fmt: skip
BLOCKS = 8  # a side: what the models see of a picture


def detector(layout: SsdLayout) -> webinfer.GraphBuilder:
    """A detector that sees two things in every picture, turned differently."""
    builder, (width, height) = webinfer.GraphBuilder("detector"), (layout.input.width, layout.input.height)
    picture = builder.input("picture", (1, height, width, 3))
    nothing = builder.node("mul", builder.node("reduce_mean", picture, axes=(1, 2, 3)), 0.0)
    count, points = attributes(layout).anchors, len(layout.keypoints)
    boxes, scores = np.zeros((1, count, 4 + 2 * points), np.float32), np.full((1, count, 1), -50, np.float32)
    random = np.random.default_rng(3)
    for anchor, score in ((count // 4, 1.0), (3 * count // 4, 3.0)):
        boxes[0, anchor] = [0, 0, width / 3, height / 4, *random.uniform(-width / 6, width / 6, 2 * points)]
        scores[0, anchor] = score
    for name, numbers in (("boxes", boxes), ("scores", scores)):
        builder.output(builder.node("add", builder.constant(numbers.ravel().tolist(), numbers.shape), nothing), name)
    return builder


def points_of(kind: LandmarkModel, reach: float = 20) -> webinfer.GraphBuilder:
    """A model of points that hang on what its crop shows, by `reach`; its scores are 0.25 to 1, or so as logits."""
    builder, (width, height) = webinfer.GraphBuilder("points"), (kind.input.width, kind.input.height)
    picture = builder.input("picture", (1, height, width, 3))
    cells = builder.node("reshape", picture, shape=(BLOCKS, height // BLOCKS, BLOCKS, width * 3 // BLOCKS))
    seen = builder.node("reshape", builder.node("reduce_mean", cells, axes=(1, 3)), shape=(1, BLOCKS * BLOCKS))
    random = np.random.default_rng(4)
    for number, size in enumerate(kind.sizes):
        base = random.uniform(0.25, 1, (1, size)) if size == 1 else random.uniform(-3, width, (1, size))
        found = builder.constant(base.astype(np.float32).ravel().tolist(), (1, size))
        if 1 < size < 10_000:
            weights = random.normal(0, reach, (BLOCKS * BLOCKS, size)).astype(np.float32)
            found = builder.node("add", found, builder.node("matmul", seen, weights))
        else:
            found = builder.node("add", found, builder.node("mul", builder.node("reduce_mean", seen, axes=(1,)), 0.0))
        builder.output(found, f"y{number}")
    return builder


async def engine(task: str, detector: Any, model: Any) -> list[Any]:
    """What the engine's task finds."""
    with await TASKS[task].create(model, detector=detector, most=2, min_presence_score=0.1, backend="wasm") as one:
        found: list[Any] = await one.detect(SCENE)
    return found


@pytest.mark.parametrize("task", TASKS)
def test_landmarks_are_the_engines(task: str, node: str, tmp_path: Path) -> None:
    kind = TASKS[task]
    first, second = detector(kind.family.layouts[0]), points_of(kind.kinds[0])
    told = played(second, task, node, tmp_path, SCENE, detector=first, most=2, min_presence_score=0.1)
    wanted = asyncio.run(engine(task, first, second))
    assert (told["task"], len(told["found"])) == (kind.name, len(wanted))
    assert len(wanted) == 2
    for found, one in zip(told["found"], wanted, strict=True):
        numbers = [one.box.left, one.box.top, one.box.width, one.box.height, one.score]
        np.testing.assert_allclose(told_box(found), numbers, rtol=1e-4, atol=2e-3)
        for name in ("landmarks", "world") if "world" in found else ("landmarks",):
            points = [[point[axis] for axis in "xyz"] for point in found[name]]
            np.testing.assert_allclose(np.ravel(points), getattr(one, name).xyz, rtol=1e-4, atol=2e-3)
        if task == "pose-landmarker":
            sure = [(point["visibility"], point["presence"]) for point in found["landmarks"]]
            np.testing.assert_allclose(sure, [(m.visibility, m.presence) for m in one.landmarks], atol=1e-5)
        if task == "hand-landmarker":
            assert found["handedness"] == one.handedness
            assert found["handednessScore"] == pytest.approx(one.handedness_score)


def test_a_whole_person_is_the_engines(node: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "pose_detector": detector(BODY), "face": points_of(tasks.FaceLandmarker.kinds[0]),
        "face_detector": detector(BLAZEFACE_SHORT_RANGE), "hand": points_of(tasks.HandLandmarker.kinds[0]),
        "hand_recrop": points_of(HandRecropper.kinds[0]), "min_presence_score": 0.1,
    }  # fmt: skip
    model = points_of(tasks.PoseLandmarker.kinds[0])
    told = played(model, "holistic-landmarker", node, tmp_path, SCENE, **options)

    async def people() -> list[Any]:
        with await tasks.HolisticLandmarker.create(model, backend="wasm", **options) as one:
            found: list[Any] = await one.detect(SCENE)
        return found

    (wanted,) = asyncio.run(people())
    (found,) = told["found"]
    parts = {"pose": wanted.pose, "face": wanted.face, "leftHand": wanted.left_hand, "rightHand": wanted.right_hand}
    assert sum(part is not None for part in parts.values()) >= 3
    for name, part in parts.items():
        assert (found[name] is None) == (part is None)
        if part is not None:
            points = np.ravel([[point[axis] for axis in "xyz"] for point in found[name]["landmarks"]])
            # Three models, one behind the other, each make more of what two builds of the kernels round apart.
            np.testing.assert_allclose(points, part.landmarks.xyz, rtol=1e-3, atol=0.2)


def test_a_package_of_two_models_runs_in_python_and_is_no_single_module() -> None:
    kind = tasks.HandLandmarker
    first, second = detector(kind.family.layouts[0]), points_of(kind.kinds[0])
    options: Any = {"task": "hand-landmarks", "task_options": {"detector": first}}
    package = asyncio.run(compile_model(second, backend="wasm", builds=("simd128",), threads=False, **options))
    with asyncio.run(webinfer.load(package, backend="wasm")) as session:
        assert [info.name for info in session.inputs] == ["picture", "rotation", "turn", "shift"]
    with pytest.raises(webinfer.InputError, match="more than one model"):
        asyncio.run(compile_wasm(second, **options))


def saved(name: str, inputs: dict[str, list[int]], nodes: list[Any], outputs: list[str], **constants: Any) -> bytes:
    """An ONNX file of these nodes."""
    info, real = helper.make_tensor_value_info, TensorProto.FLOAT
    tensors = [numpy_helper.from_array(np.asarray(value), each) for each, value in constants.items()]
    ends = [info(each, real, shape) for each, shape in inputs.items()], [info(each, real, None) for each in outputs]
    model = helper.make_model(
        helper.make_graph(nodes, name, *ends, tensors), opset_imports=[helper.make_opsetid("", 13)], ir_version=8
    )
    return bytes(model.SerializeToString())


def seen() -> list[Any]:
    """Nodes that make [1, 64] of a picture."""
    return [
        helper.make_node("Reshape", ["picture", "cells"], ["blocks"]),
        helper.make_node("ReduceMean", ["blocks"], ["means"], axes=[1, 3], keepdims=0),
        helper.make_node("Reshape", ["means", "row"], ["seen"]),
    ]


def bundle() -> bytes:
    """MediaPipe's bundle with small models: two hands, each with the points and the gesture that its crop decides."""
    random = np.random.default_rng(4)
    shapes = {"cells": np.array([8, 24, 8, 72]), "row": np.array([1, 64])}
    boxes, scores = np.zeros((1, 2016, 18), np.float32), np.full((1, 2016, 1), -50, np.float32)
    for anchor, score in ((500, 1.0), (1500, 3.0)):
        boxes[0, anchor] = [0, 0, 64, 48, *random.uniform(-32, 32, 14)]
        scores[0, anchor] = score
    nodes = [
        *seen(), helper.make_node("ReduceMean", ["seen"], ["mean"], axes=[1], keepdims=0),
        helper.make_node("Mul", ["mean", "zero"], ["nothing"]),
        helper.make_node("Add", ["boxes", "nothing"], ["y0"]), helper.make_node("Add", ["scores", "nothing"], ["y1"]),
    ]  # fmt: skip
    palms = saved(
        "palms", {"picture": [1, 192, 192, 3]}, nodes, ["y0", "y1"], boxes=boxes, scores=scores, zero=np.float32(0),
        **shapes,
    )  # fmt: skip
    numbers, nodes = dict[str, Any](), seen()
    for number, size in enumerate((63, 1, 1, 63)):
        numbers[f"w{number}"] = random.normal(0, 20 if size > 1 else 0.2, (64, size)).astype(np.float32)
        numbers[f"b{number}"] = np.full((1, size), 0.5, np.float32)
        nodes += [
            helper.make_node("MatMul", ["seen", f"w{number}"], [f"m{number}"]),
            helper.make_node("Add", [f"m{number}", f"b{number}"], [f"y{number}"]),
        ]
    shapes["cells"] = np.array([8, 28, 8, 84])
    hands = saved(
        "hands", {"picture": [1, 224, 224, 3]}, nodes, [f"y{i}" for i in range(4)], **numbers, **shapes
    )  # fmt: skip
    weights = {f"w{i}": random.normal(0, 1, (size, 5)).astype(np.float32) for i, size in enumerate((63, 1, 63))}
    nodes = [
        helper.make_node("Reshape", ["hand", "flat"], ["r0"]), helper.make_node("MatMul", ["r0", "w0"], ["m0"]),
        helper.make_node("MatMul", ["handedness", "w1"], ["m1"]), helper.make_node("Add", ["m0", "m1"], ["sum"]),
        helper.make_node("Reshape", ["world_hand", "flat"], ["r2"]), helper.make_node("MatMul", ["r2", "w2"], ["m2"]),
        helper.make_node("Add", ["sum", "m2"], ["embedding"]),
    ]  # fmt: skip
    given = {"hand": [1, 21, 3], "handedness": [1, 1], "world_hand": [1, 21, 3]}
    embedder = saved("embedder", given, nodes, ["embedding"], flat=np.array([1, 63]), **weights)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Softmax", ["m"], ["y"], axis=1)]
    canned = saved("canned", {"x": [1, 5]}, nodes, ["y"], w=random.normal(0, 1, (5, 8)).astype(np.float32))
    return gesture_models.bundle(
        hand_landmarker={"hand_detector.tflite": palms, "hand_landmarks_detector.tflite": hands},
        hand_gesture_recognizer={"gesture_embedder.tflite": embedder, "canned_gesture_classifier.tflite": canned},
    )


def test_gestures_are_the_engines(node: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"most": 2, "min_presence_score": 0.01}
    told = played(bundle(), "gesture-recognizer", node, tmp_path, SCENE, **options)

    async def hands() -> list[Any]:
        with await tasks.GestureRecognizer.create(bundle(), backend="wasm", **options) as one:
            found: list[Any] = await one.detect(SCENE)
        return found

    wanted = asyncio.run(hands())
    assert (told["task"], len(told["found"])) == ("gesture-recognition", len(wanted))
    assert len(wanted) == 2
    for found, one in zip(told["found"], wanted, strict=True):
        assert (found["gesture"], found["handedness"]) == (one.gesture, one.handedness)
        assert found["gestureScore"] == pytest.approx(one.gesture_score, abs=1e-4)
