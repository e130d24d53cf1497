"""The predictor: a model or a task as a callable over batches of rows, which engines pickle and schedule."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from webinfer.errors import InputError, WebinferError
from webinfer.scale.columns import ERROR, Batch, read_batch, with_results
from webinfer.scale.pool import ModelRunner, Runner, SessionPool, check_unopened
from webinfer.session.loading import load
from webinfer.session.options import whole_number
from webinfer.session.pickling import OpenModels, absolute, key_of, portable_options
from webinfer.session.session import Session
from webinfer.session.waiting import SyncSession, run_sync

BATCH_SIZE = 32
IDLE_OPTIONS = ("threads", "progress", "host", "tuning_ms")  # which change no result
MAX_BATCH, MAX_PARALLEL = 1 << 16, 256
DECODERS = 2  # threads that decode pictures: one keeps up with most models, two where pictures are large
_POOLS: OpenModels[SessionPool] = OpenModels(lambda pool: pool.closed)


class Predictor:
    """A model or a task over batches of rows: a mapping of arrays, an Arrow table, a data frame, or a list of paths.

    A call returns the same kind: the columns that were not read, those of the outputs, and `error`, which is empty for
    rows that went well. What a task finds in a row is one column `results`, as JSON. A list gives a list of mappings.

    A predictor can be pickled; it holds no session. A process opens the model at the first call, once for all
    predictors that are alike. Where the model leaves the first axis open, rows of one shape run together.
    """

    def __init__(
        self, model: Any, *, task: str | None = None, batch_size: int = BATCH_SIZE,
        columns: Mapping[str, str] | str | None = None, outputs: Mapping[str, str] | Sequence[str] | None = None,
        parallel: int = 1, decoders: int = DECODERS, pixels: tuple[float, float] = (0.0, 1.0),
        run_options: Mapping[str, Any] | None = None, **options: Any,
    ) -> None:  # fmt: skip
        """`model` is what `load` takes, an open session, or the name of a task, a task or a pipeline.

        `task` names the task that runs the model. `columns` says which column an input is read from, where names
        differ: {input: column}, or the one column. `outputs` are those that are wanted, or {output: column}.
        `parallel` sessions run side by side on threads of the process; `decoders` threads read pictures beside them,
        whose black and white become the two `pixels`. `run_options` are those of a task's call, `options` those of
        `load` or of the task.

        Raises:  InputError naming a wrong option
        """
        self.batch_size = whole_number("batch_size", batch_size, 1, MAX_BATCH)
        self._parallel = whole_number("parallel", parallel, 1, MAX_PARALLEL)
        self._decoders = whole_number("decoders", decoders, 1, MAX_PARALLEL)
        self._columns, self._outputs, self._pixels = columns, outputs, (float(pixels[0]), float(pixels[1]))
        self._run_options = dict(run_options or {})
        self._source = _source(model, task, options)
        self._own: SessionPool | None = None  # of a model that cannot be pickled

    def __call__(self, batch: Any) -> Any:
        """The batch with results.

        Raises:  InputError if the batch is of no known kind, or lacks a column; what opening the model raises
        """
        given = read_batch(batch)
        return with_results(given, *self.results(given))

    def results(self, given: Batch) -> tuple[tuple[str, ...], dict[str, list[Any]]]:
        """The columns that were read, and those of results: a value for each row, None where there is none.

        Raises:  as a call
        """
        pool = self._pool()
        runner = pool.runners[0]
        read, named = runner.columns(given.names, self._columns), self._named(runner.outputs)
        columns = {name: given.column(column) for name, column in read.items()}
        rows = ({name: column[i] for name, column in columns.items()} for i in range(given.count))
        results: dict[str, list[Any]] = {column: [None] * given.count for column in named.values()}
        errors = [""] * given.count
        for number, found in pool.predict(rows, self.batch_size):
            if isinstance(found, Exception):
                errors[number] = told(found)
                continue
            for name, column in named.items():
                results[column][number] = found[name]
        return tuple(read.values()), {**results, ERROR: errors}

    def read_columns(self, given: Batch) -> tuple[str, ...]:
        """The columns that are read of a batch.

        Raises:  as a call
        """
        return tuple(self._pool().runners[0].columns(given.names, self._columns).values())

    def _named(self, outputs: Sequence[str]) -> dict[str, str]:
        """The column of each output that is wanted."""
        wanted = self._outputs
        if wanted is None:
            return {name: name for name in outputs}
        named = dict(wanted) if isinstance(wanted, Mapping) else {name: name for name in wanted}
        if unknown := sorted({*named} - {*outputs}):
            raise InputError(f"there is no output {unknown[0]!r}; there are {', '.join(outputs)}")
        return named

    def _pool(self) -> SessionPool:
        """The process's sessions for predictors like this one."""
        if self._own is None or self._own.closed:
            try:
                key = key_of((self._source, self._parallel, self._decoders, self._pixels, self._run_options))
            except (InputError, AttributeError, TypeError) as error:
                if not isinstance(error, InputError) and not self._source.is_local:
                    raise
                self._own = self._opened()
                return self._own
            return _POOLS.get(key, self._opened)
        return self._own

    def _opened(self) -> SessionPool:
        def runner(number: int) -> Runner:
            opened: Runner = self._source.open(number, self._pixels, self._run_options)
            return opened

        return SessionPool(runner, self._parallel, self._decoders)

    def open(self) -> None:
        """Opens the model in this process now, rather than at the first call.

        Raises:  what opening it raises
        """
        self._pool()

    def close(self) -> None:
        """Frees this process's sessions for predictors like this one; the next call opens them again."""
        self._pool().close()

    def compiled(self) -> Predictor:
        """The same with the model's compiled plan in place of the model: workers begin without reading its format.

        Raises:  InputError if it is a task; what `compile_model` raises, for example where sizes are open
        """
        from webinfer.package import compile_model

        if not isinstance(self._source, ModelSource):
            raise InputError("compiled plans are for models; a task's plan belongs to its package (webinfer compile)")
        plan = run_sync(compile_model(self._source.model, backend="wasm", **_compilable(self._source.options)))
        made = Predictor.__new__(Predictor)
        made.__dict__.update(self.__dict__, _own=None)
        made._source = ModelSource(bytes(plan), {**self._source.options, "backend": "wasm"})
        return made

    def identity(self) -> str:
        """Equal for predictors that give the same results: threads and sessions side by side do not count.

        Raises:  InputError if the model cannot be sent to another process
        """
        run = self._columns, self._outputs, self._pixels, self._run_options, self.batch_size
        return key_of((self._source.identity(), run))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_own": None}

    def __repr__(self) -> str:
        return f"Predictor({self._source.name}, batch_size={self.batch_size}, parallel={self._parallel})"


def told(error: Exception) -> str:
    """What the column of errors says: the kind, and one line of text."""
    code = error.code if isinstance(error, WebinferError) else type(error).__name__
    return f"{code}: {' '.join(str(error).split())}"


def _compilable(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in ("backend", "threads")}


class ModelSource:
    """A model that every session loads: by path, URL, name or bytes; pickled with the path from the root on."""

    is_local = False

    def __init__(self, model: Any, options: Mapping[str, Any]) -> None:
        self.model, self.options = absolute(model), dict(options)
        self.name = str(model) if isinstance(model, str | PurePath) else f"{len(memoryview(model))} bytes"

    def identity(self) -> Any:
        """What results depend on: a local file's content, and options other than threads."""
        model = self.model
        if isinstance(model, str | PurePath) and os.path.isfile(model):
            with open(model, "rb") as file:
                model = hashlib.file_digest(file, "sha256").hexdigest()
        return model, {name: value for name, value in sorted(self.options.items()) if name not in IDLE_OPTIONS}

    def open(self, number: int, pixels: tuple[float, float], run_options: Mapping[str, Any]) -> Runner:
        """A session of its own."""
        return ModelRunner(SyncSession(run_sync(load(self.model, **self.options))), pixels)


class SessionSource:
    """A session that is open already: the first one; others are loaded as it was."""

    is_local = True

    def __init__(self, session: Session) -> None:
        self._session, self.name = session, session.name

    def identity(self) -> Any:
        """What the session was loaded from."""
        return self._session

    def open(self, number: int, pixels: tuple[float, float], run_options: Mapping[str, Any]) -> Runner:
        """The session itself, or one like it."""
        if number == 0:
            return ModelRunner(SyncSession(self._session), pixels)
        recipe = self._session.recipe
        if recipe is None:
            raise InputError(f"{self.name!r} cannot be opened again; use parallel=1")
        return ModelRunner(SyncSession(run_sync(load(recipe.source, **recipe.options))), pixels)


def _source(model: Any, task: str | None, options: Mapping[str, Any]) -> Any:
    """What a predictor runs."""
    if isinstance(model, SyncSession):
        model = model.session
    if isinstance(model, Session):
        check_unopened(model, task, options)
        return SessionSource(model)
    if task is not None or not isinstance(model, bytes | bytearray | memoryview | PurePath):
        from webinfer.scale.task_rows import task_source  # a fifth of a worker's start, which models do without

        if (source := task_source(model, task, options)) is not None:
            return source
    portable_options(options)
    return ModelSource(model, options)
