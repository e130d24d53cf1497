"""The library without `await`, for scripts: a coroutine's result waited for, and a session that waits by itself."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Mapping
from types import TracebackType
from typing import Any, TypeVar

from webinfer.host import blocking, current, wait_here
from webinfer.session.loading import load
from webinfer.session.session import Session
from webinfer.tensor import Tensor

T = TypeVar("T")


def run_sync(work: Awaitable[T]) -> T:
    """The result of what is awaited elsewhere: `task = run_sync(webinfer.pipeline("face-detection"))`.

    The work runs on a thread of the engine's own, so a notebook or a server that runs a loop itself may call this too.
    A browser must be able to suspend WebAssembly for it; `await` works in every one.

    Raises:  what the work raises; InputError where nothing can wait
    """

    async def awaited() -> T:
        return await work

    result: T = current().wait(awaited())
    return result


def load_sync(source: Any, **options: Any) -> SyncSession:
    """A session whose methods wait: `load_sync("model.onnx").run(image)`. It takes all that `webinfer.load` takes.

    In a browser without JSPI, or for a caller that cannot be suspended, it runs on one thread of the processor.

    Raises:  what `load` and `run_sync` raise
    """
    options.setdefault("host", blocking())
    return SyncSession(run_sync(load(source, **options)))


class SyncSession:
    """A loaded model for scripts: it has everything that `Session` has, and what is awaited there returns its result.

    `session` is that Session.
    """

    def __init__(self, session: Session) -> None:
        self.session = session

    def run(self, inputs: Mapping[str, Any] | Any, **options: Any) -> dict[str, Tensor]:
        """The outputs by name, each a new tensor; see `Session.run`. Sessions of several threads run side by side."""
        return wait_here(self.session.run(inputs, **options))

    def __reduce__(self) -> Any:
        return SyncSession, (self.session,)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.session, name)
        if not inspect.iscoroutinefunction(found):
            return found

        @functools.wraps(found)
        def waiting(*given: Any, **options: Any) -> Any:
            return run_sync(found(*given, **options))

        return waiting

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.session)})

    def __enter__(self) -> SyncSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.session.close()

    def __repr__(self) -> str:
        return f"Sync{self.session!r}"
