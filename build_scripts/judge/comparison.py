"""Whether outputs agree: floats by their channel's range, integers exactly; and which outputs say nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Key = tuple[int, str]  # number of an output, and how its values are grouped
FLOAT_LIMIT = 1e-3  # of a channel's range
MIN_RANGE = 1e-6  # an output that stays below (a score of e^-20) is compared as if it reached this far
CHANNEL_RANGE = (
    1e-3  # of the output's range: what a channel is taken to reach at least, so that rounding is no difference
)
FEW_VALUES = 2  # times what a channel's results were seen to move, as that is seen in few values
MIN_CHANNEL = 16  # values; of fewer the range says little
EXACT_LIMIT = 0.995  # share of quantised values that are the same; none may be off by more than one
LEVELS = (0.0, 1.0)  # at which probabilities saturate


@dataclass
class Comparison:
    """What all outputs of all runs together amount to."""

    diffs: dict[Key, Array] = field(default_factory=dict)  # of floats: largest difference over the range, by channel
    exact: int = 0
    count: int = 0  # integer values compared
    farthest: int = 0
    mismatch: str = ""

    @property
    def float_diff(self) -> float | None:
        """The largest difference of floats relative to the range of their channel; None where there are no floats."""
        return max((float(diff.max()) for diff in self.diffs.values()), default=None)

    @property
    def max_rel_diff(self) -> float | None:
        """For floats the largest relative difference, for integers the largest in steps."""
        return self.float_diff if self.diffs else float(self.farthest) if self.count else None

    @property
    def exact_share(self) -> float | None:
        """Share of integer values that are the same."""
        return self.exact / self.count if self.count else None

    def add(self, number: int, got: Array, want: Array) -> None:
        """Adds one output of one run; `number` is the output's place."""
        if got.shape != want.shape or got.dtype != want.dtype:
            self.mismatch = f"an output is {got.dtype}{list(got.shape)}, must be {want.dtype}{list(want.shape)}"
        elif want.size == 0:
            return
        elif want.dtype.kind == "f":
            self._add_floats(number, got.astype(np.float64), want.astype(np.float64))
        else:
            off = np.abs(got.astype(np.int64) - want.astype(np.int64))
            self.exact += int((off == 0).sum())
            self.count += off.size
            self.farthest = max(self.farthest, int(off.max()))

    def _add_floats(self, number: int, got: Array, want: Array) -> None:
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        with np.errstate(invalid="ignore"):
            off = np.where(same, 0.0, np.nan_to_num(np.abs(got - want), nan=np.inf))
        for name, diff in _relative(off, want):
            key = (number, f"{name} {diff.size}")  # sizes that data decide differ between runs
            self.diffs[key] = np.maximum(self.diffs.get(key, 0.0), diff)

    def problem(self, spread: "Comparison | None" = None, times: float = 0.0) -> str:
        """What is out of bounds, or an empty text.

        A channel may be as far off as the judge's own results are in it, `spread`, so many `times`.
        """
        if self.mismatch:
            return self.mismatch
        beyond = [self._beyond(key, spread, times) for key in self.diffs]
        if max(beyond, default=(0.0, ""))[0] > 1:
            return max(beyond)[1]
        if self.count and (self.exact / self.count < EXACT_LIMIT or self.farthest > 1):
            share = f"{self.exact} of {self.count} integers exact"
            return f"{share}, one is off by {self.farthest}; allowed {EXACT_LIMIT} and 1"
        return ""

    def _beyond(self, key: Key, spread: "Comparison | None", times: float) -> tuple[float, str]:
        """How many times the allowed difference the worst channel has, and what to say of it."""
        diff, (number, name) = self.diffs[key], key
        own = spread.diffs.get(key, np.zeros(1)) if spread else np.zeros(1)
        if diff.size > 1:
            times *= FEW_VALUES
        allowed = np.broadcast_to(np.maximum(FLOAT_LIMIT, times * own), diff.shape)
        with np.errstate(invalid="ignore"):
            share = np.where(np.isinf(diff), np.inf, diff / allowed)
        worst = int(np.argmax(share))
        where = "" if diff.size == 1 else f" in channel {worst} of {diff.size} ({name.rpartition(' ')[0]})"
        found = f"floats of output {number} differ by {diff[worst]:.2e} of the range{where}"
        return float(share[worst]), f"{found}, allowed {allowed[worst]:.3g}"


def compared(got: Sequence[Sequence[Array]], wanted: Sequence[Sequence[Array]]) -> Comparison:
    """The outputs of each run beside the wanted ones."""
    comparison = Comparison()
    for ours, theirs in zip(got, wanted, strict=True):
        for number, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            comparison.add(number, a, b)
    return comparison


def _relative(off: Array, want: Array) -> Iterator[tuple[str, Array]]:
    """Differences over ranges: of the whole output, of channels along its last axis, of channels along axis 1.

    In one layout of a detector's output boxes and class scores lie along the last axis, in the other along axis 1.
    Beside boxes of hundreds of pixels a score that is wrong altogether would be a small share of one common range.
    """
    whole = _range(want.reshape(1, -1), MIN_RANGE)
    yield "whole", off.reshape(1, -1).max(1) / whole
    axes = {"last axis": want.ndim - 1, "axis 1": 1}
    for name, axis in axes.items():
        if want.ndim < 2 or (name == "axis 1" and want.ndim == 2) or want.shape[axis] < 2:
            continue
        if want.size // want.shape[axis] < MIN_CHANNEL:
            continue
        rows, apart = (np.moveaxis(a, axis, 0).reshape(want.shape[axis], -1) for a in (want, off))
        yield name, apart.max(1) / _range(rows, np.maximum(CHANNEL_RANGE * whole, MIN_RANGE))


def _range(rows: Array, least: Any) -> Array:
    """How far the finite values of each row reach, from each other or from zero; rows without any have 1."""
    finite = np.isfinite(rows)
    high = np.where(finite, rows, -np.inf).max(1)
    low = np.where(finite, rows, np.inf).min(1)
    with np.errstate(invalid="ignore"):
        reach = np.maximum(high - low, np.maximum(np.abs(high), np.abs(low)))
    return np.asarray(np.where(finite.any(1), np.maximum(reach, least), 1.0))


def silent_outputs(wanted: Sequence[Sequence[Array]]) -> dict[int, str]:
    """The outputs that no comparison can judge, by number, and why: agreement in them is no evidence.

    Of all runs together an output must have finite values, more than one, and others than a probability's two ends.
    """
    reasons = {number: _silence(list(arrays)) for number, arrays in enumerate(zip(*wanted, strict=True))}
    return {number: reason for number, reason in reasons.items() if reason}


def _silence(arrays: Sequence[Array]) -> str:
    values = np.concatenate([np.asarray(array).reshape(-1) for array in arrays])
    if not values.size:
        return "is empty"
    if values.dtype.kind != "f":
        return "" if (values != values[0]).any() else f"is {values[0]} everywhere"
    values = values.astype(np.float64)
    values = values[np.isfinite(values)]
    if not values.size:
        return "has no finite value"
    if len(arrays) == values.size and values[0] > 1 and not (values != np.rint(values)).any():
        return ""  # how many results there are; many detectors always give as many as they can
    if np.ptp(values) <= MIN_RANGE * max(1.0, float(np.abs(values).max())):
        return f"is {values[0]:.6g} everywhere"
    if values.size > len(LEVELS) and np.minimum(*(np.abs(values - level) for level in LEVELS)).max() <= MIN_RANGE:
        return "is saturated: 0 or 1 everywhere"
    return ""
