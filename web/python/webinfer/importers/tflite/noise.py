"""TFLite's random numbers."""

from __future__ import annotations

from webinfer.importers.core import random as noise
from webinfer.importers.tflite.operation import Row

CONVERTERS: dict[str, Row] = {
    "MULTINOMIAL": (lambda op: noise.chosen(op, op.value(0), op.integer(1), op.declared().dtype), ""),
    "RANDOM_STANDARD_NORMAL": (lambda op: noise.normal(op, noise.asked_shape(op, op.integers(0))), ""),
    "RANDOM_UNIFORM": (lambda op: noise.uniform(op, noise.asked_shape(op, op.integers(0))), ""),
}
