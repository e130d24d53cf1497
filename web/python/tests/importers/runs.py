"""What a run of one operator is: the parts that tables of runs are written with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tests.importers.tflite_writer import Array

RNG = np.random.default_rng(7)


def real(*shape: int) -> Array:
    """Weights of float32."""
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def whole(*numbers: int) -> Array:
    """A vector of int32: a shape, axes, sizes."""
    return np.array(numbers, np.int32)


def scalar(number: float, dtype: Any = np.int32) -> Array:
    return np.array(number, dtype)


@dataclass
class Run:
    """One model: operator, inputs as the writer takes them, output types, options."""

    op: str
    inputs: list[Any]
    outputs: list[tuple[Any, ...]]
    options: dict[str, Any] = field(default_factory=dict)
    label: str = ""
    tolerance: float = 2e-6  # relative to the output's range
    exact: float = 0.95  # share of quantised results that are the same, the others are off by one
    low: float = -3.0
    high: float = 3.0
    version: int = 1

    def __str__(self) -> str:
        return f"{self.op} {self.label}".strip().replace(" ", "-")


def f(*shape: int) -> tuple[Any, ...]:
    return (shape, "float32")


X = f(1, 7, 6, 4)
SAME, VALID = {"padding": 0}, {"padding": 1}
S1 = {"stride_h": 1, "stride_w": 1}
S2 = {"stride_h": 2, "stride_w": 2}
Q8, Q8Y, QU = (0.02, -3), (0.05, 5), (0.015, 120)


def weights8(*shape: int) -> Array:
    return RNG.integers(-127, 128, shape).astype(np.int8)


def bytes8(*shape: int) -> Array:
    """Weights of int8 as files of before 2019 hold them beside floats: declared uint8."""
    return weights8(*shape).view(np.uint8)


def bias32(count: int) -> Array:
    return RNG.integers(-2000, 2000, count).astype(np.int32)


def per_channel(count: int, axis: int) -> tuple[Any, ...]:
    return (RNG.uniform(0.002, 0.01, count).astype(np.float32), 0, axis)
