"""A graph that is lowered while its device is still being opened."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Mapping

from webinfer.backends.webgpu.dispatch import Target
from webinfer.backends.webgpu.pipelines import PipelineQueue
from webinfer.backends.webgpu.schedule import Schedule, scheduling
from webinfer.errors import LimitError, UnsupportedOpError
from webinfer.graph.ir import Graph
from webinfer.host.gpu import GpuDevice, GpuOffer, PipelineSpec
from webinfer.tune.log import Log

SLICE_S = 0.005  # of lowering, between looks at whether the device is there


class SpeculativeLowering:
    """Lowers a graph for the device that is offered, until that is there; `log` is what is known of such a device."""

    def __init__(self, graph: Graph, offer: GpuOffer, tuned: Mapping[str, str], log: Log) -> None:
        self.log = log
        self._offer, self._tuned = offer, tuned
        self._known: list[PipelineSpec] = []
        self._queue: PipelineQueue | None = None
        self._slices = scheduling(graph, Target.of(offer, tuned), self._add)
        self._schedule: Schedule | None = None
        self._refused = False

    def _add(self, spec: PipelineSpec) -> None:
        if self._queue is None:
            self._known.append(spec)
        else:
            self._queue.add(spec)

    def _lower(self, seconds: float) -> None:
        """Goes on for so long, or to the end."""
        end = time.perf_counter() + seconds
        try:
            while time.perf_counter() < end:
                next(self._slices)
        except StopIteration as done:
            self._schedule = done.value

    async def until(self, opening: Awaitable[GpuDevice]) -> GpuDevice:
        """The device; what is lowered until then is done.

        Raises:  BackendUnavailableError with the reason
        """
        task = asyncio.ensure_future(opening)
        while self._schedule is None and not self._refused and not task.done():
            try:
                self._lower(SLICE_S)
            except (UnsupportedOpError, LimitError):  # told when the device is there
                self._refused = True
            await asyncio.sleep(0)
        return await task

    def offered(self, device: GpuDevice) -> bool:
        """Whether the device has become what was offered."""
        return self._offer.holds(device)

    def suits(self, device: GpuDevice, tuned: Mapping[str, str]) -> bool:
        """Whether what was lowered is for this device with these kernels."""
        return not self._refused and self._tuned == tuned and self.offered(device)

    def finished(self, device: GpuDevice) -> Schedule:
        """The whole schedule; the pipelines are handed over, those that are not known yet as soon as they are.

        Raises:  as `make_schedule`
        """
        self._queue = PipelineQueue(device)
        for spec in self._known:
            self._queue.collect(spec)
        self._queue.flush()
        while self._schedule is None:
            self._lower(float("inf"))
        self._queue.flush()
        return self._schedule
