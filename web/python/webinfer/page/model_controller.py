"""One model that a page looks at: what it is, its plans on several backends, runs, profiles, comparisons.

Every method answers in plain values that JSON can hold, and `run` in buffers too.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from webinfer.errors import InputError, UnsupportedOpError, WebinferError
from webinfer.graph.ir import Node
from webinfer.host import current
from webinfer.host.interface import Progress, ProgressEvent
from webinfer.importers import formats
from webinfer.importers.core.outline import Outline
from webinfer.importers.formats import models_of
from webinfer.importers.readers.archive import SIGNATURE, unpack
from webinfer.page.model_graph import nodes_of_rows, origins, outline_of, plain_bytes, values_of
from webinfer.session.inputs import TensorInfo, random_inputs, zeros
from webinfer.session.loading import ModelBytes, load, opened
from webinfer.session.session import Session
from webinfer.tensor import Tensor

Answer = dict[str, Any]
MAX_TIMED = 1000  # runs in one answer


class StoppedError(WebinferError):
    """The user ended what was under way."""

    code = "stopped"


class ModelController:
    """Holds one model and a session of it for each backend that was asked for."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._stopping = progress, False
        self._source: Any = None
        self._opened: ModelBytes | None = None
        self._file = Outline()
        self._member: str | None = None
        self._sessions: dict[str, Session] = {}

    def stop(self) -> None:
        """Ends what is under way at its next step."""
        self._stopping = True

    def _step(self, event: ProgressEvent) -> None:
        if self._stopping:
            raise StoppedError("it was stopped")
        self._progress(event)

    async def answer(self, action: str, fields: Mapping[str, Any]) -> tuple[Answer, list[memoryview]]:
        """What a message asks for; `action` is the name of one of the methods below.

        Raises:  InputError if there is no such action; what the action raises
        """
        if action not in ACTIONS:
            raise InputError(f"unknown action {action!r}; choose one of {', '.join(ACTIONS)}")
        self._stopping = False
        found = await getattr(self, action)(**fields)
        return found if isinstance(found, tuple) else (found, [])

    async def open(
        self, files: Mapping[str, memoryview] | None = None, name: str = "", member: str | None = None
    ) -> Answer:
        """What a model is: files by name, or a known model. One that is damaged has an `error` and no outline.

        Of several models in one archive or drop, of which no `member` is named, their names: `members`.
        """
        self.close()
        files = files or {}
        source: Any = name or (next(iter(files.values())) if len(files) == 1 else files)
        if member is None and len(members := _members(source)) > 1:
            return {"name": next(iter(files)), "bytes": sum(map(len, files.values())), "members": members}
        model = await opened(source, current(), self._step, member)
        self._source, self._member, self._opened = (model.data if name else source,), member, model
        told = _about(model, name or member or next(iter(files)))
        try:
            told["format"], self._file = formats.outline(model.data, told["name"])
        except WebinferError as error:
            return {**told, "format": "", "error": _told(error)}
        return {**told, "outline": dataclasses.asdict(self._file)}

    async def beside(self, files: Mapping[str, memoryview]) -> Answer:
        """The names of files that a model in one file needs beside its own, relative to its folder: `names`.

        Raises:  ModelFormatError; LimitError
        """
        ((name, data),) = files.items()
        packed = data[:4] == SIGNATURE
        return {"names": [] if packed else list(formats.files_beside(data, PurePosixPath(name).stem))}

    async def compare(
        self, files: Mapping[str, memoryview] | None = None, name: str = ""
    ) -> tuple[Answer, list[memoryview]]:
        """The open model and another one, by what their files say: `nodes` and `weights` that differ, and its outline.

        The bytes of weights that differ follow in pairs, in the order of `weights["differ"]`, as long as they are not
        too many: `numbers` says whether a row has them.

        Raises:  ModelFormatError; LimitError; InputError if no model is open
        """
        from webinfer.page.model_diff import matched, node_differences, weight_differences  # not at a page's start

        if self._opened is None:
            raise InputError("no model is open; open one first")
        files = files or {}
        source: Any = name or (next(iter(files.values())) if len(files) == 1 else files)
        model = await opened(source, current(), self._step)
        told = _about(model, name or next(iter(files)))
        told["format"], outline = formats.outline(model.data, told["name"])
        pairs = matched(self._file, outline)
        told |= {"outline": dataclasses.asdict(outline), "nodes": node_differences(self._file, outline, pairs)}
        try:
            stored = [formats.weights(each.data, "the model", each.files) for each in (self._opened, model)]
            told["weights"], buffers = weight_differences(self._file, outline, pairs, *stored)
        except WebinferError as error:  # such as files that are not there; the graphs are compared all the same
            return {**told, "weights": {"error": _told(error)}}, []
        return told, buffers

    async def plan(
        self, backend: str, shapes: Mapping[str, Sequence[int]] | None = None, brief: bool = False
    ) -> Answer:
        """The model compiled for a backend: choice, inputs, graph, steps. What keeps it from that is under `error`.

        Where sizes of inputs are open and no `shapes` bind them, only the inputs. Without a graph if `brief`.
        """
        self._drop(backend)
        model, host = self._model(), current()
        start = host.now_ms()
        try:
            session = await load(model, backend=backend, shapes=shapes or {}, progress=self._step, member=self._member)
        except StoppedError:
            raise
        except WebinferError as error:
            return {"error": _told(error)}
        self._sessions[backend] = session
        await session.autotune_done()  # what is shown is the plan that runs
        told: Answer = {
            "ms": host.now_ms() - start,
            "choice": session.choice,
            "inputs": list(map(_end, session.inputs)),
            "open": any(_open(info) for info in session.inputs),
        }
        if not told["open"]:
            told |= {"backend": session.backend, "memory": dataclasses.asdict(session.memory())}
            told |= {} if brief else await self.graph(backend)
        return told

    async def graph(self, backend: str) -> Answer:
        """The compiled graph with the steps of its plan; with data-dependent control flow it grows with runs."""
        session = self._session(backend)
        graphs, nodes = session.graphs(), _nodes(session)
        outline, rows = outline_of(graphs), session.plan().rows
        fixed = {value for graph in graphs for value in graph.fixed_values()}
        return {
            "graph": dataclasses.asdict(outline),
            "origins": origins(outline, self._file),
            "fixed": [i for i, node in enumerate(nodes) if all(value in fixed for value in node.outputs)],
            "parts": len(graphs),
            "rows": [
                {**dataclasses.asdict(row), "node": node}
                for row, node in zip(rows, nodes_of_rows(rows, nodes), strict=True)
            ],
        }

    async def weights(self, backend: str, key: str) -> tuple[Answer, list[memoryview]]:
        """The elements of a constant of the compiled graph, by its key there: name, element type, shape, and bytes.

        Raises:  InputError if no constant has this key, or its elements are not stored one by one
        """
        value = values_of(self._session(backend).graphs()).get(key)
        if value is None or value.constant is None:
            raise InputError(f"{key!r} is not a constant of the compiled graph")
        constant, shape = value.constant, value.type.shape
        data, dtype = constant.data, constant.stored
        whole = isinstance(data, memoryview) and data.nbytes == value.type.size * dtype.itemsize
        if constant.sparsity is not None or not whole:
            raise InputError(
                f"{value.name!r} is stored as {dtype.value} in blocks or sparsely; its elements are not shown"
            )
        name, plain = plain_bytes(memoryview(bytes(data)), dtype)
        return {"name": value.name, "dtype": name, "shape": shape}, [plain]

    async def run(
        self, backend: str, inputs: Mapping[str, Any] | None = None, seed: int = 0
    ) -> tuple[Answer, list[memoryview]]:
        """One run. An input is bytes, "zeros", or "noise" of that seed, which is what inputs get that are not named."""
        session = self._session(backend)
        given, clock = self._inputs(session, inputs or {}, seed), current().now_ms
        start = clock()
        found = await session.run(given)
        ms = clock() - start
        ends, buffers = [], []
        for name, tensor in found.items():
            dtype, data = _plain(tensor)
            ends.append({"name": name, "dtype": dtype, "shape": tensor.shape})
            buffers.append(data)
        return {"ms": ms, "backend": session.backend, "parts": len(session.graphs()), "outputs": ends}, buffers

    async def time(self, backend: str, count: int = 5, budget_ms: float = 1000) -> Answer:
        """Milliseconds of up to `count` runs on noise, at least one, until the budget is spent."""
        session, clock = self._session(backend), current().now_ms
        noise, times, end = session.noise(), list[float](), clock() + budget_ms
        while len(times) < min(count, MAX_TIMED) and (not times or clock() < end):
            start = clock()
            await session.run(noise)
            times.append(clock() - start)
        return {"times": times, "backend": session.backend}

    async def profile(self, backend: str, rounds: int = 3) -> Answer:
        """Milliseconds of each step of the plan, and of a whole run."""
        found = await self._session(backend).profile(rounds=rounds, progress=self._step)
        return {"times": found.times_ms, "run_ms": found.run_ms, "overhead_ms": found.overhead_ms}

    async def verify(
        self,
        backend: str,
        against: str,
        tolerance: float = 1e-3,
        inputs: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> Answer:
        """How far every intermediate result is from another backend's, in the order of the graph."""
        session = self._session(backend)
        given = self._inputs(session, inputs or {}, seed)
        try:
            report = await session.verify(against, given, tolerance, self._step)
        except UnsupportedOpError:  # of a backend that must run everything; the other session may share its work
            session = self._session(against)
            report = await session.verify(backend, given, tolerance, self._step)
        nodes = {value.name: i for i, node in enumerate(_nodes(session)) for value in node.outputs}
        rows = [{**dataclasses.asdict(each), "node": nodes.get(each.value, -1)} for each in report.differences]
        outputs = [dataclasses.asdict(each) for each in report.outputs]
        told = {"ok": report.ok, "backend": report.backend, "against": report.against, "unjudged": report.unjudged}
        return {**told, "differences": rows, "outputs": outputs}

    async def tune(self, backend: str, budget_ms: float = 10_000) -> Answer:
        """Kernels timed on this device, the faster ones in use from now on: what was gained, and the log's lines."""
        found = await self._session(backend).tune(budget_ms, self._step)
        told = {name: getattr(found, name) for name in ("timed", "known", "shapes", "gain", "lines")}
        return {**told, "about": dataclasses.asdict(found.about), "verdict": dataclasses.asdict(found.verdict)}

    async def export_tuning(self, backend: str) -> Answer:
        """All that was found on this device, as the lines of a log."""
        return {"lines": await self._session(backend).export_tuning()}

    async def import_tuning(self, backend: str, lines: str) -> Answer:
        """Takes over lines of a log: how many, and how many are of other devices."""
        taken, skipped = await self._session(backend).import_tuning(lines)
        return {"taken": taken, "skipped": skipped}

    def close(self) -> None:
        """Frees the model and its sessions."""
        for backend in list(self._sessions):
            self._drop(backend)
        self._source, self._opened, self._file = None, None, Outline()

    def _drop(self, backend: str) -> None:
        if session := self._sessions.pop(backend, None):
            session.close()

    def _model(self) -> Any:
        if self._source is None:
            raise InputError("no model is open; open one first")
        return self._source[0]

    def _session(self, backend: str) -> Session:
        self._model()
        if backend not in self._sessions:
            raise InputError(f"the model is not compiled for {backend}; do that first")
        return self._sessions[backend]

    def _inputs(self, session: Session, given: Mapping[str, Any], seed: int) -> dict[str, Any]:
        infos = {info.name: info for info in session.inputs}
        wanted = {**dict.fromkeys(infos, "noise"), **given}
        for name, info in infos.items():
            if isinstance(wanted[name], str):
                made = zeros([info]) if wanted[name] == "zeros" else random_inputs([info], seed)
                wanted[name] = made[name]
        return wanted


ACTIONS = (
    "open", "beside", "compare", "plan", "graph", "weights", "run", "time", "profile", "verify", "tune",
    "export_tuning", "import_tuning",
)  # fmt: skip


def _members(source: Any) -> list[str]:
    """The models in a drop of several files or in an archive."""
    packed = isinstance(source, memoryview) and source[:4] == SIGNATURE
    return models_of(unpack(source, "the archive") if packed else source if isinstance(source, Mapping) else ())


def _about(model: ModelBytes, name: str) -> Answer:
    """Name, bytes with those of files beside it, and the hash of a model's own file."""
    parts = {id(part): len(part) for part in (model.data, *model.files.values())}
    return {"name": name, "bytes": sum(parts.values()), "sha256": hashlib.sha256(model.data).hexdigest()}


def _nodes(session: Session) -> list[Node]:
    return [node for graph in session.graphs() for node in graph.nodes]


def _told(error: WebinferError) -> Answer:
    """An error with everything that it lists."""
    unsupported = error if isinstance(error, UnsupportedOpError) else UnsupportedOpError([])
    return {
        "code": error.code, "message": str(error), "problems": unsupported.problems, "operators": unsupported.operators,
    }  # fmt: skip


def _open(info: TensorInfo) -> bool:
    return not all(isinstance(size, int) for size in info.shape)


def _end(info: TensorInfo) -> Answer:
    return {"name": info.name, "dtype": info.dtype.value, "shape": info.shape}


def _plain(tensor: Tensor) -> tuple[str, memoryview]:
    """Element type and bytes, in a type that NumPy has too."""
    return plain_bytes(memoryview(tensor.tobytes()), tensor.dtype)
