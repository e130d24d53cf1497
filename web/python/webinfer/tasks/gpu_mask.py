"""Masks that stay on the GPU, and pictures that are painted there as their masks say: no pixel is read back."""

from __future__ import annotations

import functools
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any, Generic, TypeVar

from webinfer.backends.base import GpuExecutor
from webinfer.codegen.elements import Element
from webinfer.codegen.prelude import Access, Param, Slot, f32, pack, u32
from webinfer.codegen.templates import render
from webinfer.errors import InputError
from webinfer.host.gpu import GpuPainter, GpuTensor, PipelineSpec
from webinfer.lazy_dataclass import dataclass
from webinfer.session.session import Session
from webinfer.tasks.crop import InputSpec, Region
from webinfer.tasks.gpu_image import WORKGROUP, gpu_pictures, picture_params
from webinfer.tensor import Tensor

Found = TypeVar("Found")
Colour = tuple[float, float, float, float]  # red, green, blue, and how much of it: each 0..1
CLEAR: Colour = (0.0, 0.0, 0.0, 0.0)
LEAST, MOST = 0.25, 0.75  # probabilities that are background and foreground for sure
SMALL = 80  # pixels of the longer side of the copy that is blurred
SIGMA, REACH = 2.0, 5  # of its blur, pixels: a fortieth of the picture's longer side


class GpuMask(Generic[Found]):
    """A mask that stays on the GPU until `read` copies its values; `close` releases its buffer.

    `tensor` is the model's output [1, height, width, 1], float32, for your own shaders or for another model.
    """

    def __init__(self, tensor: GpuTensor, read: Callable[[Tensor], Awaitable[Found]]) -> None:
        self.tensor, self._read = tensor, read

    async def read(self) -> Found:
        """The mask in memory, as the task's own method for pictures tells it.

        Raises:  DeviceLostError; ClosedError
        """
        return await self._read(await self.tensor.read())

    def close(self) -> None:
        """Returns the buffer to the session; further calls do nothing."""
        self.tensor.close()


@dataclass(frozen=True, slots=True)
class MaskLook:
    """How a picture is painted: colours with opacity over the foreground (`front`) and the background (`back`).

    `blurred` blurs the background instead, `cut` makes it transparent.
    """

    front: Colour = CLEAR
    back: Colour = CLEAR
    blurred: bool = False
    cut: bool = False


class MaskPainter:
    """Paints pictures as a model's masks of them say: one submit from the picture to the paint, nothing is read."""

    def __init__(self, painter: GpuPainter, session: Session) -> None:
        self._painter, self._executor = painter, session.executor

    @property
    def handle(self) -> Any:
        """What paints, for JavaScript: `await handle.paint(frame, look)` with a look as JSON; Python is not asked."""
        return self._painter.handle

    async def paint(self, picture: Any, look: MaskLook) -> Any:
        """The picture (a VideoFrame, video, ImageBitmap or canvas) as an ImageBitmap; None if no texture is made of it.

        It is not waited for: it may be drawn at once. After the loss of a device make another painter.

        Raises:  DeviceLostError; GpuError
        """
        return await self._painter.paint(picture, json.dumps(asdict(look)))

    def close(self) -> None:
        """Frees its buffers; the session stays open."""
        self._painter.close()


async def mask_painter(session: Session, spec: InputSpec) -> MaskPainter:
    """A painter for a model whose first input is the picture and whose only output is a mask [1, height, width, 1].

    Raises:  InputError where the session does not run on a GPU that takes pictures; GpuError; DeviceLostError
    """
    pictures = gpu_pictures(session, spec.border)
    if pictures is None:
        raise InputError(f"{session.name!r} runs on {session.backend}; masks are painted on a browser's GPU")
    assert isinstance(session.executor, GpuExecutor)
    recording, specs = await session.executor.recording(), list(_passes().values())
    numbers = pictures.device.start_pipelines(specs)
    await pictures.device.pipelines_ready(numbers)
    (picture,), (mask,) = recording.inputs.values(), recording.outputs.values()
    number = dict(zip(_passes(), numbers, strict=True))
    recipe = {
        "first": recording.first,
        "count": recording.count,
        "input": picture.span.buffer,
        "nbytes": picture.span.nbytes,
        "mask": {"buffer": mask.span.buffer, "offset": mask.span.offset, "size": mask.span.nbytes},
        "small": 16 * SMALL * SMALL,
        "passes": {
            "texture": {"small": number["small texture"], "paint": number["paint texture"]},
            "external": {"small": number["small external"], "paint": number["paint external"]},
            "blur": number["blur"],
        },
    }
    _, high, wide, _ = session.outputs[0].shape

    def sized(width: int, height: int, look: str) -> tuple[Mapping[str, Any], list[bytes]]:
        crop, chosen = spec.crop(Region.whole(width, height)), json.loads(look)
        taken = picture_params(crop, (width, height), 255 * spec.picture.scale, spec.picture.offset)
        small, paint = _small_params(width, height), _paint_params((width, height), (wide, high), chosen)
        sides = {"picture": (crop.width, crop.height), "small": _small(width, height), "paint": (width, height)}
        groups = {name: [-(-side // WORKGROUP) for side in both] for name, both in sides.items()}
        return {"groups": groups, "blurred": chosen["blurred"]}, [pack(taken), pack(small), pack(paint)]

    return MaskPainter(pictures.painter(recording.program, recipe, sized), session)


def _small(width: int, height: int) -> tuple[int, int]:
    """The size of the small copy of a picture, in pixels."""
    part = SMALL / max(width, height)
    return max(1, round(part * width)), max(1, round(part * height))


def _small_params(width: int, height: int) -> tuple[Param, ...]:
    across, down = _small(width, height)
    return u32(sw=across, sh=down) + f32(sigma=SIGMA)


def _paint_params(size: tuple[int, int], mask: tuple[int, int], look: Mapping[str, Any]) -> tuple[Param, ...]:
    across, down = _small(*size)
    counts = u32(width=size[0], height=size[1], mw=mask[0], mh=mask[1], sw=across, sh=down)
    flags = u32(blurred=int(look["blurred"]), cut=int(look["cut"]))
    layers = {f"{layer}_{part}": n for layer in ("front", "back") for part, n in zip("rgba", look[layer], strict=True)}
    return counts + flags + f32(least=LEAST, most=MOST, **layers)


@functools.cache
def _passes() -> dict[str, PipelineSpec]:
    """The passes behind the model: small copies and paint for textures and for video frames, and the blur."""
    size, look = _small_params(1, 1), _paint_params((1, 1), (1, 1), asdict(MaskLook()))
    mask, small = Slot("m", Element.F32, Access.READ, single=True), Slot("b", Element.F32, Access.READ)
    x, y = Slot("x", Element.F32, Access.READ), Slot("y", Element.F32, Access.WRITE)
    found = {}
    for way in ("texture", "external"):
        values = {"external": way == "external", "workgroup": WORKGROUP}
        copied = render("frame_small", values, [y], size)
        found[f"small {way}"] = PipelineSpec(copied.name, copied.code, ("write", "uniform", way))
        painted = render("mask_paint", values, [mask, small], look)
        kinds = ("read", "read", "uniform", way, "canvas")
        found[f"paint {way}"] = PipelineSpec(painted.name, painted.code, kinds)
    blur = render("blur_small", {"workgroup": WORKGROUP, "reach": REACH}, [x, y], size)
    found["blur"] = PipelineSpec(blur.name, blur.code, ("read", "write", "uniform"))
    return found
