"""A task run on sources: one gives `Results`, several give a `Batch`, a video one `Results` a frame."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from webinfer.pipelines.results import Batch, Results
from webinfer.pipelines.sources import Source, eight_bits, frames_of, is_video, read, sources_of


async def answered(task: Any, source: Any, options: dict[str, Any]) -> Results | Batch:
    """What the task finds in a source, or in each of several.

    Raises:  InputError if the source names nothing that the task takes; what the task's `run` raises
    """
    sources, several = sources_of(source, task.takes)
    found = [await _one(task, one, options) for one in sources]
    return Batch(found) if several else found[0]


async def _one(task: Any, source: Source, options: dict[str, Any]) -> Results:
    value = await read(source, task.takes, task.session.host)
    found = await task.run(value, **options)
    picture = value if task.takes == "picture" else None
    return Results(found, task.name, task.result, source.name, picture, task.times)


async def streamed(task: Any, source: Any, options: dict[str, Any]) -> AsyncIterator[Results]:
    """What the task finds in each frame of a video file, in each picture of an iterable, or in each of several sources.

    Tasks that follow things from frame to frame give them the same `id`.
    """
    if isinstance(source, str | list) and not is_video(source):
        for one in sources_of(source, task.takes)[0]:
            yield await _one(task, one, options)
        return
    follow = getattr(task, "detect_for_video", None)
    for i, (frame, time_ms) in enumerate(frames_of(source, task.session.host)):
        picture = eight_bits(frame) if task.takes == "picture" else frame
        name = f"{source}#{i}" if is_video(source) else str(i)
        if follow is not None and time_ms is not None:
            found = await follow(picture, time_ms, **options)
        else:
            found = await task.run(picture, **options)
        yield Results(found, task.name, task.result, name, picture, task.times)
