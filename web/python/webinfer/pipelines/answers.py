"""A task run on sources: one gives `Results`, several give a `Batch`, a video one `Results` a frame."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from typing import Any

from webinfer.errors import InputError, meant
from webinfer.host.interface import ProgressEvent
from webinfer.host.progress_bar import shown
from webinfer.pipelines.results import Batch, Results
from webinfer.pipelines.sources import Source, camera_of, eight_bits, frames_of, is_video, read, sources_of

UNITS = {"picture": "pictures", "audio": "recordings", "text": "texts"}  # of progress, by what a task takes


async def answered(task: Any, source: Any, options: dict[str, Any]) -> Results | Batch:
    """What the task finds in a source, or in each of several: then `progress` hears how many are done.

    Raises:  InputError if the source names nothing that the task takes; what the task's `run` raises
    """
    options, progress = dict(options), options.get("progress")
    options.pop("progress", None)
    _check_options(task, options)
    sources, several = sources_of(source, task.takes)
    if task.takes == "text" and isinstance(source, list) and not task.reads_several:
        sources, several = [Source("text", text) for text in source], True
    if not several:
        return await _one(task, sources[0], options)
    found = Batch()
    with shown(progress, task.name) as told:
        for one in sources:
            found.append(await _one(task, one, options))
            if told is not None:
                told(ProgressEvent("run", len(found), len(sources), UNITS.get(task.takes, "files")))
    return found


def _check_options(task: Any, options: dict[str, Any]) -> None:
    parameters = inspect.signature(task.run).parameters.values()
    known = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY or one.default is not one.empty]
    unknown = [name for name in options if name not in known]
    if unknown and not any(one.kind is one.VAR_KEYWORD for one in parameters):
        has = f"has no option {unknown[0]!r}; it has {', '.join(known) or 'none'}{meant(unknown[0], known)}"
        raise InputError(f"a call of {task.name} {has} (others are given to webinfer.pipeline)")


async def _one(task: Any, source: Source, options: dict[str, Any]) -> Results:
    value = await read(source, task.takes, task.session.host)
    found = await task.run(value, **options)
    picture = value if task.takes == "picture" else None
    return Results(found, task.name, task.result, source.name, picture, task.times)


async def streamed(task: Any, source: Any, options: dict[str, Any]) -> AsyncIterator[Results]:
    """What the task finds in each frame of a video or camera, each picture of an iterable, or each of several sources.

    Tasks that follow things from frame to frame give them the same `id`.
    """
    camera = camera_of(source)
    if isinstance(source, str | list) and camera is None and not is_video(source):
        for one in sources_of(source, task.takes)[0]:
            yield await _one(task, one, options)
        return
    follow = getattr(task, "detect_for_video", None)
    for i, (frame, time_ms) in enumerate(frames_of(source, task.session.host)):
        picture = eight_bits(frame) if task.takes == "picture" else frame
        name = f"camera:{camera}#{i}" if camera is not None else f"{source}#{i}" if is_video(source) else str(i)
        if follow is not None and time_ms is not None:
            found = await follow(picture, time_ms, **options)
        else:
            found = await task.run(picture, **options)
        yield Results(found, task.name, task.result, name, picture, task.times)
