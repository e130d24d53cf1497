"""Compiled graphs that a session keeps: those that were used last, within a number and a sum of bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from webinfer.backends.base import Executor

MAX_PLANS = 8
MAX_PLAN_BYTES = 1 << 30  # of constants and arenas
K = TypeVar("K")
T = TypeVar("T")


class LruCache(Generic[K, T]):
    """Things with an executor by key. Whoever adds one makes sure that none of the others is at work."""

    def __init__(self, executor: Callable[[T], Executor], most: int = MAX_PLANS) -> None:
        self._executor, self._most = executor, most
        self._found: OrderedDict[K, T] = OrderedDict()

    def get(self, key: K) -> T | None:
        """What is kept under the key; it was used last now."""
        if key in self._found:
            self._found.move_to_end(key)
        return self._found.get(key)

    def values(self) -> Iterable[T]:
        """All that is kept."""
        return self._found.values()

    def add(self, key: K, found: T, most: int | None = None) -> T:
        """Keeps one more, and closes what was not used for longest where that is too much, or more than `most`."""
        self._found[key] = found
        while len(self._found) > (self._most if most is None else most) or (
            len(self._found) > 1 and self._bytes() > MAX_PLAN_BYTES
        ):
            self.drop(next(iter(self._found)))
        return found

    def _bytes(self) -> int:
        reports = [self._executor(found).memory() for found in self._found.values()]
        return sum(report.constants - report.shared + report.arena for report in reports)

    def take(self, key: K) -> T | None:
        """What was kept under the key, which is the caller's now."""
        return self._found.pop(key, None)

    def drop(self, key: K) -> None:
        """Closes what is kept under the key, if there is something."""
        if key in self._found:
            self._executor(self._found.pop(key)).close()

    def clear(self) -> None:
        """Closes everything."""
        for key in list(self._found):
            self.drop(key)
