"""What is done to a model's small maps to make them as large as a picture: a graph on wasm for pictures of one size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from webinfer.authoring.builder import GraphBuilder
from webinfer.host.interface import Host
from webinfer.session.loading import load
from webinfer.session.session import Session
from webinfer.tasks.crop import Crop
from webinfer.tensor import Tensor

Size = tuple[int, int, int, int]  # width and height of what the model saw, and of its middle that was asked for


def sizes(crop: Crop) -> Size:
    """What a scaler's graph is built for, in whole pixels."""
    regions = crop.region, crop.asked or crop.region
    (wide, high), (width, height) = ((max(1, round(r.width)), max(1, round(r.height))) for r in regions)
    return max(wide, width), max(high, height), width, height


class Scaler:
    """Runs the graph that `build` makes for a size; it is made anew when the size changes."""

    def __init__(self, host: Host, build: Callable[[Size], GraphBuilder]) -> None:
        self._host, self._build = host, build
        self._made: tuple[Size, Session] | None = None

    async def run(self, size: Size, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        """The graph's outputs."""
        if self._made is None or self._made[0] != size:
            fresh = await load(self._build(size), backend="wasm", host=self._host)
            self.close()
            self._made = size, fresh
        return await self._made[1].run(inputs)

    def close(self) -> None:
        """Lets the memory go; a second call does nothing."""
        if self._made is not None:
            self._made[1].close()
            self._made = None
