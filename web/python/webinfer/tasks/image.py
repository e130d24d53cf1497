"""Pictures for tasks: what counts as an image, how it is laid into a model's input, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from webinfer.errors import InputError, LimitError
from webinfer.host.interface import Host
from webinfer.tasks.kernel_constants import BORDER_BLACK
from webinfer.tasks.workspace import Workspace

LARGEST_SIDE = 16384  # pixels


@dataclass(frozen=True, slots=True)
class Picture:
    """RGBA8 pixels, rows without gaps. `pixels` is a buffer or, in the browser, a typed array."""

    width: int
    height: int
    pixels: Any


@dataclass(frozen=True, slots=True)
class Letterbox:
    """A picture centred in a model's input with its aspect kept.

    `scale` is picture pixels per input pixel; the picture's left edge lies `left` picture pixels
    right of the input's, its top edge `top` below.
    """

    scale: float
    left: float
    top: float
    width: int  # of the model's input, pixels
    height: int

    @classmethod
    def fit(cls, picture_width: int, picture_height: int, width: int, height: int) -> Letterbox:
        """The letterbox that shows the whole picture."""
        scale = max(picture_width / width, picture_height / height)
        return cls(scale, (width * scale - picture_width) / 2, (height * scale - picture_height) / 2, width, height)

    def to_image(self, x: float, y: float) -> tuple[float, float]:
        """Picture pixels of a point given in 0..1 of the model's input."""
        return x * self.width * self.scale - self.left, y * self.height * self.scale - self.top

    def matrix(self) -> tuple[float, float, float, float, float, float]:
        """The affine map from centres of input pixels to centres of picture pixels."""
        half = 0.5 * self.scale - 0.5
        return self.scale, 0.0, half - self.left, 0.0, self.scale, half - self.top


def read_image(source: Any, host: Host) -> Picture:
    """The picture in a Pillow image, a uint8 array [H, W, 3 or 4], a `Picture`, or a browser's image.

    Raises:  InputError naming what was found; LimitError if a side is too long
    """
    if isinstance(source, Picture):
        picture = source
    else:
        found = host.image(source)
        picture = Picture(*found) if found is not None else _from_array(source)
    if min(picture.width, picture.height) < 1:
        raise InputError(f"the image is {picture.width}x{picture.height} pixels; it needs at least one")
    if max(picture.width, picture.height) > LARGEST_SIDE:
        raise LimitError(
            "side of the image in pixels", max(picture.width, picture.height), LARGEST_SIDE, "scale it down first"
        )
    return picture


def _from_array(source: Any) -> Picture:
    try:
        view = memoryview(source)
    except TypeError:
        raise InputError(
            f"a {type(source).__name__} is not an image; give a Pillow image or a uint8 array [H, W, 3 or 4]"
        ) from None
    if view.format != "B" or view.ndim != 3 or view.shape is None or view.shape[2] not in (3, 4):
        raise InputError(f"an array {view.shape} of {view.format!r} is not an image; give uint8 [H, W, 3 or 4]")
    height, width, channels = view.shape
    pixels = view.tobytes()
    return Picture(width, height, pixels if channels == 4 else add_alpha(pixels))


def add_alpha(rgb: bytes) -> bytes:
    """RGBA8 from RGB8: whole planes are copied, no pixel is looped over."""
    out = bytearray(b"\xff") * (len(rgb) // 3 * 4)
    for channel in range(3):
        out[channel::4] = rgb[channel::3]
    return bytes(out)


def prepare_image(workspace: Workspace, picture: Picture, box: Letterbox, *, scale: float, offset: float) -> memoryview:
    """The model's input, float32 [1, height, width, 3]: letterboxed, black around, offset + scale * pixel.

    Raises:  InputError if the pixels are not width x height x 4 bytes
    """
    nbytes = picture.width * picture.height * 4
    if (have := _length(picture.pixels)) != nbytes:
        raise InputError(f"the image has {have} bytes, {picture.width}x{picture.height} RGBA needs {nbytes}")
    image = workspace.put("image", picture.pixels, nbytes)
    tensor = workspace.area("tensor", 12 * box.width * box.height)
    args = (
        image,
        tensor,
        picture.width,
        picture.height,
        4 * picture.width,
        box.width,
        BORDER_BLACK,
        *box.matrix(),
        float(scale),
        float(offset),
    )
    workspace.call("u8_image_to_f32", args, box.height)
    return workspace.kernels.read(tensor, 12 * box.width * box.height)


def _length(pixels: Any) -> int:
    length = getattr(pixels, "byteLength", None)
    return int(length) if length is not None else memoryview(pixels).nbytes
