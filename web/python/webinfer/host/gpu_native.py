"""The GPU of CPython: wgpu-py over Vulkan, Metal, D3D12 or Mesa's software driver. Takes no pictures."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import wgpu
from wgpu.backends.wgpu_native import lib

from webinfer.errors import BackendUnavailableError, DeviceLostError, GpuError, OutOfMemoryError
from webinfer.host.gpu import (
    RAISED_LIMITS,
    STAGING_RING,
    WANTED_FEATURES,
    DispatchSpec,
    PipelineSpec,
    Span,
    staging_layout,
)

WGSL_FEATURES = ("packed_4x8_integer_dot_product",)  # what wgpu's compiler has beyond plain WGSL
NATIVE_NAMES = {"subgroups": "subgroup"}  # features that wgpu calls otherwise than WebGPU does
REFUSED_LINES = ("enable subgroups;",)  # what the device's features say already: wgpu's compiler wants no such line
_BINDING_TYPE = {"read": "read-only-storage", "write": "storage", "uniform": "uniform"}


def _dashed(name: str) -> str:
    """WebGPU's `maxBufferSize` as wgpu-py writes it."""
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in name)


async def open_device() -> NativeDevice:
    """A device on the fastest adapter.

    Raises:  BackendUnavailableError with the reason
    """
    try:
        adapter = wgpu.gpu.request_adapter_sync(power_preference="high-performance")
    except Exception as error:
        raise BackendUnavailableError(
            f"no GPU adapter: {error}; install a Vulkan driver (Mesa's lavapipe will do)"
        ) from error
    if adapter is None:
        raise BackendUnavailableError("no GPU adapter; install a Vulkan driver (Mesa's lavapipe will do)")
    limits = {_dashed(name): adapter.limits[_dashed(name)] for name in RAISED_LIMITS if _dashed(name) in adapter.limits}
    features = [name for name in WANTED_FEATURES if NATIVE_NAMES.get(name, name) in adapter.features]
    wanted = [NATIVE_NAMES.get(name, name) for name in features]
    try:
        device = adapter.request_device_sync(label="webinfer", required_features=wanted, required_limits=limits)
    except Exception as error:
        raise BackendUnavailableError(f"adapter {adapter.info['device']} gives no device: {error}") from error
    return NativeDevice(adapter, device, frozenset((*features, *WGSL_FEATURES)))


@dataclass(frozen=True, slots=True)
class _Timer:
    """Timestamps at the two ends of a pass, where they are resolved, nanoseconds of one tick."""

    queries: Any
    resolved: Any
    period_ns: float

    @property
    def writes(self) -> dict[str, Any]:
        return {"query_set": self.queries, "beginning_of_pass_write_index": 0, "end_of_pass_write_index": 1}


class NativeDevice:
    """A wgpu device with its pipelines (host.gpu.GpuDevice)."""

    def __init__(self, adapter: Any, device: Any, features: frozenset[str]) -> None:
        self.name = str(adapter.info["device"])
        self.runtime = f"wgpu {wgpu.__version__}"
        self.software = adapter.info["adapter_type"] == "CPU"
        self.features = features
        self.limits: Mapping[str, int] = _camel_limits(device.limits)
        self._device, self._lost = device, ""
        self._numbers: dict[PipelineSpec, int] = {}
        self._pipelines: list[tuple[Any, Any]] = []  # (pipeline, bind group layout)
        self._layouts: dict[tuple[str, ...], Any] = {}
        self._timer: _Timer | None = None

    @property
    def lost(self) -> str:
        """Why the device is gone, or the empty text while it lives."""
        return self._lost

    def close(self) -> None:
        """Destroys the device; a second call does nothing."""
        if not self._lost:
            self._lost = "closed"
            self._device.destroy()

    def check(self) -> Any:
        """The wgpu device.

        Raises:  DeviceLostError if it is gone
        """
        if self._lost:
            raise DeviceLostError(f"GPU {self.name} was lost: {self._lost}; run again to restore the session")
        return self._device

    def start_pipelines(self, specs: Sequence[PipelineSpec]) -> list[int]:
        """A number for each spec; new ones are created before this returns.

        Raises:  GpuError naming the shader; DeviceLostError
        """
        device = self.check()
        for spec in specs:
            if spec not in self._numbers:
                self._pipelines.append(self._create(device, spec))
                self._numbers[spec] = len(self._pipelines) - 1
        return [self._numbers[spec] for spec in specs]

    async def pipelines_ready(self, numbers: Sequence[int]) -> None:
        """Returns at once: `start_pipelines` has waited."""
        self.check()

    def _create(self, device: Any, spec: PipelineSpec) -> tuple[Any, Any]:
        layout = self._layouts.get(spec.bindings)
        if layout is None:
            layout = self._layouts[spec.bindings] = device.create_bind_group_layout(
                entries=[
                    {"binding": i, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": _BINDING_TYPE[kind]}}
                    for i, kind in enumerate(spec.bindings)
                ]
            )
        try:
            module = device.create_shader_module(label=spec.label, code=_accepted(spec.code))
            pipeline = device.create_compute_pipeline(
                label=spec.label,
                layout=device.create_pipeline_layout(bind_group_layouts=[layout]),
                compute={"module": module, "entry_point": "main"},
            )
        except wgpu.GPUError as error:
            raise GpuError(f"shader {spec.label} on {self.name}: {error}") from error
        return pipeline, layout

    def timer(self) -> _Timer | None:
        """Where a pass writes two timestamps; None where the device has none."""
        if self._timer is None and "timestamp-query" in self.features:
            device = self.check()
            usage = wgpu.BufferUsage.QUERY_RESOLVE | wgpu.BufferUsage.COPY_SRC
            queries = device.create_query_set(type="timestamp", count=2)
            period = float(lib.wgpuQueueGetTimestampPeriod(device.queue._internal))
            self._timer = _Timer(queries, device.create_buffer(size=16, usage=usage), period)
        return self._timer

    def pipeline(self, number: int) -> tuple[Any, Any]:
        """The wgpu pipeline of this number and its bind group layout."""
        return self._pipelines[number]

    def pictures(self, specs: Mapping[str, PipelineSpec]) -> None:
        """None: there are no pictures outside of browsers."""

    async def idle(self) -> None:
        """Returns when everything submitted so far has been computed."""
        # wgpu-py 0.32 cannot wait for submitted work: reading a few bytes waits for what came before.
        device = self.check()
        usage = wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
        device.queue.read_buffer(device.create_buffer(size=16, usage=usage))

    async def read(self, buffer: Any, nbytes: int) -> memoryview:
        """A copy of the first `nbytes` bytes of a wgpu buffer."""
        data: memoryview = self.check().queue.read_buffer(buffer, 0, -(-nbytes // 4) * 4)
        return data[:nbytes]

    async def program(
        self, label: str, buffers: Sequence[int], uniforms: bytes, dispatches: Sequence[DispatchSpec]
    ) -> NativeProgram:
        """A program over new zeroed buffers.

        Raises:  OutOfMemoryError; GpuError; DeviceLostError
        """
        self.check()
        try:
            return NativeProgram(self, label, buffers, uniforms, dispatches)
        except wgpu.GPUOutOfMemoryError as error:
            total = sum(buffers)
            raise OutOfMemoryError(f"{label}: GPU {self.name} has no room for {total} bytes: {error}") from error
        except wgpu.GPUError as error:
            raise GpuError(f"{label} on {self.name}: {error}") from error


class NativeProgram:
    """Buffers and recorded dispatches (host.gpu.GpuProgram)."""

    def __init__(
        self,
        owner: NativeDevice,
        label: str,
        buffers: Sequence[int],
        uniforms: bytes,
        dispatches: Sequence[DispatchSpec],
    ) -> None:
        self._owner, self._label = owner, label
        self._device = device = owner.check()
        usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
        self._buffers = [device.create_buffer(size=size, usage=usage) for size in buffers]
        flags = wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST
        uniform = device.create_buffer(size=max(16, len(uniforms)), usage=flags)
        if uniforms:
            device.queue.write_buffer(uniform, 0, uniforms)
        self._buffers.append(uniform)
        self._steps = [(owner.pipeline(d.pipeline)[0], self._group(d), d.groups) for d in dispatches]
        self._staging: dict[int, list[Any]] = {}

    def _group(self, dispatch: DispatchSpec) -> Any:
        entries = [
            {"binding": i, "resource": {"buffer": self._buffers[s.buffer], "offset": s.offset, "size": s.nbytes}}
            for i, s in enumerate(dispatch.bindings)
        ]
        layout = self._owner.pipeline(dispatch.pipeline)[1]
        return self._device.create_bind_group(label=dispatch.label, layout=layout, entries=entries)

    def write(self, buffer: int, data: Any) -> None:
        """Copies bytes, or the contents of a wgpu buffer, to the start of the buffer of this number."""
        if isinstance(data, wgpu.GPUBuffer):
            encoder = self._owner.check().create_command_encoder()
            target = self._buffers[buffer]
            encoder.copy_buffer_to_buffer(data, 0, target, 0, min(data.size, target.size) // 4 * 4)
            self._device.queue.submit([encoder.finish()])
            return
        view = memoryview(data).cast("B")
        if view.nbytes % 4:
            view = memoryview(view.tobytes() + bytes(-view.nbytes % 4))
        if view.nbytes:
            self._owner.check().queue.write_buffer(self._buffers[buffer], 0, view)

    def free(self, buffers: Sequence[int], dispatches: int) -> None:
        """Frees buffers that only the first `dispatches` dispatches used."""
        self._steps[:dispatches] = [(None, None, (0, 0, 0))] * dispatches
        for number in buffers:
            self._buffers[number].destroy()

    def _encode(self, encoder: Any, first: int, count: int, repeats: int = 1, stamps: Any = None) -> None:
        compute = encoder.begin_compute_pass(timestamp_writes=stamps)
        for _ in range(repeats):
            for pipeline, group, groups in self._steps[first : first + count]:
                compute.set_pipeline(pipeline)
                compute.set_bind_group(0, group)
                compute.dispatch_workgroups(*groups)
        compute.end()

    async def run(
        self, first: int, count: int, reads: Sequence[Span], inputs: Sequence[tuple[int, Any]] = ()
    ) -> list[memoryview]:
        """Writes inputs, submits a range and returns the bytes of `reads`.

        Raises:  DeviceLostError; GpuError
        """
        device = self._owner.check()
        try:
            for buffer, data in inputs:
                self.write(buffer, data)
            encoder = device.create_command_encoder()
            if count:
                self._encode(encoder, first, count)
            offsets, total = staging_layout(reads)
            staging = self._take_staging(max(total, 16))
            for span, at in zip(reads, offsets, strict=True):
                size = -(-span.nbytes // 4) * 4
                if size:
                    encoder.copy_buffer_to_buffer(self._buffers[span.buffer], span.offset, staging, at, size)
            device.queue.submit([encoder.finish()])
            staging.map_sync("READ")
            data = staging.read_mapped()
            staging.unmap()
        except wgpu.GPUError as error:
            raise GpuError(f"{self._label} on {self._owner.name}: {error}") from error
        ring = self._staging.setdefault(max(total, 16), [])
        if len(ring) < STAGING_RING:
            ring.append(staging)
        return [data[at : at + span.nbytes] for span, at in zip(reads, offsets, strict=True)]

    async def keep(
        self, first: int, count: int, reads: Sequence[Span], inputs: Sequence[tuple[int, Any]] = ()
    ) -> list[Any]:
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
                size = -(-span.nbytes // 4) * 4
                made.append(device.create_buffer(size=max(16, size), usage=usage))
                encoder.copy_buffer_to_buffer(self._buffers[span.buffer], span.offset, made[-1], 0, size)
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
        for buffer in self._buffers:
            buffer.destroy()
        self._buffers, self._steps, self._staging = [], [], {}


def _accepted(code: str) -> str:
    """WGSL as wgpu's compiler takes it; lines keep their numbers."""
    for line in REFUSED_LINES:
        code = code.replace(line, "", 1)
    return code


def _camel_limits(limits: Mapping[str, int]) -> dict[str, int]:
    """wgpu-py's `max-buffer-size` under WebGPU's names."""
    out = {}
    for name, value in limits.items():
        head, *tail = name.split("-")
        out[head + "".join(word.capitalize() for word in tail)] = value
    return out
