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
    """Runs an awaitable and returns its result: `task = run_sync(webinfer.pipeline("face-detection"))`.

    It runs on a thread of the engine, so notebooks and servers with a running event loop can call it too.
    In a browser this needs JSPI; `await` works everywhere.

    Raises:  what the work raises; InputError if blocking is not possible
    """

    async def awaited() -> T:
        return await work

    result: T = current().wait(awaited())
    return result


def load_sync(source: Any, **options: Any) -> SyncSession:
    """`load` for scripts. The methods of the session block: `load_sync("model.onnx").run(image)`.

    In a browser without JSPI, or if the caller cannot be suspended, it runs on one CPU thread.

    Raises:  what `load` and `run_sync` raise
    """
    options.setdefault("host", blocking())
    return SyncSession(run_sync(load(source, **options)))


class SyncSession:
    """A loaded model for scripts: it has the members of `Session`, and its coroutines are ordinary methods.

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
