"""What a task finds in samples, as JSON: `judge tasks --page` runs this text in CPython and in a page's engine."""

import base64
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import astuple
from typing import Any

from webinfer.page.json_results import plain
from webinfer.tasks import task_class
from webinfer.tasks.crop import Region


class Answers:
    """A task, asked about one sample after the other."""

    def __init__(self, task: Any, given: Callable[[str], Awaitable[Any]], film: bool = False) -> None:
        """`given` makes of a sample's name what the task is run on.

        Samples of a `film` are frames, whose names end in the milliseconds that they are shown at.
        """
        self._task, self._given, self._film = task, given, film

    async def answer(self, sample: str, followed: Sequence[Sequence[float]] = ()) -> str:
        """The plain form of what the task finds in a sample, and its arrays as rows of format and base64.

        `followed` are the regions that another side's `followed` told before this frame: the task looks there instead
        of where its own last frame says. So a small difference in one frame is not the next one's larger difference.

        Raises:  what the task raises
        """
        arrays: list[memoryview] = []
        what = await self._given(sample)
        if self._film:
            tracked = getattr(self._task, "_tracked", ())
            if followed and len(followed) == len(tracked):
                self._task._tracked = [(Region(*to), track) for to, (_, track) in zip(followed, tracked, strict=True)]
            seen = self._task.detect_for_video(what, float(sample[:-4].rpartition("_")[2]))
        else:
            seen = self._task.run(what)
        found = plain(await seen, arrays)
        return json.dumps([found, [[array.format, base64.b64encode(array).decode()] for array in arrays]])

    def followed(self) -> list[tuple[float, ...]]:
        """The regions that the next frame of a film is looked at in."""
        return [astuple(region) for region, _ in getattr(self._task, "_tracked", ())]

    def close(self) -> None:
        """Closes the task."""
        self._task.close()


async def opened(
    task: str, options: Mapping[str, Any], backend: str, given: Callable[[str], Awaitable[Any]], film: bool = False
) -> Answers:
    """A task by its name, opened; `options` are those of its `create`.

    Raises:  what `create` raises
    """
    created: Any = task_class(task).create(backend=backend, **options)  # films are not every task's
    return Answers(await created, given, film)
