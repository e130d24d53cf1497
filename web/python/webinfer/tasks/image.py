"""Pictures for tasks: what counts as an image, and how it becomes a model's input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from webinfer.errors import InputError, LimitError
from webinfer.host.interface import Host
from webinfer.tasks.crop import Border, Crop
from webinfer.tasks.workspace import Workspace

MAX_SIDE = 16384  # pixels
MAX_PIXELS = 100_000_000  # their bytes are held twice while they are read
KERNEL = "u8_image_to_f32"  # turns RGBA8 pixels into a model's input; split over output rows


@dataclass(frozen=True, slots=True)
class Picture:
    """RGBA8 pixels, rows without gaps. `pixels` is a buffer or, in the browser, a typed array."""

    width: int
    height: int
    pixels: Any


def read_image(source: Any, host: Host) -> Picture:
    """The picture in a Pillow image, a uint8 array [H, W, 3 or 4], a `Picture`, or a browser's image.

    Raises:  InputError naming what was found; LimitError if a side is too long
    """
    if isinstance(source, Picture):
        check_size(source.width, source.height)
        return source
    found = host.image(source, check_size)
    return Picture(*found) if found is not None else _from_array(source)


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


def _from_array(source: Any) -> Picture:
    try:
        view = memoryview(source)
    except (TypeError, ValueError, BufferError):
        raise InputError(
            f"a {type(source).__name__} is not an image; give a Pillow image or a uint8 array [H, W, 3 or 4]"
        ) from None
    if view.format != "B" or view.ndim != 3 or view.shape is None or view.shape[2] not in (3, 4):
        raise InputError(f"an array {view.shape} of {view.format!r} is not an image; give uint8 [H, W, 3 or 4]")
    height, width, channels = view.shape
    check_size(width, height)
    pixels = view.tobytes()
    return Picture(width, height, pixels if channels == 4 else add_alpha(pixels))


def add_alpha(rgb: bytes) -> bytes:
    """RGBA8 from RGB8: whole planes are copied, no pixel is looped over."""
    out = bytearray(b"\xff") * (len(rgb) // 3 * 4)
    for channel in range(3):
        out[channel::4] = rgb[channel::3]
    return bytes(out)


def prepare_image(
    workspace: Workspace, picture: Picture, crop: Crop, *, scale: float, offset: float, border: Border = Border.BLACK
) -> memoryview:
    """The model's input, float32 [1, height, width, 3]: the crop of the picture, `offset + scale * pixel`.

    Raises:  InputError if the pixels are not width x height x 4 bytes
    """
    image = workspace.put("image", picture.pixels, checked_bytes(picture))
    tensor = workspace.area("tensor", 12 * crop.width * crop.height)
    workspace.call(KERNEL, kernel_arguments(image, tensor, picture, crop, scale, offset, border), crop.height)
    return workspace.kernels.read(tensor, 12 * crop.width * crop.height)


def checked_bytes(picture: Picture) -> int:
    """The bytes of a picture's pixels.

    Raises:  InputError if they are not width x height x 4
    """
    nbytes = picture.width * picture.height * 4
    if (have := _length(picture.pixels)) != nbytes:
        raise InputError(f"the image has {have} bytes, {picture.width}x{picture.height} RGBA needs {nbytes}")
    return nbytes


def kernel_arguments(
    image: int, tensor: int, picture: Picture, crop: Crop, scale: float, offset: float, border: Border
) -> tuple[int | float, ...]:
    """What the picture kernel is called with, for pixels at `image` and a model's input at `tensor`."""
    size = (picture.width, picture.height, 4 * picture.width)
    return (image, tensor, *size, crop.width, int(border), *crop.matrix(), float(scale), float(offset))


def _length(pixels: Any) -> int:
    length = getattr(pixels, "byteLength", None)
    return int(length) if length is not None else memoryview(pixels).nbytes
