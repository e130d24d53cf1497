"""Inputs of a page for its task: a picture, a recording, texts or the bytes of a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NAMES = {"picture": "picture", "audio": "recording", "text": "texts", "bytes": "data"}  # in a user's code


def taken(given: Any, takes: str) -> Any:
    """What a task that `takes` this kind is run on.

    A page gives a picture as the browser has it; for "audio" float32 `samples` and their `rate`, for "text" a `text` or
    a list of `texts`, for "bytes" the `data`, as fields of an object.
    """
    if takes == "picture" or not isinstance(given, Mapping):
        return given
    if takes == "audio":
        return memoryview(given["samples"]).cast("B").cast("f"), int(given["rate"])
    return given[takes] if takes in given else given["texts" if takes == "text" else "data"]


def picture_size(given: Any, takes: str) -> dict[str, int] | None:
    """Width and height of a picture as it is shown: a video frame may be scaled or turned. None for anything else."""
    if takes != "picture":
        return None
    width = getattr(given, "displayWidth", None) or given.width
    height = getattr(given, "displayHeight", None) or given.height
    return {"width": int(width), "height": int(height)}
