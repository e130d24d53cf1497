"""Tasks in packages: what the player tells is what the engine tells, on models that see what was painted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.tasks import test_audio_classifier as sound_models
from tests.tasks import test_body_segmenter as body_models
from tests.tasks import test_image_embedder as embedding_models
from tests.tasks import test_multi_pose as pose_models
from tests.tasks import test_objects as object_models
from tests.tasks import test_yolo as yolo_models

import webinfer
from build_scripts.tests.in_node import PLAYER, answer_of, node
from webinfer import tasks
from webinfer.errors import InputError, ModelFormatError
from webinfer.package import compile_model
from webinfer.tasks.depth_estimator import DEPTH

__all__ = ["node"]  # a fixture
RESULTS = """
import { readFileSync } from "node:fs";
const [player, file, pixels, width, height] = process.argv.slice(2);
const { load } = await import(player);
class ImageData {
  constructor(data, width, height) { Object.assign(this, { data, width, height }); }
}
const model = await load(new Uint8Array(readFileSync(file)), { backend: "wasm" });
const picture = new ImageData(new Uint8ClampedArray(readFileSync(pixels)), Number(width), Number(height));
const found = await model.run(picture);
const told = (_, value) => (ArrayBuffer.isView(value) ? Array.from(value) : value);
process.stdout.write(JSON.stringify({ task: model.task, found }, told));
"""
WIDTH, HEIGHT = 50, 30  # of the picture; it is stretched to the model's input
SCENE = np.random.default_rng(5).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)


def mapping(side: int) -> webinfer.GraphBuilder:
    """A model that makes a map of one channel, 0..1, of a picture."""
    builder = webinfer.GraphBuilder("map")
    picture = builder.input("picture", (1, side, side, 3))
    weights = np.array([0.5, -1.0, 0.75], np.float32).reshape(3, 1)
    flat = builder.node("reshape", picture, shape=(side * side, 3))
    seen = builder.node("sigmoid", builder.node("matmul", flat, weights))
    builder.output(builder.node("reshape", seen, shape=(1, side, side, 1)), "map")
    return builder


async def compared(task: str, side: int) -> Any:
    """The engine's map of the model's own size."""
    if task == "selfie-segmenter":
        with await tasks.SelfieSegmenter.create(mapping(side), full_size=False, backend="wasm") as segmenter:
            return (await segmenter.segment(SCENE)).array()
    made = tasks.BackgroundRemover if task == "background-remover" else tasks.DepthEstimator
    with await made.create(mapping(side), backend="wasm") as one:
        outputs, *_ = await one._feeder.run(SCENE, None, one.spec, lambda crop: {})
        return outputs[DEPTH if made is tasks.DepthEstimator else "matte"].numpy()[0, :, :, 0]


def played(model: Any, task: str, node: str, folder: Path, scene: Any = SCENE, **options: Any) -> dict[str, Any]:
    """The task of a package and what the player finds in a picture."""
    made = compile_model(model, backend="wasm", builds=("simd128",), threads=False, task=task, task_options=options)
    (folder / "m.webinfer").write_bytes(asyncio.run(made))
    height, width, _ = scene.shape
    opaque = np.concatenate([scene, np.full((height, width, 1), 255, np.uint8)], axis=2)
    (folder / "pixels").write_bytes(opaque.tobytes())
    (folder / "results.mjs").write_text(RESULTS)
    files = folder / "m.webinfer", folder / "pixels"
    answer: dict[str, Any] = answer_of([node, folder / "results.mjs", PLAYER, *files, str(width), str(height)])
    return answer


@pytest.mark.parametrize(
    ("task", "name", "side"),
    [("selfie-segmenter", "segmentation", 256), ("background-remover", "background-removal", 24),
     ("depth-estimator", "depth-estimation", 24)],
)  # fmt: skip
def test_a_mask_is_the_engines(task: str, name: str, side: int, node: str, tmp_path: Path) -> None:
    told = played(mapping(side), task, node, tmp_path)
    (mask,) = told["found"]
    assert (told["task"], mask["width"], mask["height"]) == (name, side, side)
    wanted = asyncio.run(compared(task, side))
    # The engine runs on relaxed kernels, whose multiply-add rounds once: a few units in the last place.
    np.testing.assert_allclose(np.array(mask["values"]).reshape(side, side), wanted, atol=2e-6)
    assert np.ptp(wanted) > 0.2, "the map shows the picture"


def boxed(found: Any) -> list[float]:
    return [found.box.left, found.box.top, found.box.width, found.box.height, found.score]


def told_box(found: dict[str, Any]) -> list[float]:
    return [*(found["box"][name] for name in ("left", "top", "width", "height")), found["score"]]


@pytest.mark.parametrize("options", [{}, {"min_score": 0.2, "most": 2, "keep_aspect": True}], ids=["plain", "options"])
def test_objects_are_the_engines(options: dict[str, Any], node: str, tmp_path: Path) -> None:
    labels = object_models.LABELS
    told = played(object_models.post_processed(), "object-detector", node, tmp_path, labels=labels, **options)
    wanted = object_models.found(object_models.post_processed(), **options)  # in a wall of another size
    scale = np.array([WIDTH / 200, HEIGHT / 100] * 2 + [1])
    if options:
        with asyncio.run(tasks.ObjectDetector.create(object_models.post_processed(), labels=labels, **options)) as task:
            wanted, scale = asyncio.run(task.detect(SCENE)), np.ones(5)
    assert told["task"] == "object-detection"
    assert [row["label"] for row in told["found"]] == [one.category.label for one in wanted]
    assert len(wanted) == 2
    for row, one in zip(told["found"], wanted, strict=True):
        np.testing.assert_allclose(told_box(row), np.array(boxed(one)) * scale, rtol=1e-5)


TURNED = [
    (32, 16, 12, 4, 0.9, 0.1, 0.8), (32.4, 16, 12, 4, 0.8, 0.1, 0.8), (32, 16, 12, 4, 0.7, 0, -0.8),
    (30, 14, 12, 4, 0.1, 0.6, 0.8),
]  # fmt: skip
PROTOTYPES = np.random.default_rng(6).normal(0, 4, (1, 2, 8, 16)).astype(np.float32)
YOLOS = {
    "detect": ([np.array(yolo_models.RAW).T[None]], {}),
    "final": ([[[(27, 12, 37, 20, 0.5, 0), (28, 12, 60, 40, 0.4, 1)]]], {"task": "detect", "end2end": "True"}),
    "pose": ([np.array([(32, 16, 10, 8, 0.9, 0.1, 30, 14, 0.7, 60, 18, 0.2)]).T[None]], {"kpt_shape": "[2, 3]"}),
    "segment": ([np.array([(32, 16, 16, 8, 0.9, 0, 1, 0), (32, 16, 16, 99, 0, 0.8, 1, -1)]).T[None], PROTOTYPES], {}),
    "obb": ([np.array(TURNED).T[None]], {}),
}


@pytest.mark.parametrize("name", YOLOS)
@pytest.mark.parametrize("size", [(30, 50), (66, 128)], ids=["low", "high"])
def test_yolos_are_the_engines(name: str, size: tuple[int, int], node: str, tmp_path: Path) -> None:
    tables, metadata = YOLOS[name]
    scene = np.full((*size, 3), 37, np.uint8)
    model = yolo_models.saved(*tables, corner=name == "final", **{"task": name, **metadata})
    options: dict[str, Any] = {"min_score": 0.3, "most": 3}
    told = played(model, "object-detector", node, tmp_path, scene, **options)["found"]
    with asyncio.run(tasks.ObjectDetector.create(model, backend="wasm", **options)) as task:
        wanted = asyncio.run(task.detect(scene))
    assert [row["label"] for row in told] == [one.category.label for one in wanted]
    assert len(wanted) > 0
    for row, one in zip(told, wanted, strict=True):
        np.testing.assert_allclose(told_box(row), boxed(one), rtol=1e-5, atol=1e-4)
        np.testing.assert_allclose(np.ravel(row.get("points", [])), np.ravel(one.keypoints), rtol=1e-5)
        np.testing.assert_allclose(np.ravel(row.get("corners", [])), np.ravel(one.corners), rtol=1e-5, atol=1e-4)
        assert row.get("rotation", 0) == pytest.approx(one.rotation)
        assert ("mask" in row) == (one.mask is not None) == (name == "segment")
        if one.mask is not None:
            assert (row["mask"]["width"], row["mask"]["height"]) == (one.mask.width, one.mask.height)
            np.testing.assert_allclose(row["mask"]["values"], one.mask.values, atol=1e-5)
            assert max(one.mask.values) > 0.5


def test_a_yolos_classes_are_those_of_the_pictures_middle(node: str, tmp_path: Path) -> None:
    model = yolo_models.saved([[0.1, 0.2, 0.3, 0.4, 0.2]], task="classify", corner=True, names=str([*"abcde"]))
    told = played(model, "image-classifier", node, tmp_path, most=3)["found"]
    with asyncio.run(tasks.ImageClassifier.create(model, backend="wasm", most=3)) as task:
        wanted = asyncio.run(task.classify(SCENE))
    assert [(row["label"], row["index"]) for row in told] == [(one.label, one.index) for one in wanted]
    np.testing.assert_allclose([row["score"] for row in told], [one.score for one in wanted], atol=1e-5)


def test_bodies_of_several_people_are_the_engines(node: str, tmp_path: Path) -> None:
    told = played(pose_models.posenet(pose_models.two(), True), "multi-pose-detector", node, tmp_path)
    wanted = pose_models.bodies(pose_models.posenet(pose_models.two(), True), SCENE)
    assert (told["task"], len(wanted)) == ("multi-pose", 2)
    compared_bodies(told["found"], wanted)


def compared_bodies(told: list[dict[str, Any]], wanted: list[Any]) -> None:
    for row, body in zip(told, wanted, strict=True):
        np.testing.assert_allclose(told_box(row), boxed(body), rtol=1e-4, atol=1e-3)
        points = [row["keypoints"][name] for name in pose_models.NAMES]
        np.testing.assert_allclose(points, body.landmarks.points(), atol=1e-3)
        sure = [row["confidences"][name] for name in pose_models.NAMES]
        np.testing.assert_allclose(sure, [mark.visibility for mark in body.landmarks], atol=1e-5)


def test_masks_of_bodies_are_the_engines(node: str, tmp_path: Path) -> None:
    source = body_models.model(body_models.maps(body_models.couple()), body_models.PICTURE)
    told = played(source, "body-segmenter", node, tmp_path, body_models.WALL)
    mask = body_models.segmented(source)
    (found,) = told["found"]
    assert (told["task"], len(mask.bodies)) == ("body-segmentation", 2)
    assert found["names"] == list(tasks.body_segmenter.PARTS)
    compared_bodies(found["bodies"], mask.bodies)
    # The engine's masks are as large as the picture, the player's as the model's maps: compared on the coarser grid.
    rows, columns = (
        np.rint(np.linspace(0, size - 1, found[name])).astype(int)
        for size, name in zip(body_models.SIZE, ("height", "width"), strict=True)
    )
    for name, wanted in zip(("values", "parts", "people"), body_models.planes(mask), strict=True):
        ours = np.array(found[name]).reshape(found["height"], found["width"])
        theirs = wanted[np.ix_(rows, columns)]
        assert np.abs(ours - theirs).max() < 1e-4 if name == "values" else (ours == theirs).mean() > 0.97
    assert {*found["people"]} == {0, 1, 2}


def test_vectors_are_the_engines(node: str, tmp_path: Path) -> None:
    told = played(embedding_models.classifier(), "image-embedder", node, tmp_path)
    with asyncio.run(tasks.ImageEmbedder.create(embedding_models.classifier(), backend="wasm")) as task:
        wanted = asyncio.run(task.embed(SCENE)).values
    assert told["task"] == "image-embedding"
    np.testing.assert_allclose(told["found"][0]["values"], wanted, atol=1e-5)
    assert np.ptp(wanted) > 0.1


SOUNDS = """
import { readFileSync } from "node:fs";
const [player, file, pcm] = process.argv.slice(2);
const { load } = await import(player);
const model = await load(new Uint8Array(readFileSync(file)), { backend: "wasm" });
const samples = new Float32Array(new Uint8Array(readFileSync(pcm)).buffer);
class AudioBuffer {
  numberOfChannels = 2;
  sampleRate = 16000;
  getChannelData(i) { return samples.map((sample) => sample + (i ? 0.05 : -0.05)); }
}
const found = await model.run({ samples, rate: 16000 }, { min_score: 0.6 });
const mixed = await model.run(new AudioBuffer(), { min_score: 0.6 });
const faster = await model.run({ samples, rate: 44100 }, { min_score: 0.6 });
const { scores } = await model.run(samples.slice(0, 400));
process.stdout.write(JSON.stringify({ task: model.task, found, mixed, faster, scores: Array.from(scores.data) }));
"""


def loudness_file() -> bytes:
    """The model of the classifier's own tests as a file that brings its labels."""
    numbers = {"minus": [-1.0], "one": [1.0], "rest": [0.4]}
    nodes = [
        helper.make_node("ReduceMean", ["waveform"], ["mean"], axes=[0], keepdims=1),
        helper.make_node("Mul", ["mean", "minus"], ["less"]),
        helper.make_node("Add", ["less", "one"], ["quiet"]),
        helper.make_node("Concat", ["quiet", "mean", "rest"], ["scores"], axis=0),
    ]
    graph = helper.make_graph(
        nodes, "loudness",
        [helper.make_tensor_value_info("waveform", TensorProto.FLOAT, [sound_models.WINDOW])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [3])],
        [numpy_helper.from_array(np.array(value, np.float32), name) for name, value in numbers.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    helper.set_model_props(model, {"about": "one line", "labels": "\n".join(sound_models.LABELS)})
    return bytes(model.SerializeToString())


def test_sounds_are_the_engines_and_labels_are_the_files(node: str, tmp_path: Path) -> None:
    levels = np.array([0.9, 0.8, 0.1, 0.1, 0.55, 1.0], np.float32)
    samples = np.repeat(levels, sound_models.WINDOW)[: 5 * sound_models.WINDOW + 100]  # the last window is cut short
    made = compile_model(loudness_file(), backend="wasm", builds=("simd128",), threads=False, task="audio-classifier")
    (tmp_path / "m.webinfer").write_bytes(asyncio.run(made))
    (tmp_path / "pcm").write_bytes(samples.tobytes())
    (tmp_path / "sounds.mjs").write_text(SOUNDS)
    told = answer_of([node, tmp_path / "sounds.mjs", PLAYER, tmp_path / "m.webinfer", tmp_path / "pcm"])
    with asyncio.run(tasks.AudioClassifier.create(loudness_file(), backend="wasm", min_score=0.6)) as task:
        wanted = asyncio.run(task.classify(samples, 16000))
        faster = asyncio.run(task.classify(samples, 44100))
    assert told["task"] == "audio-classification"
    assert (
        [sound["label"] for sound in told["found"]] == [sound.label for sound in wanted] == ["loud", "quiet", "quiet"]
    )
    for found, sounds in ((told["found"], wanted), (told["mixed"], wanted), (told["faster"], faster)):
        times = [(sound["start"], sound["end"], sound["score"]) for sound in found]
        np.testing.assert_allclose(times, [(one.start, one.end, one.score) for one in sounds], atol=1e-5)
    np.testing.assert_allclose(told["scores"], [0.1, 0.9, 0.4], atol=1e-5)


def test_what_is_no_model_of_the_task_is_refused() -> None:
    with pytest.raises(ModelFormatError, match="not a selfie segmentation model"):
        asyncio.run(compile_model(mapping(24), backend="wasm", task="selfie-segmenter"))
    with pytest.raises(InputError, match=r"cannot be compiled into a package; .*depth-estimator") as refused:
        asyncio.run(compile_model(mapping(24), backend="wasm", task="text-generation"))
    assert {*tasks.TASKS} <= {*str(refused.value).split("those that can are ")[1].split(", ")}, "all of the list can"
