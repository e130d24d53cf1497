"""Rounding made visible: numbers moved by a little, as stochastic arithmetic does, show what a graph makes of it."""

import numpy as np

from build_scripts.judge.fuzz.graphs import Array

SHARES = {"float32": 4e-6, "float64": 4e-6, "float16": 1.5e-3}  # of each number; float64 is computed in float32
NEAR_ZERO = 7e-7  # what polynomials and sums of terms of about 1 are off by where the result is near 0


class Noise:
    """One draw of it."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def moved(self, array: Array, near_zero: bool = False) -> Array:
        """The floats moved by a share of each, and by as little as one near 0; integers and what is not finite stay."""
        share = SHARES.get(array.dtype.name)
        if share is None or not array.size:
            return array
        with np.errstate(all="ignore"):
            by = self._rng.uniform(-share, share, array.shape)
            more = self._rng.uniform(-NEAR_ZERO, NEAR_ZERO, array.shape) if near_zero else 0.0
            return np.asarray(array * (1 + by) + more).astype(array.dtype)
