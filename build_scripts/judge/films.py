"""Landmarks in films beside MediaPipe's: films made of photos that stand still, pan, zoom, loop, seek and change size.

Three figures a film: how far ours and MediaPipe's are from what it sees in the same frame as a picture (in % of the
thing's width, no frame left out), how much they tremble where the film stands still, how many frames they lag in a pan.
"""

import asyncio
import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from build_scripts.judge.apart import answers_of
from build_scripts.judge.rows import Row

SCRIPT, LIMIT_S = "mediapipe_films.py", 1800
FRAMES, FPS, NOISE = 24, 30, 3.0  # noise is a standard deviation of 0..255
WIDE, HIGH = 480, 360
PHOTOS = {"face_mesh": "face.jpg", "hands": "squat.bmp", "poses": "squat.bmp"}  # else the first photo of the folder
FARTHEST, FARTHER = 2.5, 1.1  # % of the width in the worst frame, or so many times as far as the judge's own film
MOST_TREMBLING, MOST_LAG = 0.02, 0.5  # more than the judge's, in % of the width; frames behind the judge's
Array = np.ndarray[Any, Any]
Times = list[float]


def _view(photo: Image.Image, x: float, y: float, zoom: float) -> Array:
    """The photo around a place (0..1), `zoom` times as large as it fits in."""
    scale = zoom * max(WIDE / photo.width, HIGH / photo.height)
    left = min(max(x * photo.width * scale - WIDE / 2, 0), photo.width * scale - WIDE) / scale
    top = min(max(y * photo.height * scale - HIGH / 2, 0), photo.height * scale - HIGH) / scale
    data = (1 / scale, 0, left, 0, 1 / scale, top)
    return np.asarray(photo.transform((WIDE, HIGH), Image.Transform.AFFINE, data, Image.Resampling.BICUBIC))


def films(photo: Image.Image) -> dict[str, tuple[list[Array], Times]]:
    """Films of a photo by name: their frames, and the milliseconds that these are shown at."""
    random, steps, step = np.random.default_rng(1), np.linspace(0, 1, FRAMES), 1000 / FPS
    straight = [step * i for i in range(FRAMES)]
    plain = _view(photo, 0.5, 0.4, 1.25)
    still = [np.clip(plain + random.normal(0, NOISE, plain.shape), 0, 255).astype(np.uint8) for _ in steps]
    pan = [_view(photo, 0.5, 0.3 + 0.3 * s, 1.25) for s in steps]
    half = FRAMES // 2
    return {
        "still": (still, straight),
        "pan": (pan, straight),
        "zoom": ([_view(photo, 0.5, 0.4, 1 + 0.4 * s) for s in steps], straight),
        "loop": (pan[:half] * 2, straight[:half] * 2),
        "seek": ([*pan[:half], *pan[: half // 2], *pan[half:]],
                 [*straight[:half], *straight[: half // 2], *straight[half:]]),
    }  # fmt: skip


def rows(folder: Path, photos: list[Path], environment: Path, backend: str) -> list[Row]:
    """A row for each task and film; the change of size, and two faces that pass each other, come from ours alone."""
    made: dict[str, tuple[list[Array], Times]] = {}
    images = photos[0].parent
    for task, name in PHOTOS.items():
        photo = Image.open(next(path for path in (images / name, *photos) if path.is_file())).convert("RGB")
        made |= {f"{task} {film}": found for film, found in films(photo).items()}
    files = []
    for name, (frames, _) in made.items():
        files.append(folder / f"{name}.npy")
        np.save(files[-1], np.stack(frames))
    output = folder / "films.json"
    quiet = {"GLOG_minloglevel": "2"}
    answers = answers_of("MediaPipe", environment, SCRIPT, output, (output, *files), LIMIT_S, quiet)
    found = [row for task in PHOTOS for row in asyncio.run(_task(task, made, answers, backend))]
    return [*found, *asyncio.run(_faces(photos, backend))]


def _makers(backend: str) -> dict[str, Callable[[], Any]]:
    from webinfer.tasks import FaceLandmarker, HandLandmarker, PoseLandmarker

    return {
        "face_mesh": lambda: FaceLandmarker.create("face_mesh", backend=backend, most=2),
        "hands": lambda: HandLandmarker.create(backend=backend, most=2),
        "poses": lambda: PoseLandmarker.create(backend=backend),
    }


async def _task(task: str, made: dict[str, Any], answers: dict[str, Any], backend: str) -> list[Row]:
    found = []
    with await _makers(backend)[task]() as tracker:
        for name in (name for name in made if name.startswith(task)):
            frames, times = made[name]
            tracker.reset()
            ours = [await tracker.detect_for_video(frame, time) for frame, time in zip(frames, times, strict=True)]
            ids = [{one.id for one in some} for some in ours]
            points = [[np.array(one.landmarks.points()) for one in some] for some in ours]
            film, pictures = (
                [[np.array(marks) for marks in some] for some in answers[name][mode]] for mode in ("film", "pictures")
            )
            found.append(_row(name, points, film, pictures, ids))
    return found


def _row(name: str, ours: Any, film: Any, pictures: Any, ids: list[set[int]]) -> Row:
    seen, judged = sum(map(len, ours)), sum(map(len, film))
    worst, own = (max(map(_gap, frames, pictures), default=0.0) for frames in (ours, film))
    told = [f"{worst:.2f} % of the width at most, judge {own:.2f}"]
    right = worst <= max(FARTHEST, FARTHER * own) and _as_many(ours, film, pictures)
    if name.endswith("still"):
        mine, theirs = _trembling(ours), _trembling(film)
        told.append(f"trembles {mine:.3f} %, judge {theirs:.3f} %")
        right = right and mine <= theirs + MOST_TREMBLING
    if name.endswith("pan"):
        mine, theirs = _lag(ours, pictures), _lag(film, pictures)
        told.append(f"lags {mine:.2f} frames, judge {theirs:.2f}")
        right = right and mine <= max(theirs, 0) + MOST_LAG
    if not name.endswith(("loop", "seek")):
        told.append(f"{len(set().union(*ids))} ids")
        right = right and len(set().union(*ids)) == max(map(len, ids))
    task, film_name = name.rsplit(" ", 1)
    return Row(f"film {task}", film_name, seen, judged, ", ".join(told), bool(right))


def _as_many(ours: Any, film: Any, pictures: Any) -> bool:
    """Whether each frame has as many things as the judge sees in it, in the film or in the frame as a picture.

    The judge disagrees with itself over clasped hands: while its film follows two of them, their regions overlap so
    far that it drops one in the next frame, and finds it again in the one after that: 1, 2, 1, 2.
    """
    frames = zip(ours, film, pictures, strict=True)
    return all(len(mine) in (len(theirs), len(single)) for mine, theirs, single in frames)


def _gap(ours: list[Array], theirs: list[Array]) -> float:
    """Of the farthest thing of a frame, the mean distance of its points from the nearest thing of the judge."""
    return max((min((_away(a, b) for b in theirs), default=math.inf) for a in ours), default=0.0)


def _away(a: Array, b: Array) -> float:
    return 100 * float(np.hypot(*(a - b).T).mean() / np.ptp(b[:, 0]))


def _trembling(frames: list[list[Array]]) -> float:
    """How far points inside the frame go from frame to frame in % of the width, in the mean, behind the first ones."""
    moves = []
    for a, b in pairwise(frames[4:]):
        if a and b:
            inside = ((b[0] >= 0) & (b[0] < (WIDE, HIGH))).all(1)
            moves.append(_away(a[0][inside], b[0][inside]))
    return float(np.mean(moves)) if moves else 0.0


def _lag(frames: list[list[Array]], pictures: list[list[Array]]) -> float:
    """Frames by which the middle of a film's points is behind where the pictures show it."""
    both = [(a[0][:, 1].mean(), b[0][:, 1].mean()) for a, b in zip(frames, pictures, strict=True) if a and b]
    if not both:
        return 0.0
    mine, true = np.array(both).T
    speed = np.gradient(true)
    fast = np.abs(speed) > np.abs(speed).max() / 2
    return float(np.median((true - mine)[fast] / speed[fast]))


async def _faces(photos: list[Path], backend: str) -> list[Row]:
    """Two faces that pass each other, and a film whose frames become smaller: which face is which, frame by frame."""
    from webinfer.tasks import FaceDetector

    small = []
    with await FaceDetector.create(backend=backend) as task:
        for path in photos:
            photo = Image.open(path).convert("RGB")
            for box in [face.box for face in await task.detect(photo)][:1]:
                x, y, side = box.left + box.width / 2, box.top + box.height / 2, 1.2 * box.height
                cut = photo.crop((round(x - side), round(y - side), round(x + side), round(y + side)))
                small.append(cut.resize((200, 200), Image.Resampling.BICUBIC))
    if not small:
        return []
    small = [small[0], small[1] if len(small) > 1 else small[0].transpose(Image.Transpose.FLIP_LEFT_RIGHT)]
    frames = []
    for i in range(FRAMES):
        frame = Image.new("RGB", (640, 480), (110, 120, 130))
        across = [20 + 400 * i / (FRAMES - 1), 420 - 400 * i / (FRAMES - 1)]
        at = [(round(across[0]), 20), (round(across[1]), 260)]
        for face, place in zip(small, at, strict=True):
            frame.paste(face, place)
        frames.append(frame)
    found = []
    with await FaceDetector.create(backend=backend) as task:
        whole = [await task.detect_for_video(frame, 1000 * i / FPS) for i, frame in enumerate(frames)]
        upper = [{one.id for one in faces if one.box.top < 200} for faces in whole]
        numbers, seen = {one.id for faces in whole for one in faces}, sum(map(len, whole))
        right = seen == 2 * FRAMES and len(numbers) == 2 and all(some == upper[0] for some in upper)
        found.append(Row("film faces", "crossing", seen, 2 * FRAMES, f"{len(numbers)} ids", right))
        task.reset()
        frames = [frame.resize((640, 480) if i < FRAMES // 2 else (320, 240)) for i, frame in enumerate(frames)]
        counts = [len(await task.detect_for_video(frame, 1000 * i / FPS)) for i, frame in enumerate(frames)]
        single = [len(await task.detect(frame)) for frame in frames]
        told = "as many as in the frames as pictures"
        found.append(Row("film faces", "change of size", sum(counts), sum(single), told, counts == single))
    return found
