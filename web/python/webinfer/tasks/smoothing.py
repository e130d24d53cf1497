"""Landmarks of a video that tremble less: a one euro filter on each number, in one small graph on wasm.

Source:  Casiez, Roussel, Vogel: 1 euro filter (CHI 2012); MediaPipe, LandmarksSmoothingCalculator and its graphs
"""

from __future__ import annotations

import array
import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from webinfer.authoring.builder import GraphBuilder
from webinfer.host.interface import Host
from webinfer.lazy_dataclass import dataclass
from webinfer.tasks.last_plan import LastPlan

SPEED_CUTOFF = 1.0  # Hz, of the filter of speeds
FRESH = 0.1  # how much of a new visibility counts
VALUE, LAST, SMOOTH, SPEED, RATE, SCALE = "value", "last", "smooth", "speed", "rate", "scale"


@dataclass(frozen=True, slots=True)
class Cutoff:
    """Movements are cut off at `least` Hz, and at `slope` more for each unit a second that they are fast.

    The unit is the size of the thing if `scaled`, else that of the numbers.
    """

    least: float
    slope: float
    scaled: bool = True


ON_SCREEN, IN_SPACE, OF_REGIONS = Cutoff(0.05, 80.0), Cutoff(0.1, 40.0, False), Cutoff(0.01, 10.0)


class Smoothing:
    """The filter of one kind of thing: `parts` are fields of it, points all, and how they are cut off."""

    def __init__(self, host: Host, parts: Mapping[str, Cutoff]) -> None:
        self.parts = parts
        self._plan = LastPlan(host, self._graph)

    async def filtered(self, sizes: tuple[int, ...], inputs: Mapping[str, Any]) -> dict[str, array.array[float]]:
        """New values of SMOOTH and SPEED; `sizes` are the numbers of each part."""
        outputs = await self._plan.run(sizes, inputs)
        return {name: array.array("f", outputs[name].tobytes()) for name in (SMOOTH, SPEED)}

    def _graph(self, sizes: tuple[int, ...]) -> GraphBuilder:
        builder, cutoffs = GraphBuilder("smoothing"), list(self.parts.values())
        node, count = builder.node, sum(sizes)
        value, last, smooth, speed = (builder.input(name, (count,)) for name in (VALUE, LAST, SMOOTH, SPEED))
        rate, scale = builder.input(RATE, (1,)), builder.input(SCALE, (1,))

        def each(numbers: Sequence[float]) -> Any:
            return builder.constant([n for n, size in zip(numbers, sizes, strict=True) for _ in range(size)])

        def linear(x: Any, slopes: Sequence[float], starts: Sequence[float]) -> Any:
            return node("add", node("mul", x, each(slopes)), each(starts))

        def moved(old: Any, new: Any, cutoff: Any) -> Any:
            turns = node("mul", cutoff, 2 * math.pi)
            part = node("div", turns, node("add", turns, rate))
            return node("add", old, node("mul", node("sub", new, old), part))

        unit = linear(scale, [float(c.scaled) for c in cutoffs], [float(not c.scaled) for c in cutoffs])
        fresh = node("mul", node("mul", node("sub", value, last), unit), rate)
        speed = moved(speed, fresh, builder.constant(SPEED_CUTOFF))
        cutoff = linear(node("abs", speed), [c.slope for c in cutoffs], [c.least for c in cutoffs])
        builder.output(moved(smooth, value, cutoff), SMOOTH)
        builder.output(speed, SPEED)
        return builder

    def close(self) -> None:
        """Lets the memory go; a second call does nothing."""
        self._plan.close()


@dataclass(frozen=True, slots=True)
class Memory:
    """What a filter remembers of the frame at a time."""

    time_ms: float = -math.inf
    state: Mapping[str, array.array[float]] = field(default_factory=dict)
    visible: Mapping[str, list[float]] = field(default_factory=dict)


class SmoothTrack:
    """One thing through a video: what its filter remembers."""

    def __init__(self, smoothing: Smoothing) -> None:
        self._smoothing = smoothing
        self._last = self._before = Memory()

    async def smoothed(self, found: Any, time_ms: float, size: float) -> Any:
        """The thing with smooth landmarks, for the milliseconds of its frame and its size in pixels.

        The first frame is returned as it is, and so is one that is earlier than the last: a film that is looped, or
        sought backwards, begins anew. One of the same time replaces the last.
        """
        if time_ms < self._last.time_ms:
            self._last = self._before = Memory()
        memory = self._before if time_ms == self._last.time_ms else self._last
        parts = {name: getattr(found, name) for name in self._smoothing.parts}
        numbers = [_numbers(part) for part in parts.values()]
        value = array.array("f")
        for part in numbers:
            value.extend(part)
        state = memory.state or {LAST: value, SMOOTH: value, SPEED: array.array("f", bytes(4 * len(value)))}
        steps = {RATE: 1000 / (time_ms - memory.time_ms), SCALE: 1 / max(size, 1e-6)}
        given = {VALUE: value, **state, **{name: array.array("f", [n]) for name, n in steps.items()}}
        filtered = await self._smoothing.filtered(tuple(map(len, numbers)), given)
        visible: dict[str, list[float]] = {}
        smooth, first = filtered[SMOOTH], 0
        for (name, part), old in zip(parts.items(), numbers, strict=True):
            parts[name] = _like(name, part, smooth[first : first + len(old)], memory.visible, visible)
            first += len(old)
        self._before, self._last = memory, Memory(time_ms, {LAST: value, **filtered}, visible)
        return replace(found, box=parts["landmarks"].box, **parts)


def _like(
    name: str, part: Any, numbers: Sequence[float], before: Mapping[str, list[float]], now: dict[str, list[float]]
) -> Any:
    """The part with these numbers, and with visibilities that change slowly: `now` is told them."""
    if not hasattr(part, "confidences"):
        return tuple(zip(numbers[::2], numbers[1::2], strict=True))
    sure = list(part.confidences)
    old = before.get(name, sure[::2])
    now[name] = sure[::2] = [b + FRESH * (v - b) for b, v in zip(old, sure[::2], strict=True)]
    return type(part)(numbers, sure)


def _numbers(part: Any) -> Sequence[float]:
    """All numbers of landmarks, or of a few points."""
    numbers: Sequence[float] = part.xyz if hasattr(part, "xyz") else [n for point in part for n in point]
    return numbers
