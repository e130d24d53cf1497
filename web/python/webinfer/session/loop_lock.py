"""Locks for sessions and tasks that several threads use, each with an event loop of its own.

An asyncio lock belongs to one event loop, and two threads inside one kernel instance end the process. So one event loop
at a time may use a session; the others wait and stay responsive. A child of fork() starts with every lock released.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

from webinfer.errors import InputError

POLL_S = 0.0005  # between two attempts to acquire the lock while another event loop holds it
STALE_S = 0.1  # a waiting loop that has not tried again for so long has ended
ONE_THREAD = sys.platform == "emscripten"  # a page has no other thread: no lock, no cost
C = TypeVar("C", bound=type)
_locks: WeakSet[LoopLock] = WeakSet()
_held: ContextVar[frozenset[int]] = ContextVar("loop locks held", default=frozenset())  # by the current task, as ids


class Renewable(Protocol):
    """An object with asyncio locks."""

    def renew_locks(self) -> None:
        """Replaces its locks by released ones."""


class LoopLock:
    """A lock that one event loop holds at a time, for any number of its coroutines.

    While another loop waits, only nested calls of the holder acquire it, so that no loop starves. A holder that no
    longer runs loses the lock. Objects that it guards get new asyncio locks whenever the holder changes.
    """

    def __init__(self) -> None:
        self._mutex, self._inside = threading.Lock(), 0  # coroutines of the holder
        self._asked: tuple[asyncio.AbstractEventLoop | None, float] = None, 0.0  # what waits, and when it last tried
        self._loop: asyncio.AbstractEventLoop | None = None
        self._guarded: WeakSet[Any] = WeakSet()
        _locks.add(self)

    def guarding(self, *guarded: Renewable) -> LoopLock:
        """This lock, with more objects whose asyncio locks it guards."""
        self._guarded.update(guarded)
        return self

    async def acquire(self, nested: bool = False) -> None:
        """Waits until no other loop holds the lock. `nested`: the caller holds it already."""
        while not self._try(nested):
            await asyncio.sleep(POLL_S)

    def _try(self, nested: bool) -> bool:
        loop, (waiting, since) = asyncio.get_running_loop(), self._asked
        with self._mutex:
            if self._loop is not loop:
                if self._inside and self._loop is not None and self._loop.is_running():
                    self._asked = loop, time.monotonic()
                    return False
                if self._loop is not None:
                    self._renew()
                self._loop, self._inside, self._asked = loop, 0, (None, 0.0)
            elif not nested and waiting not in (None, loop) and time.monotonic() - since < STALE_S:
                return False
            self._inside += 1
            return True

    def release(self) -> None:
        """Releases what `acquire` acquired."""
        loop = asyncio.get_running_loop()
        with self._mutex:
            if self._loop is loop:  # else this loop had stopped and lost the lock
                self._inside -= 1

    def _renew(self) -> None:
        for one in list(self._guarded):
            one.renew_locks()

    def after_fork(self) -> None:
        """Releases the lock in a child process, which does not have the threads that held it."""
        self._mutex, self._inside, self._loop, self._asked = threading.Lock(), 0, None, (None, 0.0)
        self._renew()


class CrossLoopLock:
    """An `asyncio.Lock` for the event loops of several threads."""

    def __init__(self) -> None:
        self._loop_lock, self._lock = LoopLock(), asyncio.Lock()
        self._loop_lock.guarding(self)

    def renew_locks(self) -> None:
        """Replaces its lock by a released one."""
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> None:
        await self._loop_lock.acquire()
        try:
            await self._lock.acquire()
        except BaseException:
            self._loop_lock.release()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lock.locked():  # else this loop had stopped and lost the lock
            self._lock.release()
        self._loop_lock.release()


class LoopLocked:
    """Base of objects with a `loop_lock`. They cannot leave their process: pickling one is an InputError."""

    loop_lock: LoopLock

    def __reduce__(self) -> Any:
        kind = type(self).__name__
        raise InputError(
            f"a {kind} cannot be pickled, as it holds memory of kernels or of a GPU: load it in each process, for "
            "example in a pool's `initializer`, from the same path or bytes"
        )


def _with_loop_lock(method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """The method, which runs while its event loop holds the object's lock."""

    @functools.wraps(method)
    async def inside(self: LoopLocked, *given: Any, **options: Any) -> Any:
        loop_lock, held = self.loop_lock, _held.get()
        await loop_lock.acquire(id(loop_lock) in held)
        token = _held.set(held | {id(loop_lock)})
        try:
            return await method(self, *given, **options)
        finally:
            _held.reset(token)
            loop_lock.release()

    return inside


def one_loop_at_a_time(cls: C) -> C:
    """Class decorator: public coroutine methods run while their event loop holds the object's lock."""
    if not ONE_THREAD:
        for name, method in list(vars(cls).items()):
            if inspect.iscoroutinefunction(method) and not name.startswith("_"):
                setattr(cls, name, _with_loop_lock(method))
    return cls


def _after_fork() -> None:
    for loop_lock in list(_locks):
        loop_lock.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
