"""The sessions of a process: several of one model or task side by side, and rows that are handed to them in batches."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

from webinfer.errors import ClosedError, InputError, WebinferError
from webinfer.scale.rows import columns_of, row_of

Row = dict[str, Any]  # results of a row by name
Mended = (WebinferError, OSError, ValueError, TypeError)  # what is wrong with a row, not with the run


class Runner(Protocol):
    """A model or a task that runs on rows."""

    @property
    def outputs(self) -> Sequence[str]:
        """The names of results."""

    def columns(self, names: Sequence[str], wanted: Mapping[str, str] | str | None) -> dict[str, str]:
        """Which column each input is read from.

        Raises:  InputError
        """

    def prepared(self, values: Mapping[str, Any]) -> Any:
        """A row as the model takes it: what can be done beside inference.

        Raises:  what is wrong with the row
        """

    def size_class(self, row: Any) -> Any:
        """Equal for rows that one run can have; None for rows that run alone."""

    def run(self, rows: Sequence[Any]) -> list[Row]:
        """The results of rows that one run can have."""

    def close(self) -> None:
        """Frees it."""


def check_unopened(model: Any, task: str | None, options: Mapping[str, Any]) -> None:
    """Raises:  InputError if what is open already is given what belongs to its opening"""
    if options or task is not None:
        raise InputError(f"{model!r} is already open: pass its options when you open it")


class ModelRunner:
    """A session on rows: several a run where all inputs and outputs leave their first axis open, or have rows there."""

    def __init__(self, session: Any, pixels: tuple[float, float]) -> None:
        self._session, self._pixels = session, pixels
        self._infos = session.inputs
        firsts = {info.shape[0] if info.shape else 1 for info in self._infos}
        # The rows of a run: None where the model leaves that open, else the number that it was made for.
        self.fixed: int | None = None
        if len(firsts) > 1 or not all(isinstance(first, str) for first in firsts):
            self.fixed = next((first for first in firsts if isinstance(first, int)), 1)

    @property
    def outputs(self) -> Sequence[str]:
        """The names of the model's outputs."""
        return [info.name for info in self._session.outputs]

    def columns(self, names: Sequence[str], wanted: Mapping[str, str] | str | None) -> dict[str, str]:
        """Which column each input is read from."""
        return columns_of(self._infos, names, wanted)

    def prepared(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """A row's arrays by input."""
        return {info.name: row_of(values[info.name], info, self._pixels) for info in self._infos}

    def size_class(self, row: dict[str, Any]) -> Any:
        """The shapes of the row's arrays; None where a run has one row."""
        if self.fixed == 1 or any(row[info.name].ndim == len(info.shape) for info in self._infos):
            return None
        return tuple((row[info.name].shape, row[info.name].dtype.str) for info in self._infos)

    def run(self, rows: Sequence[dict[str, Any]]) -> list[Row]:
        """The outputs row by row. A model for a fixed number of rows is given the last one again where there are fewer.

        Raises:  InputError if an output has no row for each input; what `Session.run` raises
        """
        count = max(len(rows), self.fixed or 1)
        given = {info.name: self._stacked([row[info.name] for row in rows], info, count) for info in self._infos}
        found = {name: tensor.numpy() for name, tensor in self._session.run(given).items()}
        if len(rows) == count == 1:
            return [{name: array[0] if _has_row(array) else array for name, array in found.items()}]
        for name, array in found.items():
            if not array.ndim or array.shape[0] != count:
                raise InputError(
                    f"output {name!r} is {array.shape} for {count} rows: it has no row for each; use batch_size=1"
                )
        return [{name: array[i] for name, array in found.items()} for i in range(len(rows))]

    def _stacked(self, arrays: list[Any], info: Any, count: int) -> Any:
        import numpy

        if arrays[0].ndim == len(info.shape) and len(arrays) == 1:
            return numpy.ascontiguousarray(arrays[0])  # with the batch axis already
        return numpy.stack(arrays + arrays[-1:] * (count - len(arrays)))

    def close(self) -> None:
        """Frees the session."""
        self._session.close()


def _has_row(array: Any) -> bool:
    return bool(array.ndim > 0 and array.shape[0] == 1)


class SessionPool:
    """So many runners side by side, each on a thread of its own, and threads that prepare rows beside them."""

    def __init__(self, open_runner: Callable[[int], Runner], parallel: int, decoders: int) -> None:
        self._free: queue.SimpleQueue[Runner] = queue.SimpleQueue()
        self.runners = [open_runner(number) for number in range(parallel)]
        for runner in self.runners:
            self._free.put(runner)
        self._threads = ThreadPoolExecutor(parallel, "webinfer predictor")
        self._decoders = ThreadPoolExecutor(decoders, "webinfer decoder")
        self._ahead = 2 * parallel + 2 * decoders
        self.closed = False

    def close(self) -> None:
        """Frees all of them."""
        self.closed = True
        self._threads.shutdown()
        self._decoders.shutdown()
        for runner in self.runners:
            runner.close()

    def predict(self, rows: Iterable[Mapping[str, Any]], batch_size: int) -> Iterator[tuple[int, Row | Exception]]:
        """The results of rows, or what was wrong with one, each with the row's number; as they come.

        Rows that one run can have wait for each other, up to `batch_size`; at the end they run in powers of two, so
        that a model has few sizes to bind. No more rows are read ahead than the runners can use.
        """
        waiting: dict[Any, list[tuple[int, Any]]] = {}
        running: deque[Future[list[tuple[int, Row | Exception]]]] = deque()
        for number, row in self._prepared(rows, batch_size):
            if isinstance(row, Exception):
                yield number, row
                continue
            size_class = self.runners[0].size_class(row)
            group = [] if size_class is None else waiting.setdefault(size_class, [])
            group.append((number, row))
            if size_class is None or len(group) == batch_size:
                running.append(self._threads.submit(self._run, group))
                waiting.pop(size_class, None)
            while len(running) > 2 * len(self.runners):
                yield from running.popleft().result()
        for group in waiting.values():
            for part in powers_of_two(group):
                running.append(self._threads.submit(self._run, part))
        while running:
            yield from running.popleft().result()

    def _prepared(self, rows: Iterable[Mapping[str, Any]], batch_size: int) -> Iterator[tuple[int, Any]]:
        """Rows as the model takes them, in order, prepared ahead on the decoders' threads."""
        ahead: deque[Future[Any]] = deque()
        number, most = 0, self._ahead + batch_size
        for row in rows:
            ahead.append(self._decoders.submit(self._prepare, row))
            if len(ahead) > most:
                yield number, ahead.popleft().result()
                number += 1
        while ahead:
            yield number, ahead.popleft().result()
            number += 1

    def _prepare(self, row: Mapping[str, Any]) -> Any:
        try:
            return self.runners[0].prepared(row)
        except Mended as error:
            return error

    def _run(self, group: Sequence[tuple[int, Any]]) -> list[tuple[int, Row | Exception]]:
        """A run, on a free runner; if it fails each of its rows by itself, so that one does not spoil the others."""
        runner = self._free.get()
        try:
            return self._ran(runner, group)
        finally:
            self._free.put(runner)

    def _ran(self, runner: Runner, group: Sequence[tuple[int, Any]]) -> list[tuple[int, Row | Exception]]:
        try:
            found = runner.run([row for _, row in group])
        except ClosedError:
            raise
        except Mended as error:
            if len(group) == 1:
                return [(group[0][0], error)]
            return [one for pair in group for one in self._ran(runner, [pair])]
        return [(number, row) for (number, _), row in zip(group, found, strict=True)]


def powers_of_two(group: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """A group in parts whose lengths are powers of two, the longest first."""
    begin = 0
    while begin < len(group):
        length = 1 << ((len(group) - begin).bit_length() - 1)
        yield group[begin : begin + length]
        begin += length
