"""A future that resumes the task that waits for it at once. Nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any


class ImmediateFuture(asyncio.Future[Any]):
    """A future whose task resumes inside the call of `set_result`, without a turn of the event loop.

    Between browser and Python such a turn costs more than a small model's whole inference. Where another
    task is running, or the wait is cancelled, it behaves like any asyncio.Future.
    """

    def __init__(self) -> None:
        super().__init__()
        self._callbacks_at_once: list[tuple[Callable[[Any], object], Context | None]] = []

    def add_done_callback(self, fn: Callable[[Any], object], /, *, context: Context | None = None) -> None:
        """Calls `fn` with this future when it is done."""
        if self.done():
            super().add_done_callback(fn, context=context)
        else:
            self._callbacks_at_once.append((fn, context))

    def remove_done_callback(self, fn: Callable[[Any], object], /) -> int:
        """Removes `fn`; returns how often it had been added."""
        kept = [entry for entry in self._callbacks_at_once if entry[0] != fn]
        removed, self._callbacks_at_once = len(self._callbacks_at_once) - len(kept), kept
        return removed

    def set_result(self, result: Any, /) -> None:
        """Marks the future as done and resumes the waiting task before it returns, unless another task is running."""
        super().set_result(result)
        self._call_back(at_once=asyncio.current_task(self.get_loop()) is None)

    def set_exception(self, exception: type[BaseException] | BaseException, /) -> None:
        """Marks the future as done with an error; the waiting task resumes in the loop's next turn."""
        super().set_exception(exception)
        self._call_back(at_once=False)

    def cancel(self, msg: Any = None) -> bool:
        """Cancels the wait; the waiting task resumes in the loop's next turn. False if the future was done already."""
        cancelled = super().cancel(msg)
        if cancelled:
            self._call_back(at_once=False)
        return cancelled

    def _call_back(self, *, at_once: bool) -> None:
        waiting, self._callbacks_at_once = self._callbacks_at_once, []
        for fn, context in waiting:
            if not at_once:
                self.get_loop().call_soon(fn, self, context=context)
            elif context is None:
                fn(self)
            else:
                context.run(fn, self)
