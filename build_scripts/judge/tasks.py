"""`judge tasks`: what our tasks see in photos beside MediaPipe's solutions, and in words beside other judges."""

import argparse
import asyncio
import json
import os
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from build_scripts.errors import BuildError
from build_scripts.judge import decoded, faces, films, tasks_in_page, whole_pictures, words, yolo_heads, zero_shot
from build_scripts.judge.apart import answers_of, environment_step
from build_scripts.judge.backends import inference_backends
from build_scripts.judge.rows import Row
from build_scripts.paths import BUILD, ENGINE, IMAGES, MODELS, settings
from build_scripts.setup.task_models import package_step, task_models_step
from build_scripts.steps import Step, run_steps

ENVIRONMENT = BUILD / "judges" / "mediapipe"
SCRIPT = "mediapipe_answers.py"
FARTHEST = 0.1  # % of the width of what was found, mean of all landmarks
FARTHEST_OF_PERSON = 1.0  # the same, of parts whose regions follow from landmarks and not from detectors
LEAST_OVERLAP = 0.98  # of masks
NEAR_GESTURE = 1e-3  # of a score
NEAR_MATRIX = 1e-4  # of a face's distance
LIMIT_S, A_PHOTO_S = 600, 20
GESTURES = MODELS / "gesture_recognizer.task"
GEOMETRY = ENGINE / "tasks" / "face_geometry.py"
GROUPS = ("faces", "photos", "films", "decoded", "zero-shot", *words.JUDGES)
PHOTOS = ("people", "street")  # packages whose photos faces are looked for in, besides

Array = np.ndarray[Any, Any]


def run(argv: list[str]) -> int:
    """Prints the table; 1 if anything is farther from the judge's answer than it may be."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts judge tasks")
    parser.add_argument("--images", type=Path, default=IMAGES, help="a folder of photos; the sample photo if left out")
    parser.add_argument("--backend", default="wasm", choices=inference_backends())
    parser.add_argument("--json", type=Path, help="also write the table here")
    parser.add_argument(
        "--page", nargs="*", metavar="TASK",
        help="compare the site's page, on wasm and webgpu, with CPython; of these tasks, all of them if none is named",
    )  # fmt: skip
    parser.add_argument(
        "--resume", action="store_true", help="with --page: rows that --json holds and that agree stand"
    )
    parser.add_argument(
        "--only",
        choices=GROUPS,
        help="one group: faces, what else MediaPipe judges in photos or films, other pictures, a kind of sound or text",
    )
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        paged = options.page is not None
        groups = [options.only] if options.only else () if paged else GROUPS
        rows = []
        if paged:
            rows += _page_rows(Path(name), options)
        if "faces" in groups:
            rows += _face_rows(Path(name), options.images, options.backend)
        if "photos" in groups:
            rows += _photo_rows(Path(name), options.images, options.backend)
        if "films" in groups:
            run_steps([task_models_step(), _environment_step()])
            os.environ["WEBINFER_MODELS"] = str(MODELS)
            rows += films.rows(Path(name), _photos(options.images), ENVIRONMENT, options.backend)
        if "decoded" in groups:
            rows += decoded.rows(_photos(options.images), options.backend)
            rows += whole_pictures.rows(_photos(options.images), options.backend)
            rows += yolo_heads.rows(_photos(options.images), options.backend)
        if "zero-shot" in groups:
            rows += asyncio.run(zero_shot.rows(Path(name), _originals(options.images), options.backend))
        if told := [group for group in groups if group in words.JUDGES]:
            rows += asyncio.run(words.rows(Path(name), options.backend, told))
    where = "in the page" if paged else f"on {options.backend}"
    if options.json:
        _write(options.json, rows)
    return _said(rows, where)


def _said(rows: Sequence[Row], where: str) -> int:
    """Prints the rows, and at the end those that are too far; 1 if there are any."""
    widths = [
        2 + max((len(text) for text in texts), default=0)
        for texts in ([r.task for r in rows], [r.sample for r in rows])
    ]
    for row in rows:
        verdict = "" if row.right else "  <- too far"
        named = f"{row.task:{widths[0]}}{row.sample:{widths[1]}}"
        print(f"{named}ours {row.ours}  judge {row.judge}  {row.distance}{verdict}")
    wrong = [row for row in rows if not row.right]
    print(f"{len(rows) - len(wrong)} of {len(rows)} agree {where}")
    for row in wrong:
        print(f"too far: {row.task}, {row.sample}: {row.distance}")
    return 1 if wrong else 0


def _write(path: Path, rows: Sequence[Row]) -> None:
    path.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def _page_rows(folder: Path, options: argparse.Namespace) -> list[Row]:
    """The rows of `--page`; what `--json` names is written after each of them, so that another run can go on."""
    known: list[Row] = []
    if options.resume:
        if options.json is None:
            raise BuildError("--resume goes on with the rows of a file; name it with --json")
        if options.json.is_file():
            known = [row for row in (Row(**fields) for fields in json.loads(options.json.read_text())) if row.right]
    keep = partial(_write, options.json) if options.json else lambda rows: None
    return tasks_in_page.rows(folder, _originals(options.images), options.page, known, keep)


def _photos(images: Path) -> list[Path]:
    photos = sorted(p for p in images.iterdir() if p.suffix.lower() in (".jpg", ".jpeg", ".png", ".bmp", ".webp"))
    if not photos:
        raise BuildError(f"{images} holds no photos (.jpg, .png, .bmp, .webp)")
    return photos


def _originals(images: Path) -> list[Path]:
    """Photos without those in WebP, which are the others' copies."""
    return [photo for photo in _photos(images) if photo.suffix != ".webp"]


def _face_rows(folder: Path, images: Path, backend: str) -> list[Row]:
    run_steps([_environment_step(), *(package_step(name, "judge_packages") for name in PHOTOS)])
    os.environ["WEBINFER_MODELS"] = str(MODELS)
    photos = {photo.name: photo for place in (images, BUILD / "photos") for photo in _photos(place)}
    return faces.rows(folder, [p for p in photos.values() if p.suffix != ".webp"], ENVIRONMENT, backend)


def _photo_rows(folder: Path, images: Path, backend: str) -> list[Row]:
    photos = _photos(images)
    run_steps([task_models_step(), package_step("gestures"), _environment_step()])
    return asyncio.run(_compared(_answers(folder, photos), folder, photos, backend))


def _environment_step() -> Step:
    requirements = (settings()["mediapipe"]["requirement"], "pillow")
    return environment_step("mediapipe", "install the judge in an environment of its own", ENVIRONMENT, requirements)


def _answers(folder: Path, photos: list[Path]) -> Any:
    output = folder / "answers.json"
    quiet = {"GLOG_minloglevel": "2"}
    limit_s = LIMIT_S + A_PHOTO_S * len(photos)
    return answers_of("MediaPipe", ENVIRONMENT, SCRIPT, output, (output, GESTURES, GEOMETRY, *photos), limit_s, quiet)


async def _compared(answers: dict[str, Any], folder: Path, photos: list[Path], backend: str) -> list[Row]:
    from webinfer.tasks import (
        FaceLandmarker,
        GestureRecognizer,
        HandLandmarker,
        HolisticLandmarker,
        PoseLandmarker,
        SelfieSegmenter,
    )

    os.environ["WEBINFER_MODELS"] = str(MODELS)
    images = {photo.name: np.array(Image.open(photo).convert("RGB")) for photo in photos}
    makers: dict[str, Callable[[], Awaitable[Any]]] = {
        "face_mesh": lambda: FaceLandmarker.create("face_mesh", backend=backend, most=4),
        "face_mesh_attention": lambda: FaceLandmarker.create("face_mesh_attention", backend=backend, most=4),
        "hands": lambda: HandLandmarker.create(backend=backend, most=4),
        "poses": lambda: PoseLandmarker.create(backend=backend, output_segmentation_masks=True),
    }
    rows = []
    for name, make in makers.items():
        task = await make()
        for photo, image in images.items():
            found = await task.detect(image)
            rows.append(_landmarks(name, photo, found, answers[photo][name], image.shape))
            if name == "poses" and found and answers[photo][name]:
                rows.append(_masks("pose mask", photo, found[0].mask.array(), np.load(folder / f"pose_{photo}.npy")))
        task.close()
    rows += [_matrices(photo, images[photo].shape, answers[photo]["face_geometry"]) for photo in images]
    with await GestureRecognizer.create(backend=backend, custom_gestures=True) as recognizer:
        for photo, image in images.items():
            rows.append(await _gestures(recognizer, photo, image.shape, answers[photo]["gestures"]))
    with await HolisticLandmarker.create(backend=backend) as task:
        for photo, image in images.items():
            people = await task.detect(image)
            for part, theirs in answers[photo]["holistic"].items():
                found = [one for person in people if (one := getattr(person, part)) is not None]
                rows.append(_landmarks(f"holistic {part}", photo, found, theirs, image.shape, FARTHEST_OF_PERSON))
    for name, model in (("selfie", "selfie_segmentation"), ("selfie_landscape", "selfie_segmentation_landscape")):
        segmenter = await SelfieSegmenter.create(model, backend=backend)
        for photo, image in images.items():
            mask = await segmenter.segment(image)
            ours = np.array(mask.values).reshape(mask.height, mask.width)
            rows.append(_masks(name, photo, ours, np.load(folder / f"{name}_{photo}.npy")))
        segmenter.close()
    return rows


async def _gestures(recognizer: Any, photo: str, shape: tuple[int, ...], theirs: list[dict[str, Any]]) -> Row:
    """What we make of the hands that MediaPipe's recognizer found: it finds other ones than its solution does."""
    from webinfer.tasks import HandGesture, Landmarks

    height, width, _ = shape
    same, gap = 0, 0.0
    for hand in theirs:
        xyz = (np.array(hand["landmarks"]) * [width, height, width]).ravel().tolist()
        points, world = Landmarks(xyz), Landmarks(np.array(hand["world"]).ravel().tolist())
        given = HandGesture(points.box, 1.0, hand["side"], hand["sure"], points, world, image_size=(width, height))
        found = await recognizer.recognize(given)
        same += hand["kind"] in (found.gesture, "")  # of the classes of its own classifier the bundle has no names
        gap = max(gap, abs(found.gesture_score - hand["score"]))
    told = f"{same} gestures are the same, {gap:.1e} of a score"
    return Row("gestures", photo, len(theirs), len(theirs), told, same == len(theirs) and gap <= NEAR_GESTURE)


def _matrices(photo: str, shape: tuple[int, ...], theirs: list[dict[str, Any]]) -> Row:
    """What we make of the landmarks of MediaPipe's face: its transformation matrix, in parts of its distance."""
    from webinfer.tasks.face_geometry import transformation_matrix

    gap = 0.0
    for face in theirs:
        ours = transformation_matrix(np.array(face["landmarks"]).ravel().tolist(), (shape[1], shape[0]))
        matrix = np.array(face["matrix"])
        gap = max(gap, float(np.abs(np.array(ours) - matrix).max() / abs(matrix[2, 3])))
    return Row("face matrices", photo, len(theirs), len(theirs), f"{gap:.1e} of the distance", gap <= NEAR_MATRIX)


def _landmarks(
    name: str, photo: str, ours: list[Any], theirs: list[Any], shape: tuple[int, ...], farthest: float = FARTHEST
) -> Row:
    size = np.array([shape[1], shape[0]])
    worst, sides = 0.0, len(ours) == len(theirs)
    for one in ours if theirs else []:
        mine = np.array(one.landmarks.xyz).reshape(-1, 3)[:, :2]
        gaps = [np.hypot(*(mine - np.array(t["landmarks"])[:, :2] * size).T).mean() for t in theirs]
        nearest = int(np.argmin(gaps))
        worst = max(worst, 100 * float(gaps[nearest]) / one.box.width)
        side = getattr(one, "handedness", None)
        sides = sides and theirs[nearest].get("kind", side) == side
    return Row(name, photo, len(ours), len(theirs), f"{worst:.2f} % of the width", sides and worst <= farthest)


def _masks(name: str, photo: str, ours: Array, theirs: Array) -> Row:
    union = int(((ours > 0.5) | (theirs > 0.5)).sum())
    overlap = int(((ours > 0.5) & (theirs > 0.5)).sum()) / union if union else 1.0
    people = int((ours > 0.5).any()), int((theirs > 0.5).any())
    return Row(name, photo, *people, f"{overlap:.4f} IoU", overlap >= LEAST_OVERLAP)
