"""Models of any element type that take a picture: pixels of 0..255 go in, what the model wants is made in the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webinfer.authoring.builder import GraphBuilder
from webinfer.dtypes import DType
from webinfer.graph.ir import Graph, TensorType, Value
from webinfer.host import current
from webinfer.host.interface import Host, Progress
from webinfer.models.layouts import SIGNED, PictureInput, Pixels
from webinfer.models.registry import known_model
from webinfer.session.loading import load
from webinfer.session.session import Session
from webinfer.tasks.crop import InputSpec
from webinfer.tasks.picture_input import PictureFeeder, closed_on_error

PICTURE = "picture"
COLUMNS_USED, ROWS_USED = "columns_used", "rows_used"
STORED = {DType.UINT8: 0, DType.INT8: 128}  # what a stored 0 lies above the least


async def opened(
    source: Any, keep_aspect: bool, backend: str | Sequence[str], progress: Progress | None, host: Host | None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> tuple[Session, InputSpec, PictureFeeder]:  # fmt: skip
    """A session of a model that takes PICTURE first, warm, and what brings pictures to it, stretched or fitted in.

    `shapes` are those of `webinfer.load`.

    Raises:  what `webinfer.load` raises
    """
    session = await load(source, backend=backend, progress=progress, shapes=shapes, host=host or current())
    with closed_on_error(session):
        _, height, width, _ = session.inputs[0].shape
        feeder = await PictureFeeder.create(session)
        await session.warmup()
    return session, InputSpec(PictureInput(width, height, 1.0, 0.0), keep_aspect), feeder


def pixels_of(model: Any, given: Pixels | None) -> Pixels:
    """What a float model wants for a picture's colours: as given, else as a known model does, else -1..1."""
    known = known_model(model)
    return given or (known.pixels if known else SIGNED)


def is_picture(wanted: TensorType) -> bool:
    """Whether a model's input can be made of a picture: [1, height, width, 3] or [1, 3, height, width]."""
    known = (
        wanted.dtype.is_float or wanted.dtype is DType.INT32 or (wanted.dtype in STORED and wanted.quant is not None)
    )
    return wanted.rank == 4 and wanted.shape[0] == 1 and 3 in (wanted.shape[1], wanted.shape[3]) and known


def picture_size(wanted: TensorType) -> tuple[int, int, bool]:
    """Height and width of the picture that an input is made of, and whether its channels are planes."""
    _, first, second, last = wanted.shape
    return (first, second, False) if last == 3 else (second, last, True)


def real(builder: GraphBuilder, values: Sequence[Value]) -> list[Value]:
    """A model's outputs as real numbers, where it stores integers for them."""
    return [v if v.type.dtype.is_float else builder.node("dequantize", v, dtype="float32") for v in values]


def take_pixels(graph: Graph, pixels: Pixels, filling: float | None = None) -> None:
    """Makes PICTURE [1, height, width, 3], float32 pixels of 0..255, the only input of a graph of one picture.

    With a `filling`, a grey of 0..255, two more inputs say with ones where the picture lies: ROWS_USED
    [1, height, 1, 1] and COLUMNS_USED [1, 1, width, 1].
    """
    builder, (given,) = GraphBuilder(graph.name), graph.inputs
    height, width, planes = picture_size(given.type)
    picture: Value = builder.input(PICTURE, (1, height, width, 3))
    if filling is not None:
        rows, columns = builder.input(ROWS_USED, (1, height, 1, 1)), builder.input(COLUMNS_USED, (1, 1, width, 1))
        inside = builder.node(
            "mul", builder.node("linear", picture, a=1.0, b=-filling), builder.node("mul", rows, columns)
        )
        picture = builder.node("linear", inside, a=1.0, b=filling)
    made = _values(builder, picture, given.type, pixels)
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
