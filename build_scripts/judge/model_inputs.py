"""Inputs for models that nobody has described: photos, noise, and by their names masks, lengths, ids and rates."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Inputs = dict[str, Array]
Noise = Callable[[np.random.Generator, Sequence[int]], Array]
PHOTOS = 2  # fed to each model that takes images
PICTURES = (".jpg", ".png", ".bmp")
IDS = (1000, 100, 8, 1)  # the largest index that an input of indices holds: the first that the model's runtime takes
SAMPLE_RATE = 16_000  # Hz
SOUND = 4_000  # values in a row, from which on an input may be sound
VALID = 0.75  # share of a mask that is one


def _smooth(rng: np.random.Generator, shape: Sequence[int]) -> Array:
    """A sum of slow waves along every axis, from -1 to 1: what filters let pass."""
    total = np.zeros(shape)
    for axis, size in enumerate(shape):
        turns, phase = rng.uniform(0.5, 4), rng.uniform(0, 2 * np.pi)
        wave = np.cos(2 * np.pi * turns * np.arange(size) / max(size, 1) + phase)
        total += wave.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return np.asarray(total / max(len(shape), 1))


NOISE: dict[str, Noise] = {  # floats, most of them from -1 to 1; for bytes that is their whole range
    "noise": lambda rng, shape: rng.uniform(-1, 1, shape),
    "quiet noise": lambda rng, shape: rng.uniform(-0.05, 0.05, shape),
    "slow waves": _smooth,
    "bright noise": lambda rng, shape: rng.uniform(0, 1, shape),
    "loud noise": lambda rng, shape: rng.uniform(-100, 100, shape),
    "very quiet noise": lambda rng, shape: rng.uniform(-0.001, 0.001, shape),
    "very loud noise": lambda rng, shape: rng.uniform(-10_000, 10_000, shape),
}
PHOTO_SCALES = {"photo": (2.0, -1.0), "photo from 0 to 255": (255.0, 0.0), "photo from 0 to 1": (1.0, 0.0)}


def photos_in(*folders: Path) -> list[Path]:
    """The photos of the first of these folders that has any."""
    for folder in folders:
        found = sorted(path for path in folder.glob("*") if path.suffix in PICTURES) if folder.is_dir() else []
        if found:
            return found[:PHOTOS]
    return []


def takes_photos(infos: Sequence[Any]) -> bool:
    """Whether an input of the model is an image."""
    return any(_is_image(info) for info in infos)


def model_inputs(infos: Sequence[Any], photos: Sequence[Path], ids: int = IDS[-2]) -> list[Inputs]:
    """What each model is run with: photos where it takes images, noise, and waves where it may take sound.

    `ids` is the largest index that inputs of indices hold.
    """
    feeds = [_photo_inputs(infos, path, "photo", ids) for path in photos if takes_photos(infos)]
    sound = any(info.dtype.is_float and max(info.shape, default=0) >= SOUND for info in infos)
    names = ("noise", "slow waves") if sound else ("noise",)
    return [*feeds, *(_noise_inputs(infos, name, ids) for name in names)]


def more_inputs(infos: Sequence[Any], photos: Sequence[Path], ids: int = IDS[-2]) -> Iterator[Inputs]:
    """Other inputs, for models that say the same, or nothing, of the usual ones."""
    if takes_photos(infos):
        yield from (_photo_inputs(infos, path, name, ids) for name in list(PHOTO_SCALES)[1:] for path in photos)
    yield from (_noise_inputs(infos, name, ids) for name in list(NOISE)[1:])


def _photo_inputs(infos: Sequence[Any], path: Path, scale: str, ids: int) -> Inputs:
    rng = np.random.default_rng(0)
    return {
        i.name: _photo(path, i, *PHOTO_SCALES[scale]) if _is_image(i) else _value(rng, i, infos, "noise", ids)
        for i in infos
    }


def _noise_inputs(infos: Sequence[Any], noise: str, ids: int) -> Inputs:
    rng = np.random.default_rng(0)
    return {info.name: _value(rng, info, infos, noise, ids) for info in infos}


def _is_image(info: Any) -> bool:
    if len(info.shape) != 4 or min(info.shape) < 1 or not _is_byte_or_float(info) or _meaning(info.name) is not None:
        return False
    return info.shape[3] in (1, 3, 4) or _is_nchw(info.shape)


def _is_byte_or_float(info: Any) -> bool:
    return bool(info.dtype.is_float or (info.dtype.itemsize == 1 and info.dtype.value != "bool"))


def _is_nchw(shape: Sequence[int]) -> bool:
    """Whether an image's channels come before its rows."""
    return shape[3] not in (1, 3, 4) and shape[1] in (1, 3, 4)


def _photo(path: Path, info: Any, scale: float, offset: float) -> Array:
    """The photo in the input's size and type: floats scaled from 0 to 1 as said, bytes as they are."""
    from PIL import Image

    nchw = _is_nchw(info.shape)
    _, height, width, channels = (info.shape[i] for i in (0, 2, 3, 1)) if nchw else info.shape
    with Image.open(path) as image:
        mode = {1: "L", 3: "RGB", 4: "RGBA"}[channels]
        pixels = np.asarray(image.convert(mode).resize((width, height))).reshape(height, width, channels)
    if info.dtype.is_float:
        pixels = pixels.astype(np.float32) / 255 * np.float32(scale) + np.float32(offset)
    elif info.dtype.value == "int8":
        pixels = pixels.astype(np.int16) - 128
    if nchw:
        pixels = pixels.transpose(2, 0, 1)
    return np.ascontiguousarray(np.broadcast_to(pixels.astype(info.dtype.value), info.shape))


def _value(rng: np.random.Generator, info: Any, infos: Sequence[Any], noise: str, ids: int) -> Array:
    """By the input's name, else floats and bytes as noise, and indices for wider integers."""
    kind = np.dtype(info.dtype.value)
    meaning = _meaning(info.name)
    if meaning is not None:
        return np.broadcast_to(meaning(info, infos), info.shape).astype(kind)
    if kind.kind == "b":
        return np.asarray(rng.integers(0, 1, info.shape, endpoint=True).astype(kind))
    values = NOISE[noise](rng, info.shape)
    if info.dtype.is_float:
        return np.asarray(values.astype(kind))
    if kind.itemsize > 1 and getattr(info, "quantization", None) is None:
        return np.asarray(rng.integers(0, ids, info.shape, endpoint=True).astype(kind))
    low, high = info.dtype.range
    return np.asarray(np.clip(np.rint(low + (values + 1) / 2 * (high - low)), low, high).astype(kind))


def _mask(info: Any, _: Sequence[Any]) -> Any:
    """Ones, then zeros, along the last axis; at least a one."""
    size = info.shape[-1] if info.shape else 1
    return np.arange(size) < max(1, round(VALID * size)) if info.shape else 1


def _segments(info: Any, _: Sequence[Any]) -> Any:
    size = info.shape[-1] if info.shape else 1
    return (np.arange(size) >= (size + 1) // 2) if info.shape else 0


def _length(info: Any, infos: Sequence[Any]) -> int:
    """The smallest size of an axis behind the first of another input: no longer than what the length is of."""
    sizes = [size for other in infos if other is not info and len(other.shape) > 1 for size in other.shape[1:]]
    return min((size for size in sizes if size > 1), default=1)


# Words of an input's name, and what it holds then. The first row that fits counts.
MEANINGS: tuple[tuple[str, Callable[[Any, Sequence[Any]], Any]], ...] = (
    ("masks?", _mask),
    ("token types?|segments?", _segments),
    ("positions?", lambda info, _: np.arange(info.shape[-1]) if info.shape else 0),
    ("sr|fs|(sample|sampling) ?rate", lambda *_: SAMPLE_RATE),
    ("(score|iou|conf|confidence|nms) ?thresh(old)?|threshold", lambda *_: 0.3),
    ("(length|noise|speed) scale|speed|temperature", lambda *_: 1),
    ("len(gth)?s?|num frames", _length),
)


def _meaning(name: str) -> Callable[[Any, Sequence[Any]], Any] | None:
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    words = " ".join(re.findall(r"[a-z]+", spaced.lower()))
    return next((value for pattern, value in MEANINGS if re.search(rf"(^| )({pattern})( |$)", words)), None)
