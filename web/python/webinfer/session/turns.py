"""Yields to the event loop between runs and inside of long ones, so that timers fire and tasks can be cancelled.

Kernels run on the interpreter's thread. A run that never awaits keeps every other task, timer and cancellation waiting.
"""

from __future__ import annotations

import asyncio
import time

MOST_S = 0.008  # that the event loop waits where a run can be interrupted: half of a frame
BESIDE_S = 0.005  # within which a run counts as begun together with the one before it


class RunQueue:
    """Runs of one session that are begun together come one after the other, with a turn of the event loop between."""

    def __init__(self) -> None:
        self.renew_locks()
        self._task, self._turned, self._ended = 0, time.monotonic(), 0.0

    def renew_locks(self) -> None:
        """Replaces its lock by a released one."""
        self._lock = asyncio.Lock()

    def is_due(self) -> bool:
        """Whether the event loop should turn before the next run, which comes right behind another one or waits."""
        now = time.monotonic()
        if self._lock.locked():
            return True
        if now - self._ended >= BESIDE_S:  # as in a page with a camera: nothing is paid
            self._turned = now
            return False
        return now - self._turned >= MOST_S or id(asyncio.current_task()) != self._task

    async def turn(self) -> None:
        """Waits for the runs that were begun earlier, and for one turn of the event loop."""
        waited = self._lock.locked()
        async with self._lock:
            if not waited:  # who waited for the lock came here by a turn
                await asyncio.sleep(0)
            self._turned = time.monotonic()

    def note_end(self) -> None:
        """Notes that a run of the current task ended."""
        self._task, self._ended = id(asyncio.current_task()), time.monotonic()


class LoopTurns:
    """Lets the event loop turn while a long run goes on, at most every 8 ms: what that costs is below one percent."""

    def __init__(self) -> None:
        self._turned = time.monotonic()

    async def turn(self) -> None:
        """One turn of the event loop, if the last one was a while ago."""
        if time.monotonic() - self._turned >= MOST_S:
            await asyncio.sleep(0)
            self._turned = time.monotonic()
