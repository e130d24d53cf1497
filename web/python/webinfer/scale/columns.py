"""Batches as engines hand them around: mappings of arrays, Arrow tables, data frames, lists; and results put beside.

A batch becomes columns, which are arrays or lists with a value for each row; results become the kind that was given.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from webinfer.errors import InputError
from webinfer.lazy_dataclass import dataclass

ERROR = "error"  # the column that says what was wrong with a row
ITEM = "item"  # the column of a list


def optional(module: str, what: str) -> Any:
    """A package that not everybody has.

    Raises:  InputError naming what needs it and how it is installed
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise InputError(f"{what} needs {package}: pip install {package} ({error})") from None


@dataclass(frozen=True, slots=True)
class Batch:
    """What was given, of what kind: "dict", "arrow", "pandas" or "list"; the names of its columns, how many rows."""

    given: Any
    names: tuple[str, ...]
    count: int
    kind: str

    def column(self, name: str) -> Any:
        """A column as an array or a list, with a value for each row."""
        if self.kind == "list":
            return self.given
        if self.kind == "arrow":
            return _from_arrow(self.given.column(name))
        return self.given[name].to_numpy() if self.kind == "pandas" else self.given[name]


def read_batch(given: Any) -> Batch:
    """A batch and what is known of it.

    Raises:  InputError if it is of no kind that is known, or its columns have different numbers of rows
    """
    kind = type(given).__module__.partition(".")[0]
    if isinstance(given, Mapping):
        counts = {name: len(column) for name, column in given.items()}
        if len(set(counts.values())) > 1:
            raise InputError(f"columns of one batch have different numbers of rows: {counts}")
        return Batch(given, tuple(given), next(iter(counts.values()), 0), "dict")
    if kind == "pyarrow" and hasattr(given, "column_names"):
        return Batch(given, tuple(given.column_names), given.num_rows, "arrow")
    if kind == "pandas" and hasattr(given, "columns"):
        return Batch(given, tuple(given.columns), len(given), "pandas")
    if isinstance(given, list | tuple) or (hasattr(given, "__len__") and hasattr(given, "__getitem__")):
        return Batch(given, (ITEM,), len(given), "list")
    raise InputError(
        f"a {type(given).__name__} is not a batch of rows; give a mapping of arrays, an Arrow table, a frame or a list"
    )


def _from_arrow(column: Any) -> Any:
    """A column of an Arrow table as an array where its rows are numbers of one shape, else a list."""
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    if hasattr(column, "num_chunks"):  # of an older pyarrow, or no chunks at all
        column = column.chunk(0) if column.num_chunks else column.to_pylist()
    if isinstance(column, list):
        return column
    if hasattr(column, "to_numpy_ndarray") and not column.null_count:
        return column.to_numpy_ndarray()
    arrow = optional("pyarrow", "an Arrow table")
    shape, inner = [len(column)], column
    while arrow.types.is_fixed_size_list(inner.type) and not inner.null_count:
        shape.append(inner.type.list_size)
        inner = inner.flatten()
    numbers = arrow.types.is_primitive(inner.type) and not arrow.types.is_temporal(inner.type)
    if numbers and not inner.null_count:
        return inner.to_numpy(zero_copy_only=False).reshape(shape)
    return column.to_pylist()


def with_results(batch: Batch, dropped: Sequence[str], results: Mapping[str, list[Any]]) -> Any:
    """The batch without the `dropped` columns, and with results: a value for each row, None where there is none.

    Shapes:  rows of arrays of one shape become one array in a mapping, and lists of fixed sizes in Arrow
    """
    kept = [name for name in batch.names if name not in dropped]
    if twice := sorted({*kept} & results.keys()):
        raise InputError(f"the batch already has a column {twice[0]!r}; rename the output with `outputs`")
    if batch.kind == "list":
        return [dict(zip(results, row, strict=True)) for row in zip(*results.values(), strict=True)]
    if batch.kind == "arrow":
        columns = {name: batch.given.column(name) for name in kept}
        made = {name: to_arrow(values) for name, values in results.items()}
        return optional("pyarrow", "an Arrow table").table(columns | made)
    if batch.kind == "pandas":
        return batch.given[kept].assign(**_listed(results))
    return {name: batch.given[name] for name in kept} | {name: stacked(values) for name, values in results.items()}


def _listed(results: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Rows as data frames hold them: numbers as numbers, arrays as they are."""
    return {n: [v.item() if getattr(v, "ndim", 1) == 0 else v for v in values] for n, values in results.items()}


def stacked(values: Sequence[Any]) -> Any:
    """One array of rows: of numbers where all have one shape; 0, NaN for real ones, where there is none."""
    numpy = optional("numpy", "a batch of arrays")
    filled, _ = _filled(values)
    if filled is not None:
        return filled
    made = numpy.empty(len(values), object)
    made[:] = list(values)
    return made


def _filled(values: Sequence[Any]) -> tuple[Any, Any]:
    """Rows of one shape as one array, and which of them are missing; None where they are not arrays of one shape."""
    numpy = optional("numpy", "a batch of arrays")
    there = [value for value in values if value is not None]
    if not there or any(not hasattr(value, "shape") for value in there):
        return None, None
    first = there[0]
    if any(value.shape != first.shape or value.dtype != first.dtype for value in there):
        return None, None
    missing = numpy.array([value is None for value in values])
    made = numpy.zeros((len(values), *first.shape), first.dtype)
    if first.dtype.kind == "f":
        made[missing] = numpy.nan
    if len(there):
        made[~missing] = numpy.stack(there)
    return made, missing


def to_arrow(values: Any) -> Any:
    """A column for an Arrow table: rows that are arrays of one shape become nested lists of fixed sizes."""
    arrow = optional("pyarrow", "an Arrow table")
    if hasattr(values, "dtype") and values.dtype.kind != "O":
        rows, missing = values, None
    else:
        rows, missing = _filled(values)
    if rows is None:
        return arrow.array([value.tolist() if hasattr(value, "tolist") else value for value in values])
    column = arrow.array(rows.reshape(-1))
    for size in reversed(rows.shape[1:]):
        column = arrow.FixedSizeListArray.from_arrays(column, size)
    if missing is None or not missing.any():
        return column
    listed = [None if gone else row for gone, row in zip(missing, column.to_pylist(), strict=True)]
    return arrow.array(listed, column.type)
