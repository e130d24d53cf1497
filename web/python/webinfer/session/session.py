"""Sessions: a model loaded on one backend, with its plan, its profile and its self-check."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from webinfer.backends import registry
from webinfer.backends.base import Executor, GpuExecutor, MemoryReport, PageExecutor, ReadGraph, TunableExecutor
from webinfer.closing import Closing
from webinfer.deprecated import renamed
from webinfer.errors import DeviceLostError, InputError, ModelFormatError, ShapeError
from webinfer.graph.ir import Graph
from webinfer.graph.printer import print_graph
from webinfer.host.gpu import GpuTensor
from webinfer.host.interface import ARRAYS_MET, Host, Progress, ProgressEvent
from webinfer.importers.core.partial_evaluation import OpenSizes
from webinfer.session.inputs import checked, hold_positions, info_of, random_inputs, sizes_given, to_api_types, zeros
from webinfer.session.loop_lock import LoopLocked, one_loop_at_a_time
from webinfer.session.options import MAX_ROUNDS, real_number, whole_number
from webinfer.session.pickling import LoadRecipe
from webinfer.session.recovery import LiveExecutor
from webinfer.session.reports import DisplayedSession, PlanReport, Profile, time_runs
from webinfer.session.roofline import measured
from webinfer.session.selection import LoadOptions, Selection, choose, tuned_backend
from webinfer.session.signatures import Signatures
from webinfer.session.stages import StagedExecutor, StagedGraph
from webinfer.session.state import Variables, on_host, open_inputs, open_outputs
from webinfer.session.turns import RunQueue
from webinfer.tensor import Tensor
from webinfer.tune.log import TuningReport

if TYPE_CHECKING:
    from webinfer.importers.core.caches import Caches
    from webinfer.session.kv_cache import KvCache
    from webinfer.session.open_plans import OpenPlan
    from webinfer.session.verification import VerifyReport

TUNING_BUDGET_MS = 5000.0
TINY_MS = 1e-9  # a budget of 0 would mean: as if nothing had ever been timed
OPEN: WeakSet[Any] = WeakSet()  # all sessions and tasks, for who closes those that others left


@one_loop_at_a_time
class Session(Closing, LoopLocked, DisplayedSession):
    """A loaded model. Runs are queued; after an error, the next valid call works.

    A session is a context manager; `close()` frees the memory of the kernels and on the GPU.
    """

    def __init__(
        self,
        graph: Graph,
        host: Host,
        selection: Selection | None,
        order: Sequence[str],
        options: LoadOptions,
        read: ReadGraph | None = None,
        signatures: Signatures | None = None,
        variables: Variables | None = None,
        metadata: Callable[[], Mapping[str, str]] = dict,
        read_imported: Callable[[Mapping[str, Sequence[int]]], Graph | None] = lambda _: None,
    ) -> None:
        OPEN.add(self)
        self._live, self._queue = LiveExecutor(graph, host, selection, order, options), RunQueue()
        self._read_graph, self._signatures, self._read_metadata = read, signatures, metadata
        self._read_imported = read_imported
        self._variables = variables or Variables()
        self.recipe: LoadRecipe | None = None  # what it was loaded from
        self.read_caches: Callable[[], Caches | None] = lambda: None  # which inputs come back longer among the outputs
        self.loop_lock = self._variables.loop_lock.guarding(self._live, self._queue)
        self._take_graph(graph)

    def _take_graph(self, graph: Graph) -> None:
        self._states = graph.states
        self._stateful = bool(graph.states) or isinstance(graph, StagedGraph)
        self._variables.add(graph.states)
        self.inputs = [info_of(v, graph) for v in open_inputs(graph)]
        self.outputs = [info_of(v, graph) for v in open_outputs(graph)]
        self._outer = graph.outer
        self._sizes, self._names = {i.name: i.shape for i in self.inputs}, [i.name for i in self.inputs]
        self._positions = self._live.positions
        inner = all(value.type.dtype.inner is value.type.dtype for value in graph.inputs)
        self._plain = inner and not self._stateful and not graph.outer  # nothing is to be converted, kept or fed

    # ----- what runs where

    @property
    def name(self) -> str:
        """The model's name."""
        return self._live.ends.name

    @property
    def metadata(self) -> Mapping[str, str]:
        """The metadata in the model's file: ONNX's `metadata_props`, or the metadata of a TFLite file.

        It often has labels, sizes and the task as text. Empty for other formats.

        Raises:  ModelFormatError if they are damaged; LimitError
        """
        return self._read_metadata()

    @property
    def backend(self) -> str:
        """The backend in use."""
        return self.executor.backend

    @property
    def autotune_pending(self) -> bool:
        """Whether "auto" has not finished measuring the backends yet; see `autotune_done`."""
        return self._live.bound and self._live.selection.benchmark is not None

    @property
    def same_backend(self) -> str:
        """The `backend` argument for another model on the same backend; "auto" while that is being measured."""
        return registry.AUTO if self.autotune_pending else self.backend

    @property
    def choice(self) -> str:
        """Why this backend was chosen, in one sentence."""
        if not self._live.bound:
            return f"{' or '.join(self._live.order)}, when the first run binds the sizes that the model leaves open"
        return self._live.selection.reason

    @property
    def executor(self) -> Executor:
        """The compiled graph, for tasks that access its memory."""
        return self._live.selection.executor

    @property
    def host(self) -> Host:
        """The platform on which this session runs."""
        return self._live.host

    def plan(self) -> PlanReport:
        """The plan as a table: operator, backend, kernel, shapes, work and bytes of each step, and why."""
        rows, notes = list(self.executor.rows()), self._live.notes
        shapes = {info.name: info.shape for info in self.inputs}
        return PlanReport(self.name, self.backend, self.choice, rows, self.memory(), notes, shapes)

    def memory(self) -> MemoryReport:
        """Bytes of constants and arena."""
        return self.executor.memory()

    def graphs(self) -> list[Graph]:
        """The optimized graph; for a model with data-dependent control flow, the parts that have run."""
        executor = self.executor
        return executor.graphs() if isinstance(executor, StagedExecutor) else [self._live.graph]

    def graph_text(self) -> str:
        """The graphs as text."""
        return "".join(map(print_graph, self.graphs()))

    # ----- running

    async def run(self, inputs: Mapping[str, Any] | Any, *, kv_cache: KvCache | None = None) -> dict[str, Tensor]:
        """The outputs by name, each a new tensor.

        `inputs` maps names to arrays, buffers or tensors; a model with one input also takes that alone. In a page they
        may be typed arrays of JavaScript, which are not copied on the way where they are large. A session on a GPU
        also takes GpuTensors or GPUBuffers of the same device, and there runs that are begun together overlap. A
        session whose executor has `in_place_inputs` also takes `backends.base.InPlace`. Where the model leaves sizes
        open, arrays of other sizes are bound to a plan, or get one of their own; the plans used last are kept.

        With `kv_cache`, from `kv_cache()`, the inputs that it holds are read from it, and their next values are stored
        in it instead of being returned.

        A run that is cancelled while it is queued does not start. A model with loops or branches that depend on
        data can also be cancelled between iterations; the session stays usable.

        Raises:  InputError, DeviceLostError, KernelError, ClosedError; LimitError for a loop without an end; what a new
                 plan may raise
        """
        if kv_cache is not None:
            if self._live.bound and not self.executor.holds_states:
                await kv_cache.read()  # what a GPU had before
            return kv_cache.take(await self.run(kv_cache.feed(inputs)))
        if self._live.awaits_first_run:
            return await self._first_run(inputs)
        if self._queue.is_due() and self._blocks():
            await self._queue.turn()
        try:
            return await self._run(inputs)
        finally:
            self._queue.note_end()

    def _blocks(self) -> bool:
        """Whether a run leaves the event loop no time; outside of browsers it waits for a GPU without letting go."""
        executor = self._live.idle_executor  # None while another run is being prepared, which may well overlap
        return self.host.name == "native" or (executor is not None and not isinstance(executor, GpuExecutor))

    async def _run(self, inputs: Mapping[str, Any] | Any) -> dict[str, Tensor]:
        at_once, given = None if self._stateful else self._live.sync_executor, None
        if at_once is not None and (given := sizes_given(inputs, self.inputs)).items() <= self._sizes.items():
            return to_api_types(self._live.run_at_once(at_once, self._checked(inputs)), self._outer)
        ready, arrays = self._live.idle_executor, self._page_arrays(inputs) if self._plain else None
        if isinstance(ready, PageExecutor) and arrays is not None:
            found = await self._live.watch(ready, ready.run_page(arrays))
            if found is not None:
                return found
        async with self._live.lock:
            await self._fit_sizes(inputs, given)
            async with self._variables.lock if self._stateful else nullcontext():
                executor, buffers = await self._prepared(inputs)
                if self._stateful or not isinstance(executor, GpuExecutor):
                    return await self._finished(executor, buffers)
        return to_api_types(await self._live.watch(executor, executor.run(buffers)), self._outer)

    async def _first_run(self, inputs: Mapping[str, Any] | Any) -> dict[str, Tensor]:
        """As `run`; what "auto" still has to measure comes behind it."""
        self._live.awaits_first_run = False
        try:
            return await self.run(inputs)
        finally:
            self._live.first_run.set()

    def _page_arrays(self, inputs: Mapping[str, Any] | Any) -> list[Any] | None:
        """The inputs in order, if all are typed arrays of the page of a class that was met; those carry no sizes."""
        given = inputs if type(inputs) is dict else {self._names[0]: inputs} if len(self._names) == 1 else {}
        found = list(map(given.get, self._names))
        met = len(given) == len(found) and ARRAYS_MET.issuperset(map(type, found))
        return found if met and hold_positions(given, self.inputs, self._positions, self.host) else None

    async def _alone(self, inputs: Mapping[str, Any] | Any) -> dict[str, Tensor]:
        """As `run`, for who holds the locks of the session and of its variables."""
        await self._fit_sizes(inputs)
        return await self._finished(*await self._prepared(inputs))

    async def _finished(self, executor: Executor, buffers: Mapping[str, Any]) -> dict[str, Tensor]:
        results = await self._live.watch(executor, executor.run(buffers))
        return to_api_types(self._variables.take(self._states, results), self._outer)

    async def run_on_gpu(self, inputs: Mapping[str, Any] | Any) -> dict[str, GpuTensor]:
        """The outputs by name as buffers on the GPU: like `run`, but without reading back or waiting.

        Outputs of types without kernels, such as float64, have the type used for computing.

        Raises:  InputError if the session does not run on a GPU; else as `run`
        """
        await self._live.autotune_done()
        async with self._live.lock:
            await self._fit_sizes(inputs)
            async with self._variables.lock if self._stateful else nullcontext():
                executor, buffers = await self._prepared(inputs)
                if not isinstance(executor, GpuExecutor):
                    able = " or ".join(registry.able(GpuExecutor))
                    raise InputError(f"{self.name!r} runs on {self.backend}; results stay on the GPU only on {able}")
                if self._states:
                    found = await self._live.watch(executor, executor.run_on_gpu(buffers))
                    self._variables.take(self._states, await on_host(found, self._states))
                    return {info.name: found[info.name] for info in self.outputs}
        return await self._live.watch(executor, executor.run_on_gpu(buffers))

    async def autotune_done(self) -> None:
        """Waits until "auto" has measured the backends; in a page, a session starts on the one that is ready first."""
        await self._live.autotune_done()

    settled, unsettled = renamed("settled", "autotune_done"), renamed("unsettled", "autotune_pending")

    async def warmup(self) -> None:
        """Runs once on zeros, so that the first real run is as fast as later ones; variables do not change."""
        async with self._live.lock, self._variables.untouched():
            await self._alone(zeros(self.inputs))

    # ----- variables and signatures

    @property
    def signatures(self) -> tuple[str, ...]:
        """The names of the model's signatures; `load(signature=…)` selects one."""
        return () if self._signatures is None else self._signatures.names()

    async def open_signature(self, name: str) -> Session:
        """Opens another signature of this model, as a session that shares this one's variables.

        Raises:  InputError if the model has no signature of this name; what `load` raises
        """
        if self._signatures is None or name not in self.signatures:
            raise InputError(f"{self.name!r} has no signature {name!r}; it has {', '.join(self.signatures) or 'none'}")
        return await self._signatures.open(name, self._variables)

    def kv_cache(self) -> KvCache:
        """An empty cache for the inputs that the model extends and returns: a decoder's keys and values.

        Raises:  InputError if the model has no such input
        """
        from webinfer.session.kv_cache import KvCache  # few models have one, and no page needs it to start

        return KvCache(self.name, self.read_caches(), self.inputs, self.outputs)

    def state(self) -> dict[str, Tensor]:
        """A copy of the model's variables by name. They persist from run to run, such as the state of an LSTM."""
        return self._variables.tensors()

    def reset(self) -> None:
        """Restores the initial values of the model's variables. A run in progress keeps its own until it ends."""
        self._variables.reset()

    async def _prepared(self, inputs: Mapping[str, Any] | Any) -> tuple[Executor, dict[str, Any]]:
        """What runs next, and its checked inputs."""
        buffers = self._fed(self._checked(inputs))
        await self._live.revive()
        return self.executor, buffers

    def _fed(self, buffers: dict[str, Any]) -> dict[str, Any]:
        """The inputs with the model's variables."""
        return buffers | self._variables.feed(self._states, self.name)

    async def _fit_sizes(self, inputs: Mapping[str, Any] | Any, given: Mapping[str, Any] | None = None) -> None:
        """Takes the plan for the sizes that are `given`, those of the inputs; a new one if there is none.

        Raises:  InputError if the model does not allow them; what a new plan may raise
        """
        if self._read_graph is None:
            return
        given, current = sizes_given(inputs, self.inputs) if given is None else given, self._sizes
        if self._live.bound and given.items() <= current.items():
            return
        read, known = self._read_graph, current if self._live.bound else {}

        def graph() -> Graph:
            try:
                if known:
                    with suppress(ShapeError, ModelFormatError):
                        return read({**known, **given})
                return read(given)
            except OpenSizes as error:
                raise InputError(f"{error}; or run it with arrays, which have shapes") from error
            except (ShapeError, ModelFormatError) as error:
                found = f"{self.name!r} cannot run on inputs of these sizes"
                try:
                    self._checked(inputs)
                except InputError as plain:
                    found = str(plain)
                raise InputError(f"{found}; {error}") from error

        wanted = {**known, **given}
        wanted = {i.name: wanted[i.name] for i in self.inputs if i.name in wanted}
        await self._live.switch(current, wanted, graph, read)
        self._take_graph(self._live.ends)

    async def open_plan(self, shapes: Mapping[str, Sequence[int]], made: Callable[[Executor], None]) -> OpenPlan | None:
        """The plan with symbols that holds for these shapes of all inputs; None if none can. Packages are made of them.

        `made` is told the executor of a new one. The session stays without a plan in use.
        """
        return None if self._read_graph is None else await self._live.open_plan(shapes, self._read_graph, made)

    def _checked(self, inputs: Mapping[str, Any] | Any, *, here: bool = False) -> dict[str, Any]:
        return checked(inputs, self.inputs, self.name, self.host, self.executor, here=here, axes=self._positions)

    async def restore(self, order: Sequence[str] | None = None) -> None:
        """Rebuilds the session, as after the loss of a device."""
        await self._live.rebuild(order)

    # ----- tuning

    async def tune(self, budget_ms: float = TUNING_BUDGET_MS, progress: Progress | None = None) -> TuningReport:
        """Times kernels on this device, keeps the faster ones for this session and later loads, and reports the gain.

        Shapes that were timed before are skipped, so another call continues where the budget ended.

        Raises:  InputError unless the whole model runs on a backend that is tuned by hand, and the budget is a number
                 from 0 up; DeviceLostError if a kernel brought the GPU down
        """
        budget_ms = real_number("budget_ms", budget_ms, unit=" of milliseconds")
        live = self._live
        await live.autotune_done()
        async with live.lock:
            await live.revive()
            if not isinstance(self.executor, TunableExecutor):
                able = " or ".join(registry.able(TunableExecutor))
                raise InputError(
                    f"{self.name!r} runs on {self.backend}; only sessions on {able} can be tuned explicitly"
                )
            options = replace(live.options, strict=True, progress=progress, tuning_ms=budget_ms or TINY_MS)
            fresh = await choose(live.graph, self.host, [self.backend], options)
            await live.idle()
            fresh.reason = self.choice
            live.replace(fresh)
        report = fresh.executor.tuning if isinstance(fresh.executor, TunableExecutor) else None
        if report is None:
            raise DeviceLostError(
                f"{self.name!r}: tuning lost the GPU and restored the default plan; tune again to continue"
            )
        return report

    async def export_tuning(self) -> str:
        """The tuning data of this device, as JSON lines; "" if there is none."""
        return await tuned_backend("" if self._live.closed else self.backend).export_tuning(self.host)

    async def forget_tuning(self) -> None:
        """Deletes the tuning data of this device; the session uses the default kernels from now on."""
        async with self._live.lock:
            await tuned_backend(self.backend).forget_tuning(self.host)
            await self._live.idle()
            await self.restore()

    async def import_tuning(self, text: str) -> tuple[int, int]:
        """Imports and applies lines of `export_tuning`. Returns how many, and how many belong to other devices.

        Raises:  ModelFormatError naming the lines that cannot be read; BackendUnavailableError without a GPU
        """
        async with self._live.lock:
            found = await tuned_backend(self.backend).import_tuning(self.host, text)
            await self._live.idle()
            await self.restore()
        return found

    # ----- looking inside

    async def profile(
        self, inputs: Mapping[str, Any] | None = None, rounds: int = 5, progress: Progress | None = None
    ) -> Profile:
        """Measures each step's time, GFLOP/s, bytes and share of the device's peak, and the time outside the steps.

        `print` shows a table, `.json()` returns data, `.svg()` a picture.

        Raises:  InputError unless `rounds` is at least 1; what `run` raises
        """
        rounds = whole_number("rounds", rounds, 1, MAX_ROUNDS)
        steps, runs = [], []
        await self._live.autotune_done()
        async with self._live.lock, self._variables.untouched():
            if inputs is not None:
                await self._fit_sizes(inputs)
            given = zeros(self.inputs) if inputs is None else inputs
            buffers = self._checked(given, here=True)
            await self._alone(given)  # revives the session, and lets code get warm
            for done in range(rounds):
                if progress is not None:
                    progress(ProgressEvent("profile", done, rounds, "steps"))
                fed = self._fed(buffers)
                runs.append(await time_runs(lambda _: self._alone(given), self.executor, fed, self.host.now_ms))
                await self._live.idle()
                steps.append(await self.executor.profile(fed, 1))
        from statistics import median

        times = [median(step) for step in zip(*steps, strict=True)]
        run_ms, overhead_ms = (median(samples) for samples in zip(*runs, strict=True))
        rows, threads = list(self.executor.rows()), self._live.options.threads
        peaks = {name: await measured(name, self.host, threads) for name in {row.backend for row in rows}}
        for name, found in peaks.items():
            peaks[name] = found.raised((row, ms) for row, ms in zip(rows, times, strict=True) if row.backend == name)
        return Profile(self.name, self.backend, rows, times, run_ms, overhead_ms, peaks)

    async def verify(
        self,
        against: str = registry.definition(),
        inputs: Mapping[str, Any] | None = None,
        tolerance: float = 1e-3,
        progress: Progress | None = None,
    ) -> VerifyReport:
        """Compares each intermediate result with another backend, and the outputs with the imported graph's.

        The report names the first that differs. `tolerance` is relative to the range of each tensor; outputs of files
        that round to 8 bits between operators may differ by 0.03. `progress` is called for each step.

        Raises:  InputError if the backend or the tolerance is not allowed; what `load` raises
        """
        from webinfer.session.verification import compare_backends  # and all operators with it

        tolerance = real_number("tolerance", tolerance)
        if against not in registry.names():
            raise InputError(f"cannot verify against {against!r}; choose one of {', '.join(registry.names())}")
        live = self._live
        async with live.lock, self._variables.lock:
            if inputs is not None:
                await self._fit_sizes(inputs)
            buffers = self._fed(self._checked(self.noise() if inputs is None else inputs, here=True))
            await live.idle()
            await live.revive()
            other = await choose(live.graph, self.host, [against], LoadOptions(strict=True))
            try:
                nodes = len(live.graph.nodes)

                async def step(done: int) -> None:
                    if progress is not None:
                        progress(ProgressEvent("verify", done, nodes, "steps"))
                        await self.host.pause()

                report = await compare_backends(self.executor, other.executor, buffers, tolerance, live.graph, step)
            finally:
                other.executor.close()
            return await self._judged(report, against, buffers)

    async def _judged(self, report: VerifyReport, against: str, buffers: dict[str, Any]) -> VerifyReport:
        """The report with the outputs beside those of the graph as imported."""
        from webinfer.session.verification import compare_outputs

        imported = self._read_imported(self._sizes)
        if imported is None:
            return replace(report, unjudged="it is compiled already, or its control flow depends on data")

        async def build(graph: Graph) -> Executor:
            return (await choose(graph, self.host, [against], LoadOptions(strict=True))).executor

        outputs, unjudged = await compare_outputs(self.executor, imported, build, buffers, report.tolerance)
        return replace(report, outputs=outputs, unjudged=unjudged)

    def noise(self, seed: int = 0) -> dict[str, memoryview]:
        """Random inputs, the same for the same seed: floats in [-1, 1), any bytes, zeros for other types."""
        return random_inputs(self.inputs, seed)

    # ----- the end

    def __reduce__(self) -> Any:
        """What it was loaded from, which other processes load once; variables begin there as in the file.

        Raises:  InputError if it was built by a GraphBuilder, or belongs to a task
        """
        if self.recipe is None:
            return super().__reduce__()
        return self.recipe.reopen, (self.recipe.sealed(),)

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._live.closed

    def close(self) -> None:
        """Frees the session; further calls do nothing."""
        self._live.close()

    def __repr__(self) -> str:
        state = "closed" if self._live.closed else self.backend if self._live.bound else "sizes open"
        return f"Session({self.name!r}, {state})"
