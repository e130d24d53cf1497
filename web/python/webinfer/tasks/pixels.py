"""Models of any element type that take a picture: pixels of 0..255 are their input, what they want is made in the plan."""

from __future__ import annotations

from dataclasses import dataclass

from webinfer.authoring.builder import GraphBuilder
from webinfer.dtypes import DType
from webinfer.graph.ir import Graph, TensorType, Value

PICTURE = "picture"
STORED = {DType.UINT8: 0, DType.INT8: 128}  # what a stored 0 lies above the least
Three = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Pixels:
    """What a model wants for pixels: `low` for 0 and `high` for 255, and per channel `(that - mean) / deviation`.

    A quantised model says itself what its numbers stand for; one of whole numbers takes pixels as they are.
    """

    low: float = 0.0
    high: float = 255.0
    mean: Three | None = None
    deviation: Three = (1.0, 1.0, 1.0)
    bgr: bool = False  # channels run from blue to red

    def __str__(self) -> str:
        channels = f"{'bgr' * self.bgr}{self.mean}{self.deviation}" if self.mean else ""
        return f"{self.low:g}to{self.high:g}{channels}".replace(" ", "")


def is_picture(wanted: TensorType) -> bool:
    """Whether a model's input can be made of a picture: [1, height, width, 3] or [1, 3, height, width]."""
    known = wanted.dtype.is_float or wanted.dtype is DType.INT32 or (wanted.dtype in STORED and wanted.quant is not None)
    return wanted.rank == 4 and wanted.shape[0] == 1 and 3 in (wanted.shape[1], wanted.shape[3]) and known


def take_pixels(graph: Graph, pixels: Pixels) -> None:
    """Makes PICTURE [1, height, width, 3], float32 pixels of 0..255, the only input of a graph of one picture."""
    builder, (given,) = GraphBuilder(graph.name), graph.inputs
    wanted = given.type
    planes = wanted.shape[3] != 3
    shape = (1, *wanted.shape[2:], 3) if planes else wanted.shape
    made = _values(builder, builder.input(PICTURE, shape), wanted, pixels)
    graph.replace(given, builder.node("transpose", made, perm=(0, 3, 1, 2)) if planes else made)
    builder.precede(graph)


def _values(builder: GraphBuilder, x: Value, wanted: TensorType, pixels: Pixels) -> Value:
    node = builder.node
    if wanted.quant is not None:
        scale, zero = wanted.quant.scales[0], wanted.quant.zero_points[0] + STORED[wanted.dtype]
        x = node("linear", x, a=scale, b=-scale * zero)
        return node("quantize", x, dtype=wanted.dtype, quant=wanted.quant)  # type: ignore[no-any-return]
    if not wanted.dtype.is_float:
        return node("cast", x, dtype=wanted.dtype)  # type: ignore[no-any-return]
    if pixels.bgr:
        x = node("reverse", x, axes=(3,))
    x = node("linear", x, a=(pixels.high - pixels.low) / 255, b=pixels.low)
    if pixels.mean is not None:
        x = node("div", node("sub", x, list(pixels.mean)), list(pixels.deviation))
    return x
