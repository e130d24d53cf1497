"""Which thing of this frame is which of the last: an `id` for each, by where its box was and how fast it moved.

A box is expected where its track would have brought it at its last speed. Pairs of tracks and boxes are joined nearest
first, by the distance of their centres in sides of the box. A thing that was out of sight for a second gets a new id.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from webinfer.lazy_dataclass import dataclass
from webinfer.session.options import FINITE, real_number
from webinfer.tasks.base import Box, PictureTask, Size

Found = TypeVar("Found")
REMEMBERED_MS = 1000.0
FARTHEST = 0.8  # of a box's side: how far a thing may be from where it is expected
LARGEST_CHANGE = 2.0  # of a side, between two frames
INERTIA = 0.5  # of the speed that a track had, in its new one


@dataclass(slots=True)
class _Track:
    id: int
    x: float  # of the centre, pixels
    y: float
    side: float
    kind: Hashable
    time_ms: float
    across: float = 0.0  # speed, pixels a millisecond
    down: float = 0.0

    def distance(self, x: float, y: float, side: float, now: float) -> float:
        """From where the track is expected now, in sides of the box; infinite where it cannot be this box."""
        if max(side, self.side) > LARGEST_CHANGE * min(side, self.side):
            return math.inf
        spent = now - self.time_ms
        gap = math.hypot(self.x + self.across * spent - x, self.y + self.down * spent - y)
        return gap / max(side, 1e-6)

    def move(self, x: float, y: float, side: float, now: float) -> None:
        """Goes on at a new place."""
        if (spent := now - self.time_ms) > 0:
            self.across = INERTIA * self.across + (1 - INERTIA) * (x - self.x) / spent
            self.down = INERTIA * self.down + (1 - INERTIA) * (y - self.y) / spent
        self.x, self.y, self.side, self.time_ms = x, y, side, now


class Tracker:
    """Ids of the things in a video, counted from 1."""

    def __init__(self) -> None:
        self._tracks: list[_Track] = []
        self._next = 1
        self._now = -math.inf

    def ids(self, boxes: Sequence[Box], now: float, kinds: Sequence[Hashable] = ()) -> list[int]:
        """An id for each box of the frame at `now`, in milliseconds; only boxes of one kind are of one thing.

        Where time goes back (a loop, a seek) all that was known is forgotten, and so no id is given twice.
        """
        if now < self._now:
            self._tracks = []
        self._now = now
        self._tracks = [track for track in self._tracks if now - track.time_ms <= REMEMBERED_MS]
        places = [(b.left + b.width / 2, b.top + b.height / 2, max((b.width + b.height) / 2, 1e-6)) for b in boxes]
        sorts = list(kinds) or [None] * len(boxes)
        pairs = sorted(
            (distance, i, j)
            for i, place in enumerate(places)
            for j, track in enumerate(self._tracks)
            if track.kind == sorts[i] and (distance := track.distance(*place, now)) <= FARTHEST
        )
        joined: dict[int, _Track] = {}
        taken: set[int] = set()
        for _, i, j in pairs:
            if i not in joined and j not in taken:
                joined[i] = self._tracks[j]
                taken.add(j)
        return [self._id(place, sorts[i], joined.get(i), now) for i, place in enumerate(places)]

    def _id(self, place: tuple[float, float, float], kind: Hashable, track: _Track | None, now: float) -> int:
        if track is None:
            track = _Track(self._next, *place, kind, now)
            self._tracks.append(track)
            self._next += 1
        track.move(*place, now)
        return track.id

    def reset(self) -> None:
        """Forgets all things; their ids are not given again."""
        self._tracks, self._now = [], -math.inf


def frame_time(time_ms: float | None, now: float) -> float:
    """The time of a frame in milliseconds; now where none is given.

    Raises:  InputError if it is not a number, or not finite
    """
    return now if time_ms is None else real_number("time_ms", time_ms, low=-FINITE)


class TrackingTask(PictureTask[Found]):
    """A task on pictures whose results have a box, and in a video an `id` too."""

    _tracker: Tracker | None = None
    _frame_size: Size | None = None

    async def detect_for_video(self, frame: Any, time_ms: float | None = None) -> list[Found]:
        """What is found in the next frame of a video, which shows this time in milliseconds; None: now.

        `id` is the same for the same thing from frame to frame: `tasks.tracking` says how it is recognised.

        Raises:  what `run` raises; InputError if the time is not a number
        """
        now = frame_time(time_ms, self.session.host.now_ms())
        found: list[Any] = await self.run(frame)
        tracker = self._tracker = self._tracker or Tracker()
        if found and self._frame_size != found[0].image_size:
            tracker.reset()
            self._frame_size = found[0].image_size
        ids = tracker.ids([one.box for one in found], now, [getattr(one, "category", None) for one in found])
        return [replace(one, id=number) for one, number in zip(found, ids, strict=True)]

    def reset(self) -> None:
        """Forgets the things of the frame before."""
        if self._tracker is not None:
            self._tracker.reset()
