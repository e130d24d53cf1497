"""Tensor types as JSON, for plans that are stored: `dataclasses.asdict` writes them, this reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from webinfer.dtypes import DType
from webinfer.graph.ir import Graph, Quantization, TensorType, Value


def type_of(form: Mapping[str, Any]) -> TensorType:
    """The type of this form."""
    quant = form["quant"]
    if quant is not None:
        quant = Quantization(tuple(quant["scales"]), tuple(quant["zero_points"]), quant["axis"])
    return TensorType(tuple(form["shape"]), DType(form["dtype"]), quant)


def ends_form(values: Iterable[Value]) -> list[Any]:
    """Names and types of inputs or outputs; a name may stand for an open size."""
    return [[value.name, asdict(value.type)] for value in values]


def ends_of(form: Iterable[Any]) -> list[tuple[str, TensorType]]:
    """Names and types of this form."""
    return [(name, type_of(type)) for name, type in form]


def can_be_stored(graph: Graph) -> bool:
    """Whether inputs and outputs say all of a graph: no types for users alone, no state, no output that is an input."""
    ends = [*graph.inputs, *graph.outputs]
    return not graph.outer and not graph.states and len({*ends}) == len(ends) and not any(v.is_constant for v in ends)
