"""From dispatches to pipelines: rendered shaders, created while the rest of a graph is still being lowered."""

from __future__ import annotations

from webinfer.backends.webgpu.dispatch import Dispatch
from webinfer.codegen.prelude import Access
from webinfer.codegen.templates import render
from webinfer.host.gpu import GpuDevice, PipelineSpec

BATCH = 4  # pipelines handed over at a time: each time costs a message, each wait delays the device. A guess


def pipeline_of(dispatch: Dispatch) -> PipelineSpec:
    """The rendered shader of a dispatch, its label and the kinds of its bindings."""
    slots = [b.slot for b in dispatch.bindings]
    shader = render(dispatch.shader, dispatch.variables, slots, dispatch.params, text=dispatch.text)
    kinds = tuple("read" if slot.access is Access.READ else "write" for slot in slots)
    return PipelineSpec(dispatch.label or shader.name, shader.code, (*kinds, "uniform") if dispatch.params else kinds)


class PipelineQueue:
    """Hands pipelines to a device while they become known, a few at a time, each one once."""

    def __init__(self, device: GpuDevice) -> None:
        self._device = device
        self._known: set[PipelineSpec] = set()
        self._waiting: list[PipelineSpec] = []

    def add(self, spec: PipelineSpec) -> None:
        """Puts a pipeline that will be needed into the queue.

        Raises:  GpuError naming the shader, where the device tells at once; DeviceLostError
        """
        self.collect(spec)
        if len(self._waiting) >= BATCH:
            self.flush()

    def collect(self, spec: PipelineSpec) -> None:
        """Puts a pipeline into the queue, and hands nothing over yet."""
        if spec not in self._known:
            self._known.add(spec)
            self._waiting.append(spec)

    def flush(self) -> None:
        """Hands over what is still in the queue."""
        self._device.start_pipelines(self._waiting)
        self._waiting.clear()
