"""The GPU of a browser: the JavaScript of web/static/gpu_*.js, driven with plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import js
from pyodide.ffi import JsException

from webinfer.errors import BackendUnavailableError, DeviceLostError, GpuError, OutOfMemoryError
from webinfer.host.gpu import RAISED_LIMITS, STAGING_RING, WANTED_FEATURES, DispatchSpec, PipelineSpec, Span

SOFTWARE_ADAPTERS = ("swiftshader", "llvmpipe", "lavapipe", "warp")


async def open_device() -> BrowserDevice:
    """A device on the browser's adapter.

    Raises:  BackendUnavailableError with the reason
    """
    door: Any = getattr(getattr(js, "webinfer", None), "gpu", None)
    if getattr(door, "gpu_device", None) is None or getattr(door, "gpu_program", None) is None:
        raise BackendUnavailableError(
            "the page did not load static/gpu_device.js and static/gpu_program.js; "
            "start the engine through engine_worker.js"
        )
    wishes = json.dumps({"features": WANTED_FEATURES, "limits": RAISED_LIMITS, "ring": STAGING_RING})
    try:
        device = await door.gpu_device.openDevice(wishes, door.gpu_program.Program)
    except JsException as error:
        raise BackendUnavailableError(
            f"webgpu: {_text(error)}; use a browser with WebGPU or the wasm backend"
        ) from error
    return BrowserDevice(device)


def _text(error: JsException) -> str:
    return str(getattr(error, "message", error))


def _raise(error: JsException, what: str, adapter: str) -> NoReturn:
    """Raises the typed error that belongs to a JavaScript error's name."""
    kind, text = str(getattr(error, "name", "")), _text(error)
    if kind == "DeviceLost":
        raise DeviceLostError(f"{what}: GPU {adapter} was lost ({text}); run again to restore the session") from error
    if kind == "OutOfMemory":
        raise OutOfMemoryError(f"{what}: GPU {adapter} has no room: {text}") from error
    raise GpuError(f"{what} on {adapter}: {text}") from error


class BrowserDevice:
    """A device of the browser (host.gpu.GpuDevice)."""

    def __init__(self, device: Any) -> None:
        facts = json.loads(device.describe())
        words = [str(facts.get(key) or "") for key in ("vendor", "architecture", "device", "description")]
        self.name = " ".join(dict.fromkeys(word for word in words if word)) or "GPU"
        software = any(mark in self.name.lower() for mark in SOFTWARE_ADAPTERS)
        self.software = bool(facts.get("isFallbackAdapter")) or software
        self.features: frozenset[str] = frozenset(facts["features"])
        self.limits: Mapping[str, int] = facts["limits"]
        self._device = device
        device.patient = self.software
        self._numbers: dict[PipelineSpec, int] = {}
        self._closed = False

    @property
    def lost(self) -> str:
        """Why the device is gone, or the empty text."""
        return str(self._device.lost)

    async def pipelines(self, specs: Sequence[PipelineSpec]) -> list[int]:
        """A number for each spec, new ones created in parallel."""
        new = [spec for spec in dict.fromkeys(specs) if spec not in self._numbers]
        if new:
            text = json.dumps([{"label": s.label, "code": s.code, "bindings": s.bindings} for s in new])
            try:
                first = int(await self._device.createPipelines(text))
            except JsException as error:
                _raise(error, "shaders", self.name)
            self._numbers.update({spec: first + i for i, spec in enumerate(new)})
        return [self._numbers[spec] for spec in specs]

    async def program(
        self, label: str, buffers: Sequence[int], uniforms: bytes, dispatches: Sequence[DispatchSpec]
    ) -> BrowserProgram:
        """A program over new buffers."""
        steps = [
            {
                "label": d.label,
                "pipeline": d.pipeline,
                "bindings": [(s.buffer, s.offset, s.nbytes) for s in d.bindings],
                "groups": d.groups,
            }
            for d in dispatches
        ]
        text = json.dumps({"label": "webinfer", "buffers": list(buffers), "dispatches": steps})
        try:
            program = await self._device.createProgram(text, memoryview(uniforms))
        except JsException as error:
            _raise(error, label, self.name)
        return BrowserProgram(program, label, self.name)

    def close(self) -> None:
        """Destroys the device."""
        if not self._closed:
            self._closed = True
            self._device.close()


class BrowserProgram:
    """Buffers and recorded dispatches (host.gpu.GpuProgram)."""

    def __init__(self, program: Any, label: str, adapter: str) -> None:
        self._program, self._label, self._adapter = program, label, adapter
        self._reads: dict[tuple[Span, ...], str] = {}

    def write(self, buffer: int, data: Any) -> None:
        """Copies bytes to the start of a buffer."""
        view = memoryview(data) if isinstance(data, bytes | bytearray) else data
        try:
            self._program.write(buffer, view)
        except JsException as error:
            _raise(error, self._label, self._adapter)

    async def run(self, first: int, count: int, reads: Sequence[Span]) -> list[memoryview]:
        """Submits a range and reads back."""
        key = tuple(reads)
        text = self._reads.get(key)
        if text is None:
            text = self._reads[key] = json.dumps([(s.buffer, s.offset, s.nbytes) for s in reads])
        try:
            result = await self._program.run(first, count, text)
        except JsException as error:
            _raise(error, self._label, self._adapter)
        data: memoryview = result.to_memoryview()
        out, at = [], 0
        for span in reads:
            out.append(data[at : at + span.nbytes])
            at += -(-span.nbytes // 16) * 16
        return out

    def free(self, buffers: Sequence[int], dispatches: int) -> None:
        """Lets buffers go that only the first dispatches used."""
        self._program.free(json.dumps(list(buffers)), dispatches)

    async def time(self, first: int, count: int, repeats: int) -> float:
        """Milliseconds of one pass over a range."""
        try:
            return float(await self._program.time(first, count, repeats))
        except JsException as error:
            _raise(error, self._label, self._adapter)

    def close(self) -> None:
        """Frees everything."""
        self._program.close()
