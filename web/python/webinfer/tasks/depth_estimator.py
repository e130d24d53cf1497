"""How far away each pixel of a picture is, next to the others: relative depth of one picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webinfer.authoring.builder import GraphBuilder
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Graph, Value
from webinfer.host.interface import Host, Progress
from webinfer.lazy_dataclass import dataclass
from webinfer.models.layouts import IMAGENET, Pixels
from webinfer.models.registry import known_model
from webinfer.session.plan_cache import WithPostprocessing
from webinfer.session.session import Session
from webinfer.tasks.base import PictureTask, PixelMap, ResultField, ResultSchema
from webinfer.tasks.crop import Border, Crop, InputSpec, Size, sizes
from webinfer.tasks.last_plan import LastPlan
from webinfer.tasks.picture_input import PictureFeeder
from webinfer.tasks.pixels import is_picture, opened, real, take_pixels
from webinfer.tensor import Tensor

DEPTH, RANGE = "depth", "range"
TINY = 1e-12


@dataclass(frozen=True, slots=True)
class DepthMap(PixelMap):
    """Depth of each pixel of a picture, float32, row by row, from 0 (the model's least number) to 1 (its largest).

    Models of inverse depth, as MiDaS and Depth Anything, give near things large numbers. `low` and `high` are the
    model's own numbers for 0 and 1.
    """

    width: int
    height: int
    values: memoryview
    low: float
    high: float


def with_depth(model: Any, pixels: Pixels) -> WithPostprocessing:
    """The model with pixels of 0..255 as its input, and DEPTH [1, height, width, 1] of 0..1 and RANGE [2] as output."""

    def extend(graph: Graph) -> None:
        builder = GraphBuilder(graph.name)
        depth = _map(builder, graph) if len(graph.inputs) == 1 and is_picture(graph.inputs[0].type) else None
        if depth is None:
            raise ModelFormatError(
                f"{graph.name!r} does not estimate depth: inputs {[v.type.shape for v in graph.inputs]}, outputs "
                f"{[v.type.shape for v in graph.outputs]}; needed are a picture and a map of one channel"
            )
        node, axes = builder.node, (0, 1, 2, 3)
        low, high = (node(f"reduce_{end}", depth, axes=axes, keep_dims=True) for end in ("min", "max"))
        span = node("maximum", node("sub", high, low), TINY)
        take_pixels(graph, pixels)
        builder.output(node("div", node("sub", depth, low), span), DEPTH)
        ends = node("concat", *(node("reshape", end, shape=(1,)) for end in (low, high)), axis=0)
        builder.output(ends, RANGE)
        builder.extend(graph)

    return WithPostprocessing(model, f"{DEPTH}of{pixels}", extend)


def _map(builder: GraphBuilder, graph: Graph) -> Value | None:
    """The first output that is a map of one channel, as [1, height, width, 1]."""
    for value in graph.outputs:
        sides = tuple(size for size in value.type.shape if size > 1)
        if len(sides) == 2 and value.type.rank in (3, 4):
            depth: Value = builder.node("reshape", *real(builder, [value]), shape=(1, *sides, 1))
            return depth
    return None


class DepthEstimator(PictureTask[DepthMap]):
    """Estimates the depth of each pixel. Create one with `await DepthEstimator.create(model)`."""

    name = "depth-estimation"
    extension = DEPTH
    result = ResultSchema("mask", "depths", "Depth maps", "Depth map", (ResultField("values", "mask", "0..1"),))

    def __init__(self, session: Session, spec: InputSpec, feeder: PictureFeeder) -> None:
        super().__init__(session, spec, feeder)
        self._scaler = LastPlan(session.host, self._larger)

    @classmethod
    async def create(
        cls,
        model: Any,
        *,
        pixels: Pixels | None = None,
        backend: str | Sequence[str] = "auto",
        progress: Progress | None = None,
        host: Host | None = None,
    ) -> DepthEstimator:
        """Creates an estimator. `model` is bytes, a path or a URL of a model with a picture as its input and a
        map of one channel as an output: MiDaS, DPT and Depth Anything are such. The picture is stretched to its input.

        `pixels` say what the model wants for a picture's colours; None: ImageNet's means and deviations, as these do.

        Raises:  what `webinfer.load` raises; ModelFormatError if the model is not of that kind
        """
        known = known_model(model)
        source = with_depth(model, pixels or (known.pixels if known else IMAGENET))
        session, spec, feeder = await opened(source, False, backend, progress, host)
        return cls(session, InputSpec(spec.picture, keep_aspect=False, border=Border.EDGE), feeder)

    async def estimate(self, image: Any) -> DepthMap:
        """The depth of each pixel of an image, anything that `webinfer.tasks.image.read_image` accepts.

        Raises:  InputError if it is none of these or has no pixels
        """
        (depth,) = await self.run(image)
        return depth

    async def decode(self, outputs: Mapping[str, Tensor], crop: Crop) -> list[DepthMap]:
        """The depth of the region that the model saw, as large as that."""
        size, (low, high) = sizes(crop), outputs[RANGE].tolist()
        (large,) = (await self._scaler.run(size, {DEPTH: outputs[DEPTH]})).values()
        return [DepthMap(*size[:2], large.flat(), low, high)]

    def _larger(self, size: Size) -> GraphBuilder:
        builder = GraphBuilder(DEPTH)
        small = builder.input(DEPTH, self.session.outputs[0].shape)
        builder.output(builder.node("resize_bilinear", small, size=size[1::-1], half_pixel_centers=True))
        return builder

    def close(self) -> None:
        """Frees the model and the kernels' memory; a second call does nothing."""
        super().close()
        self._scaler.close()
