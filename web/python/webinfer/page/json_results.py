"""Task results as JSON values; large numeric arrays are passed as separate buffers."""

from __future__ import annotations

import array
import dataclasses
from collections.abc import Mapping
from typing import Any

from webinfer.tasks.landmarks import Landmarks


def plain(value: Any, arrays: list[memoryview]) -> Any:
    """The value as JSON: an object for each dataclass, and {"array": n} for numbers that are `arrays[n]` then."""
    if isinstance(value, memoryview | array.array):
        arrays.append(memoryview(value))
        return {"array": len(arrays) - 1}
    if isinstance(value, Landmarks):
        return plain({"xyz": value.xyz, "confidences": array.array("f", value.confidences)}, arrays)
    if dataclasses.is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        value.pop("image_size", None)  # the message says it once
        if value.get("id", 0) is None:
            del value["id"]
    if isinstance(value, Mapping):
        return {str(name): plain(one, arrays) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one, arrays) for one in value]
    return value
