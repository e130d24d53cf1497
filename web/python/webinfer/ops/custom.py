"""Operators that users register at run time: what they are, and the two tables that hold them.

A custom operator is an `Op` like any other; its WGSL and its reference function travel with it.
"""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from webinfer.errors import InputError, ShapeError, WebinferError
from webinfer.graph.ir import Node, Op, TensorType
from webinfer.graph.printer import safe_name
from webinfer.lazy_dataclass import dataclass
from webinfer.tensor import Tensor, buffer_of


class Form(enum.StrEnum):
    """What a custom operator's WGSL computes at a time: an element, four of them, or all in a `main` of its own."""

    ELEMENT = "element"
    QUAD = "quad"
    SHADER = "shader"


@dataclass(frozen=True, slots=True, eq=False)
class CustomOp(Op):
    """An operator that a user registered. Without `wgsl` no GPU runs it, without `reference` no host does."""

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    wgsl: str = ""
    form: Form = Form.ELEMENT
    workgroups: Callable[..., Any] | None = None
    reference: Callable[..., Any] | None = None
    custom_code: str = ""
    read_options: Callable[[bytes], Mapping[str, Any]] | None = field(default=None)


CUSTOM: dict[str, CustomOp] = {}
BY_CODE: dict[str, CustomOp] = {}  # by the name of a custom operator in TFLite files


def arguments(attrs: Any) -> dict[str, Any]:
    """The attributes by name, as the user's functions take them."""
    return {f.name: getattr(attrs, f.name) for f in dataclasses.fields(attrs)}


def call(op: CustomOp, function: Callable[..., Any], given: Sequence[TensorType | None], attrs: Any) -> Any:
    """What a user's function makes of input types and attributes.

    Raises:  ShapeError naming the operator
    """
    if len(given) != len(op.inputs) or None in given:
        raise ShapeError(f"{op.name}: {len(given)} inputs, needs {', '.join(op.inputs)}")
    try:
        return function(*given, **arguments(attrs))
    except WebinferError:
        raise
    except Exception as error:  # of the user's own code: any kind
        shown = ", ".join(map(str, given))
        raise ShapeError(f"{op.name}: its function fails for {shown}: {type(error).__name__}: {error}") from error


def result_types(op: CustomOp, found: Any, first: TensorType) -> tuple[TensorType, ...]:
    """What a shape function returned as types: a type or a shape, or one of these for each output."""
    several = len(op.outputs) > 1
    results = list(found) if several and isinstance(found, list | tuple) else [found]
    made = []
    for item in results:
        if not isinstance(item, TensorType):
            if not isinstance(item, list | tuple) or not all(type(size) is int and size >= 0 for size in item):
                raise ShapeError(f"{op.name}: its shape function made {item!r}, needs a shape or a TensorType")
            item = TensorType(tuple(item), first.dtype)
        made.append(item)
    if len(made) != len(op.outputs):
        raise ShapeError(f"{op.name}: its shape function made {len(made)} types, needs {len(op.outputs)}")
    return tuple(made)


def compute(node: Node, given: Sequence[Any]) -> list[Tensor]:
    """The outputs of a custom node by its reference function, which takes arrays or tensors.

    Raises:  ShapeError if a result does not have the type that the shape function promised
    """
    op = node.op
    assert isinstance(op, CustomOp)
    assert op.reference is not None
    try:
        found = op.reference(*given, **arguments(node.attrs))
    except Exception as error:
        error.add_note(f"in the reference function of {op.name}, node {safe_name(node.label)}")
        raise
    results = list(found) if len(op.outputs) > 1 else [found]
    if len(results) != len(op.outputs):
        raise ShapeError(f"{op.name}: its reference made {len(results)} results, needs {len(op.outputs)}")
    tensors = []
    for result, value in zip(results, node.outputs, strict=True):
        type = value.type
        try:
            if hasattr(result, "astype"):  # NumPy makes float64 of much, and scalars of sums
                result = result.astype(type.dtype.value, casting="same_kind")
            data = buffer_of(result, type.shape, type.dtype, "result")
        except (InputError, TypeError) as error:
            raise ShapeError(f"{op.name}: its reference made a result that is not {type}: {error}") from error
        tensors.append(Tensor(data, type.shape, type.dtype, type.quant))
    return tensors


def attributes(op: Op, given: Mapping[str, Any]) -> Any:
    """The operator's attributes with these values, the others at their defaults.

    Raises:  InputError naming what is unknown, missing or of a wrong type
    """
    fields = {f.name: f for f in dataclasses.fields(op.attrs)}
    if unknown := [name for name in given if name not in fields]:
        known = ", ".join(fields) or "none"
        raise InputError(f"{op.name} has no attribute {safe_name(unknown[0])}; its attributes are {known}")
    needed = [name for name, f in fields.items() if f.default is f.default_factory is dataclasses.MISSING]
    if missing := [name for name in needed if name not in given]:
        raise InputError(f"{op.name} needs the attribute {missing[0]}")
    kinds = typing.get_type_hints(op.attrs)
    return op.attrs(**{name: _fitted(op, name, value, kinds[name]) for name, value in given.items()})


def _fitted(op: Op, name: str, value: Any, kind: Any) -> Any:
    """A value as an attribute holds it: words as enum members, lists as tuples, whole numbers as floats."""
    plain = typing.get_origin(kind) or kind
    if isinstance(value, list | tuple):
        value = tuple(tuple(item) if isinstance(item, list) else item for item in value)
    if not isinstance(plain, type) or plain is types.UnionType:
        return value
    try:
        if issubclass(plain, enum.StrEnum):
            return plain(value)
    except ValueError:
        words = ", ".join(map(str, getattr(plain, "__members__", {}).values()))
        raise InputError(f"{op.name}: {name} is {value!r}, must be one of {words}") from None
    if plain is float and type(value) is int:
        return float(value)
    if not isinstance(value, plain) or (plain is not bool and isinstance(value, bool)):
        raise InputError(f"{op.name}: {name} is {value!r}, needs {plain.__name__}")
    return value
