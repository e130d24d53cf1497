"""Pictures for tasks: what counts as an image, and how it becomes a model's input."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from webinfer.errors import InputError, LimitError
from webinfer.host.interface import Host
from webinfer.host.pictures import PixelLayout, array_picture
from webinfer.tasks.crop import Border, Crop, Sampling
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

    def rows_for(self, crop: Crop) -> range:
        """The rows that a crop shows, one at least: no others need to be brought to the kernel."""
        _, _, _, across, down, start = crop.matrix()
        ends = [start + across * x + down * y for x in (0, crop.width - 1) for y in (0, crop.height - 1)]
        first = min(max(math.floor(min(ends)) - 1, 0), self.height - 1)
        return range(first, max(min(math.ceil(max(ends)) + 2, self.height), first + 1))


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
    rows, data, nbytes = shown_bytes(picture, crop)
    image = workspace.put("image", data, nbytes)
    tensor = workspace.area("tensor", 12 * crop.width * crop.height)
    numbers = kernel_arguments(image, tensor, picture, rows, crop, scale, offset, border, sampling)
    workspace.call(KERNEL, numbers, crop.height)
    return workspace.kernels.read(tensor, 12 * crop.width * crop.height)


def shown_bytes(picture: Picture, crop: Crop) -> tuple[range, Any, int]:
    """The rows of a picture that a crop shows, a buffer of what holds them, and its bytes; all where it is no buffer.

    Raises:  InputError if the buffer is too short, or RGBA of another size
    """
    everything, have = range(picture.height), _length(picture.pixels)
    first, end = picture.steps.span(picture.width, everything)
    if first < 0 or end > have or (picture.layout is None and have != 4 * picture.width * picture.height):
        size = f"{picture.width}x{picture.height}"
        raise InputError(f"the image has {have} bytes, {size} RGBA needs {4 * picture.width * picture.height}")
    if hasattr(picture.pixels, "byteLength"):
        return everything, picture.pixels, have
    rows = picture.rows_for(crop)
    first, end = picture.steps.span(picture.width, rows)
    return rows, memoryview(picture.pixels).cast("B")[first:end], end - first


def kernel_arguments(
    image: int, tensor: int, picture: Picture, rows: range, crop: Crop, scale: float, offset: float,
    border: Border, sampling: Sampling,
) -> tuple[int | float, ...]:  # fmt: skip
    """What the picture kernel takes for the bytes of these rows at `image` and a model's input at `tensor`."""
    steps, whole = picture.steps, hasattr(picture.pixels, "byteLength")
    red = image + steps.first + rows[0] * steps.row - (0 if whole else steps.span(picture.width, rows)[0])
    ax, ay, a0, bx, by, b0 = crop.matrix()
    return (
        red, tensor, picture.width, len(rows), *steps[1:], crop.width, int(border), int(sampling),
        ax, ay, a0, bx, by, b0 - rows[0], float(scale), float(offset),
    )  # fmt: skip


def _length(pixels: Any) -> int:
    length = getattr(pixels, "byteLength", None)
    return int(length) if length is not None else memoryview(pixels).nbytes
