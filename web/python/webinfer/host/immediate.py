"""Answers that let the waiting task go on at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any


class Prompt(asyncio.Future[Any]):
    """A future whose task resumes inside the call that settles it, without a turn of the event loop.

    Between browser and Python such a turn costs more than a small model's whole inference. Where another
    task is running, or the wait is cancelled, it behaves like any future.
    """

    def __init__(self) -> None:
        super().__init__()
        self._resume: list[tuple[Callable[[Any], object], Context | None]] = []

    def add_done_callback(self, fn: Callable[[Any], object], /, *, context: Context | None = None) -> None:
        """Calls `fn` when the answer is there."""
        if self.done():
            super().add_done_callback(fn, context=context)
        else:
            self._resume.append((fn, context))

    def remove_done_callback(self, fn: Callable[[Any], object], /) -> int:
        """How often `fn` was waiting."""
        kept = [entry for entry in self._resume if entry[0] != fn]
        removed, self._resume = len(self._resume) - len(kept), kept
        return removed

    def set_result(self, result: Any, /) -> None:
        """Settles and resumes."""
        super().set_result(result)
        self._go_on(at_once=asyncio.current_task(self.get_loop()) is None)

    def set_exception(self, exception: type[BaseException] | BaseException, /) -> None:
        """Settles with an error; the task resumes in the loop's next turn."""
        super().set_exception(exception)
        self._go_on(at_once=False)

    def cancel(self, msg: Any = None) -> bool:
        """Gives up the wait."""
        cancelled = super().cancel(msg)
        if cancelled:
            self._go_on(at_once=False)
        return cancelled

    def _go_on(self, *, at_once: bool) -> None:
        waiting, self._resume = self._resume, []
        for fn, context in waiting:
            if not at_once:
                self.get_loop().call_soon(fn, self, context=context)
            elif context is None:
                fn(self)
            else:
                context.run(fn, self)
