"""A predictor over all rows of files, part by part, on this machine or on an engine's; a run that was killed goes on.

Each row is in the output exactly once: a part is written whole or not at all, and a part that is there is not done
again. Inference itself is at least once: a part that was under way when its process died runs again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from webinfer.host.interface import ProgressEvent
from webinfer.lazy_dataclass import dataclass
from webinfer.scale.columns import ERROR, read_batch, with_results
from webinfer.scale.engines import ENGINES
from webinfer.scale.parts import Parts, alone
from webinfer.scale.predictor import Predictor
from webinfer.scale.sources import FileRows, ParquetRows, Rows, rows_of
from webinfer.session.options import whole_number
from webinfer.session.pickling import key_of
from webinfer.version import VERSION

PART_ROWS = 1024  # of a part: some seconds of work for most models, and few files for a million rows
MAX_PART_ROWS = 1 << 24


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What a run did: rows in all, those of this attempt with an error, parts of earlier attempts, and seconds."""

    rows: int
    errors: int
    resumed_parts: int
    seconds: float

    def __str__(self) -> str:
        resumed = f", {self.resumed_parts} parts were done before" if self.resumed_parts else ""
        rate = self.rows / max(self.seconds, 1e-9)
        return f"{self.rows:,} rows, {self.errors:,} with an error, {self.seconds:.1f} s ({rate:,.0f} rows/s){resumed}"


class BatchJob:
    """What every worker is sent: the predictor, the rows, where parts go. It can be pickled."""

    def __init__(self, predictor: Predictor, rows: Rows, parts: Parts, part_rows: int) -> None:
        self.predictor, self.rows, self.parts, self.part_rows = predictor, rows, parts, part_rows
        self.count = -(-rows.count // part_rows)

    def run(self, number: int) -> tuple[int, int]:
        """Does one part, unless it is there; its rows, and how many have an error.

        Raises:  what the predictor raises about the whole run, such as a missing model
        """
        rows = min(self.part_rows, self.rows.count - number * self.part_rows)
        if self.parts.is_done(number):
            return rows, 0
        given = read_batch(self.rows.read(number * self.part_rows, self.part_rows))
        read, results = self.predictor.results(given)
        dropped = () if isinstance(self.rows, FileRows) else read
        if given.kind == "arrow":
            table = with_results(given, dropped, results)
        else:
            table = {name: given.column(name) for name in given.names if name not in dropped} | results
        self.parts.write(number, table)
        return rows, sum(1 for error in results[ERROR] if error)

    def give_up(self, number: int, why: str) -> tuple[int, int]:
        """Writes a part whose rows cannot be done, as they end the process that does them."""
        given = read_batch(self.rows.read(number * self.part_rows, self.part_rows))
        errors = {ERROR: [why] * given.count}
        dropped = () if isinstance(self.rows, FileRows) else self.predictor.read_columns(given)
        kept = {name: given.column(name) for name in given.names if name not in dropped}
        self.parts.write(number, with_results(given, dropped, errors) if given.kind == "arrow" else kept | errors)
        return given.count, given.count


def run_batch(
    predictor: Predictor, inputs: Sequence[str] | str, output: str, *, engine: str = "local",
    processes: int | None = None, part_rows: int = PART_ROWS, columns: Sequence[str] | None = None,
    progress: Callable[[ProgressEvent], None] | None = None, address: str | None = None,
) -> BatchReport:  # fmt: skip
    """Runs a predictor over all rows of the inputs, and writes the output; goes on where a run was interrupted.

    `inputs` are files, folders, patterns and URLs that fsspec reads: Parquet files and lines of JSON are tables, of
    other files each is a row with its `path`. `output` is a .parquet or .jsonl file, or a folder for Parquet files. The
    columns of the output are those that the predictor does not read, its results, and `error`; `columns` are those
    that are read from Parquet at all, where not all are wanted.

    `engine` is "local", with as many `processes` as the machine has cores, "ray", "dask" or "spark"; the engines'
    workers must see the same files. `address` is that of a cluster. Results are the same bytes with every engine.

    Raises:  InputError naming what cannot be read or written; what opening the model raises
    """
    begin = time.monotonic()
    part_rows = whole_number("part_rows", part_rows, 1, MAX_PART_ROWS)
    rows = rows_of([inputs] if isinstance(inputs, str) else inputs)
    if isinstance(rows, ParquetRows) and columns is not None:
        rows.columns = list(columns)
    job = BatchJob(predictor, rows, Parts(output), part_rows)
    with alone(job.parts.folder):
        job.parts.begin(_described(job, columns))
        todo = [number for number in range(job.count) if not job.parts.is_done(number)]
        done = rows.count - sum(min(part_rows, rows.count - number * part_rows) for number in todo)
        errors = 0
        for found, wrong in _run(job, todo, engine, processes, address):
            done, errors = done + found, errors + wrong
            if progress is not None:
                progress(ProgressEvent("rows", done, rows.count, "rows"))
        job.parts.finish(job.count)
    return BatchReport(rows.count, errors, job.count - len(todo), time.monotonic() - begin)


def _run(
    job: BatchJob, todo: Sequence[int], engine: str, processes: int | None, address: str | None
) -> Iterator[tuple[int, int]]:
    return ENGINES[engine](job, todo, processes, address) if todo else iter(())


def _described(job: BatchJob, columns: Sequence[str] | None) -> Mapping[str, Any]:
    """What must not change from one attempt to the next."""
    return {
        "webinfer": VERSION,
        "predictor": job.predictor.identity(),
        "inputs": key_of(job.rows.identity()),
        "rows": job.rows.count,
        "part_rows": job.part_rows,
        "columns": None if columns is None else list(columns),
    }
