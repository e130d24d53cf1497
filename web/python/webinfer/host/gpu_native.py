"""The GPU of CPython: wgpu-py over Vulkan, Metal, D3D12 or Mesa's software driver. Takes no pictures.

Programs of dispatches are in gpu_native_program.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakSet

import wgpu
from wgpu.backends.wgpu_native import ffi, lib

from webinfer.errors import BackendUnavailableError, DeviceLostError, GpuError, OutOfMemoryError
from webinfer.host.gpu import RAISED_LIMITS, WANTED_FEATURES, DispatchSpec, PipelineSpec, SharedBuffer
from webinfer.host.gpu_native_adapter import chosen_adapter
from webinfer.host.gpu_native_program import NativeProgram
from webinfer.host.gpu_native_types import read_types
from webinfer.lazy_dataclass import dataclass

WGSL_FEATURES = ("packed_4x8_integer_dot_product",)  # what wgpu's compiler has beyond plain WGSL
NATIVE_NAMES = {"subgroups": "subgroup"}  # features that wgpu calls otherwise than WebGPU does
REFUSED_LINES = ("enable subgroups;",)  # what the device's features say already: wgpu's compiler wants no such line
_BINDING_TYPE = {"read": "read-only-storage", "write": "storage", "uniform": "uniform"}


def _dashed(name: str) -> str:
    """WebGPU's `maxBufferSize` as wgpu-py writes it."""
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in name)


async def open_device() -> NativeDevice:
    """A device on the adapter that the environment names, else on the fastest.

    Raises:  BackendUnavailableError with the reason
    """
    read_types(ffi)
    adapter = chosen_adapter()
    limits = {_dashed(name): adapter.limits[_dashed(name)] for name in RAISED_LIMITS if _dashed(name) in adapter.limits}
    features = [name for name in WANTED_FEATURES if NATIVE_NAMES.get(name, name) in adapter.features]
    wanted = [NATIVE_NAMES.get(name, name) for name in features]
    try:
        device = adapter.request_device_sync(label="webinfer", required_features=wanted, required_limits=limits)
    except Exception as error:
        raise BackendUnavailableError(f"adapter {adapter.info['device']} provides no device: {error}") from error
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


_open: WeakSet[NativeDevice] = WeakSet()


def _after_fork() -> None:
    for device in list(_open):
        device.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class NativeDevice:
    """A wgpu device with its pipelines (host.gpu.GpuDevice). Sessions of several threads share it."""

    notes_load = False

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
        self.shared: dict[Any, int] = {}  # buffers of several programs: how many more than one
        self.mutex, self.forked, self.programs = threading.RLock(), False, WeakSet[NativeProgram]()
        _open.add(self)

    def after_fork(self) -> None:
        """Lost in a child process, which has no driver: what lies there is neither used nor freed, not even at the end.

        Freeing it would wait for the driver's threads, which are not there.
        """
        self._lost, self.forked, self.mutex = "the process was forked", True, threading.RLock()
        for kept in (self, *self.programs):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))

    @property
    def lost(self) -> str:
        """Why the device is gone, or the empty text while it lives."""
        return self._lost

    def release(self, buffer: Any) -> None:
        """One program less needs a buffer."""
        more = self.shared.pop(buffer, 0)
        if more > 1:
            self.shared[buffer] = more - 1
        elif not more:
            buffer.destroy()

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
        with self.mutex:
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
        self, label: str, buffers: Sequence[int | SharedBuffer], uniforms: bytes, dispatches: Sequence[DispatchSpec]
    ) -> NativeProgram:
        """A program over new zeroed buffers.

        Raises:  OutOfMemoryError; GpuError; DeviceLostError
        """
        self.check()
        try:
            return NativeProgram(self, label, buffers, uniforms, dispatches)
        except wgpu.GPUOutOfMemoryError as error:
            total = sum(size for size in buffers if isinstance(size, int))
            raise OutOfMemoryError(
                f"{label}: GPU {self.name} has too little memory for {total} bytes: {error}"
            ) from error
        except wgpu.GPUError as error:
            raise GpuError(f"{label} on {self.name}: {error}") from error


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
