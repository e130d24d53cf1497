"""What a task finds in samples, as JSON: `judge tasks --page` runs this text in CPython and in a page's engine."""

import base64
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from webinfer.page.json_results import plain
from webinfer.tasks import task_class


async def answers(
    task: str, options: Mapping[str, Any], backend: str, samples: Sequence[str],
    given: Callable[[str], Awaitable[Any]], film: bool = False,
) -> str:  # fmt: skip
    """For each sample the plain form of what is found, and its arrays as rows of format and base64.

    `given` makes of a sample's name what the task is run on. Samples of a `film` are frames, whose names end in the
    milliseconds that they are shown at.

    Raises:  what the task raises
    """
    told = []
    created: Any = await task_class(task).create(backend=backend, **options)  # films are not every task's
    with created as one:
        for sample in samples:
            arrays: list[memoryview] = []
            what = await given(sample)
            seen = one.detect_for_video(what, float(sample[:-4].rpartition("_")[2])) if film else one.run(what)
            found = plain(await seen, arrays)
            told.append([found, [[array.format, base64.b64encode(array).decode()] for array in arrays]])
    return json.dumps(told)
