"""Who is in a picture and who is background: a mask with the probability of each pixel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webinfer.authoring.builder import GraphBuilder
from webinfer.errors import ModelFormatError
from webinfer.host import current
from webinfer.host.interface import Host, Progress
from webinfer.lazy_dataclass import dataclass
from webinfer.models.layouts import SELFIE, SELFIE_LANDSCAPE, PictureInput
from webinfer.session.loading import load
from webinfer.session.session import Session
from webinfer.tasks.base import PictureTask, PixelMap, ResultField, ResultSchema
from webinfer.tasks.crop import Border, Crop, InputSpec, Size, sizes
from webinfer.tasks.gpu_mask import GpuMask, MaskPainter, mask_painter
from webinfer.tasks.last_plan import LastPlan
from webinfer.tasks.picture_input import PictureFeeder, closed_on_error
from webinfer.tensor import Tensor

INPUTS: dict[tuple[int, ...], PictureInput] = {
    (1, kind.height, kind.width, 3): kind for kind in (SELFIE, SELFIE_LANDSCAPE)
}


def segmentation_spec(name: str, given: tuple[int, ...], outputs: list[tuple[int, ...]]) -> InputSpec:
    """How pictures are laid into a selfie segmentation model with this input.

    Raises:  ModelFormatError if it is not such a model
    """
    kind = INPUTS.get(given)
    if kind is None or outputs != [(1, kind.height, kind.width, 1)]:
        raise ModelFormatError(
            f"{name!r} is not a selfie segmentation model: input {given}; known are "
            f"{', '.join(map(str, INPUTS))} with a mask of that size as the only output"
        )
    return InputSpec.of_mediapipe(kind, keep_aspect=False, border=Border.EDGE)


@dataclass(frozen=True, slots=True)
class Mask(PixelMap):
    """Probabilities 0..1 that a pixel belongs to a person, float32, row by row, over all of the picture."""

    width: int
    height: int
    values: memoryview


class SelfieSegmenter(PictureTask[Mask]):
    """Separates people from the background. Create one with `await SelfieSegmenter.create()`.

    `model="selfie_segmentation_landscape"` is faster and made for wide pictures.
    """

    name = "segmentation"
    result = ResultSchema("mask", "masks", "Masks", "Mask", (ResultField("values", "mask", "0..1"),))

    def __init__(self, session: Session, spec: InputSpec, feeder: PictureFeeder, full_size: bool) -> None:
        super().__init__(session, spec, feeder)
        self._full_size = full_size
        self._scaler = LastPlan(session.host, self._larger)

    @classmethod
    async def create(
        cls,
        model: Any = "selfie_segmentation",
        *,
        full_size: bool = True,
        backend: str | Sequence[str] = "auto",
        progress: Progress | None = None,
        host: Host | None = None,
    ) -> SelfieSegmenter:
        """Creates a segmenter. `model` is a known name, bytes, a path or a URL.

        Masks are as large as the picture; without `full_size` as large as the model's output.

        Raises:  what `webinfer.load` raises; ModelFormatError if the model is not a selfie segmentation model
        """
        session = await load(model, backend=backend, progress=progress, host=host or current())
        with closed_on_error(session):
            spec = segmentation_spec(session.name, session.inputs[0].shape, [o.shape for o in session.outputs])
            segmenter = cls(session, spec, await PictureFeeder.create(session), full_size)
            await session.warmup()
        return segmenter

    async def segment(self, image: Any) -> Mask:
        """The mask of an image, which is anything that `webinfer.tasks.image.read_image` accepts.

        Raises:  InputError if it is none of these or has no pixels
        """
        (mask,) = await self.run(image)
        return mask

    async def segment_on_gpu(self, image: Any) -> GpuMask[Mask]:
        """Like `segment`, but returns immediately and leaves the mask on the GPU; its `read` copies it.

        Raises:  InputError as `segment`, and if the model does not run on a GPU
        """
        outputs, crop = await self._feeder.run_on_gpu(image, self.spec)
        (tensor,) = outputs.values()

        async def read(small: Tensor) -> Mask:
            return (await self.decode({"mask": small}, crop))[0]

        return GpuMask(tensor, read)

    async def painter(self) -> MaskPainter:
        """A painter that blurs or replaces the background of pictures, entirely on the GPU.

        Raises:  InputError where the model does not run on a browser's GPU; GpuError; DeviceLostError
        """
        return await mask_painter(self.session, self.spec)

    async def decode(self, outputs: Mapping[str, Tensor], crop: Crop) -> list[Mask]:
        """The mask of the region that the model saw."""
        (small,), size = outputs.values(), sizes(crop)
        if not self._full_size:
            _, height, width, _ = small.shape
            return [Mask(width, height, small.flat())]
        (large,) = (await self._scaler.run(size, {"mask": small})).values()
        return [Mask(*size[:2], large.flat())]

    def _larger(self, size: Size) -> GraphBuilder:
        builder = GraphBuilder("mask")
        small = builder.input("mask", self.session.outputs[0].shape)
        builder.output(builder.node("resize_bilinear", small, size=size[1::-1], half_pixel_centers=True))
        return builder

    def close(self) -> None:
        """Frees the model and the kernels' memory; a second call does nothing."""
        super().close()
        self._scaler.close()
