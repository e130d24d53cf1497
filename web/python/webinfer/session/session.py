"""Sessions: a model loaded on one backend, with its plan, its profile and its self-check."""

from __future__ import annotations

import asyncio
import logging
import statistics
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from types import TracebackType
from typing import Any, TypeVar

from webinfer.authoring.builder import GraphBuilder
from webinfer.backends.base import Executor, MemoryReport
from webinfer.errors import ClosedError, DeviceLostError, InputError, KernelError, ModelFormatError, ShapeError
from webinfer.flags import debug, debug_level
from webinfer.graph.ir import Graph
from webinfer.graph.printer import print_graph
from webinfer.host import current
from webinfer.host.gpu import GpuTensor
from webinfer.host.interface import Host, Progress, ProgressEvent
from webinfer.importers import read_model
from webinfer.models.registry import MODELS, check_integrity, locate_model
from webinfer.passes.dequantize import dequantize as in_real_numbers
from webinfer.passes.pipeline import optimize
from webinfer.session.inputs import checked, info_of, noise, zeros
from webinfer.session.plan_cache import Extended, open_graph
from webinfer.session.reports import PlanReport, Profile, VerifyReport, compare_backends, time_runs
from webinfer.session.selection import BACKENDS, Attempt, LoadOptions, choose, order_of
from webinfer.tensor import Tensor
from webinfer.tune.log import TuningReport

log = logging.getLogger("webinfer")
LOSSES_BEFORE_FALLBACK = 2
TUNING_BUDGET_MS = 5000.0
T = TypeVar("T")


async def load(
    source: Any,
    *,
    backend: str | Sequence[str] = "auto",
    strict: bool = False,
    progress: Progress | None = None,
    threads: int | None = None,
    tuning_ms: float | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dequantize: bool = False,
    precision: str = "float32",
    host: Host | None = None,
) -> Session:
    """A session that runs the model.

    `source` is bytes, a path, a URL, the name of a known model or a `GraphBuilder`. `backend` is "auto" (the fastest
    measured on this device), one of "webgpu", "wasm", "reference", or a list to try in order. `threads` is for the wasm
    backend: None takes what suits the machine, where threads cannot be had there is one. `tuning_ms` is a budget for
    timing kernels on this device; what won is remembered and applies to later loads. On webgpu it is spent in this
    call (None: nothing is timed), on wasm in a browser's pauses after it (None: 200). With 0 the defaults run.
    `shapes` binds the sizes of inputs, by name, that the model leaves open; they may change from run to run.
    `dequantize` computes a quantised model in float32; its inputs and outputs are real numbers then.
    With `precision="float16"` webgpu keeps weights and intermediate results in half the memory; sums, inputs, outputs
    and constants beyond 65504 stay float32, results beyond it overflow; other backends compute in float32.
    With `strict` a backend that cannot run the whole model is an error, never a reason to fall back.

    Raises:  ModelFormatError, UnsupportedOpError, ShapeError, BackendUnavailableError, LimitError, OutOfMemoryError
    """
    host = host or current()
    order = order_of(backend, precision)
    extended, source = (source, source.model) if isinstance(source, Extended) else (Extended(source), source)
    built = isinstance(source, GraphBuilder)
    data, name = (memoryview(b""), "") if built else await _read(source, host, progress)
    if built and shapes:
        raise InputError(f"{source.name!r} was built with its shapes; `shapes` is for models that leave sizes open")

    def read(bound: Mapping[str, Sequence[int]] | None) -> Graph:
        graph = source.graph() if built else read_model(data, name, bound)
        if dequantize:
            in_real_numbers(graph)
        return _optimised(graph, extended)

    kept = not (built or shapes or dequantize) and {*order} & {"auto", "wasm"}
    graph = await open_graph(data, name, host, lambda: read(None), extended.name) if kept else read(shapes)
    _compiling(progress, 0)
    options = LoadOptions(strict, progress, threads, tuning_ms, precision == "float16")
    attempt = await choose(graph, host, order, options)
    _compiling(progress, 1)
    debug(1, f"{graph.name}: {attempt.reason}")
    return Session(graph, host, attempt, order, options, read if shapes else None)


def _compiling(progress: Progress | None, done: int) -> None:
    if progress is not None:
        progress(ProgressEvent("compile", done, 1, "steps"))


def _optimised(graph: Graph, extended: Extended) -> Graph:
    extended.extend(graph)
    debug(5, f"imported\n{print_graph(graph)}" if debug_level() >= 5 else "")
    for rewrite, count in optimize(graph):
        debug(3, f"pass {rewrite}: {count} rewrites")
    return graph


async def _read(source: Any, host: Host, progress: Progress | None) -> tuple[memoryview, str]:
    if isinstance(source, (str, PurePath)):
        text = str(source)
        if text not in MODELS:
            return await host.fetch(text, progress), PurePath(text.split("?")[0]).stem
        data = await host.fetch(locate_model(text, host.asset), progress)
        check_integrity(text, data)
        return data, text
    try:
        return memoryview(source).cast("B"), "model"
    except TypeError:
        raise ModelFormatError(
            f"a model cannot be read from a {type(source).__name__}; give bytes, a path or a URL"
        ) from None


class Session:
    """A loaded model. Runs are queued; after an error the next valid call works.

    Usable as a context manager; `close()` frees the memory of kernels and GPU.
    """

    def __init__(
        self,
        graph: Graph,
        host: Host,
        attempt: Attempt,
        order: Sequence[str],
        options: LoadOptions,
        read: Callable[[Mapping[str, Sequence[int]]], Graph] | None = None,
    ) -> None:
        self._graph, self._host, self._order, self._options = graph, host, list(order), options
        self._attempt: Attempt | None = attempt
        self._read_graph = read
        self._lock = asyncio.Lock()
        self._losses, self._stale, self._flying = 0, False, 0
        self.inputs = [info_of(v) for v in graph.inputs]
        self.outputs = [info_of(v) for v in graph.outputs]

    # ----- what runs where

    @property
    def name(self) -> str:
        """The model's name."""
        return self._graph.name

    @property
    def backend(self) -> str:
        """The backend in use."""
        return self.executor.backend

    @property
    def choice(self) -> str:
        """Why this backend: one sentence."""
        return self._live().reason

    @property
    def executor(self) -> Executor:
        """The compiled graph, for tasks that work in its memory."""
        return self._live().executor

    @property
    def host(self) -> Host:
        """Where this session runs."""
        return self._host

    def _live(self) -> Attempt:
        if self._attempt is None:
            raise ClosedError(f"the session of {self._graph.name!r} is closed; load the model again")
        return self._attempt

    def plan(self) -> PlanReport:
        """The plan step by step: operator, backend, kernel, shapes, work, bytes and why."""
        return PlanReport(self._graph.name, self.backend, self.choice, list(self.executor.rows()), self.memory())

    def memory(self) -> MemoryReport:
        """Bytes of constants and arena."""
        return self.executor.memory()

    def graph_text(self) -> str:
        """The optimised graph as text."""
        return print_graph(self._graph)

    # ----- running

    async def run(self, inputs: Mapping[str, Any] | Any) -> dict[str, Tensor]:
        """The outputs by name, each a new tensor.

        `inputs` maps names to arrays, buffers or tensors, on webgpu also to GpuTensors or GPUBuffers of the
        same device; a model with one input also takes that alone. Where `shapes` were bound at load, arrays
        of another size make the plan anew. On webgpu runs that are begun together overlap.

        Raises:  InputError, DeviceLostError, KernelError, ClosedError; what a new plan may raise
        """
        async with self._lock:
            executor, buffers = await self._prepared(inputs)
            if not executor.overlaps:
                return await self._watched(executor, executor.run(buffers))
        return await self._watched(executor, executor.run(buffers))

    async def run_on_gpu(self, inputs: Mapping[str, Any] | Any) -> dict[str, GpuTensor]:
        """The outputs by name as buffers on the GPU: as `run`, but nothing is read back or waited for.

        Raises:  InputError if the session does not run on webgpu; else as `run`
        """
        async with self._lock:
            executor, buffers = await self._prepared(inputs)
            keep = getattr(executor, "keep", None)
            if keep is None:
                raise InputError(f"{self.name!r} runs on {self.backend}; results stay on the GPU only on webgpu")
        return await self._watched(executor, keep(buffers))

    async def _prepared(self, inputs: Mapping[str, Any] | Any) -> tuple[Executor, dict[str, Any]]:
        """What runs next, and its checked inputs."""
        await self._bind(inputs)
        buffers = self._buffers(inputs)
        await self._revive()
        return self.executor, buffers

    async def _watched(self, executor: Executor, run: Awaitable[T]) -> T:
        """Waits for a run; notes what it broke."""
        self._flying += 1
        try:
            return await run
        except (DeviceLostError, KernelError) as error:
            current = self._attempt is not None and self._attempt.executor is executor
            if current and not self._stale:  # runs that were lost together count once
                self._losses += isinstance(error, DeviceLostError)
                self._stale = True
            raise
        finally:
            self._flying -= 1

    async def _landed(self) -> None:
        """Waits for runs in flight: what follows changes what they work on."""
        while self._flying:
            await self._host.pause()

    async def _bind(self, inputs: Mapping[str, Any] | Any) -> None:
        """A new plan if arrays of another size are given and the model allows them."""
        if self._read_graph is None:
            return
        given = inputs if isinstance(inputs, Mapping) else dict.fromkeys([i.name for i in self.inputs][:1], inputs)
        found = {i.name: getattr(given.get(i.name), "shape", None) for i in self.inputs}
        typed = {i.name: hasattr(given.get(i.name), "dtype") for i in self.inputs}
        changed = {
            i.name: tuple(shape)
            for i in self.inputs
            if (shape := found[i.name]) is not None and typed[i.name] and tuple(shape) != i.shape
        }
        if not changed:
            return
        try:
            graph = self._read_graph({i.name: changed.get(i.name, i.shape) for i in self.inputs})
        except ShapeError:
            return  # the model does not allow them: the check of the inputs says what is needed
        attempt = await choose(graph, self._host, self._order, replace(self._options, progress=None))
        await self._landed()
        self._live().executor.close()
        self._graph, self._attempt, self._stale = graph, attempt, False
        self.inputs = [info_of(v) for v in graph.inputs]
        self.outputs = [info_of(v) for v in graph.outputs]

    async def warmup(self) -> None:
        """Runs once on zeros, so that the first real run is as fast as the next."""
        await self.run(zeros(self.inputs))

    def _buffers(self, inputs: Mapping[str, Any] | Any) -> dict[str, Any]:
        return checked(inputs, self.inputs, self.name, self._host, self.executor)

    async def _revive(self) -> None:
        """After a lost device: one rebuild on the same backend, then the next of the order."""
        if getattr(self.executor, "lost", "") and not self._stale:  # between two runs
            self._losses, self._stale = self._losses + 1, True
        if not self._stale:
            return
        order = self._order
        if self._losses >= LOSSES_BEFORE_FALLBACK and not self._options.strict:
            order = [b for b in order if b != self.backend] or ["wasm"]
        await self.restore(order)

    async def restore(self, order: Sequence[str] | None = None) -> None:
        """Builds the session anew, as after the loss of a device."""
        before = self._live().executor
        before.close()
        self._attempt = attempt = await choose(
            self._graph, self._host, order or self._order, replace(self._options, progress=None)
        )
        self._stale = False
        if self._losses:
            lost = f"the GPU was lost {self._losses} time{'s' * (self._losses > 1)}"
            same = attempt.executor.backend == before.backend
            attempt.reason = (
                f"{attempt.reason}; rebuilt, {lost}" if same else f"{attempt.executor.backend}, because {lost}"
            )
            log.warning("%s: %s", self.name, attempt.reason)

    async def tune(self, budget_ms: float = TUNING_BUDGET_MS, progress: Progress | None = None) -> TuningReport:
        """Times kernels on this device, keeps what is faster for now and for later loads, and says what was gained.

        Shapes that are known from before are not timed again: a second call goes on where the budget ended.

        Raises:  InputError unless the whole model runs on webgpu; DeviceLostError if a kernel brought the GPU down
        """
        async with self._lock:
            await self._revive()
            if not hasattr(self.executor, "tuning"):
                raise InputError(f"{self.name!r} runs on {self.backend}; only sessions on webgpu are tuned by hand")
            options = replace(self._options, strict=True, progress=progress, tuning_ms=budget_ms)
            fresh = await choose(self._graph, self._host, [self.backend], options)
            await self._landed()
            fresh.reason = self.choice
            self._live().executor.close()
            self._attempt = fresh
        report: TuningReport | None = getattr(fresh.executor, "tuning", None)
        if report is None:
            raise DeviceLostError(f"{self.name!r}: tuning lost the GPU and left the default plan; tune again to go on")
        return report

    async def export_tuning(self) -> str:
        """What was found on this device, as JSON lines; "" where nothing was."""
        from webinfer.backends.webgpu.tuning import export_log

        return await export_log(self._host)

    async def forget_tuning(self) -> None:
        """Forgets what was found on this device; the session runs on the default kernels from now on."""
        from webinfer.backends.webgpu.tuning import forget

        async with self._lock:
            self._live()
            await forget(self._host)
            await self._landed()
            await self.restore()

    async def import_tuning(self, text: str) -> tuple[int, int]:
        """Takes over lines of `export_tuning` and applies them; how many, and how many belong to other devices.

        Raises:  ModelFormatError naming the lines that cannot be read; BackendUnavailableError without a GPU
        """
        from webinfer.backends.webgpu.tuning import import_log

        async with self._lock:
            self._live()
            log = await import_log(self._host, text)
            await self._landed()
            await self.restore()
        return len(log.winners) + len(log.verdicts), log.skipped

    # ----- looking inside

    async def profile(
        self, inputs: Mapping[str, Any] | None = None, rounds: int = 5, progress: Progress | None = None
    ) -> Profile:
        """Time, GFLOP/s and bytes of each step, and the time outside them: a table, JSON and a picture (`.svg()`)."""
        buffers = self._buffers(inputs) if inputs is not None else zeros(self.inputs)
        await self.run(buffers)  # revives the session, and lets code get warm
        steps, runs = [], []
        for done in range(rounds):
            if progress is not None:
                progress(ProgressEvent("profile", done, rounds, "steps"))
            runs.append(await time_runs(self.run, self.executor, buffers, self._host.now_ms))
            async with self._lock:
                await self._landed()
                steps.append(await self.executor.profile(buffers, 1))
        times = [statistics.median(step) for step in zip(*steps, strict=True)]
        run_ms, overhead_ms = (statistics.median(samples) for samples in zip(*runs, strict=True))
        return Profile(self.name, self.backend, list(self.executor.rows()), times, run_ms, overhead_ms)

    async def verify(
        self, against: str = "reference", inputs: Mapping[str, Any] | None = None, tolerance: float = 1e-3
    ) -> VerifyReport:
        """Every intermediate result compared with another backend; names the first that differs.

        `tolerance` is relative to the range of each tensor.
        """
        if against not in BACKENDS:
            raise InputError(f"cannot verify against {against!r}; choose one of {', '.join(BACKENDS)}")
        buffers = self._buffers(inputs) if inputs is not None else self.noise()
        async with self._lock:
            await self._landed()
            await self._revive()
            other = await choose(self._graph, self._host, [against], LoadOptions(strict=True))
            try:
                return await compare_backends(self.executor, other.executor, buffers, tolerance)
            finally:
                other.executor.close()

    def noise(self) -> dict[str, memoryview]:
        """Inputs for a trial: seeded noise in [-1, 1) for floats, whole-range bytes, zeros else."""
        return noise(self.inputs)

    # ----- the end

    def close(self) -> None:
        """Frees the session; a second call does nothing."""
        if self._attempt is not None:
            self._attempt.executor.close()
            self._attempt = None

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._attempt is None else self.backend
        return f"Session({self.name!r}, {state})"
