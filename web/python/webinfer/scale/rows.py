"""What a model is given for a row: arrays of one row's shape, from numbers, from flat lists and from pictures."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from webinfer.errors import InputError
from webinfer.pipelines.model_input import CHANNELS, picture_layout
from webinfer.scale.columns import optional
from webinfer.session.inputs import TensorInfo


def columns_of(
    infos: Sequence[TensorInfo], names: Sequence[str], wanted: Mapping[str, str] | str | None
) -> dict[str, str]:
    """Which column each input is read from, by input.

    `wanted` is the caller's choice: input by input, or the one column of a model with one input. Without it columns
    are called as inputs are, or there is one of each.

    Raises:  InputError naming the inputs, the columns, and the option that says which is which
    """
    inputs = [info.name for info in infos]
    if isinstance(wanted, str):
        wanted = {inputs[0]: wanted} if len(inputs) == 1 else None
    if wanted is None:
        if set(inputs) <= set(names):
            wanted = {name: name for name in inputs}
        elif len(inputs) == len(names) == 1:
            wanted = {inputs[0]: names[0]}
    unknown = None if wanted is None else sorted({*wanted} - {*inputs}) or sorted({*wanted.values()} - {*names})
    if wanted is None or unknown or {*wanted} != {*inputs}:
        raise InputError(
            f"the model has the inputs {', '.join(inputs)}, the batch has the columns {', '.join(names) or '(none)'}; "
            f"say which is which with columns={{input: column}}, not {wanted!r}"
        )
    return dict(wanted)


def is_picture(value: Any) -> bool:
    """Whether a value is a picture, or names one: a path, bytes, an image of Pillow, a mapping as `datasets` has."""
    if isinstance(value, Mapping):
        return "bytes" in value or "path" in value
    return isinstance(value, str | os.PathLike | bytes | bytearray) or hasattr(value, "getexif")


def picture_source(value: Any) -> Any:
    """What a task or Pillow reads: `datasets` has mappings of `bytes` and `path`; bytes of what lies at a URL.

    Raises:  InputError if nothing can be read there
    """
    if isinstance(value, Mapping):
        value = value["bytes"] if value.get("bytes") is not None else value.get("path")
    if not isinstance(value, str) or not is_remote(value):
        return value
    try:
        with optional("fsspec", f"reading {value}").open(value, "rb") as file:
            return bytes(file.read())
    except (OSError, ValueError, ImportError) as error:
        raise InputError(f"cannot read {value!r}: {error}") from error


def is_remote(path: str) -> bool:
    """Whether a path is a URL, which fsspec reads: "s3://bucket/key", "memory://name"."""
    return "://" in path


def row_of(value: Any, info: TensorInfo, pixels: tuple[float, float]) -> Any:
    """One row of an input as an array: with or without the batch axis as it was given; flat lists get its shape.

    Raises:  InputError naming the input, what was found and what is needed
    """
    numpy = optional("numpy", "a batch of arrays")
    if value is None:
        raise InputError(f"input {info.name!r} has no value in this row")
    if is_picture(value):
        return _picture(picture_source(value), info, pixels)
    try:
        array = numpy.asarray(value, dtype=_dtype(numpy, info)) if not hasattr(value, "dtype") else numpy.asarray(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"input {info.name!r} cannot be read from this row: {error}") from None
    if array.dtype.kind == "O":
        return row_of(array.tolist(), info, pixels)
    wanted = _dtype(numpy, info)
    if wanted is not None and array.dtype != wanted and array.dtype.kind == numpy.dtype(wanted).kind:
        array = array.astype(wanted)
    rest = info.shape[1:]
    if array.ndim not in (len(info.shape), len(rest)) and all(isinstance(size, int) for size in rest):
        flat = numpy.prod(rest, dtype=int)
        if array.size == flat:
            return array.reshape(rest)
    return array


def _dtype(numpy: Any, info: TensorInfo) -> Any:
    try:
        return numpy.dtype(info.dtype.value)
    except TypeError:  # a type that NumPy lacks: as the values are
        return None


def _picture(source: Any, info: TensorInfo, pixels: tuple[float, float]) -> Any:
    """A picture scaled to the input's size, without the batch axis; numbers from `pixels`, whole ones 0..255."""
    from webinfer.host.pillow_canvas import pillow_image

    numpy = optional("numpy", "a batch of arrays")
    first, height, width, channels = picture_layout(info)
    image = pillow_image(source).convert(CHANNELS[channels])
    found = numpy.asarray(image.resize((width or image.width, height or image.height)))
    found = found.reshape(*found.shape[:2], channels)
    if info.dtype.value == "float32":
        low, high = pixels
        table = numpy.array([low + (high - low) * value / 255 for value in range(256)], numpy.float32)
        found = table[found]
    elif info.dtype.value != "uint8":
        raise InputError(f"input {info.name!r} is {info.dtype}; pictures are read as float32 or uint8: give arrays")
    return numpy.ascontiguousarray(found.transpose(2, 0, 1)) if first else found
