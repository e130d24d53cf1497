"""The results of a batch run: a file for each part, written whole or not at all, and one file of all at the end.

A part that is there is done. Parts depend on their rows alone, so that a run that was interrupted ends with the same
bytes as one that was not.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from webinfer.errors import InputError
from webinfer.host.whole_files import write_whole
from webinfer.scale.columns import optional, to_arrow

JOB = "job.json"
FORMATS = (".parquet", ".jsonl")


class Parts:
    """Where parts and the output lie: a folder beside the output, or the output itself where that is a folder."""

    def __init__(self, output: str) -> None:
        """`output` ends in .parquet or .jsonl, or is a folder for Parquet files.

        Raises:  InputError if it ends otherwise
        """
        self.output = Path(os.path.abspath(output))
        self.suffix = self.output.suffix.lower()
        self.is_folder = not self.suffix
        if self.suffix and self.suffix not in FORMATS:
            raise InputError(f"-o {output!r} ends in {self.suffix}; give a .parquet or .jsonl file, or a folder")
        self.suffix = self.suffix or ".parquet"
        self.folder = self.output if self.is_folder else self.output.with_name(f"{self.output.name}.parts")

    def begin(self, job: Mapping[str, Any]) -> None:
        """Makes the folder, or finds that of the same job, which goes on.

        Raises:  InputError if there is another job's, or an output already
        """
        text = json.dumps(job, sort_keys=True, indent=1)
        place = self.folder / JOB
        if place.is_file():
            if place.read_text(encoding="utf-8") != text:
                before = json.loads(place.read_text(encoding="utf-8"))
                changed = [name for name in job if before.get(name) != job[name]]
                raise InputError(
                    f"{str(self.folder)!r} has parts of another run: {', '.join(changed)} changed; remove it to begin "
                    "anew, or give another output"
                )
            for left in self.folder.glob(".*.new"):  # of a process that was killed
                left.unlink()
            return
        if self.output.exists() and not (self.is_folder and not any(self.output.iterdir())):
            raise InputError(f"{str(self.output)!r} already exists; remove it, or give another output")
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(place, text.encode())

    def path(self, number: int) -> Path:
        """The file of a part."""
        return self.folder / f"part-{number:08d}{self.suffix}"

    def is_done(self, number: int) -> bool:
        """Whether the part is there."""
        return self.path(number).is_file()

    def write(self, number: int, table: Any) -> None:
        """Writes a part: an Arrow table, or a mapping of columns."""
        if self.suffix == ".parquet":
            arrow, parquet = optional("pyarrow", "a Parquet file"), optional("pyarrow.parquet", "a Parquet file")
            if isinstance(table, Mapping):
                table = arrow.table({name: to_arrow(column) for name, column in table.items()})
            buffer = arrow.BufferOutputStream()
            parquet.write_table(table, buffer)
            write_whole(self.path(number), buffer.getvalue().to_pybytes())
            return
        columns = {name: _plain(column) for name, column in _columns(table).items()}
        lines = [
            json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False)
            for row in zip(*columns.values(), strict=True)
        ]
        write_whole(self.path(number), "".join(f"{line}\n" for line in lines).encode())

    def finish(self, count: int) -> None:
        """Makes one file of so many parts, in order, and removes them; a folder keeps them."""
        if self.is_folder:
            return
        fresh = self.folder / f"all{self.suffix}"
        paths = [self.path(number) for number in range(count)]
        if self.suffix == ".parquet":
            _join_parquet(paths, fresh)
        else:
            with fresh.open("wb") as file:
                for path in paths:
                    file.write(path.read_bytes())
        fresh.replace(self.output)
        shutil.rmtree(self.folder)


def _columns(table: Any) -> Mapping[str, Any]:
    if isinstance(table, Mapping):
        return table
    return {name: table.column(name).to_pylist() for name in table.column_names}


def _plain(column: Any) -> list[Any]:
    """A column as JSON has it."""
    return [value.tolist() if hasattr(value, "tolist") else value for value in column]


def _join_parquet(paths: list[Path], fresh: Path) -> None:
    """Part by part, so that memory holds one. Types that differ between parts are widened, such as that of no value."""
    arrow, parquet = optional("pyarrow", "a Parquet file"), optional("pyarrow.parquet", "a Parquet file")
    schemas = [parquet.read_schema(path) for path in paths]
    try:
        schema = arrow.unify_schemas(schemas, promote_options="permissive")
    except (arrow.ArrowInvalid, arrow.ArrowTypeError):
        schema = arrow.unify_schemas([_variable(arrow, schema) for schema in schemas], promote_options="permissive")
    with parquet.ParquetWriter(fresh, schema) as writer:
        for path in paths:
            table = parquet.read_table(path)
            for name in schema.names:
                if name not in table.column_names:  # of lines of JSON that lack it
                    table = table.append_column(name, arrow.nulls(len(table), schema.field(name).type))
            writer.write_table(table.select(schema.names).cast(schema))


def _variable(arrow: Any, schema: Any) -> Any:
    """A schema whose lists have any length: rows of one output differ between parts."""

    def variable(kind: Any) -> Any:
        return arrow.list_(variable(kind.value_type)) if arrow.types.is_fixed_size_list(kind) else kind

    return arrow.schema([arrow.field(field.name, variable(field.type)) for field in schema])


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keeps a second run out of the folder for as long as this one lives.

    Raises:  InputError if there is one
    """
    try:
        import fcntl
    except ImportError:  # Windows: two runs would do each part twice, with the same bytes
        yield
        return
    with open(folder.parent / f".{folder.name}.lock", "wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"another run is writing to {str(folder)!r}") from None
        try:
            yield
        finally:
            Path(file.name).unlink(missing_ok=True)
