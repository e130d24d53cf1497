"""The bytes of a picture that the picture kernel reads for a crop, as they are laid into kernel memory."""

from __future__ import annotations

import math
from array import array
from functools import lru_cache
from typing import Any, NamedTuple

from webinfer.errors import InputError
from webinfer.host.pictures import PixelLayout
from webinfer.tasks.crop import Crop, Sampling

STEPS = 32  # fixed sampling rounds positions to so many parts of a pixel
PIECE_BYTES = 4096  # are copied in the time that a piece takes besides (Xeon with AVX-512: 0.3 us)


class Sampled(NamedTuple):
    """Bytes that hold what a crop shows, and how the kernel finds pixels in them."""

    data: Any  # a buffer, a typed array, or buffers that lie one behind the other
    nbytes: int
    red: int  # where the leftmost pixel of the first row has its red byte; it need not be there
    row: int  # bytes from a row to the next
    rows: range  # of the picture
    pairs: tuple[int, int] = (0, 0)  # where only rows lie that output rows sample: how many pairs, and rows before them


class _Pieces(NamedTuple):
    """Parts of equal size of a picture's rows."""

    slices: tuple[slice, ...]
    nbytes: int  # of each
    red: int
    rows: range
    pairs: tuple[int, int]


def sampled(picture: Any, crop: Crop, sampling: Sampling) -> Sampled:
    """What a crop of a `tasks.image.Picture` needs: all that a typed array holds, of a buffer as few bytes as pay.

    Raises:  InputError if the buffer is too short, or RGBA of another size
    """
    size, steps = (picture.width, picture.height), picture.steps
    have = check_bytes(picture)
    if hasattr(picture.pixels, "byteLength"):
        return Sampled(picture.pixels, have, steps.first, steps.row, range(picture.height))
    view = memoryview(picture.pixels).cast("B")
    if (pieces := _pieces(crop, sampling, size, steps)) is not None:
        data = [view[part] for part in pieces.slices]
        return Sampled(data, pieces.nbytes * len(data), pieces.red, pieces.nbytes, pieces.rows, pieces.pairs)
    rows = _shown(*crop.matrix()[3:], crop, picture.height)
    first, end = steps.span(picture.width, rows)
    red = steps.first + rows[0] * steps.row - first
    return Sampled(view[first:end], end - first, red, steps.row, rows)


def check_bytes(picture: Any) -> int:
    """The bytes of a picture's buffer.

    Raises:  InputError if the buffer is too short, or RGBA of another size
    """
    length = getattr(picture.pixels, "byteLength", None)
    have = int(length) if length is not None else memoryview(picture.pixels).nbytes
    first, end = picture.steps.span(picture.width, range(picture.height))
    if first < 0 or end > have or (picture.layout is None and have != 4 * picture.width * picture.height):
        size = f"{picture.width}x{picture.height}"
        raise InputError(f"the image has {have} bytes, {size} RGBA needs {4 * picture.width * picture.height}")
    return have


def _shown(across: float, down: float, start: float, crop: Crop, length: int) -> range:
    """The rows or columns of a picture, of `length`, that a crop shows, one at least."""
    ends = [start + across * x + down * y for x in (0, crop.width - 1) for y in (0, crop.height - 1)]
    first = min(max(math.floor(min(ends)) - 1, 0), length - 1)
    return range(first, max(min(math.ceil(max(ends)) + 2, length), first + 1))


@lru_cache(maxsize=8)  # a detector looks at all of each frame of a film
def _pieces(crop: Crop, sampling: Sampling, size: tuple[int, int], steps: PixelLayout) -> _Pieces | None:
    """The parts of rows that a crop samples; None where it takes longer to copy them than all between them."""
    (width, height), (ax, ay, a0, bx, by, b0) = size, crop.matrix()
    columns, rows = _shown(ax, ay, a0, crop, width), _shown(bx, by, b0, crop, height)
    pixels = columns[0] * steps.pixel, columns[-1] * steps.pixel
    low, nbytes = min(pixels) + min(0, 2 * steps.channel), abs(pixels[1] - pixels[0]) + 2 * abs(steps.channel) + 1
    pairs, taken = (0, 0), list(rows)
    if bx == 0 and by > 2 and len(rows) > 1:
        upper = _upper_rows(by, b0 - rows[0], crop.height, len(rows), sampling)
        before, behind = upper.count(upper[0]) - 1, upper.count(upper[-1]) - 1
        upper = upper[before : len(upper) - behind] or upper[:1]
        pairs, taken = (len(upper), before), [rows[0] + row for pair in upper for row in (pair, pair + 1)]
    first, end = steps.span(width, rows)
    if end - first < len(taken) * (nbytes + PIECE_BYTES):
        return None
    starts = [steps.first + row * steps.row + low for row in taken]
    return _Pieces(tuple(slice(start, start + nbytes) for start in starts), nbytes, -low, rows, pairs)


def _upper_rows(step: float, start: float, count: int, height: int, sampling: Sampling) -> list[int]:
    """The upper one of the two rows that each output row samples, exactly as the kernel finds it in float32.

    A product or sum of two float32 in float64 that is then rounded to float32 is the one rounded at once.
    """
    step, start = array("f", (step, start))
    products = array("f", (step * row for row in range(count)))
    places = (min(max(place, -1.0), float(height)) for place in array("f", (one + start for one in products)))
    fixed = sampling is Sampling.FIXED
    rows = (round(STEPS * place) // STEPS if fixed else math.floor(place) for place in places)
    return [min(max(row, 0), height - 2) for row in rows]
