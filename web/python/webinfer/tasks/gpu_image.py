"""Pictures that become a model's input on the GPU: no pixel passes through memory."""

from __future__ import annotations

import functools
from typing import Any

from webinfer.codegen.elements import Element
from webinfer.codegen.prelude import Access, Param, Slot, f32, pack, u32
from webinfer.codegen.templates import render
from webinfer.dtypes import DType
from webinfer.host.gpu import GpuPictures, GpuTensor, PipelineSpec
from webinfer.session.session import Session
from webinfer.tasks.crop import Border, Crop, Region, Sampling

WORKGROUP = 8  # output pixels a side


def gpu_pictures(
    session: Session, border: Border = Border.BLACK, sampling: Sampling = Sampling.EXACT
) -> GpuPictures | None:
    """What takes pictures to the device that a session runs on; None where there is no such device or no such way."""
    device = session.executor.device
    return None if device is None or device.lost else device.pictures(picture_passes(border, sampling))


def place_image(
    pictures: GpuPictures, image: Any, crop: Crop, size: tuple[int, int], *, scale: float, offset: float
) -> GpuTensor | None:
    """As `tasks.image.prepare_image`, as a tensor that a run of the same device fills; for an image of this size.

    None where the image cannot be read this way. Samples are the kernel's up to rounding (1e-4 of the range); those of
    video frames differ by up to 2/255, and by more where colours end sharply: two parts of a browser smooth them.
    """
    groups = (-(-crop.width // WORKGROUP), -(-crop.height // WORKGROUP))
    params = pack(picture_params(crop, size, 255 * scale, offset))
    picture = pictures.take(image, params, 12 * crop.width * crop.height, groups)
    if picture is None:
        return None
    shape = (1, crop.height, crop.width, 3)
    return GpuTensor(picture, shape, DType.FLOAT32, pictures.device, lambda taken: taken.close())


def picture_params(crop: Crop, size: tuple[int, int], scale: float, offset: float) -> tuple[Param, ...]:
    """The parameters of picture.wgsl: from pixels of a crop to those of an image of `size`, width and height.

    Units:   a pixel of the crop is `scale` times the image's, from 0 to 1, plus `offset`
    """
    ax, ay, a0, bx, by, b0 = crop.matrix()
    width, height = size
    numbers = f32(ax=ax, ay=ay, a0=a0, bx=bx, by=by, b0=b0, scale=scale, offset=offset, width=width, height=height)
    return numbers + u32(ow=crop.width, oh=crop.height)


@functools.cache
def picture_passes(border: Border, sampling: Sampling = Sampling.EXACT) -> dict[str, PipelineSpec]:
    """The pass for textures and the one for video frames."""
    slots = [Slot("y", Element.F32, Access.WRITE, single=True)]
    params = picture_params(Crop(Region.whole(1, 1), 1, 1), (1, 1), 1, 0)

    def spec(way: str) -> PipelineSpec:
        values = {"external": way == "external", "edge": border is Border.EDGE, "workgroup": WORKGROUP}
        values["fixed"] = sampling is Sampling.FIXED
        shader = render("picture", values, slots, params)
        return PipelineSpec(shader.name, shader.code, ("write", "uniform", way))

    return {way: spec(way) for way in ("texture", "external")}
