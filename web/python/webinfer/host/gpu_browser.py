"""The GPU of a browser: drives the JavaScript of web/static/gpu_*.js with plain data.

What is asked of a device goes over as JSON; gpu_device.js and gpu_program.js hold no operator and no decision.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import js
from pyodide.ffi import JsBuffer, JsException, JsProxy

from webinfer.dtypes import DType
from webinfer.errors import BackendUnavailableError
from webinfer.host.gpu import (
    ALIGNED,
    RAISED_LIMITS,
    STAGING_RING,
    WANTED_FEATURES,
    Arrival,
    DispatchSpec,
    GpuOffer,
    Groups,
    PipelineSpec,
    Reads,
    SharedBuffer,
    Span,
    staging_layout,
)
from webinfer.host.gpu_answers import Answers, raise_typed, text_of
from webinfer.host.gpu_pictures import BrowserPictures
from webinfer.host.own_files import own_script
from webinfer.host.page_arrays import ARRAY_CLASSES
from webinfer.host.prefetch import prefetched
from webinfer.spans import FileSpan

WISHES = json.dumps({"features": WANTED_FEATURES, "limits": RAISED_LIMITS, "ring": STAGING_RING})
# What `requestAdapter` is told for each kind of device; for work that goes on the browser weighs heat and battery.
POWER = {"low-power": "low-power", "sustained": None, "high-performance": "high-performance"}
FILE_PART = 1 << 23  # bytes of a file that are in memory at a time
SOFTWARE_ADAPTERS = ("swiftshader", "llvmpipe", "lavapipe", "warp")


async def open_device(page_device: Any = None, kind: str = "") -> BrowserDevice:
    """A device on the browser's adapter of this kind, or on `page_device`, a GPUDevice that the page opened.

    Raises:  BackendUnavailableError with the reason
    """
    try:
        modules = await _scripts()
        if page_device is not None:
            adopted = modules.gpu_device.adoptDevice(page_device, WISHES, modules.gpu_program.Program)
            return BrowserDevice(adopted, modules)
        device = None if kind else await prefetched("gpu")
        if device is None or device.lost:
            wishes = json.dumps({**json.loads(WISHES), "power": POWER[kind]}) if kind else WISHES
            device = await modules.gpu_device.openDevice(wishes, modules.gpu_program.Program)
    except JsException as error:
        raise BackendUnavailableError(f"{text_of(error)}; use a browser with WebGPU or the wasm backend") from error
    return BrowserDevice(device, modules)


async def open_offer() -> GpuOffer | None:
    """What the device will be that the page's worker is opening; None if it opens none, or cannot say."""
    text = await prefetched("gpu offer")
    if text is None:
        return None
    facts = json.loads(text)
    return GpuOffer(*_place(facts), frozenset(facts["features"]), {**facts["limits"], **ALIGNED})


def _place(facts: Mapping[str, Any]) -> tuple[str, str, bool]:
    """The name of an adapter, the browser, and whether a CPU does the computing."""
    words = [str(facts.get(key) or "") for key in ("vendor", "architecture", "device", "description")]
    name = " ".join(dict.fromkeys(word for word in words if word)) or "GPU"
    software = any(mark in name.lower() for mark in SOFTWARE_ADAPTERS)
    return name, _runtime(str(js.navigator.userAgent)), bool(facts.get("isFallbackAdapter")) or software


async def _scripts() -> Any:
    """The scripts of web/static that talk to the GPU: those that the page loaded, else those in the wheel."""
    modules = getattr(getattr(js, "webinfer", None), "gpu", None) or getattr(
        await own_script("static/gpu.js"), "GPU", None
    )
    if getattr(modules, "gpu_device", None) is None or getattr(modules, "gpu_program", None) is None:
        raise BackendUnavailableError("webgpu: neither the page nor the wheel has static/gpu.js; install a whole wheel")
    return modules


def _runtime(user_agent: str) -> str:
    """The browser and its major version: "Chrome 156"."""
    for mark, name in (("Firefox/", "Firefox"), ("Edg/", "Edge"), ("Chrome/", "Chrome"), ("Version/", "Safari")):
        _, found, rest = user_agent.partition(mark)
        if found:
            return f"{name} {rest.split('.')[0]}"
    return "unknown browser"


class BrowserDevice:
    """A device of the browser (host.gpu.GpuDevice). `device` is the Device of gpu_device.js, `modules` has the rest."""

    notes_load = False

    def __init__(self, device: Any, modules: Any) -> None:
        facts = json.loads(device.describe())
        self.name, self.runtime, self.software = _place(facts)
        self.features: frozenset[str] = frozenset(facts["features"])
        self.limits: Mapping[str, int] = facts["limits"]
        self._device, self._modules = device, modules
        device.software = self.software
        self._answers = Answers(self.name)
        self._numbers: dict[PipelineSpec, int] = {}
        self._pictures: dict[str, BrowserPictures] = {}  # by the code of their passes
        self._closed = False

    @property
    def lost(self) -> str:
        """Why the device is gone, or the empty text while it lives."""
        return str(self._device.lost)

    @property
    def handle(self) -> Any:
        """The Device of gpu_device.js, for JavaScript that replays what was recorded."""
        return self._device

    def start_pipelines(self, specs: Sequence[PipelineSpec]) -> list[int]:
        """A number for each spec; the browser creates new ones in parallel while Python goes on.

        Raises:  DeviceLostError
        """
        new = [spec for spec in dict.fromkeys(specs) if spec not in self._numbers]
        if new:
            text = json.dumps([{"label": s.label, "code": s.code, "bindings": s.bindings} for s in new])
            try:
                first = int(self._device.startPipelines(text))
            except JsException as error:
                raise_typed(error, "shaders", self.name)
            self._numbers.update({spec: first + i for i, spec in enumerate(new)})
        return [self._numbers[spec] for spec in specs]

    async def pipelines_ready(self, numbers: Sequence[int]) -> None:
        """Returns when these pipelines can run. After a failure they are created anew when they are asked for again.

        Raises:  GpuError naming the shader; DeviceLostError
        """
        try:
            await self._device.pipelinesReady(json.dumps(sorted(set(numbers))))
        except JsException as error:
            failed = set(numbers)
            self._numbers = {spec: number for spec, number in self._numbers.items() if number not in failed}
            raise_typed(error, "shaders", self.name)

    async def program(
        self, label: str, buffers: Sequence[int | SharedBuffer], uniforms: bytes, dispatches: Sequence[DispatchSpec]
    ) -> BrowserProgram:
        """A program over new zeroed buffers, or those of other programs.

        Raises:  OutOfMemoryError; GpuError; DeviceLostError
        """
        steps = [
            {
                "label": d.label,
                "pipeline": d.pipeline,
                "bindings": [(s.buffer, s.offset, s.nbytes) for s in d.bindings],
                "groups": d.groups,
            }
            for d in dispatches
        ]
        sizes = [size if isinstance(size, int) else None for size in buffers]
        text = json.dumps({"label": "webinfer", "buffers": sizes, "dispatches": steps})
        try:
            program = await self._device.createProgram(text, memoryview(uniforms), *_taken_from(buffers))
        except JsException as error:
            raise_typed(error, label, self.name)
        return BrowserProgram(program, label, self.name, self._modules)

    async def idle(self) -> None:
        """Returns when everything submitted so far has been computed."""
        await self._answers.of("waiting for the GPU", self._device.tellIdle)

    async def read(self, buffer: Any, nbytes: int) -> memoryview:
        """A copy of the first `nbytes` bytes of a GPUBuffer.

        Raises:  DeviceLostError; GpuError; OutOfMemoryError
        """
        data: memoryview = await self._answers.of("reading a GPU buffer", self._device.tellBytes, buffer, nbytes)
        return data

    def pictures(self, specs: Mapping[str, PipelineSpec]) -> BrowserPictures | None:
        """What takes the browser's pictures to this device; None unless the page loaded gpu_picture.js."""
        if getattr(self._modules, "gpu_picture", None) is None:
            return None
        key = "".join(spec.code for spec in specs.values())
        if key not in self._pictures:
            self._pictures[key] = BrowserPictures(self, self._modules, self._device, specs)
        return self._pictures[key]

    def close(self) -> None:
        """Destroys the device; one that the page opened stays the page's."""
        if not self._closed:
            self._closed = True
            self._device.close()
            self._answers.close()


def _taken_from(buffers: Iterable[int | SharedBuffer]) -> list[Any]:
    """The buffers of other programs among these, as gpu_program.js takes them: a program, a number, and so on."""
    shared = [one for one in buffers if isinstance(one, SharedBuffer)]
    return [part for one in shared for part in (one.program._program, one.number)]  # type: ignore[attr-defined]


class BrowserProgram:
    """Buffers and recorded dispatches (host.gpu.GpuProgram). `program` is the Program of gpu_program.js."""

    def __init__(self, program: Any, label: str, adapter: str, modules: Any) -> None:
        self._program, self._label, self._adapter, self._modules = program, label, adapter, modules
        self._layouts: dict[tuple[Any, ...], tuple[int, list[tuple[int, int]]]] = {}
        self._answers = Answers(adapter)

    def write(self, buffer: int, data: Any, offset: int = 0) -> None:
        """Copies bytes, or the contents of a GPUBuffer or of an own buffer, to the buffer of this number.

        Bytes of a large file come through memory part by part.
        """
        if isinstance(data, FileSpan):
            for at in range(0, len(data), FILE_PART):
                self.write(buffer, data.part(at, min(FILE_PART, len(data) - at)).view(), offset + at)
            return
        try:
            if isinstance(data, Span):
                data = self._program.buffers[data.buffer]
            if isinstance(data, FileSpan):
                data = data.view()  # freed again before the next one is read
            if isinstance(data, JsProxy) and not isinstance(data, JsBuffer):
                self._program.take(buffer, data)
            else:
                self._program.write(buffer, memoryview(data) if isinstance(data, bytes | bytearray) else data, offset)
        except JsException as error:
            raise_typed(error, self._label, self._adapter)

    async def read(self, span: Span) -> memoryview:
        """A copy of a range of a buffer.

        Raises:  DeviceLostError; GpuError; OutOfMemoryError
        """
        device, buffer = self._program.device, self._program.buffers[span.buffer]
        data: memoryview = await self._answers.of(self._label, device.tellBytes, buffer, span.nbytes, span.offset)
        return data

    def _layout(self, reads: Reads) -> tuple[int, list[tuple[int, int]]]:
        """The number of these results in gpu_program.js, and where each lies in the staging buffer."""
        key = tuple(reads)
        found = self._layouts.get(key)
        if found is None:
            starts, total = staging_layout(reads)
            copies = [(*span[:3], start, *span[3:]) for span, start in zip(reads, starts, strict=True)]
            number = self._program.reading(json.dumps({"copies": copies, "total": total}))
            parts = [(start, start + s.nbytes) for s, start in zip(reads, starts, strict=True)]
            found = self._layouts[key] = number, parts
        return found

    def _given(self, inputs: Sequence[tuple[int, Any]]) -> list[Any]:
        """Inputs as gpu_program.js takes them: the number of a buffer, what it holds, and so on."""
        given: list[Any] = []
        for buffer, data in inputs:
            if isinstance(data, Span):
                data = self._program.buffers[data.buffer]
            elif isinstance(data, FileSpan):
                self.write(buffer, data)
                continue
            elif isinstance(data, bytes | bytearray):
                data = memoryview(data)
            given += (buffer, data)
        return given

    async def run(
        self, first: int, count: int, reads: Reads, inputs: Sequence[tuple[int, Any]] = ()
    ) -> list[memoryview]:
        """Writes inputs, submits a range and returns the bytes of `reads`.

        Raises:  DeviceLostError; GpuError; OutOfMemoryError
        """
        return await (await self.start(first, count, reads, inputs))()

    async def start(self, first: int, count: int, reads: Reads, inputs: Sequence[tuple[int, Any]] = ()) -> Arrival:
        """Writes inputs and submits a range; what it returns waits for the bytes of `reads`.

        Raises:  DeviceLostError; GpuError; OutOfMemoryError
        """
        number, parts = self._layout(reads)
        ticket = self._answers.ticket()
        try:
            given = self._given(inputs)
            while (
                room := self._program.start(first, count, number, ticket, self._answers.arrived, *given)
            ) is not None:
                await room
        except JsException as error:
            raise_typed(error, self._label, self._adapter)
        answer = self._answers.wait(ticket)

        async def arrived() -> list[memoryview]:
            data = self._answers.checked(await answer, self._label)
            return [data[start:end] for start, end in parts]

        return arrived

    def page_runs(
        self, first: int, count: int, reads: Sequence[Span], inputs: Sequence[tuple[int, DType, int]]
    ) -> BrowserPageRuns | None:
        """Runs on typed arrays of these types and bytes; None where the page lacks gpu_runs.js."""
        script = getattr(self._modules, "gpu_runs", None)
        if script is None:
            return None
        number, parts = self._layout(reads)
        rows = [(buffer, nbytes, ARRAY_CLASSES.get(dtype.value, "")) for buffer, dtype, nbytes in inputs]
        plan = json.dumps({"first": first, "count": count, "reads": number, "inputs": rows})
        runs = script.Runs.new(self._program, plan, self._answers.arrived)
        return BrowserPageRuns(runs, parts, self._answers, self._label, self._adapter)

    async def keep(self, first: int, count: int, reads: Reads, inputs: Sequence[tuple[int, Any]] = ()) -> list[Any]:
        """Writes inputs, submits a range and returns a GPUBuffer for each of `reads`."""
        try:
            kept = self._program.keep(first, count, self._layout(reads)[0], *self._given(inputs))
            if kept.checked is not None:
                await kept.checked
            return list(kept.buffers)
        except JsException as error:
            raise_typed(error, self._label, self._adapter)

    @property
    def handle(self) -> Any:
        """The Program of gpu_program.js, for JavaScript that replays its dispatches."""
        return self._program

    def release(self, buffer: Any) -> None:
        """Takes back a buffer that `keep` gave, for a later run."""
        self._program.release(buffer)

    async def rebind(
        self,
        sizes: Mapping[int, int | SharedBuffer],
        uniforms: bytes,
        steps: Sequence[tuple[int, Sequence[Span] | None, Groups]],
    ) -> None:
        """Goes on with other sizes of what dispatches work on.

        Raises:  DeviceLostError; GpuError; OutOfMemoryError
        """
        rows = [
            (number, None if bindings is None else [(s.buffer, s.offset, s.nbytes) for s in bindings], groups)
            for number, bindings, groups in steps
        ]
        plain = [(number, size if isinstance(size, int) else None) for number, size in sizes.items()]
        text, taken = json.dumps({"sizes": plain, "steps": rows}), _taken_from(sizes.values())
        try:
            await self._program.rebind(text, memoryview(uniforms), *taken)
        except JsException as error:
            raise_typed(error, self._label, self._adapter)
        self._layouts.clear()

    def free(self, buffers: Sequence[int], dispatches: int) -> None:
        """Frees buffers that only the first `dispatches` dispatches used."""
        self._program.free(json.dumps(list(buffers)), dispatches)

    async def time(self, first: int, count: int, repeats: int) -> float:
        """Milliseconds of a range, averaged over `repeats` repetitions."""
        try:
            return float(await self._program.time(first, count, repeats))
        except JsException as error:
            raise_typed(error, self._label, self._adapter)

    def close(self) -> None:
        """Frees the buffers; results that are on their way are still delivered."""
        self._program.close()
        self._answers.close()


class BrowserPageRuns:
    """Runs of a program on typed arrays (host.gpu.PageRuns). `runs` is the Runs of gpu_runs.js."""

    def __init__(self, runs: Any, parts: Sequence[tuple[int, int]], answers: Answers, label: str, adapter: str) -> None:
        self._begin, self._parts, self._answers = runs.begin, parts, answers
        self._label, self._adapter = label, adapter

    async def run(self, arrays: Sequence[Any]) -> list[memoryview] | None:
        """The bytes of the results; None, and nothing was done, unless the run can begin at once and each array fits.

        Raises:  DeviceLostError; GpuError; OutOfMemoryError
        """
        answers = self._answers
        ticket = answers.ticket()
        try:
            if not self._begin(ticket, *arrays):
                return None
        except JsException as error:
            raise_typed(error, self._label, self._adapter)
        data = answers.checked(await answers.wait(ticket), self._label)
        return [data[start:end] for start, end in self._parts]
