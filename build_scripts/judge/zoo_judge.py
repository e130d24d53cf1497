"""The judge of the model table: a format's own runtime in a process of its own, inputs, and the comparison."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from build_scripts.judge.runtimes import Shapes, runtime_of

Array = np.ndarray[Any, Any]
PHOTOS = 2  # fed to each model that takes an image; then one of random numbers
FLOAT_LIMIT = 1e-3  # of the output's range
MIN_RANGE = 1e-6  # an output that stays below (a score of e^-20) is compared as if it reached this far
NUDGES = (1e-6, -1e-6, 3e-6, -3e-6)  # shares; one alone may cross no border between two levels
EXACT_LIMIT = 0.995  # share of quantised values that are the same; none may be off by more than one


class JudgeCrashed(RuntimeError):
    """A model ended the process of the runtime that judges it."""


class Judge:
    """Runtimes as users run them, with their defaults; a model that crashes one ends only its process."""

    def __enter__(self) -> "Judge":
        self._pool = self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def _start(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, mp_context=get_context("spawn"))

    def _ask(self, question: Any, *arguments: Any) -> Any:
        try:
            return self._pool.submit(question, *arguments).result()
        except BrokenProcessPool:
            self._pool = self._start()
            return None

    def shapes(self, model: Path) -> Shapes | None:
        """The sizes of inputs that the model leaves open, or None if its runtime cannot run it."""
        found: Shapes | None = self._ask(runtime_of(model).shapes, model)
        return found

    def run(self, model: Path, inputs: Sequence[Mapping[str, Array]]) -> list[list[Array]]:
        """The runtime's outputs for each input, in the model's order.

        Raises:  JudgeCrashed if the model ended the runtime's process
        """
        results: list[list[Array]] | None = self._ask(runtime_of(model).run, model, [dict(named) for named in inputs])
        if results is None:
            raise JudgeCrashed(f"{runtime_of(model).judge} crashed on {model.name}")
        return results


def model_inputs(infos: Sequence[Any], images: Path) -> list[dict[str, Array]]:
    """Inputs by name: photos where the model takes one image, and always one set of random numbers."""
    rng = np.random.default_rng(0)
    sets = []
    if len(infos) == 1 and len(infos[0].shape) == 4 and (infos[0].shape[3] in (1, 3, 4) or _is_nchw(infos[0].shape)):
        photos = sorted(p for p in images.glob("*") if p.suffix in (".jpg", ".png", ".bmp")) if images.is_dir() else []
        sets = [{infos[0].name: _photo(path, infos[0])} for path in photos[:PHOTOS]]
    return [*sets, {info.name: _random_array(rng, info) for info in infos}]


def _is_nchw(shape: Sequence[int]) -> bool:
    """Whether an image's channels come before its rows."""
    return shape[3] not in (1, 3, 4) and shape[1] in (1, 3, 4)


def _photo(path: Path, info: Any) -> Array:
    """The photo in the input's size and type: floats from -1 to 1, bytes as they are."""
    from PIL import Image

    nchw = _is_nchw(info.shape)
    _, height, width, channels = (info.shape[i] for i in (0, 2, 3, 1)) if nchw else info.shape
    with Image.open(path) as image:
        mode = {1: "L", 3: "RGB", 4: "RGBA"}[channels]
        pixels = np.asarray(image.convert(mode).resize((width, height))).reshape(height, width, channels)
    if info.dtype.is_float:
        pixels = pixels.astype(np.float32) / 127.5 - 1.0
    elif info.dtype.value == "int8":
        pixels = pixels.astype(np.int16) - 128
    if nchw:
        pixels = pixels.transpose(2, 0, 1)
    stack = np.broadcast_to(pixels.astype(info.dtype.value), info.shape)
    return np.ascontiguousarray(stack)


def _random_array(rng: np.random.Generator, info: Any) -> Array:
    """Floats from -1 to 1, whole bytes, small counting numbers for wider integers."""
    if info.dtype.is_float:
        return np.asarray(rng.uniform(-1.0, 1.0, info.shape).astype(info.dtype.value))
    low, high = (0, 8) if info.dtype.itemsize > 1 else info.dtype.range
    return np.asarray(rng.integers(low, high, info.shape, endpoint=True).astype(info.dtype.value))


def nudged(inputs: Sequence[Mapping[str, Array]], by: float) -> list[dict[str, Array]]:
    """The inputs with floats larger by such a share: what rounding turns that into, a judge answers for."""
    return [
        {name: (a * (1 + by)).astype(a.dtype) if a.dtype.kind == "f" else a for name, a in named.items()}
        for named in inputs
    ]


@dataclass
class Verdict:
    """What all outputs together amount to."""

    float_diff: float | None = None  # largest difference over the range of its output
    exact: int = 0
    count: int = 0  # integer values compared
    farthest: int = 0
    mismatch: str = ""

    @property
    def max_rel_diff(self) -> float | None:
        """For floats the largest relative difference, for integers the largest in steps."""
        return self.float_diff if self.float_diff is not None else float(self.farthest) if self.count else None

    @property
    def exact_share(self) -> float | None:
        """Share of integer values that are the same."""
        return self.exact / self.count if self.count else None

    def problem(self, spread: float = 0.0) -> str:
        """What is out of bounds, or an empty text. Floats may be as far off as the judge's own results, `spread`."""
        if self.mismatch:
            return self.mismatch
        if self.float_diff is not None and not self.float_diff <= max(FLOAT_LIMIT, spread):
            return f"floats differ by {self.float_diff:.2e} of the range, allowed {max(FLOAT_LIMIT, spread):.3g}"
        if self.count and (self.exact / self.count < EXACT_LIMIT or self.farthest > 1):
            share = f"{self.exact} of {self.count} integers exact"
            return f"{share}, one is off by {self.farthest}; allowed {EXACT_LIMIT} and 1"
        return ""


def compare(got: Array, want: Array, verdict: Verdict) -> None:
    """Adds one output to the verdict."""
    if got.shape != want.shape or got.dtype != want.dtype:
        verdict.mismatch = f"an output is {got.dtype}{list(got.shape)}, must be {want.dtype}{list(want.shape)}"
        return
    if want.size == 0:
        return
    if want.dtype.kind != "f":
        off = np.abs(got.astype(np.int64) - want.astype(np.int64))
        verdict.exact += int((off == 0).sum())
        verdict.count += off.size
        verdict.farthest = max(verdict.farthest, int(off.max()))
        return
    a, b = got.astype(np.float64), want.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    finite = b[np.isfinite(b)]
    scale = max(float(np.ptp(finite)), float(np.abs(finite).max()), MIN_RANGE) if finite.size else 1.0
    with np.errstate(invalid="ignore"):
        off = np.where(same, 0.0, np.nan_to_num(np.abs(a - b), nan=np.inf))
    verdict.float_diff = max(verdict.float_diff or 0.0, float(off.max()) / scale)
