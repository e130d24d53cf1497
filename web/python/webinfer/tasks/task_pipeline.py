"""A task by its name, for scripts and for async code: called it waits, awaited it gives the `Task`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterator
from functools import partial
from typing import Any, Generic, TypeVar, cast

from webinfer.closing import Closing
from webinfer.host import blocking, current, wait_here
from webinfer.host.interface import Host
from webinfer.session.pickling import key_of
from webinfer.tasks.base import UNPICKLED, Task

T = TypeVar("T")
TaskT = TypeVar("TaskT", bound=Task[Any], covariant=True)


class Pipeline(Closing, Generic[TaskT]):
    """A task that is opened on its first call.

    In a script: `faces = pipeline("photo.jpg")`, and all else that the `Task` has, without `await`. In async code:
    `task = await pipeline`, then `faces = await task("photo.jpg")`.
    """

    def __init__(self, name: str, open_task: Callable[[Host | None], Awaitable[TaskT]], shared: bool = False) -> None:
        """`shared`: the task is that of all pipelines of this process which were unpickled and are alike."""
        self.name, self._open, self._shared = name, open_task, shared
        self._task: TaskT | None = None

    def __await__(self) -> Generator[Any, Any, TaskT]:
        return self._open(None).__await__()

    @property
    def task(self) -> TaskT:
        """The task, opened at the first call.

        Raises:  what its `create` raises; InputError where nothing can wait
        """
        task = self._task
        if task is None:
            key = key_of((self.name, self._open)) if self._shared else None
            task = self._opened() if key is None else cast("TaskT", UNPICKLED.get(key, self._opened))
            self._task = task
        return task

    def _opened(self) -> TaskT:
        host = blocking()
        return _waited(self._open(None if host is current() else host))

    def __call__(self, source: Any, **options: Any) -> Any:
        """What the task finds: `Results` of a path, an address, bytes, an image or an array; a `Batch` of several.

        Several are a list, a folder, or a pattern such as "photos/*.jpg". Tasks on texts take a text or a list of them.

        Raises:  InputError if the source names nothing that the task takes; what the task raises
        """
        return wait_here(self.task(source, **options))

    def stream(self, source: Any, **options: Any) -> Iterator[Any]:
        """`Results` of each frame of a video file or camera, each picture of an iterable, or each of several sources.

        A camera is its number, or a text such as "camera:0".

        Raises:  as a call; InputError if nothing that reads videos or cameras is installed
        """
        running = self.task.stream(source, **options)
        while True:
            try:
                yield _waited(anext(running))
            except StopAsyncIteration:
                return

    @property
    def opener(self) -> Callable[[], Awaitable[TaskT]]:
        """What opens another task like this one; it can be pickled."""
        return partial(self._open, None)

    def __reduce__(self) -> Any:
        """Where it is unpickled the task is opened at the first call, once a process for all that are alike."""
        return Pipeline, (self.name, self._open, True)

    def close(self) -> None:
        """Frees the task if it is open."""
        if self._task is not None:
            self._task.close()

    def __repr__(self) -> str:
        return f"Pipeline({self.name!r}{'' if self._task is None else ', open'})"


def _waited(work: Awaitable[T]) -> T:
    async def awaited() -> T:
        return await work

    result: T = current().wait(awaited())
    return result
