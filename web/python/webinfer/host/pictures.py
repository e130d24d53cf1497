"""Pictures that Python holds: Pillow images, picture files, and arrays in whatever order their bytes lie."""

from __future__ import annotations

import importlib
import io
import math
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from webinfer.errors import InputError, OutOfMemoryError

SizeCheck = Callable[[int, int], None]  # of a picture: raises if it is too large
ORIENTATION = 0x0112  # of EXIF; 1 is upright
NOT_TURNED = ("WEBP",)  # formats whose EXIF orientation browsers ignore
CHANNELS = (1, 2, 3, 4)  # grey, grey and alpha, RGB, RGBA
SVG_HEAD = 4096  # bytes within which a drawing begins, behind comments
SPARSE = 4  # an array whose bytes lie in a span more than so many times as large is copied first


class PixelLayout(NamedTuple):
    """Where a picture's bytes lie in its buffer.

    Units:   bytes; steps may be negative, or 0 where they are shared: grey has one byte for its three colours
    """

    first: int  # of the red of the pixel in the left upper corner
    row: int  # from a pixel to the one below it
    pixel: int  # to the one right of it
    channel: int  # from red to green, and from green to blue

    @classmethod
    def rgba(cls, width: int) -> PixelLayout:
        """Four bytes a pixel, rows without gaps."""
        return cls(0, 4 * width, 4, 1)

    def span(self, width: int, rows: range) -> tuple[int, int]:
        """The first byte of these rows, and the one behind their last."""
        ends = [[rows[0] * self.row, rows[-1] * self.row], [0, (width - 1) * self.pixel], [0, 2 * self.channel]]
        return self.first + sum(map(min, ends)), self.first + sum(map(max, ends)) + 1


class Pixels(NamedTuple):
    """A picture's size, the buffer that holds it, and how."""

    width: int
    height: int
    buffer: Any
    layout: PixelLayout


def python_picture(source: Any, check: SizeCheck) -> Pixels | None:
    """The pixels of a Pillow image, or of a picture file: its path or its bytes; None for anything else.

    As a page shows it: turned as its EXIF data say, except in WebP; 16 bits a channel cut to 8; the colours of pixels
    that are partly transparent rounded by their alpha, those of fully transparent ones black; profiles of colours are
    not applied.

    Raises:  what `check` raises; InputError if it cannot be read
    """
    encoded = isinstance(source, bytes | bytearray)
    if encoded or isinstance(source, str | os.PathLike):
        with _opened(io.BytesIO(source) if encoded else source, "picture file" if encoded else f"{source}") as image:
            return _pillow(image, check)
    if all(hasattr(source, name) for name in ("convert", "tobytes", "width", "height")):
        return _pillow(source, check)
    return None


def _opened(file: Any, name: str) -> Any:
    try:
        pillow = importlib.import_module("PIL.Image")
    except ImportError:
        raise InputError(f"{name} cannot be read without Pillow; pip install pillow, or give an array") from None
    try:
        return pillow.open(file)
    except (OSError, ValueError) as error:
        if _is_drawing(file):
            raise InputError(f"{name} is an SVG file, which can only be rendered in a page; save it as PNG") from None
        raise InputError(f"the image {name} cannot be read: {error}; use another file") from error


def _is_drawing(file: Any) -> bool:
    """Whether it is text that begins an SVG drawing."""
    try:
        if isinstance(file, io.BytesIO):
            head = file.getvalue()[:SVG_HEAD]
        else:
            with open(file, "rb") as opened:
                head = opened.read(SVG_HEAD)
    except OSError:
        return False
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") and b"<svg" in head


def _pillow(image: Any, check: SizeCheck) -> Pixels:
    check(image.width, image.height)
    try:
        return _upright(image)
    except (OSError, ValueError, SyntaxError) as error:  # the file behind it is damaged or closed
        raise InputError(f"the image cannot be read: {error}; open it again or use another one") from error
    except MemoryError as error:
        raise OutOfMemoryError(f"no memory for {image.width}x{image.height} pixels; scale it down") from error


def _upright(image: Any) -> Pixels:
    mode = str(getattr(image, "mode", ""))
    turns = hasattr(image, "getexif") and getattr(image, "format", None) not in NOT_TURNED
    if turns and image.getexif().get(ORIENTATION, 1) != 1:
        image = importlib.import_module("PIL.ImageOps").exif_transpose(image)
    width, height = image.width, image.height
    if mode.startswith("I;16") or (mode == "I" and image.getextrema()[1] > 255):  # its upper byte of two
        size, upper = (4, 1) if mode == "I" else (2, 0 if mode == "I;16B" else 1)
        if mode == "I" and sys.byteorder == "big":
            upper = 2
        return Pixels(width, height, image.tobytes(), PixelLayout(upper, size * width, size, 0))
    if mode == "L" and not _transparent(image):
        return Pixels(width, height, image.tobytes(), PixelLayout(0, width, 1, 0))
    if mode == "RGB" and not _transparent(image):
        return Pixels(width, height, image.tobytes("raw", "RGBX"), PixelLayout.rgba(width))
    rgba = image.convert("RGBA")
    if hasattr(rgba, "getchannel") and rgba.getchannel("A").getextrema()[0] < 255:
        rgba = rgba.convert("RGBa").convert("RGBA")  # browsers hold colours times alpha, and round them so
    return Pixels(width, height, memoryview(rgba.tobytes()), PixelLayout.rgba(width))


def _transparent(image: Any) -> bool:
    return "transparency" in getattr(image, "info", {})


def array_picture(source: Any, check: SizeCheck) -> Pixels:
    """The pixels of an array [H, W] or [H, W, 1 to 4] of uint8, or of uint16, whose upper bytes count.

    Nothing is copied, however its axes lie: cut out, mirrored, channels reversed (BGR) or in planes.

    Raises:  InputError if it is another thing; what `check` raises
    """
    wanted = "give a Pillow image, a path, or a uint8 array [H, W], [H, W, 3] or [H, W, 4]"
    try:
        view = memoryview(source)
    except (TypeError, ValueError, BufferError):
        raise InputError(f"a {type(source).__name__} is not an image; {wanted}") from None
    shape, size = view.shape or (), view.itemsize
    if view.format not in ("B", "H") or len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] not in CHANNELS):
        raise InputError(f"an array {view.shape} of {view.format!r} is not an image; {wanted}")
    height, width = shape[:2]
    check(width, height)
    buffer, first, strides = _bytes_of(view)
    coloured = len(shape) == 3 and shape[2] > 2
    upper = size - 1 if sys.byteorder == "little" else 0
    layout = PixelLayout(first + upper, strides[0], strides[1], strides[2] if coloured else 0)
    return Pixels(width, height, buffer, layout)


def _bytes_of(view: memoryview) -> tuple[Any, int, Sequence[int]]:
    """A buffer with the elements of an array, where its first one lies, and the strides of its axes; all in bytes."""
    strides = view.strides or ()
    if view.c_contiguous:
        return view.cast("B"), 0, strides
    reach = [stride * (length - 1) for stride, length in zip(strides, view.shape or (), strict=True)]
    below, above = sum(min(0, r) for r in reach), sum(max(0, r) for r in reach) + view.itemsize
    held = None if above - below > SPARSE * view.nbytes else _held(view, below, above)
    if held is not None:
        return held, -below, strides
    plain = memoryview(view.tobytes())
    sizes = [math.prod((view.shape or ())[axis + 1 :]) * view.itemsize for axis in range(view.ndim)]
    return plain, 0, sizes


def _held(view: memoryview, below: int, above: int) -> memoryview | None:
    try:  # ctypes is loaded only for arrays that are cut out or mirrored
        from webinfer.host.array_memory import memory_of
    except ImportError:
        return None
    return memory_of(view, below, above)
