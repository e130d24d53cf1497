"""Activations that operators carry in their epilogue."""

from __future__ import annotations

import enum
import math


class Activation(enum.StrEnum):
    """What happens to a result before it is stored. PRELU reads a per-channel slope input."""

    __hash__ = str.__hash__

    NONE = "none"
    RELU = "relu"
    RELU6 = "relu6"
    RELU_N1_TO_1 = "relu_n1_to_1"
    PRELU = "prelu"
    HARD_SWISH = "hard_swish"
    SIGMOID = "sigmoid"
    TANH = "tanh"
    SILU = "silu"

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The clamp that this activation is, or None if it is not a clamp."""
        return _BOUNDS.get(self)


def integer_bounds(low: float, high: float, least: int, most: int) -> tuple[int, int]:
    """The bounds of a clamp of integers between `least` and `most`, which cut a little less than the real ones."""
    return tuple(
        least if bound <= least else most if bound >= most else whole(bound)
        for bound, whole in ((low, math.ceil), (high, math.floor))
    )  # type: ignore[return-value]


INFINITY = float("inf")
_BOUNDS = {
    Activation.NONE: (-INFINITY, INFINITY),
    Activation.RELU: (0.0, INFINITY),
    Activation.RELU6: (0.0, 6.0),
    Activation.RELU_N1_TO_1: (-1.0, 1.0),
}
