"""A task of webinfer's on the frames of a camera."""

import json

import webinfer


def configure(urls):
    webinfer.configure(json.loads(urls))


class Frames:
    """A task that is ready."""

    def __init__(self, task):
        self.task = task
        self._look = getattr(task, "detect_for_video", task.run)

    async def look(self, frame):
        """How many things are in the next frame."""
        return len(await self._look(frame))


async def open_frames(task, models, options, backend):
    """The task on exactly this backend; `models` is [option, bytes] of each of its models."""
    given = {name: data.to_bytes() for name, data in models}
    return Frames(await webinfer.pipeline(task, **given, backend=backend, **json.loads(options)))
