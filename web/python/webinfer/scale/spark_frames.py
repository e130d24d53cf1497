"""Spark: `predict_batch_udf`, which gives a predictor arrays and takes arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from webinfer.scale.columns import ERROR, optional
from webinfer.scale.predictor import Predictor


def udf(
    predictor: Predictor, inputs: Sequence[str], return_type: Any, shapes: Sequence[Sequence[int] | None] | None = None
) -> Any:
    """A function of columns, in the order of `inputs`, which are what the predictor's columns are called.

    `return_type` is Spark's type of the results: of one output, or a struct whose fields are outputs, and `error` where
    that is wanted. `shapes` are those of a row of each input where Spark has flat arrays, without the batch axis.
    """
    if isinstance(return_type, str):  # which Spark's function does not read itself
        return_type = optional("pyspark.sql.types", "a Spark function")._parse_datatype_string(return_type)
    functions = optional("pyspark.ml.functions", "a Spark function")
    return functions.predict_batch_udf(
        _Make(predictor, tuple(inputs), _fields(return_type)), return_type=return_type,
        batch_size=predictor.batch_size, input_tensor_shapes=None if shapes is None else [*map(_listed, shapes)],
    )  # fmt: skip


def _fields(return_type: Any) -> tuple[str, ...] | None:
    """The names of a struct's fields; None for the type of one output."""
    names = getattr(return_type, "names", None)
    return None if names is None else tuple(names)


def _listed(shape: Sequence[int] | None) -> list[int] | None:
    return None if shape is None else list(shape)


class _Make:
    """What Spark calls once in each of its Python workers; it returns what is called for each batch."""

    def __init__(self, predictor: Predictor, inputs: tuple[str, ...], fields: tuple[str, ...] | None) -> None:
        self._predictor, self._inputs, self._fields = predictor, inputs, fields

    def __call__(self) -> Callable[..., Any]:
        def predict(*arrays: Any) -> Mapping[str, Any] | Any:
            found = self._predictor(dict(zip(self._inputs, arrays, strict=True)))
            if self._fields is not None:
                return {name: _flat(found[name]) for name in self._fields}
            return _flat(next(found[name] for name in found if name != ERROR))

        kind = inspect.Parameter.POSITIONAL_ONLY  # Spark counts them
        parameters = [inspect.Parameter(f"column_{i}", kind) for i in range(len(self._inputs))]
        predict.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return predict


def _flat(values: Any) -> Any:
    """Rows as Spark takes them: numbers, or arrays of one axis."""
    import numpy

    array = numpy.asarray(values)
    return array if array.ndim < 3 else array.reshape(len(array), -1)
