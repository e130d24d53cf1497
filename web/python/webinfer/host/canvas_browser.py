"""The pixels of what a browser can draw, read from a canvas."""

from __future__ import annotations

from typing import Any

import js

from webinfer.errors import InputError
from webinfer.host.kernels_browser import options
from webinfer.host.pictures import SizeCheck

IMAGE_CLASSES = (
    "ImageBitmap",
    "VideoFrame",
    "HTMLVideoElement",
    "HTMLImageElement",
    "HTMLCanvasElement",
    "OffscreenCanvas",
)


class Canvas:
    """A canvas out of sight, made when a picture first needs it."""

    def __init__(self) -> None:
        self._canvas: Any = None
        self._context: Any = None

    def pixels_of(self, source: Any, check: SizeCheck) -> tuple[int, int, Any] | None:
        """(width, height, RGBA8 in a typed array) of ImageData or a picture of the browser; None for another thing.

        Raises:  InputError if there are no pixels yet, or the browser scrambles them; what `check` raises
        """
        kind = str(getattr(source.constructor, "name", ""))
        if kind == "ImageData":
            check(int(source.width), int(source.height))
            return int(source.width), int(source.height), source.data
        if kind not in IMAGE_CLASSES:
            return None
        width, height = _size(source)
        if width < 1 or height < 1:
            raise InputError(f"the {kind} has no pixels ({width}x{height}); wait until it is loaded")
        check(width, height)
        if self._canvas is None:
            canvas = js.OffscreenCanvas.new(width, height)
            self._context = canvas.getContext("2d", options(willReadFrequently=True))
            _check_pixels(self._context)
            self._canvas = canvas
        if (self._canvas.width, self._canvas.height) != (width, height):
            self._canvas.width, self._canvas.height = width, height
        self._context.clearRect(0, 0, width, height)
        self._context.drawImage(source, 0, 0)
        return width, height, self._context.getImageData(0, 0, width, height).data


def _check_pixels(context: Any) -> None:
    """Draws a square and reads it.

    Raises:  InputError if what is read is something else: so browsers hide what canvases tell of a machine
    """
    context.fillStyle = "#123456"
    context.fillRect(0, 0, 8, 8)
    read = bytes(context.getImageData(0, 0, 8, 8).data.to_py())
    if any(abs(a - b) > 8 for a, b in zip(read, b"\x12\x34\x56\xff" * 64, strict=True)):
        raise InputError(
            "this browser scrambles the pixels that pages read from pictures (resistance to fingerprinting): "
            "nothing could be found in them. Allow this site to extract canvas data, then reload; or use WebGPU, "
            "where the browser still offers it"
        )


def _size(source: Any) -> tuple[int, int]:
    for width, height in (
        ("displayWidth", "displayHeight"),
        ("videoWidth", "videoHeight"),
        ("naturalWidth", "naturalHeight"),
        ("width", "height"),
    ):
        if getattr(source, width, None) is not None:
            return int(getattr(source, width)), int(getattr(source, height))
    return 0, 0
