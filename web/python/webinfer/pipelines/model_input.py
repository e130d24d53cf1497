"""A picture file as the input of any model, for trying a model out: scaled to its size, its values to its type."""

from __future__ import annotations

from array import array
from typing import Any

from webinfer.errors import InputError
from webinfer.host.pillow_canvas import pillow_image
from webinfer.session.inputs import TensorInfo
from webinfer.tensor import Tensor

CHANNELS = {1: "L", 3: "RGB", 4: "RGBA"}


def picture_input(path: str, info: TensorInfo, low: float = 0.0, high: float = 1.0) -> Tensor:
    """The picture as a tensor for an input [N, H, W, C] or [N, C, H, W] with 1, 3 or 4 channels, N = 1.

    Real numbers are from `low` to `high`, whole numbers are 0..255. Open sizes are the picture's.

    Raises:  InputError if the input is of another kind, or the file is not a picture
    """
    first, height, width, channels = picture_layout(info)
    image = pillow_image(path).convert(CHANNELS[channels])
    size = (width or image.width, height or image.height)
    pixels = image.resize(size).tobytes()
    if first:
        pixels = b"".join(pixels[channel::channels] for channel in range(channels))
    shape = (1, channels, size[1], size[0]) if first else (1, size[1], size[0], channels)
    data: Any = pixels
    if info.dtype.is_float:
        table = [low + (high - low) * value / 255 for value in range(256)]
        data = array("f", map(table.__getitem__, pixels))
        if info.dtype.value != "float32":
            raise InputError(
                f"input {info.name!r} is {info.dtype}; pictures are read as float32 or uint8: give an array"
            )
    elif info.dtype.value != "uint8":
        raise InputError(f"input {info.name!r} is {info.dtype}; pictures are read as float32 or uint8: give an array")
    return Tensor(data, shape, info.dtype)


def picture_layout(info: TensorInfo) -> tuple[bool, int, int, int]:
    """Whether channels come first, height and width (0 where open), and channels of an input for one picture.

    Raises:  InputError if it is for something else
    """
    shape = tuple(size if isinstance(size, int) else 0 for size in info.shape)
    if len(shape) == 4 and shape[0] in (0, 1):
        _, one, two, three = shape
        if three in CHANNELS and (one not in CHANNELS or (three == 3 and one != 3)):
            return False, one, two, three
        if one in CHANNELS:
            return True, two, three, one
    raise InputError(
        f"input {info.name!r} has shape {info.shape}, which is not that of one picture: give NAME=FILE.npy instead"
    )
