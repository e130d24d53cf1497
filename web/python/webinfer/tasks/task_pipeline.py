"""A task by its name, for scripts and for async code: called it waits, awaited it gives the `Task`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterator
from types import TracebackType
from typing import Any, TypeVar

from webinfer.host import blocking, current
from webinfer.host.interface import Host
from webinfer.tasks.base import Task

T = TypeVar("T")


class Pipeline:
    """A task that is opened when it is needed.

    In a script: `faces = pipeline("photo.jpg")`, and all else that the `Task` has, without `await`. In async code:
    `task = await pipeline`, then `faces = await task("photo.jpg")`.
    """

    def __init__(self, name: str, open_task: Callable[[Host | None], Awaitable[Task[Any]]]) -> None:
        self.name, self._open = name, open_task
        self._task: Task[Any] | None = None

    def __await__(self) -> Generator[Any, Any, Task[Any]]:
        return self._open(None).__await__()

    @property
    def task(self) -> Task[Any]:
        """The task, opened at the first call.

        Raises:  what its `create` raises; InputError where nothing can wait
        """
        if self._task is None:
            host = blocking()
            self._task = _waited(self._open(None if host is current() else host))
        return self._task

    def __call__(self, source: Any, **options: Any) -> Any:
        """What the task finds: `Results` of a path, an address, bytes, an image or an array; a `Batch` of several.

        Several are a list, a folder, or a pattern such as "photos/*.jpg". Tasks on texts take a text or a list of them.

        Raises:  InputError if the source names nothing that the task takes; what the task raises
        """
        return _waited(self.task(source, **options))

    def stream(self, source: Any, **options: Any) -> Iterator[Any]:
        """`Results` of each frame of a video file, of each picture of an iterable, or of each of several sources.

        Raises:  as a call; InputError if nothing that reads videos is installed
        """
        running = self.task.stream(source, **options)
        while True:
            try:
                yield _waited(anext(running))
            except StopAsyncIteration:
                return

    def close(self) -> None:
        """Frees the task, if it was opened."""
        if self._task is not None:
            self._task.close()

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Pipeline({self.name!r}{'' if self._task is None else ', open'})"


def _waited(work: Awaitable[T]) -> T:
    async def awaited() -> T:
        return await work

    result: T = current().wait(awaited())
    return result
