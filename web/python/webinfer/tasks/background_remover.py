"""What stands in front of a picture's background, whatever it is: how much of each pixel belongs to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webinfer.authoring.builder import GraphBuilder
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Graph, Value
from webinfer.host.interface import Host, Progress
from webinfer.models.layouts import HALF_SIGNED, Pixels
from webinfer.models.registry import known_model
from webinfer.session.plan_cache import WithPostprocessing
from webinfer.session.session import Session
from webinfer.tasks.base import PictureTask, ResultField, ResultSchema
from webinfer.tasks.crop import Border, Crop, InputSpec, Size, sizes
from webinfer.tasks.last_plan import LastPlan
from webinfer.tasks.picture_input import PictureFeeder
from webinfer.tasks.pixels import is_picture, opened, picture_size, real, take_pixels
from webinfer.tasks.segmenter import Mask
from webinfer.tensor import Tensor

MATTE = "matte"


def with_matte(model: Any, pixels: Pixels) -> WithPostprocessing:
    """The model with pixels of 0..255 as its input and MATTE [1, height, width, 1] as its only output.

    Models with maps of several stages, as U2-Net and IS-Net, put out the finest one first; the others are not computed.
    """

    def extend(graph: Graph) -> None:
        builder = GraphBuilder(graph.name)
        matte = _matte(builder, graph) if len(graph.inputs) == 1 and is_picture(graph.inputs[0].type) else None
        if matte is None:
            raise ModelFormatError(
                f"{graph.name!r} does not tell a picture's foreground: inputs {[v.type.shape for v in graph.inputs]}, "
                f"outputs {[v.type.shape for v in graph.outputs]}; needed are a picture and a map of one "
                "channel as large"
            )
        take_pixels(graph, pixels)
        builder.output(matte, MATTE)
        builder.extend(graph)

    return WithPostprocessing(model, f"{MATTE}of{pixels}", extend)


def _matte(builder: GraphBuilder, graph: Graph) -> Value | None:
    height, width, _ = picture_size(graph.inputs[0].type)
    shapes = [(1, 1, height, width), (1, height, width, 1), (1, height, width)]
    found = next((v for v in graph.outputs if v.type.shape in shapes), None)
    if found is None:
        return None
    matte: Value = builder.node("reshape", *real(builder, [found]), shape=(1, height, width, 1))
    return matte


class BackgroundRemover(PictureTask[Mask]):
    """Cuts the subject of a picture out of its background. Create one with `await BackgroundRemover.create()`."""

    name = "background-removal"
    extension = MATTE
    result = ResultSchema("mask", "masks", "Masks", "Mask", (ResultField("values", "mask", "0..1"),))

    def __init__(self, session: Session, spec: InputSpec, feeder: PictureFeeder) -> None:
        super().__init__(session, spec, feeder)
        self._scaler = LastPlan(session.host, _larger(session.outputs[0].shape))

    @classmethod
    async def create(
        cls,
        model: Any = "isnet_small",
        *,
        pixels: Pixels | None = None,
        backend: str | Sequence[str] = "auto",
        progress: Progress | None = None,
        host: Host | None = None,
    ) -> BackgroundRemover:
        """Creates a remover. `model` is a known name, bytes, a path or a URL of an IS-Net or another model with a
        picture as its input and a map of one channel, 0..1 and as large, among its outputs.

        `pixels` say what the model wants for a picture's colours; None: as a known model does, else -0.5..0.5. The
        picture is stretched to the model's input.

        Raises:  what `webinfer.load` raises; ModelFormatError if the model is not of that kind
        """
        known = known_model(model)
        source = with_matte(model, pixels or (known.pixels if known else HALF_SIGNED))
        session, spec, feeder = await opened(source, False, backend, progress, host)
        return cls(session, InputSpec(spec.picture, keep_aspect=False, border=Border.EDGE), feeder)

    async def matte(self, image: Any) -> Mask:
        """The alpha matte of an image, in its size: how much of each pixel is foreground, 0..1.

        `image` is anything `webinfer.tasks.image.read_image` takes.

        Raises:  InputError if it is none of these or has no pixels
        """
        (mask,) = await self.run(image)
        return mask

    async def decode(self, outputs: Mapping[str, Tensor], crop: Crop) -> list[Mask]:
        """The matte of the region that the model saw, as large as that."""
        size = sizes(crop)
        (large,) = (await self._scaler.run(size, {MATTE: outputs[MATTE]})).values()
        return [Mask(*size[:2], large.flat())]

    def close(self) -> None:
        """Frees the model and the kernels' memory; a second call does nothing."""
        super().close()
        self._scaler.close()


def _larger(shape: Sequence[int]) -> Any:
    """What builds the graph that makes mattes of this shape as large as pictures are."""

    def build(size: Size) -> GraphBuilder:
        builder = GraphBuilder(MATTE)
        small = builder.input(MATTE, shape)
        builder.output(builder.node("resize_bilinear", small, size=size[1::-1], half_pixel_centers=True))
        return builder

    return build
