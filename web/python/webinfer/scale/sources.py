"""The rows of a batch run: files, Parquet tables and lines of JSON, here or at URLs that fsspec reads.

Rows have an order and are cut into parts of equal length, so that a part is the same rows in every run.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from webinfer.errors import InputError
from webinfer.pipelines.sources import SUFFIXES
from webinfer.scale.columns import optional
from webinfer.scale.rows import is_remote

PATH = "path"  # the column of files
TABLES = (".parquet", ".jsonl")
FILES = tuple(suffix for suffixes in SUFFIXES.values() for suffix in suffixes)  # that a folder is searched for


def rows_of(inputs: Sequence[str]) -> Rows:
    """The rows that files, folders, patterns and URLs name: of tables where they name tables, else the files.

    Raises:  InputError if they name nothing, or tables beside other files
    """
    files = [file for given in inputs for file in _files(given)]
    if not files:
        raise InputError(f"no file in {', '.join(map(repr, inputs))}")
    kinds = {_suffix(file) if _suffix(file) in TABLES else "" for file in files}
    if len(kinds) > 1:
        raise InputError(f"the inputs mix {' and '.join(sorted(kinds - {''}))} with other files; give one kind")
    kind = kinds.pop()
    return ParquetRows(files) if kind == ".parquet" else JsonRows(files) if kind == ".jsonl" else FileRows(files)


def _files(given: str) -> list[str]:
    if is_remote(given):
        system, path = optional("fsspec.core", f"reading {given}").url_to_fs(given)
        found = sorted(system.glob(path)) if any(sign in path for sign in "*?[") else _below(system, path)
        return [system.unstrip_protocol(file) for file in found]
    if os.path.isdir(given):
        below = sorted(str(path) for path in Path(given).rglob("*") if path.is_file())
        tables = [file for file in below if _suffix(file) in TABLES]
        return tables or [file for file in below if _suffix(file) in FILES and not Path(file).name.startswith(".")]
    if not os.path.exists(given) and any(sign in given for sign in "*?["):
        return sorted(file for file in glob.glob(given, recursive=True) if os.path.isfile(file))
    if not os.path.isfile(given):
        raise InputError(f"there is no file, folder or pattern {given!r}")
    return [given]


def _below(system: Any, path: str) -> list[str]:
    return sorted(system.find(path)) if system.isdir(path) else [path]


def _suffix(file: str) -> str:
    return os.path.splitext(file)[1].lower()


def _opened(file: str) -> Any:
    """A file for reading."""
    return optional("fsspec", f"reading {file}").open(file, "rb").open() if is_remote(file) else open(file, "rb")


def _stamp(file: str) -> tuple[str, int, str]:
    """What tells that a file is another one than before: its name, bytes, and when it was written."""
    if is_remote(file):
        system, path = optional("fsspec.core", f"reading {file}").url_to_fs(file)
        info = system.info(path)
        return file, int(info.get("size") or 0), str(info.get("ETag") or info.get("mtime") or info.get("created") or "")
    found = os.stat(file)
    return os.path.abspath(file), found.st_size, str(found.st_mtime_ns)


class Rows:
    """Rows in order. `count` is their number; `read` gives those from a number on, as an Arrow table or a mapping."""

    count: int

    def __init__(self, files: Sequence[str]) -> None:
        self.files = list(files)

    def identity(self) -> list[tuple[str, int, str]]:
        """Equal while no file has changed."""
        return [_stamp(file) for file in self.files]

    def read(self, first: int, count: int) -> Any:
        """So many rows from number `first` on, fewer at the end."""
        raise NotImplementedError


class FileRows(Rows):
    """Each file is a row: its path."""

    def __init__(self, files: Sequence[str]) -> None:
        super().__init__(files)
        self.count = len(files)

    def read(self, first: int, count: int) -> dict[str, list[str]]:
        """Paths."""
        return {PATH: self.files[first : first + count]}


class Sequential(Rows):
    """Rows of files that are read from their beginning on: a reader that goes on needs no row a second time.

    Its place is kept in the process, so that parts that follow each other cost what their rows do.
    """

    def __init__(self, files: Sequence[str]) -> None:
        super().__init__(files)
        self.counts = [self.count_of(file) for file in files]
        self.count = sum(self.counts)
        self._forget()

    def count_of(self, file: str) -> int:
        """The rows of a file."""
        raise NotImplementedError

    def batches(self, file: str, rows: int) -> Iterator[Any]:
        """The rows of a file from its first on, in batches of at most so many."""
        raise NotImplementedError

    def join(self, batches: list[Any]) -> Any:
        """Batches as one."""
        raise NotImplementedError

    def _forget(self) -> None:
        self._open: tuple[int, Iterator[Any]] | None = None  # a file's number, and what is left of it
        self._next, self._left = 0, None  # the number of the next row, and rows that are read already

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_open": None, "_next": 0, "_left": None}

    def read(self, first: int, count: int) -> Any:
        """So many rows from number `first` on."""
        if first < self._next:
            self._forget()
        found, wanted = [], min(first + count, self.count)
        while self._next < wanted:
            batch = self._left if self._left is not None else self._batch(count)
            end = self._next + len(batch)
            taken = batch[max(first - self._next, 0) : wanted - self._next] if end > first else batch[:0]
            self._left = batch[wanted - self._next :] if end > wanted else None
            self._next = min(end, wanted)
            if len(taken):
                found.append(taken)
        return self.join(found)

    def _batch(self, rows: int) -> Any:
        """The next batch; begins the file that the next row is in."""
        if self._open is None:
            number, before = 0, 0
            while before + self.counts[number] <= self._next:
                before, number = before + self.counts[number], number + 1
            self._open, self._next = (number, self.batches(self.files[number], rows)), before
        batch = next(self._open[1], None)
        if batch is None:
            raise InputError(
                f"{self.files[self._open[0]]!r} has fewer rows than it declares, or changed while it was read"
            )
        before = sum(self.counts[: self._open[0] + 1])
        if self._next + len(batch) >= before:
            self._open = None
        return batch


class ParquetRows(Sequential):
    """The rows of Parquet files."""

    def __init__(self, files: Sequence[str]) -> None:
        self.columns: list[str] | None = None  # that are read; None: all
        super().__init__(files)

    def count_of(self, file: str) -> int:
        """From the file's footer."""
        parquet = optional("pyarrow.parquet", f"reading {file}")
        try:
            with _opened(file) as opened:
                return int(parquet.ParquetFile(opened).metadata.num_rows)
        except (OSError, ValueError) as error:  # pyarrow's own errors are ValueErrors
            raise InputError(f"cannot read {file!r}: {error}") from error

    def batches(self, file: str, rows: int) -> Iterator[Any]:
        """Arrow's batches."""
        opened = optional("pyarrow.parquet", f"reading {file}").ParquetFile(_opened(file))
        yield from (batch for batch in opened.iter_batches(rows, columns=self.columns) if len(batch))

    def join(self, batches: list[Any]) -> Any:
        """One table."""
        return optional("pyarrow", "a Parquet file").Table.from_batches(batches)


class JsonRows(Sequential):
    """The rows of files with a JSON object on each line."""

    def count_of(self, file: str) -> int:
        """Lines that are not empty."""
        with _opened(file) as opened:
            return sum(1 for line in opened if line.strip())

    def batches(self, file: str, rows: int) -> Iterator[list[dict[str, Any]]]:
        """Lists of objects."""
        found: list[dict[str, Any]] = []
        with _opened(file) as opened:
            for line in filter(bytes.strip, opened):
                found.append(_object(line, file))
                if len(found) == rows:
                    yield found
                    found = []
        if found:
            yield found

    def join(self, batches: list[list[dict[str, Any]]]) -> dict[str, list[Any]]:
        """A mapping of columns; None where a line lacks one."""
        rows = [row for batch in batches for row in batch]
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: [row.get(name) for row in rows] for name in names}


def _object(line: bytes, file: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise InputError(f"{file!r} has a line that is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise InputError(f"{file!r} has a line that is not an object of names and values")
    return found
