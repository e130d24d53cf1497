"""The judges of tasks that say something of a whole picture: its class, and its foreground."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from build_scripts.judge.decoded import path_of, seen
from build_scripts.judge.rows import Row
from build_scripts.judge.runtimes import litert_run
from build_scripts.paths import MODELS

CLASSIFIERS = {
    "mobilenet_v2_100_224_quant": 224, "mobilenet_v1_075_192_quant": 192, "mobilenet_v1_025_128_quant": 128,
}  # fmt: skip
BEST = 3  # classes
NEAR = 10 / 256  # of scores; LiteRT's own two sets of kernels are as much as 16 / 256 apart
MATTES, SIDE = "isnet_small", 1024
MATTE_PHOTOS = 2  # of a model that takes seconds
LEAST_OVERLAP, LEAST_MEAN = 0.98, 0.01  # of foregrounds; mean difference of mattes
Array = np.ndarray[Any, Any]


def rows(photos: list[Path], backend: str) -> list[Row]:
    """A row for each model and photo; models that are not at hand have none."""
    images = {photo.name: np.array(Image.open(photo).convert("RGB")) for photo in photos}
    found = []
    for name, side in CLASSIFIERS.items():
        if (model := path_of(name)) is not None:
            found += _classes(name, model, side, images, backend)
    if (model := MODELS / f"{MATTES}.onnx").is_file():
        found += _mattes(model, dict(list(images.items())[:MATTE_PHOTOS]), backend)
    return found


def _classes(name: str, model: Path, side: int, images: dict[str, Array], backend: str) -> list[Row]:
    from webinfer.tasks import ImageClassifier

    async def ours() -> list[list[Any]]:
        with await ImageClassifier.create(model, backend=backend, most=BEST) as task:
            return [await task.classify(image) for image in images.values()]

    given = [np.floor(seen(image, side, side, False).input + 0.5).astype(np.uint8)[None] for image in images.values()]
    judges = [litert_run(model, [{"x": x} for x in given], plain) for plain in (False, True)]
    found = []
    for photo, mine, *runs in zip(images, asyncio.run(ours()), *judges, strict=True):
        scores = np.stack([run[0].ravel() / 256 for run in runs])
        gap = float(np.min([max(abs(row[one.index] - one.score) for one in mine) for row in scores]))
        right = gap <= NEAR and mine[0].index in scores.argmax(1)
        found.append(
            Row(f"classes {name}", photo, mine[0].index, int(scores[0].argmax()), f"{gap:.4f} of a score", right)
        )
    return found


def resized(image: Array, width: int, height: int) -> Array:
    """Bytes [h, w, channels] as large as that, between corners of pixels, rounded.

    Source:  npm @imgly/background-removal-node 1.4.5, README and dist (tensorResizeBilinear)
    """
    places = [np.arange(size) * (cells / size) for size, cells in zip((height, width), image.shape, strict=False)]
    (y, dy), (x, dx) = ((np.floor(at).astype(int), at - np.floor(at)) for at in places)
    y2, x2 = (np.minimum(np.ceil(at).astype(int), cells - 1) for at, cells in zip(places, image.shape, strict=False))
    dx, dy = dx[None, :, None], dy[:, None, None]
    upper = (1 - dx) * image[y][:, x] + dx * image[y][:, x2]
    lower = (1 - dx) * image[y2][:, x] + dx * image[y2][:, x2]
    return np.asarray(np.floor((1 - dy) * upper + dy * lower + 0.5).astype(np.uint8))


def _mattes(model: Path, images: dict[str, Array], backend: str) -> list[Row]:
    """What IS-Net's package makes of a picture with ONNX Runtime: from 0..255 by way of (x - 128) / 256, and back."""
    import onnxruntime

    from webinfer.tasks import BackgroundRemover

    async def ours() -> list[Any]:
        with await BackgroundRemover.create(model, backend=backend) as task:
            return [await task.matte(image) for image in images.values()]

    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    name, found = session.get_inputs()[0].name, []
    for (photo, image), mask in zip(images.items(), asyncio.run(ours()), strict=True):
        given = ((resized(image, SIDE, SIDE).astype(np.float32) - 128) / 256).transpose(2, 0, 1)[None]
        small = session.run(["output"], {name: given})[0].reshape(SIDE, SIDE, 1)
        theirs = resized(np.floor(small * 255).astype(np.uint8), *image.shape[1::-1])[..., 0] / 255
        mine = np.array(mask.values).reshape(theirs.shape)
        a, b = mine > 0.5, theirs > 0.5
        overlap, mean = (a & b).sum() / max((a | b).sum(), 1), float(np.abs(mine - theirs).mean())
        told = f"{overlap:.4f} IoU, {mean:.4f} apart in the mean"
        right = overlap >= LEAST_OVERLAP and mean <= LEAST_MEAN
        found.append(Row(f"foreground {MATTES}", photo, int(a.any()), int(b.any()), told, bool(right)))
    return found
