"""Pictures for tasks: what counts as an image, and how it becomes a model's input."""

from __future__ import annotations

from typing import Any

from webinfer.errors import InputError, LimitError
from webinfer.host.interface import Host
from webinfer.host.pictures import PixelLayout, array_picture
from webinfer.lazy_dataclass import dataclass
from webinfer.tasks.crop import Border, Crop, Sampling
from webinfer.tasks.sampled import Sampled, sampled
from webinfer.tasks.workspace import Workspace

MAX_SIDE = 16384  # pixels
MAX_PIXELS = 100_000_000  # their bytes may be held twice while they are read
KERNEL = "u8_picture_to_f32"  # turns pixels into a model's input; split over output rows


@dataclass(frozen=True, slots=True)
class Picture:
    """Pixels of 8 bits a channel. `pixels` is a buffer or, in the browser, a typed array.

    `layout` says where each pixel's bytes lie in it; None: RGBA, rows without gaps.
    """

    width: int
    height: int
    pixels: Any
    layout: PixelLayout | None = None

    @property
    def steps(self) -> PixelLayout:
        """Where pixels lie."""
        return self.layout or PixelLayout.rgba(self.width)


def read_image(source: Any, host: Host) -> Picture:
    """The picture in a Pillow image, a picture file (its path or its bytes), an array, or a browser's image.

    Arrays are [H, W], [H, W, 3] or [H, W, 4] of uint8, with any strides, or of uint16. They are not copied: BGR is
    `frame[..., ::-1]`.

    Raises:  InputError naming what was found; LimitError if a side is too long
    """
    if isinstance(source, Picture):
        check_size(source.width, source.height)
        return source
    found = host.image(source, check_size)
    return Picture(*(found if found is not None else array_picture(source, check_size)))


def check_size(width: int, height: int) -> None:
    """Nothing, for a picture that may be read.

    Raises:  InputError if it has no pixels; LimitError if a side is too long, or there are too many pixels
    """
    if min(width, height) < 1:
        raise InputError(f"the image is {width}x{height} pixels; it needs at least one")
    if max(width, height) > MAX_SIDE:
        raise LimitError("side of the image in pixels", max(width, height), MAX_SIDE, "scale it down first")
    if width * height > MAX_PIXELS:
        raise LimitError("pixels of the image", width * height, MAX_PIXELS, "scale it down first")


def prepare_image(
    workspace: Workspace, picture: Picture, crop: Crop, *, scale: float, offset: float,
    border: Border = Border.BLACK, sampling: Sampling = Sampling.EXACT,
) -> memoryview:  # fmt: skip
    """The model's input, float32 [1, height, width, 3]: the crop of the picture, `offset + scale * pixel`.

    Raises:  InputError if there are fewer pixels than width x height
    """
    seen = sampled(picture, crop, sampling)
    image = workspace.put("image", seen.data, seen.nbytes)
    tensor = workspace.area("tensor", 12 * crop.width * crop.height)
    numbers = kernel_arguments(image, tensor, picture, seen, crop, scale, offset, border, sampling)
    workspace.call(KERNEL, numbers, crop.height)
    return workspace.kernels.read(tensor, 12 * crop.width * crop.height)


def kernel_arguments(
    image: int, tensor: int, picture: Picture, seen: Sampled, crop: Crop, scale: float, offset: float,
    border: Border, sampling: Sampling,
) -> tuple[int | float, ...]:  # fmt: skip
    """What the picture kernel takes for bytes that lie at `image` and a model's input at `tensor`."""
    steps, (ax, ay, a0, bx, by, b0) = picture.steps, crop.matrix()
    return (
        image + seen.red, tensor, picture.width, len(seen.rows), seen.row, steps.pixel, steps.channel, crop.width,
        int(border), int(sampling), *seen.pairs,
        ax, ay, a0, bx, by, b0 - seen.rows[0], float(scale), float(offset),
    )  # fmt: skip
