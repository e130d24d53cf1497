"""Loading: from a model file, a known name or a built graph to a session."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from webinfer import importers
from webinfer.backends import registry
from webinfer.backends.base import DEVICES, PlanEntry
from webinfer.errors import BackendUnavailableError, InputError, IntegrityError, ModelFormatError, meant
from webinfer.flags import debug, debug_level
from webinfer.graph.compiled import CompiledGraph
from webinfer.graph.ir import Graph
from webinfer.graph.made import MadeGraph
from webinfer.graph.printer import print_graph
from webinfer.host import current
from webinfer.host.hub import located
from webinfer.host.interface import Host, Progress, ProgressEvent
from webinfer.importers import chosen, files_beside, format_name, metadata, read_model, signature_names, unpacked
from webinfer.importers.core.partial_evaluation import DataDependentValue, Key, KnownValues, OpenSizes
from webinfer.importers.formats import is_package
from webinfer.lazy_dataclass import dataclass
from webinfer.models.registry import MODELS, check_found, locate_model, published_hashes
from webinfer.session.bound_inputs import Values, checked_values, decided, with_constants
from webinfer.session.options import MAX_THREADS, checked_shapes, real_number, whole_number
from webinfer.session.pickling import LoadRecipe, OpenModels, SealedRecipe, check_content
from webinfer.session.plan_cache import OpenGraph, WithPostprocessing, open_graph
from webinfer.session.selection import LoadOptions, choose, order_of
from webinfer.session.session import Session
from webinfer.session.signatures import Signatures
from webinfer.session.stages import StagedGraph
from webinfer.session.state import Variables

if TYPE_CHECKING:
    from webinfer.importers.core.caches import Caches

log = logging.getLogger("webinfer")
DYNAMIC_RANGES = ("float", "int8")


async def load(
    source: Any, *, backend: str | Sequence[str] = "auto", strict: bool = False, progress: Progress | None = None,
    threads: int | None = None, tuning_ms: float | None = None, shapes: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, Any] | None = None, signature: str | None = None, member: str | None = None,
    dequantize: bool = False, dynamic_range: str = "float", precision: str = "float32", device: str = "",
    host: Host | None = None,
) -> Session:  # fmt: skip
    """Loads a model and returns a session.

    `source` is the model: its bytes, a path, a URL, "hf:owner/name/file" for a file of a hub, the name of a known
    model, a `GraphBuilder`, or a mapping of names to bytes.
    `backend` says where it runs: a name, or a list of names to try in order; `webinfer run --help` prints them. "auto"
    measures a few runs on this device and uses the fastest. `session.choice` says which one runs, and why.
    `strict` makes it an error if the backend cannot run some nodes; otherwise they run on another backend.
    `threads` is the number of CPU threads; None: automatic. If only one is possible, `session.choice` says why.
    `tuning_ms` is a budget for timing kernels: the fastest are used by later loads, and with 0 the default kernels. On
    a GPU it is spent in this call (None: nothing is timed), on the CPU while a browser is idle afterwards (None: 200).
    `shapes` binds the sizes of dynamic inputs; otherwise the first run binds them. They may change from run to run:
    each set of sizes has a plan, and the plans used last are kept.
    `values` fixes inputs to values; the model then no longer takes them.
    `signature` names one of the ways to run a model that has several; `session.signatures` lists them.
    `member` names one of the models of a bundle, "inner.task/model.tflite" one in a bundle inside it.
    `dequantize` computes a quantized model in float32; its inputs and outputs are then float32 as well.
    `dynamic_range` is for models with 8-bit weights and float activations: "float" computes them in float32, "int8"
    rounds activations to 8 bits per row, as LiteRT and ONNX Runtime do. `session.plan()` says which.
    `precision` is "float32", or "float16", with which a GPU halves the memory of weights and results. Sums, inputs,
    outputs and constants beyond 65504 stay float32; results beyond it overflow. Other backends compute in float32.
    `device` selects one of several GPUs: "low-power", "sustained" (for long runs), or "high-performance".
    `progress` is called with a `ProgressEvent` while the model is downloaded and compiled.

    Raises:  InputError naming a wrong option; ModelFormatError, UnsupportedOpError, ShapeError, LimitError,
             BackendUnavailableError, OutOfMemoryError; IsolationError if `strict` asks for more threads than a page has
    """
    given = {
        "backend": backend, "strict": strict, "threads": threads, "tuning_ms": tuning_ms, "shapes": shapes,
        "values": values, "member": member, "dequantize": dequantize, "dynamic_range": dynamic_range,
        "precision": precision, "device": device, "host": host,
    }  # fmt: skip
    recipe = partial(LoadRecipe, source=source, options=given, reopen=reopened)
    host, order = host or current(), order_of(backend, precision)
    shapes, bound = checked_shapes(shapes), checked_values(values)
    options = _options(strict, progress, threads, tuning_ms, precision, device)
    _check_ways(source, signature, member, dynamic_range)
    _begin(source, order, host, options)
    post, source = (source, source.model) if isinstance(source, WithPostprocessing) else (None, source)
    source = source if isinstance(source, MadeGraph) else await opened(source, host, progress, member)
    plan = _Loading(
        source, post, host, order, options, shapes, signature, dequantize, dynamic_range == "int8", bound, recipe
    )
    return await plan.session(signature)


def reopened(recipe: SealedRecipe) -> Session:
    """The session of a recipe that was unpickled: one for all pickles of its kind in this process.

    Raises:  IntegrityError if the model has another content than the one that was pickled; what `load` raises
    """

    async def opening() -> Session:
        session = await load(recipe.source, **recipe.options)
        try:
            assert session.recipe is not None
            check_content(recipe.name, session.recipe.sha256(), recipe.sha256)
        except IntegrityError:
            session.close()
            raise
        return session

    def open_one() -> Session:
        session: Session = current().wait(opening())
        return session

    return _UNPICKLED.get(recipe.key, open_one)


_UNPICKLED: OpenModels[Session] = OpenModels(lambda session: session.closed)


def _begin(source: Any, order: Sequence[str], host: Host, options: LoadOptions) -> None:
    """Starts early what the first backend needs to build, unless another model's memory is shared.

    A compiled package brings kernels of its own.
    """
    alone = not isinstance(source, WithPostprocessing) or source.shared_memory_with is None
    packed = isinstance(source, bytes | bytearray | memoryview) and is_package(source)
    first = registry.ready_first() if order[0] == registry.AUTO else order[0]
    if alone and first and not packed:
        with suppress(BackendUnavailableError):  # which building tells
            registry.open_backend(first).begin(host, options.of(first))


def _check_ways(source: Any, signature: str | None, member: str | None, dynamic_range: str) -> None:
    if dynamic_range not in DYNAMIC_RANGES:
        raise InputError(f"dynamic_range={dynamic_range!r} is unknown; choose {' or '.join(DYNAMIC_RANGES)}")
    if signature is not None and not isinstance(signature, str):
        raise InputError(f"signature is {signature!r}, needs the name of one of the model's signatures, or None")
    if member is not None and (not isinstance(member, str) or isinstance(source, MadeGraph)):
        raise InputError(f"member is {member!r}, needs the name of a model in a bundle's file, or None")


def _options(
    strict: bool, progress: Progress | None, threads: int | None, tuning_ms: float | None, precision: str, device: str
) -> LoadOptions:
    if threads is not None:
        threads = whole_number("threads", threads, 1, MAX_THREADS, ", or None for what suits the machine")
    if tuning_ms is not None:
        tuning_ms = real_number("tuning_ms", tuning_ms, unit=" of milliseconds", more=", or None")
    if device and device not in DEVICES:
        raise InputError(f"device={device!r} is unknown; choose {' or '.join(map(repr, DEVICES))}")
    return LoadOptions(strict, progress, threads, tuning_ms, precision == "float16", device)


@dataclass(frozen=True, slots=True)
class _Loading:
    """What a model is loaded from and how: for its first session, and for those of other signatures."""

    source: MadeGraph | ModelBytes
    post: WithPostprocessing | None
    host: Host
    order: Sequence[str]
    options: LoadOptions
    shapes: Mapping[str, Sequence[int]] | None
    signature: str | None  # that `shapes` is for
    dequantize: bool
    rounding: bool  # of the activations of dynamic-range models
    values: Values  # of inputs that are constants
    recipe: Callable[..., LoadRecipe]  # without the signature, and the bytes that were found
    kept: dict[str, Any] = field(default_factory=dict)  # what the format's reader keeps of the file

    async def session(self, signature: str | None, variables: Variables | None = None) -> Session:
        """A session of one signature that shares `variables`, if there are such."""
        progress = self.options.progress
        variables = variables or Variables()
        graph, entry = await self._open(signature, variables)
        shared_memory_with = self.post.shared_memory_with if self.post is not None else None
        options = replace(
            self.options,
            plan_entry=entry,
            shared_memory_with=shared_memory_with.executor if shared_memory_with else None,
        )
        selection = None
        if not isinstance(graph, OpenGraph):
            _compiling(progress, 0)
            selection = await choose(graph, self.host, self.order, options, later=True)
            _compiling(progress, 1)

        def read(bound: Mapping[str, Sequence[int]]) -> Graph:
            return self._read(bound, signature, variables, self.shapes is None)

        signatures = Signatures(self._signatures, self.session)
        again = None if isinstance(self.source, MadeGraph) else read
        session = Session(
            graph, self.host, selection, self.order, options, again, signatures, variables, self._metadata,
            lambda sizes: self._imported(sizes, signature),
        )  # fmt: skip
        source = self.source
        parts = () if isinstance(source, MadeGraph) else (source.data, *source.files.values())
        session.read_caches = self._caches
        session.recipe = self.recipe(name=source.name, parts=parts, signature=signature)
        if selection is not None:
            await _tell(session)
        return session

    def _signatures(self) -> tuple[str, ...]:
        source = self.source
        return () if isinstance(source, MadeGraph) else signature_names(source.data, source.name)

    def _format(self) -> str:
        source = self.source
        return "" if isinstance(source, MadeGraph) else format_name(source.data, source.name)

    def _caches(self) -> Caches | None:
        source = self.source
        return None if isinstance(source, MadeGraph) else importers.caches(source.data, source.name)

    def _metadata(self) -> dict[str, str]:
        source = self.source
        return {} if isinstance(source, MadeGraph) else metadata(source.data, source.name)

    async def _open(self, signature: str | None, variables: Variables) -> tuple[Graph, PlanEntry | None]:
        """The optimised graph, and its entry in the plan cache."""
        source = self.source
        special = self.shapes is not None or self.dequantize or self.rounding or signature is not None
        special = special or bool(self.values)
        special = special or (not isinstance(source, MadeGraph) and is_package(source.data))  # compiled already

        def read() -> Graph:
            return self._read(self.shapes, signature, variables)

        try:
            if isinstance(source, MadeGraph) or special:
                return read(), None
            post, parts = self.post, (source.data, *source.files.values())
            extension = post.name if post else ""
            return await open_graph(parts, source.name, self.host, read, self.order, extension, source.sha256)
        except OpenSizes as error:
            if self.shapes:
                raise
            return OpenGraph(source.name, error.inputs, error.outputs, ()), None
        except ModelFormatError as error:
            if not any(0 in sizes for sizes in (self.shapes or {}).values()):
                raise
            raise InputError(f"{source.name!r} cannot run on an axis of size 0 here; {error}") from error

    def _read(
        self, bound: Mapping[str, Sequence[int]] | None, signature: str | None, variables: Variables,
        only_open: bool = False,
    ) -> Graph:  # fmt: skip
        source = self.source
        if isinstance(source, MadeGraph):
            if bound or signature is not None:
                what = "its shapes; `shapes` is for models that leave sizes open" if bound else "one way to run it"
                raise InputError(f"{source.name!r} was built with {what}")
            return self._finished(source.graph())
        others = signature != self.signature  # whose inputs have other names

        def read(known: Mapping[Key, Any]) -> Graph:
            known_values = KnownValues(known, only_open, others, self.kept)
            return read_model(source.data, source.name, bound, signature, source.files, known_values)

        try:
            whole = read({})
            if not bound:
                self.kept.clear()  # nothing is read again
        except DataDependentValue as first:
            if self.post is not None:
                raise InputError(
                    f"{source.name!r}: a task cannot run a model with data-dependent control flow"
                ) from None
            staged = StagedGraph(first, read, self._finished, variables)
            if not self.values:
                return staged
            whole = decided(staged, self.values)
        return self._finished(with_constants(whole, self.values) if self.values else whole)

    def _imported(self, sizes: Mapping[str, Sequence[int]], signature: str | None) -> Graph | None:
        """The graph for inputs of these sizes as it was imported, before passes; None where there is no such graph."""
        source = self.source
        if isinstance(source, MadeGraph):
            graph = source.graph()
        else:
            known_values = KnownValues({}, False, True, self.kept)  # a task's nodes bring inputs of their own
            try:
                graph = read_model(source.data, source.name, sizes, signature, source.files, known_values)
            except DataDependentValue:
                return None
        if isinstance(graph, CompiledGraph):
            return None
        self._extend(graph)
        if not self.rounding:
            from webinfer.passes.drop_rounding import drop_rounding

            drop_rounding(graph)  # not a rewrite of what the model means, but a choice of `load`
        return graph

    def _extend(self, graph: Graph) -> None:
        """What options make of a graph that was read, before passes."""
        if self.dequantize:
            from webinfer.passes.dequantize import dequantize

            dequantize(graph)
        if self.post is not None:
            if self.post.reads_metadata:
                graph.format, graph.metadata = self._format(), self._metadata()
            self.post.extend(graph)

    def _finished(self, graph: Graph) -> Graph:
        """A graph that was read, or a part of one, as backends take it."""
        if isinstance(graph, CompiledGraph):
            if self.dequantize or self.rounding or self.post is not None or self.options.float16:
                raise InputError(f"{graph.name!r} is already compiled: pass these options, and the task, to `compile`")
            return graph
        self._extend(graph)
        debug(5, f"imported\n{print_graph(graph)}" if debug_level() >= 5 else "")
        from webinfer.passes.pipeline import PIPELINE, ROUNDING, optimize  # a compiled model is loaded without them

        for rewrite, count in optimize(graph, ROUNDING if self.rounding else PIPELINE):
            debug(3, f"pass {rewrite}: {count} rewrites")
        return graph


async def _tell(session: Session) -> None:
    """Prints what the debug level in force asks for. Steps are timed before anybody uses the session's memory."""
    debug(1, f"{session.name}: {session.choice}")
    if debug_level() >= 2:
        debug(2, str(await session.profile(rounds=1)))
    if debug_level() >= 3:
        debug(3, str(session.plan()))


def _compiling(progress: Progress | None, done: int) -> None:
    if progress is not None:
        progress(ProgressEvent("compile", done, 1, "steps"))


@dataclass(frozen=True, slots=True)
class ModelBytes:
    """A model file, its name, and the files beside it that it names."""

    data: memoryview
    name: str
    files: Mapping[str, memoryview] = field(default_factory=dict)
    sha256: str = ""  # of a model in one file, where it is known


async def opened(source: Any, host: Host, progress: Progress | None, member: str | None = None) -> ModelBytes:
    """The model, or a bundle's `member`, with the files that it names; what is missing there, the importer says."""
    own = PurePath(member).stem if isinstance(member, str) else ""
    if isinstance(source, Mapping):
        if not all(isinstance(name, str) for name in source):
            raise InputError("a mapping of a model's files has names that are not text")
        data, beside = chosen({name: _bytes(data) for name, data in source.items()}, "model", member)
        return ModelBytes(data, own or "model", beside)
    if isinstance(source, (str, PurePath)) and str(source) not in MODELS:
        source = _in_folder(await located(str(source), host.fetch))
    found, name, sha256 = await fetched_source(source, host, progress)
    data, inside = unpacked(found, name, member)
    name = own or name
    names = files_beside(data, name) if isinstance(source, str) and source not in MODELS and not inside else ()
    beside = {**inside, **{n: await host.fetch(host.beside(source, n), progress) for n in names}}
    return ModelBytes(data, name, beside, sha256 if data is found and not beside else "")


def _in_folder(place: str) -> str:
    """A folder's model.json; other paths and URLs as they are."""
    try:
        folder = place.endswith("/") or Path(place).is_dir()
    except (OSError, ValueError):  # no place at all, as reading it will tell
        return place
    return f"{place.rstrip('/')}/model.json" if folder else place


async def fetched_source(source: Any, host: Host, progress: Progress | None) -> tuple[memoryview, str, str]:
    """The bytes of a model or of a bundle of models, its name, and its SHA-256 where it was checked.

    Raises:  ModelFormatError if the source is of a type that holds no bytes; IntegrityError; what `Host.fetch` raises
    """
    if isinstance(source, (str, PurePath)):
        text = str(source)
        if text not in MODELS:
            text = await located(text, host.fetch)
            path = PurePath(text.split("?")[0])
            try:
                data = await host.fetch(text, progress)
            except ModelFormatError as error:
                if not (near := meant(str(source), MODELS)):
                    raise
                raise ModelFormatError(f"{error}{near}") from error
            return data, path.stem if path.name != "model.json" else path.parent.name, ""
        place, published = locate_model(text, host.asset), published_hashes(text)
        data, sha256 = await fetched(f"model {text!r}", place, published, host, progress)
        return data, text, sha256
    return _bytes(source), "model", ""


async def fetched(
    what: str, place: str, published: Sequence[str], host: Host, progress: Progress | None = None
) -> tuple[memoryview, str]:
    """What lies at a place, and its SHA-256, which is one of the `published` ones.

    It is asked for once more if it came damaged: from a copy that a browser has kept, maybe.

    Raises:  IntegrityError if it comes damaged again; what `Host.fetch` raises
    """
    data = await host.fetch(place, progress)
    sha256 = await host.sha256(data)
    if sha256 not in published:
        log.warning("%s came damaged; it is fetched again", what)
        data = await host.fetch(place, progress, fresh=True)
        sha256 = await host.sha256(data)
        check_found(what, sha256, published)
    return data, sha256


def _bytes(source: Any) -> memoryview:
    try:
        return memoryview(source).cast("B")
    except TypeError:
        raise ModelFormatError(
            f"a model cannot be read from a {type(source).__name__}; give bytes, a path or a URL"
        ) from None
