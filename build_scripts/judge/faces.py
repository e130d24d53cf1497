"""Face detection beside MediaPipe's, over photos and variants of them: turned, scaled, dark, grey, cut, mirrored."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageEnhance

from build_scripts.judge.apart import answers_of
from build_scripts.judge.rows import Row

SCRIPT = "mediapipe_faces.py"
LIMIT_S = 1800
MODELS = {"blazeface_short_range": "short", "blazeface_full_range_sparse": "full"}  # as the judge calls them
SAME = 0.5  # overlap from which two boxes are of one face
LEAST_MEDIAN = 0.995
Box = tuple[float, float, float, float]


def variants(image: Image.Image) -> dict[str, Image.Image]:
    """Twelve views of a photo by name, the first one the photo itself."""
    width, height = image.size
    return {
        "plain": image,
        "mirrored": image.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
        "turned by 15": image.rotate(15, Image.Resampling.BILINEAR, expand=True),
        "turned by -30": image.rotate(-30, Image.Resampling.BILINEAR, expand=True),
        "half": image.resize((width // 2, height // 2), Image.Resampling.LANCZOS),
        "two fifths": image.resize((width * 2 // 5 + 1, height * 2 // 5), Image.Resampling.LANCZOS),
        "enlarged": image.resize((width * 3 // 2, height * 3 // 2), Image.Resampling.BICUBIC),
        "dark": ImageEnhance.Brightness(image).enhance(0.35),
        "grey": image.convert("L").convert("RGB"),
        "cropped": image.crop((width // 7, height // 9, width - width // 5, height - height // 6)),
        "wide": image.crop((0, height // 8, width, height * 5 // 8)),
        "narrow": image.crop((width // 4, 0, width * 3 // 4, height)),
    }


def rows(folder: Path, photos: list[Path], environment: Path, backend: str) -> list[Row]:
    """A row for each model: all faces of all variants of the photos, at the judge's own thresholds."""
    files = []
    for photo in photos:
        for name, image in variants(Image.open(photo).convert("RGB")).items():
            files.append(folder / f"{photo.stem} {name}.png")
            image.save(files[-1], compress_level=1)
    output = folder / "faces.json"
    answers = answers_of("MediaPipe", environment, SCRIPT, output, (output, *files), LIMIT_S, {"GLOG_minloglevel": "2"})
    return [asyncio.run(_compared(model, files, answers[name], backend)) for model, name in MODELS.items()]


async def _compared(model: str, files: list[Path], answers: dict[str, Any], backend: str) -> Row:
    from webinfer.tasks import FaceDetector

    overlaps, scores, points = list[float](), [0.0], [0.0]
    missed = extra = ours = 0
    with await FaceDetector.create(model, backend=backend) as detector:
        for file in files:
            left = await detector.detect(np.asarray(Image.open(file)))
            ours += len(left)
            for theirs in answers[file.name]:
                box = tuple(theirs["box"])
                best = max(left, key=lambda face: overlap(_sides(face), box), default=None)
                if best is None or overlap(_sides(best), box) < SAME:
                    missed += 1
                    continue
                left.remove(best)
                overlaps.append(overlap(_sides(best), box))
                scores.append(abs(best.score - theirs["score"]))
                gaps = np.subtract(list(best.keypoints.values()), theirs["keypoints"])
                points.append(100 * float(np.hypot(*gaps.T).mean()) / best.box.width)
            extra += len(left)
    median, tenth = (float(np.quantile(overlaps or [1.0], part)) for part in (0.5, 0.1))
    told = (
        f"IoU {median:.4f} in the median, {tenth:.4f} for the worst tenth; {missed} missed, {extra} extra; scores "
        f"within {max(scores):.4f}; keypoints {np.median(points):.3f} % of the face"
    )
    right = median >= LEAST_MEDIAN and missed == extra == 0
    return Row(f"faces {model}", f"{len(files)} pictures", ours, len(overlaps) + missed, told, right)


def _sides(face: Any) -> Box:
    return face.box.left, face.box.top, face.box.width, face.box.height


def overlap(one: Any, other: Any) -> float:
    """Intersection over union of two boxes: left, top, width, height."""
    across = min(one[0] + one[2], other[0] + other[2]) - max(one[0], other[0])
    down = min(one[1] + one[3], other[1] + other[3]) - max(one[1], other[1])
    common = max(across, 0.0) * max(down, 0.0)
    return float(common / (one[2] * one[3] + other[2] * other[3] - common))
