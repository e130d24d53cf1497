"""How near an output must be: to the runtime's number, or to what rounding may have made of it."""

from collections.abc import Sequence

import numpy as np

from build_scripts.judge.fuzz.graphs import Array

NEAR = {"float32": 3e-6, "float64": 3e-6, "float16": 2e-3}  # of the number
NEAR_LINE = {
    "float32": 1e-6,
    "float64": 1e-6,
    "float16": 1e-3,
}  # of the largest in its line, along the last axis or axis 1
DENORMAL = (
    2e-38  # below which an implementation may give 0: the least normal number is 1.2e-38, the kernels end at e^-87
)
TIMES = 6.0  # how much farther rounding may move a number than noise was seen to
LARGEST = {"float32": 3.4028234663852886e38, "float64": 3.4028234663852886e38, "float16": 65504.0}


def mismatch(got: Array, want: Array) -> str:
    """What is wrong with the type or the shape."""
    if got.dtype == want.dtype and got.shape == want.shape:
        return ""
    return f"is {got.dtype}{list(got.shape)}, must be {want.dtype}{list(want.shape)}"


def wrong(got: Array, want: Array, spread: Array | None = None) -> Array:
    """Which elements are off. `spread` is how far noise moved each."""
    if want.dtype.kind != "f":
        off = np.asarray(got != want)
        return off if spread is None else off & (_distance(got, want) > spread)
    a, b = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(all="ignore"):
        size = np.where(np.isfinite(b), np.abs(b), 0.0)
        allowed = NEAR[want.dtype.name] * size + NEAR_LINE[want.dtype.name] * line_scale(b) + DENORMAL
        if spread is not None:
            allowed = allowed + TIMES * spread
        near = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= allowed) | np.isposinf(allowed)  # by noise
    return np.asarray(~near)


def line_scale(b: Array) -> Array:
    """The largest finite magnitude beside each element: along the last axis, or along axis 1 where that is less."""
    size = np.where(np.isfinite(b), np.abs(b), 0.0)
    if not size.ndim or not size.size:
        return np.asarray(size)
    last = size.max(axis=-1, keepdims=True)
    return np.asarray(
        np.broadcast_to(last if size.ndim < 3 else np.minimum(last, size.max(axis=1, keepdims=True)), b.shape)
    )


def spread_of(want: Array, moved: Sequence[Array]) -> Array | None:
    """How far each element moved; infinite where it became another kind of number; None if shapes changed."""
    spread = np.zeros(want.shape)
    for other in moved:
        if other.shape != want.shape:
            return None
        if want.dtype.kind == "f":
            with np.errstate(all="ignore"):
                a, b = other.astype(np.float64), want.astype(np.float64)
                off = np.where(
                    (a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.nan_to_num(np.abs(a - b), nan=np.inf, posinf=np.inf)
                )
        else:
            off = _distance(other, want)
        spread = np.maximum(spread, off)
    return spread


def _distance(a: Array, b: Array) -> Array:
    if a.dtype == np.bool_:
        return np.asarray(a != b).astype(np.float64)
    return np.asarray(np.abs(a.astype(np.float64) - b.astype(np.float64)) + (a != b))  # 2**53 and 2**53 + 1 differ


def told(name: str, got: Array, want: Array, bad: Array) -> str:
    """The first element that is off, and how many are."""
    at = int(np.argmax(bad.reshape(-1)))
    found, needed = got.reshape(-1)[at], want.reshape(-1)[at]
    return f"{name}: {int(bad.sum())} of {bad.size} wrong, at {at} {found!r}, must be {needed!r}"
