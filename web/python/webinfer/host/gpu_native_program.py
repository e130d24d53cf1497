"""Programs of recorded dispatches on a wgpu device. The device and its pipelines are gpu_native's."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import wgpu

from webinfer.dtypes import DType
from webinfer.errors import GpuError
from webinfer.host.gpu import (
    STAGING_RING,
    Arrival,
    DispatchSpec,
    Groups,
    Reads,
    SharedBuffer,
    SpacedSpan,
    Span,
    staging_layout,
)

if TYPE_CHECKING:
    from webinfer.host.gpu_native import NativeDevice


class NativeProgram:
    """Buffers and recorded dispatches (host.gpu.GpuProgram)."""

    def __init__(
        self,
        owner: NativeDevice,
        label: str,
        buffers: Sequence[int | SharedBuffer],
        uniforms: bytes,
        dispatches: Sequence[DispatchSpec],
    ) -> None:
        self._owner, self._label = owner, label
        self._device = device = owner.check()
        usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
        self._buffers = list[Any]()
        for one in buffers:
            if isinstance(one, SharedBuffer):
                self._buffers.append(self._taken_from(one))
            else:
                self._buffers.append(device.create_buffer(size=one, usage=usage))
        flags = wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST
        uniform = device.create_buffer(size=max(16, len(uniforms)), usage=flags)
        if uniforms:
            device.queue.write_buffer(uniform, 0, uniforms)
        self._buffers.append(uniform)
        self._specs = list(dispatches)
        self._steps = [(owner.pipeline(d.pipeline)[0], self._group(d), d.groups) for d in dispatches]
        self._staging: dict[int, list[Any]] = {}
        owner.programs.add(self)

    def _taken_from(self, one: SharedBuffer) -> Any:
        """A buffer of another program, which it may let go from now on."""
        taken, shared = one.program._buffers[one.number], self._owner.shared  # type: ignore[attr-defined]
        shared[taken] = shared.get(taken, 0) + 1
        return taken

    def _group(self, dispatch: DispatchSpec) -> Any:
        entries = [
            {"binding": i, "resource": {"buffer": self._buffers[s.buffer], "offset": s.offset, "size": s.nbytes}}
            for i, s in enumerate(dispatch.bindings)
        ]
        layout = self._owner.pipeline(dispatch.pipeline)[1]
        return self._device.create_bind_group(label=dispatch.label, layout=layout, entries=entries)

    def write(self, buffer: int, data: Any, offset: int = 0) -> None:
        """Copies bytes, or the contents of a wgpu buffer or of an own one, to the buffer of this number."""
        if isinstance(data, Span | wgpu.GPUBuffer):
            encoder = self._owner.check().create_command_encoder()
            self._copy(encoder, buffer, data)
            self._device.queue.submit([encoder.finish()])
            return
        view = memoryview(data).cast("B")
        if view.nbytes % 4:
            view = memoryview(view.tobytes() + bytes(-view.nbytes % 4))
        if view.nbytes:
            self._owner.check().queue.write_buffer(self._buffers[buffer], offset, view)

    def _copy(self, encoder: Any, buffer: int, data: Any) -> None:
        """Copies what a wgpu buffer, or an own one that a span names, holds then."""
        source, target = self._buffers[data.buffer] if isinstance(data, Span) else data, self._buffers[buffer]
        encoder.copy_buffer_to_buffer(source, 0, target, 0, min(source.size, target.size) // 4 * 4)

    def _copy_out(self, encoder: Any, span: Span | SpacedSpan, target: Any, at: int) -> None:
        """Copies a result to byte `at` of a buffer."""
        count, stride = (span.parts, span.stride) if isinstance(span, SpacedSpan) else (1, 0)
        size = -(-span.nbytes // count // 4) * 4
        for i in range(count if size else 0):
            source = self._buffers[span.buffer]
            encoder.copy_buffer_to_buffer(source, span.offset + i * stride, target, at + i * size, size)

    async def read(self, span: Span) -> memoryview:
        """A copy of a range of a buffer."""
        size = -(-span.nbytes // 4) * 4
        data: memoryview = self._owner.check().queue.read_buffer(self._buffers[span.buffer], span.offset, size)
        return data[: span.nbytes]

    async def rebind(
        self,
        sizes: Mapping[int, int | SharedBuffer],
        uniforms: bytes,
        steps: Sequence[tuple[int, Sequence[Span] | None, Groups]],
    ) -> None:
        """Goes on with other sizes of what dispatches work on.

        Raises:  DeviceLostError; GpuError
        """
        device = self._owner.check()
        try:
            for number, size in sizes.items():
                before = self._buffers[number]
                if isinstance(size, SharedBuffer):
                    self._buffers[number] = self._taken_from(size)
                else:
                    self._buffers[number] = device.create_buffer(size=size, usage=before.usage)
                self._owner.release(before)
            if uniforms:
                device.queue.write_buffer(self._buffers[-1], 0, uniforms)
            for number, bindings, groups in steps:
                pipeline, group, _ = self._steps[number]
                if bindings is not None:
                    spec = self._specs[number]
                    group = self._group(DispatchSpec(spec.label, spec.pipeline, tuple(bindings), groups))
                self._steps[number] = pipeline, group, groups
        except wgpu.GPUError as error:
            raise GpuError(f"{self._label} on {self._owner.name}: {error}") from error
        for ring in self._staging.values():  # for results of sizes that may not come again
            for staging in ring:
                staging.destroy()
        self._staging.clear()

    def free(self, buffers: Sequence[int], dispatches: int) -> None:
        """Frees buffers that only the first `dispatches` dispatches used."""
        self._steps[:dispatches] = [(None, None, (0, 0, 0))] * dispatches
        for number in buffers:
            self._buffers[number].destroy()

    def _encode(self, encoder: Any, first: int, count: int, repeats: int = 1, stamps: Any = None) -> None:
        compute = encoder.begin_compute_pass(timestamp_writes=stamps)
        current = None
        for _ in range(repeats):
            for pipeline, group, groups in self._steps[first : first + count]:
                if 0 in groups:
                    continue
                if pipeline is not current:
                    compute.set_pipeline(current := pipeline)
                compute.set_bind_group(0, group)
                compute.dispatch_workgroups(*groups)
        compute.end()

    async def run(
        self, first: int, count: int, reads: Reads, inputs: Sequence[tuple[int, Any]] = ()
    ) -> list[memoryview]:
        """Writes inputs, submits a range and returns the bytes of `reads`.

        Raises:  DeviceLostError; GpuError
        """
        return await (await self.start(first, count, reads, inputs))()

    async def start(self, first: int, count: int, reads: Reads, inputs: Sequence[tuple[int, Any]] = ()) -> Arrival:
        """Writes inputs and submits a range; what it returns waits for the bytes of `reads`.

        Raises:  DeviceLostError; GpuError
        """
        device = self._owner.check()
        try:
            encoder = device.create_command_encoder()
            for buffer, data in inputs:
                if isinstance(data, Span | wgpu.GPUBuffer):
                    self._copy(encoder, buffer, data)
                else:
                    self.write(buffer, data)
            if count:
                self._encode(encoder, first, count)
            offsets, total = staging_layout(reads)
            staging = self._take_staging(max(total, 16))
            for span, at in zip(reads, offsets, strict=True):
                self._copy_out(encoder, span, staging, at)
            device.queue.submit([encoder.finish()])
        except wgpu.GPUError as error:
            raise GpuError(f"{self._label} on {self._owner.name}: {error}") from error

        async def arrived() -> list[memoryview]:
            data = self._taken(staging, max(total, 16))
            return [data[at : at + span.nbytes] for span, at in zip(reads, offsets, strict=True)]

        return arrived

    def page_runs(
        self, first: int, count: int, reads: Sequence[Span], inputs: Sequence[tuple[int, DType, int]]
    ) -> None:
        """None: there is no page."""

    def _taken(self, staging: Any, size: int) -> memoryview:
        """The bytes of a staging buffer, which goes back to its ring."""
        try:
            staging.map_sync("READ")
            data: memoryview = staging.read_mapped()
            staging.unmap()
        except wgpu.GPUError as error:
            raise GpuError(f"{self._label} on {self._owner.name}: {error}") from error
        ring = self._staging.setdefault(size, [])
        if len(ring) < STAGING_RING:
            ring.append(staging)
        return data

    async def keep(self, first: int, count: int, reads: Reads, inputs: Sequence[tuple[int, Any]] = ()) -> list[Any]:
        """Writes inputs, submits a range and returns a wgpu buffer for each of `reads`.

        Raises:  DeviceLostError; GpuError
        """
        device = self._owner.check()
        usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
        try:
            for buffer, data in inputs:
                self.write(buffer, data)
            encoder = device.create_command_encoder()
            self._encode(encoder, first, count)
            made = []
            for span in reads:
                made.append(device.create_buffer(size=max(16, -(-span.nbytes // 4) * 4), usage=usage))
                self._copy_out(encoder, span, made[-1], 0)
            device.queue.submit([encoder.finish()])
        except wgpu.GPUError as error:
            raise GpuError(f"{self._label} on {self._owner.name}: {error}") from error
        return made

    def release(self, buffer: Any) -> None:
        """Destroys a buffer that `keep` gave."""
        buffer.destroy()

    def _take_staging(self, size: int) -> Any:
        ring = self._staging.get(size)
        if ring:
            return ring.pop()
        usage = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST
        return self._device.create_buffer(size=size, usage=usage)

    async def time(self, first: int, count: int, repeats: int) -> float:
        """Milliseconds of a range, averaged over `repeats` repetitions, by the GPU's timestamps where it has them."""
        device = self._owner.check()
        timer = self._owner.timer()
        # wgpu-py 0.32 cannot wait for submitted work (its callback has the wrong type): map a few bytes instead.
        staging = self._take_staging(16)
        encoder = device.create_command_encoder()
        self._encode(encoder, first, count, repeats, timer and timer.writes)
        if timer:
            encoder.resolve_query_set(timer.queries, 0, 2, timer.resolved, 0)
        encoder.copy_buffer_to_buffer(timer.resolved if timer else self._buffers[0], 0, staging, 0, 16)
        command = encoder.finish()
        start = time.perf_counter()
        device.queue.submit([command])
        staging.map_sync("READ")
        elapsed = time.perf_counter() - start
        began, ended = staging.read_mapped().cast("Q")
        staging.unmap()
        self._staging.setdefault(16, []).append(staging)
        if timer and ended > 0 and ended >= began:  # counters may jump backwards
            elapsed = (ended - began) * timer.period_ns / 1e9
        return elapsed * 1e3 / repeats

    def close(self) -> None:
        """Frees the buffers; a second call does nothing."""
        if self._owner.forked:
            return
        for buffer in self._buffers:
            self._owner.release(buffer)
        self._buffers, self._steps, self._staging = [], [], {}
