"""Pictures in another size, as Pillow and torchvision scale them: each pixel counts for those that it covers.

The weights are made here, a row for each row and column of the result; the sums are two products of matrices in a plan.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from typing import Any, NamedTuple

from webinfer.authoring.builder import GraphBuilder
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.host.interface import Host
from webinfer.host.pictures import PixelLayout
from webinfer.tasks.crop import Crop, Region
from webinfer.tasks.image import Picture, prepare_image
from webinfer.tasks.last_plan import LastPlan
from webinfer.tasks.workspace import Workspace
from webinfer.tensor import Tensor

PIXELS, SCALED = "pixels", "scaled"
CUBIC = -0.5  # Pillow's


def _linear(d: float) -> float:
    return max(1.0 - d, 0.0)


def _cubic(d: float) -> float:
    if d < 1:
        return ((CUBIC + 2) * d - (CUBIC + 3)) * d * d + 1
    return (((d - 5) * d + 8) * d - 4) * CUBIC if d < 2 else 0.0


# How far a filter reaches, and its weight of a distance, by the number that preprocessor_config.json gives.
FILTERS: dict[int, tuple[float, Callable[[float], float]]] = {2: (1.0, _linear), 3: (2.0, _cubic)}


class Scaling(NamedTuple):
    """A picture's size, the size that it is scaled to, and what is then cut out of its middle; pixels."""

    from_size: tuple[int, int]  # width and height
    size: tuple[int, int]
    cut: tuple[int, int]
    resample: int


def filter_matrix(length: int, scaled: int, first: int, count: int, resample: int) -> array[float]:
    """Weights [count, length]: of an axis that is scaled, `count` places from the `first` on; 0 beyond its ends.

    Source:  Pillow/src/libImaging/Resample.c, precompute_coeffs
    """
    reach, weight = FILTERS[resample]
    step = length / scaled
    stretch = max(step, 1.0)
    rows = array("f", bytes(4 * count * length))
    for row, place in enumerate(range(first, first + count)):
        if not 0 <= place < scaled:
            continue
        centre = (place + 0.5) * step
        low = max(int(centre - reach * stretch + 0.5), 0)
        high = min(int(centre + reach * stretch + 0.5), length)
        weights = [weight(abs((at + 0.5 - centre) / stretch)) for at in range(low, high)]
        total = sum(weights)
        rows[row * length + low : row * length + high] = array("f", (w / total for w in weights))
    return rows


class PictureScaler:
    """Scales pictures; the plan for the last size is kept.

    Raises:  UnsupportedOpError if the filter of this number is not known
    """

    def __init__(self, host: Host, resample: int) -> None:
        if resample not in FILTERS:
            raise UnsupportedOpError([f"pictures that are scaled by filter {resample} of Pillow; 2 and 3 are known"])
        self._host, self._resample = host, resample
        self._plan = LastPlan(host, _plan_of)
        self._workspace: Workspace | None = None

    async def scaled(self, picture: Picture, size: tuple[int, int], cut: tuple[int, int]) -> Picture:
        """The middle of a picture that is scaled to `size`, as large as `cut`: black where that reaches past it.

        Units:  width and height in pixels
        """
        if self._workspace is None:
            self._workspace = Workspace(await self._host.kernels())
        width, height = picture.width, picture.height
        crop = Crop(Region.whole(width, height), width, height)
        pixels = prepare_image(self._workspace, picture, crop, scale=1.0, offset=0.0).cast("B").cast("f")
        kind = Scaling((width, height), size, cut, self._resample)
        found = (await self._plan.run(kind, {PIXELS: Tensor(pixels, (height, width, 3), DType.FLOAT32)}))[SCALED]
        return Picture(*cut, found.flat(), PixelLayout(0, 3 * cut[0], 3, 1))

    def close(self) -> None:
        """Frees the plan and the memory; a second call does nothing."""
        self._plan.close()
        if self._workspace is not None:
            self._workspace.close()


def _plan_of(kind: Scaling) -> GraphBuilder:
    (width, height), size, cut = kind.from_size, kind.size, kind.cut
    builder = GraphBuilder(SCALED)
    node = builder.node
    first = [math.trunc((whole - part) / 2) for whole, part in zip(size, cut, strict=True)]
    across, down = (
        (builder.constant(filter_matrix(length, size[i], first[i], cut[i], kind.resample), (cut[i], length)))
        for i, length in enumerate((width, height))
    )
    x: Any = node("transpose", builder.input(PIXELS, (height, width, 3)), perm=(2, 0, 1))
    x = node("reshape", x, shape=(3 * height, width))
    x = _whole(builder, node("matmul", x, node("transpose", across, perm=(1, 0))))
    x = node("transpose", node("reshape", x, shape=(3, height, cut[0])), perm=(1, 0, 2))
    x = _whole(builder, node("matmul", down, node("reshape", x, shape=(height, 3 * cut[0]))))
    x = node("transpose", node("reshape", x, shape=(cut[1], 3, cut[0])), perm=(0, 2, 1))
    builder.output(node("cast", x, dtype="uint8"), SCALED)
    return builder


def _whole(builder: GraphBuilder, x: Any) -> Any:
    """Whole numbers of 0..255, as libraries keep them between both directions."""
    node = builder.node
    return node("minimum", node("maximum", node("floor", node("linear", x, a=1.0, b=0.5)), 0.0), 255.0)
