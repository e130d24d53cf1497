"""TFLite's quantisation parameters, checked."""

from __future__ import annotations

import math

from webinfer.dtypes import DType
from webinfer.errors import LimitError, ModelFormatError
from webinfer.graph.ir import Quantization
from webinfer.importers.readers.flatbuffer import Table

MAX_SCALES = 1_000_000


def read(table: Table | None, shape: tuple[int, ...], dtype: DType | None, what: str) -> Quantization | None:
    """The scales of an integer tensor, or None if it has none. Float tensors keep none.

    Raises:  ModelFormatError for a scale that is not finite and positive, a zero point outside the
             type, counts or an axis that do not fit.
    """
    if table is None or dtype is None or dtype.is_float or dtype is DType.BOOL or not table.count("scale"):
        return None
    count, axis = table.count("scale"), table.number("quantized_dimension")
    if table.count("zero_point") != count:
        raise ModelFormatError(f"{what}: {count} scales but {table.count('zero_point')} zero points")
    if count > MAX_SCALES:
        raise LimitError(f"{what}: scales", count, MAX_SCALES, "use a smaller model")
    if count > 1 and (not 0 <= axis < len(shape) or shape[axis] != count):
        raise ModelFormatError(f"{what}: {count} scales along axis {axis} do not fit shape {shape}")
    scales, zero_points = table.reals("scale"), table.numbers("zero_point")
    low, high = dtype.range
    if not all(math.isfinite(s) and s > 0 for s in scales):
        bad = next(s for s in scales if not (math.isfinite(s) and s > 0))
        raise ModelFormatError(f"{what}: scale {bad} is not a positive number")
    if min(zero_points) < low or max(zero_points) > high:
        raise ModelFormatError(f"{what}: a zero point of {min(zero_points)} to {max(zero_points)} is outside {dtype}")
    return Quantization(scales, zero_points, axis if count > 1 else None)
