"""Walks a description, checks every name and number, and makes the graph."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from webinfer.errors import LimitError, ModelFormatError, ShapeError, UnsupportedOpError
from webinfer.graph.ir import Constant, Graph, TensorType, Value
from webinfer.importers.webnn.reader import DTYPES, Call, Reader, pack
from webinfer.importers.webnn.tables import OPERATORS

MAX_OPERATORS = 100_000
MAX_CONSTANT_BYTES = 2**31
# What arguments of a wrong type, sign or length lead to; all are the description's fault.
BAD_ARGUMENTS = (
    ShapeError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError, struct.error,
)  # fmt: skip


def _operand(name: str, description: Mapping[str, Any]) -> Value:
    descriptor = description.get("descriptor")
    if not isinstance(descriptor, Mapping) or not isinstance(descriptor.get("shape"), Sequence):
        raise ModelFormatError(f"operand {name!r} has no descriptor with a shape")
    shape, dtype = descriptor["shape"], DTYPES.get(str(descriptor.get("dataType")))
    if dtype is None:
        raise UnsupportedOpError([f"operand {name!r}: data type {descriptor.get('dataType')}"])
    if any(not isinstance(d, int) or d < 1 for d in shape):
        raise ModelFormatError(f"operand {name!r}: dimensions {shape} must be positive integers")
    type = TensorType(tuple(shape), dtype)
    if not description.get("constant"):
        return Value(name, type)
    return Value(name, type, Constant(memoryview(_elements(name, description.get("data"), type)), dtype))


def _elements(name: str, numbers: Any, type: TensorType) -> bytes:
    """A constant's bytes; a single number fills the whole shape."""
    if isinstance(numbers, (int, float)):
        numbers = [numbers]
    if not isinstance(numbers, Sequence):
        raise ModelFormatError(f"constant {name!r} has no data")
    if len(numbers) not in (1, type.size):
        raise ModelFormatError(
            f"constant {name!r} has {len(numbers)} numbers, its shape {type.shape} needs {type.size}"
        )
    if type.nbytes > MAX_CONSTANT_BYTES:
        raise LimitError(f"constant {name!r} in bytes", type.nbytes, MAX_CONSTANT_BYTES, "use a smaller constant")
    try:
        data = pack(numbers, type.dtype)
    except BAD_ARGUMENTS as error:
        raise ModelFormatError(f"constant {name!r} is not made of numbers of type {type.dtype}: {error}") from error
    return data * type.size if len(numbers) == 1 else data


def _call(operator: Mapping[str, Any]) -> Call:
    arguments: dict[str, Any] = {}
    for part in operator.get("arguments") or ():
        for key, value in (part or {}).items():
            if key == "options":
                arguments.update(value or {})
            else:
                arguments[key] = value
    outputs = operator.get("outputs")
    names = (outputs,) if isinstance(outputs, str) else tuple(outputs or ())
    if not names:
        raise ModelFormatError(f"operator {operator.get('name')!r} names no output")
    return Call(str(operator.get("name")), arguments, names)


def read_graph(description: Mapping[str, Any], name: str = "webnn") -> Graph:
    """The graph of a WebNN description {inputs, operators, expectedOutputs or outputs}.

    Raises:  ModelFormatError if names, shapes or arguments do not fit;
             UnsupportedOpError listing every operator and type that is not supported
    """
    calls = [_call(operator) for operator in description.get("operators", ())]
    if len(calls) > MAX_OPERATORS:
        raise ModelFormatError(f"{len(calls)} operators; the limit is {MAX_OPERATORS}")
    problems = [f"operator {n}" for n in dict.fromkeys(c.name for c in calls) if n not in OPERATORS]
    reader = Reader()
    for operand, described in (description.get("inputs") or {}).items():
        try:
            reader.values[operand] = _operand(operand, described)
        except UnsupportedOpError as error:
            problems += error.problems
    if problems:
        raise UnsupportedOpError(problems)
    inputs = [v for v in reader.values.values() if not v.is_constant]
    for call in calls:
        try:
            reader.read(call, OPERATORS[call.name])
        except BAD_ARGUMENTS as error:
            raise ModelFormatError(f"{call.name} -> {', '.join(call.outputs)}: {error}") from error
    wanted = description.get("outputs") or description.get("expectedOutputs") or {}
    missing = [output for output in wanted if output not in reader.values]
    if missing:
        raise ModelFormatError(f"outputs {missing} are computed by no operator")
    return Graph(name, inputs, [reader.values[output] for output in wanted], reader.nodes)
