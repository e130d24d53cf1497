"""Films in the player: what is found is followed from frame to frame as the engine follows it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from build_scripts.tests.in_node import PLAYER, answer_of, node
from build_scripts.tests.test_player_landmarks import bundle, detector, points_of
from build_scripts.tests.test_player_tasks import mapping
from webinfer import tasks
from webinfer.host import current
from webinfer.models.layouts import BLAZEFACE_SHORT_RANGE, BODY
from webinfer.package import compile_model
from webinfer.tasks.base import Box
from webinfer.tasks.holistic_landmarker import HandRecropper
from webinfer.tasks.landmarks import Landmarks
from webinfer.tasks.smoothing import IN_SPACE, ON_SCREEN, Smoothing, SmoothTrack
from webinfer.tasks.tracking import Tracker

__all__ = ["node"]  # a fixture
FILM = """
import { readFileSync } from "node:fs";
const [player, file, folder] = process.argv.slice(2);
const { load } = await import(player);
class ImageData {
  constructor(data, width, height) { Object.assign(this, { data, width, height }); }
}
const model = await load(new Uint8Array(readFileSync(file)), { backend: "wasm" });
const found = [];
for (const [i, [width, height, time, numbers]] of JSON.parse(readFileSync(`${folder}/frames`)).entries()) {
  const frame = new ImageData(new Uint8ClampedArray(readFileSync(`${folder}/${i}.rgba`)), width, height);
  found.push(await model.track(frame, time, numbers));
}
await model.reset();
const told = (_, value) => (ArrayBuffer.isView(value) ? Array.from(value) : value);
process.stdout.write(JSON.stringify({ task: model.task, found }, told));
"""
# Of each frame: how far the scene is moved, its time, and the task's numbers where they are others. One moves on at the
# same time, one goes back, one loses everything; the last ones have another size.
FRAMES: list[tuple[int, float, dict[str, float]]] = [
    (0, 0, {}), (1, 33, {}), (2, 66, {}), (3, 66, {}), (3, 100, {"min_presence_score": 1}), (4, 133, {}),
    (5, 166, {"most": 1}), (6, 200, {}), (7, 20, {}), (8, 53, {}), (9, 90, {}), (10, 120, {}),
]  # fmt: skip


def scene(moved: int, small: bool = False) -> Any:
    """A smooth picture: where a crop lies a little elsewhere, it shows little else."""
    height, width = (80, 160) if small else (120, 200)
    y, x = np.mgrid[:height, :width]
    waves = [np.sin((x + moved) / 40 + c) + np.cos((y + 2 * moved) / 30 - c) for c in range(3)]
    return np.stack([127 + 60 * wave for wave in waves], axis=2).astype(np.uint8)


def filmed(model: Any, task: str, node: str, folder: Path, frames: Any = FRAMES, **options: Any) -> list[Any]:
    """What the player tells of each frame."""
    made = compile_model(model, backend="wasm", builds=("simd128",), threads=False, task=task, task_options=options)
    (folder / "m.webinfer").write_bytes(asyncio.run(made))
    rows = []
    for i, (moved, time, numbers) in enumerate(frames):
        picture = scene(moved, i >= len(frames) - 2)
        height, width, _ = picture.shape
        opaque = np.concatenate([picture, np.full((height, width, 1), 255, np.uint8)], axis=2)
        (folder / f"{i}.rgba").write_bytes(opaque.tobytes())
        rows.append([width, height, time, numbers])
    (folder / "frames").write_text(json.dumps(rows))
    (folder / "film.mjs").write_text(FILM)
    found: list[Any] = answer_of([node, folder / "film.mjs", PLAYER, folder / "m.webinfer", folder])["found"]
    return found


async def wanted(making: Any, frames: Any = FRAMES) -> list[Any]:
    """What the engine tells of each frame."""
    found = []
    with await making as task:
        usual = task.min_score, getattr(task, "most", None)
        for i, (moved, time, numbers) in enumerate(frames):
            task.min_score = numbers.get("min_presence_score", usual[0])
            task.most = numbers.get("most", usual[1])
            found.append(await task.detect_for_video(scene(moved, i >= len(frames) - 2), time))
    return found


def same(told: dict[str, Any], one: Any, tolerance: float = 2e-2) -> None:
    """Landmarks in pixels, in metres, how visible they are, and the box: all of them are smooth."""
    box = [told["box"][side] for side in ("left", "top", "width", "height")]
    np.testing.assert_allclose(box, [one.box.left, one.box.top, one.box.width, one.box.height], atol=tolerance)
    for name in ("landmarks", "world") if "world" in told else ("landmarks",):
        points, theirs = told[name], getattr(one, name)
        xyz = np.ravel([[point[axis] for axis in "xyz"] for point in points])
        np.testing.assert_allclose(xyz, theirs.xyz, rtol=1e-3, atol=tolerance)
        if "visibility" in points[0]:
            np.testing.assert_allclose([p["visibility"] for p in points], [m.visibility for m in theirs], atol=1e-4)


@pytest.mark.parametrize(
    ("made", "smooth"),
    [(tasks.FaceLandmarker, True), (tasks.FaceLandmarker, False), (tasks.HandLandmarker, True),
     (tasks.PoseLandmarker, True)],
    ids=["face", "face-as-it-is", "hand", "pose"],
)  # fmt: skip
def test_landmarks_of_films_are_the_engines(made: Any, smooth: bool, node: str, tmp_path: Path) -> None:
    first, second = detector(made.family.layouts[0]), points_of(made.kinds[0], 0.5)
    options: dict[str, Any] = {"detector": first, "most": 2, "min_presence_score": 0.1, "smooth": smooth}
    told = filmed(second, made.name, node, tmp_path, **options)
    theirs = asyncio.run(wanted(made.create(second, backend="wasm", **options)))
    assert [[one["id"] for one in frame] for frame in told] == [[one.id for one in frame] for frame in theirs]
    assert [len(frame) for frame in theirs].count(0) == 1
    assert max(len(frame) for frame in theirs) == 2
    for frame, found in zip(told, theirs, strict=True):
        for mine, one in zip(frame, found, strict=True):
            same(mine, one)


def test_gestures_of_films_are_the_engines(node: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"most": 2, "min_presence_score": 0.01}
    told = filmed(bundle(), "gesture-recognizer", node, tmp_path, FRAMES[:3], **options)
    theirs = asyncio.run(wanted(tasks.GestureRecognizer.create(bundle(), backend="wasm", **options), FRAMES[:3]))
    assert [[(one["id"], one["gesture"]) for one in frame] for frame in told] == [
        [(one.id, one.gesture) for one in frame] for frame in theirs
    ]
    assert all(theirs)


def test_persons_of_films_are_the_engines(node: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "pose_detector": detector(BODY), "face": points_of(tasks.FaceLandmarker.kinds[0], 0.2),
        "face_detector": detector(BLAZEFACE_SHORT_RANGE), "hand": points_of(tasks.HandLandmarker.kinds[0], 0.2),
        "hand_recrop": points_of(HandRecropper.kinds[0], 0.2), "min_presence_score": 0.1,
        "output_segmentation_masks": True,
    }  # fmt: skip
    model = points_of(tasks.PoseLandmarker.kinds[0], 0.2)
    frames = [row for row in FRAMES if not row[2]]
    told = filmed(model, "holistic-landmarker", node, tmp_path, frames, **options)

    async def people() -> list[Any]:
        with await tasks.HolisticLandmarker.create(model, backend="wasm", **options) as task:
            last = len(frames) - 2
            return [await task.detect_for_video(scene(row[0], i >= last), row[1]) for i, row in enumerate(frames)]

    theirs = asyncio.run(people())
    names = {"pose": "pose", "face": "face", "leftHand": "left_hand", "rightHand": "right_hand"}
    for (mine,), (one,) in zip(told, theirs, strict=True):
        assert mine["id"] == one.id
        for name, part in names.items():
            assert (mine[name] is None) == (getattr(one, part) is None)
            if mine[name] is not None:
                same(mine[name], getattr(one, part), 0.2)
        mask = mine["pose"]["mask"]
        assert (mask["width"], mask["height"]) == (one.pose.mask.width, one.pose.mask.height)
        np.testing.assert_allclose(mask["values"], one.pose.mask.values, atol=1e-3)
    assert np.ptp(theirs[0][0].pose.mask.values) > 0.4, "the mask is not of one value"


def test_boxes_of_films_keep_their_ids(node: str, tmp_path: Path) -> None:
    frames = [(row[0], row[1], {}) for row in FRAMES]
    options: dict[str, Any] = {"min_score": 0.3}
    first = detector(BLAZEFACE_SHORT_RANGE)
    told = filmed(first, "face-detector", node, tmp_path, frames, **options)
    theirs = asyncio.run(wanted(tasks.FaceDetector.create(first, backend="wasm", **options), frames))
    assert [[one["id"] for one in frame] for frame in told] == [[one.id for one in frame] for frame in theirs]
    assert len({one.id for frame in theirs for one in frame}) > 2, "a film that goes back begins anew"


def test_a_task_without_things_follows_none(node: str, tmp_path: Path) -> None:
    program = """
    import { readFileSync } from "node:fs";
    const { load } = await import(process.argv[2]);
    class ImageData { constructor(width, height) { Object.assign(this, { data: new Uint8ClampedArray(4 * width * height), width, height }); } }
    const model = await load(new Uint8Array(readFileSync(process.argv[3])), { backend: "wasm" });
    const told = [];
    for (const given of [[new ImageData(4, 4), 0], [5, 0], [new ImageData(4, 4), NaN]]) {
      await model.track(...given).catch(({ name, code, message }) => told.push([name, code, message]));
    }
    process.stdout.write(JSON.stringify(told));
    """  # noqa: E501
    options: Any = {"builds": ("simd128",), "threads": False, "task": "depth-estimator"}
    made = compile_model(mapping(24), backend="wasm", **options)
    (tmp_path / "m.webinfer").write_bytes(asyncio.run(made))
    (tmp_path / "film.mjs").write_text(program)
    told = answer_of([node, tmp_path / "film.mjs", PLAYER, tmp_path / "m.webinfer"])
    assert [(name, code) for name, code, _ in told] == [("PlayerError", "input")] * 3
    for (_, _, message), words in zip(told, ("follows nothing", "not a frame", "NaN"), strict=True):
        assert words in message


ALONE = """
import { readFileSync } from "node:fs";
const [folder, cases] = process.argv.slice(2);
const { SmoothTrack } = await import(`${folder}/smoothing.js`);
const { Tracker } = await import(`${folder}/tracking.js`);
const { boxes, cutoffs, points } = JSON.parse(readFileSync(cases));
const tracker = new Tracker();
const ids = boxes.map(([time, frame, kinds]) => tracker.ids(frame, time, kinds));
const track = new SmoothTrack(cutoffs);
const smooth = points.map(([time, parts, visible, size]) => {
  const found = track.smoothed(parts, time, size);
  return [Object.values(found).map((part) => [...part]), track.visible("landmarks", visible)];
});
process.stdout.write(JSON.stringify({ ids, smooth }));
"""


def test_ids_and_the_filter_are_the_engines_over_many_frames(node: str, tmp_path: Path) -> None:
    random, tracker = np.random.default_rng(8), Tracker()
    boxes, ids, time = list[Any](), list[Any](), 0.0
    places, speeds = random.uniform(0, 300, (6, 2)), random.normal(0, 4, (6, 2))
    for _ in range(60):
        time += float(random.choice([33, 33, 33, 0, 400, 1200, -500], p=[0.3, 0.3, 0.2, 0.05, 0.05, 0.05, 0.05]))
        places += speeds
        seen = random.permutation(6)[: random.integers(2, 7)]
        frame = [Box(*map(float, places[i]), 40.0 + 3 * int(i), 50.0) for i in seen]
        kinds = [int(i) % 2 for i in seen]
        ids.append(tracker.ids(frame, time, kinds))
        plain = [{side: getattr(box, side) for side in ("left", "top", "width", "height")} for box in frame]
        boxes.append([time, plain, kinds])

    points, hands, time = list[Any](), list[Any](), 0.0
    numbers = random.uniform(0, 200, 30).astype(np.float32)
    for step in (0, 33, 33, 0, 40, -60, 33, 33, 500):
        time += step
        numbers = (numbers + random.normal(0, 2, 30)).astype(np.float32)
        sure = random.uniform(0, 1, 20).astype(np.float32)
        parts = {"landmarks": Landmarks(numbers, sure.tolist()), "world": Landmarks(numbers / 100, sure.tolist())}
        hands.append(tasks.HandLandmarks(Box(0, 0, 1, 1), 1.0, "Left", 1.0, **parts))
        points.append([time, {name: part.xyz.tolist() for name, part in parts.items()}, sure[::2].tolist(), 120.0])
    cutoffs = {"landmarks": ON_SCREEN, "world": IN_SPACE}

    async def filtered() -> list[Any]:
        track = SmoothTrack(Smoothing(current(), cutoffs))
        return [await track.smoothed(one, row[0], row[3]) for one, row in zip(hands, points, strict=True)]

    plain = {name: {"least": c.least, "slope": c.slope, "scaled": c.scaled} for name, c in cutoffs.items()}
    (tmp_path / "cases").write_text(json.dumps({"boxes": boxes, "cutoffs": plain, "points": points}))
    (tmp_path / "alone.mjs").write_text(ALONE)
    folder = PLAYER.rpartition("/")[0] + "/tasks"
    told = answer_of([node, tmp_path / "alone.mjs", folder, tmp_path / "cases"])
    assert told["ids"] == ids
    for ((screen, space), visible), one in zip(told["smooth"], asyncio.run(filtered()), strict=True):
        np.testing.assert_allclose(screen, one.landmarks.xyz, rtol=1e-5, atol=1e-3)
        np.testing.assert_allclose(space, one.world.xyz, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(visible, [mark.visibility for mark in one.landmarks], atol=1e-6)
