"""Rounding made visible: numbers moved by a little, as stochastic arithmetic does, show what a graph makes of it."""

from collections.abc import Container, Mapping, Sequence

import numpy as np

from build_scripts.judge.fuzz.graphs import Array, FuzzGraph, FuzzNode

SHARES = {"float32": 4e-6, "float64": 4e-6, "float16": 1.5e-3}  # of each number; float64 is computed in float32
NEAR_ZERO = 7e-7  # what polynomials and sums of terms of about 1 are off by where the result is near 0

TRANSFORMS = frozenset("DFT STFT FFT IFFT RFFT IRFFT RFFT2D".split())  # sums of all that goes in
NORMALIZATIONS = frozenset((  # a scale and a bias behind numbers of about 1, which may be one and the same operand
    "BatchNormalization FusedBatchNormV3 GroupNormalization InstanceNormalization LayerNormalization "
    "com.microsoft.SkipLayerNormalization"
).split())  # fmt: skip


class Noise:
    """One draw of it."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def stepped(self, array: Array, odds: float) -> Array:
        """Integers of which some are one larger or smaller, as where a rounding falls the other way."""
        info = np.iinfo(array.dtype)
        by = self._rng.choice([-1, 0, 1], array.shape, p=[odds / 2, 1 - odds, odds / 2])
        return np.asarray(np.clip(array.astype(np.int64) + by, info.min, info.max)).astype(array.dtype)

    def moved(self, array: Array, near_zero: float = 0.0) -> Array:
        """The floats moved by a share of each and by `near_zero`; integers and what is not finite stay."""
        share = SHARES.get(array.dtype.name)
        if share is None or not array.size:
            return array
        with np.errstate(all="ignore"):
            by = self._rng.uniform(-share, share, array.shape)
            more = self._rng.uniform(-near_zero, near_zero, array.shape) if near_zero else 0.0
            return np.asarray(array * (1 + by) + more).astype(array.dtype)


def fed(
    graph: FuzzGraph, names: Sequence[str], exact: Container[str], values: Mapping[str, Array], noise: Noise | None
) -> tuple[dict[str, Array], dict[str, Array]]:
    """The inputs and the constants of a piece that reads these names; noise moves all but the exact ones."""
    found = {n: values[n] if noise is None or n in exact else noise.moved(values[n]) for n in names}
    stored = {n: a for n, a in found.items() if n in graph.constants}
    return {n: a for n, a in found.items() if n not in stored}, stored


def near_zero(nodes: Sequence[FuzzNode], polynomials: Container[str], piece: FuzzGraph) -> float:
    """How far results near 0 may move: where terms cancel, as far as the largest of them says."""
    names = {node.op for node in nodes}
    if not names & (TRANSFORMS | NORMALIZATIONS) and not any(name in polynomials for name in names):
        return 0.0
    fed = [*piece.inputs.values(), *piece.constants.values()]
    terms = [a for a in fed if a.dtype.kind == "f" and (names & TRANSFORMS or (names & NORMALIZATIONS and a.ndim <= 1))]
    return NEAR_ZERO * max([1.0, *(float(np.abs(a[np.isfinite(a)]).max(initial=0.0)) for a in terms)])
