"""Plans with symbols from one visit to the next: what an earlier visit stored is taken before a model is read.

They are stored when nobody waits, a while after the last one was made; at once where a script's calls are all there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from webinfer.backends import registry
from webinfer.backends.base import BindingBackend, Executor, ReadGraph, RegimeExecutor, StoredRegimes
from webinfer.errors import WebinferError
from webinfer.flags import debug
from webinfer.graph.ir import Graph
from webinfer.graph.stored_types import ends_form
from webinfer.host.interface import Host
from webinfer.session.plan_cache import OpenGraph
from webinfer.session.selection import LoadOptions

BROKEN = (WebinferError, LookupError, TypeError, ValueError)  # what facts of another form lead to
_tasks: set[asyncio.Task[None]] = set()


class OpenStore:
    """The entry of a model whose sizes are open in the plan cache; that of other models stores nothing."""

    def __init__(self, graph: Graph, host: Host, options: LoadOptions) -> None:
        self._graph, self._host, self._options = graph, host, options
        self._entry = options.plan_entry if isinstance(graph, OpenGraph) else None
        self._timer: asyncio.TimerHandle | None = None

    async def restored(self, read: ReadGraph) -> tuple[RegimeExecutor, str] | None:
        """One of the plans that an earlier visit stored, and why its backend was chosen; None if none fits.

        `read` gives the model's graph. A second call finds nothing.
        """
        while self._entry is not None and (stored := self._entry.take(StoredRegimes)) is not None:
            try:
                backend = registry.open_backend(stored.backend)
                assert isinstance(backend, BindingBackend)
                own = replace(self._options, progress=None).of(stored.backend)
                if found := await backend.restore_open(stored, self._host, own, read):
                    self._entry.plans.clear()
                    return found[-1], stored.reason
            except BROKEN as error:
                debug(1, f"{self._graph.name}: stored plans cannot be used: {type(error).__name__}: {error}")
        return None

    async def at_once(self, work: Callable[[], Awaitable[None]]) -> None:
        """Has `work` done, which stores, where nothing goes on behind a call."""
        if self._entry is not None and not self._host.settles_later:
            await _quietly(work, self._graph.name)

    def later(self, work: Callable[[], Awaitable[None]]) -> None:
        """Has `work` done, which stores, when no plan was made for a while; not if the loop ends before."""
        if self._entry is None or not self._host.settles_later:
            return
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()

        def start() -> None:
            task = loop.create_task(_quietly(work, self._graph.name))
            _tasks.add(task)
            task.add_done_callback(_tasks.discard)

        self._timer = loop.call_later(self._host.idle_delay_s, start)

    async def store(self, executors: Sequence[Executor], reason: str) -> None:
        """Stores these plans of one backend for the next visit, in place of those that lie there."""
        name = executors[-1].backend
        backend, entry = registry.open_backend(name), self._options.of(name).plan_entry
        assert isinstance(backend, BindingBackend)
        graph = self._graph
        ends = [ends_form(graph.inputs), ends_form(graph.outputs)]
        data = backend.serialize_open(executors, self._host, {"ends": ends, "notes": graph.notes, "reason": reason})
        if data and entry is not None:
            await self._host.remember_bytes(entry.name, data)


async def _quietly(work: Callable[[], Awaitable[None]], name: str) -> None:
    try:
        await work()
    except WebinferError as error:  # nobody waits for it, and the next visit tries again
        debug(1, f"{name}: plans are not stored: {type(error).__name__}: {error}")
