"""A task of webinfer's on the frames of a camera."""

import json

from js import Object
from pyodide.ffi import to_js

import webinfer


def configure(urls):
    webinfer.configure(json.loads(urls))


class Frames:
    """A task that is ready."""

    def __init__(self, task):
        self.task = task
        self._look = getattr(task, "detect_for_video", task.run)

    async def painter(self):
        """What paints frames on the GPU as their masks say, for JavaScript."""
        return (await self.task.painter()).handle

    async def look(self, frame):
        """{found: how many things are in the next frame, parts: milliseconds of each part of the work}."""
        found = await self._look(frame)
        return to_js({"found": len(found), "parts": self.task.times}, dict_converter=Object.fromEntries)


async def open_frames(task, models, options, backend):
    """The task on exactly this backend; `models` is [option, bytes] of each of its models."""
    given = {name: data.to_bytes() for name, data in models}
    return Frames(await webinfer.pipeline(task, **given, backend=backend, **json.loads(options)))
