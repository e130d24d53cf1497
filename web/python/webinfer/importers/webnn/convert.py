"""WebNN descriptions → graph: the table of all operators, and the walk over a description."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webinfer.errors import ModelFormatError, UnsupportedOpError
from webinfer.graph.ir import Constant, Graph, TensorType, Value
from webinfer.importers.core.limits import MAX_OPERATORS, MAX_RANK, MAX_TENSOR_BYTES, within
from webinfer.importers.core.operation import WRONG_ARGUMENTS, convert_all
from webinfer.importers.core.problems import Problems
from webinfer.importers.core.steps import pack
from webinfer.importers.core.writer import GraphWriter, Shapes, bound_shape, check_names
from webinfer.importers.webnn import (
    conv,
    elementwise,
    gather,
    matmul,
    movement,
    normalization,
    pattern,
    pool,
    recurrent,
    reduce,
    resize,
    scan,
    softmax,
)
from webinfer.importers.webnn.operation import DTYPES, Convert, Operation
from webinfer.packing import to_inner

CONVERTERS: dict[str, Convert] = {
    **conv.CONVERTERS, **elementwise.CONVERTERS, **gather.CONVERTERS, **matmul.CONVERTERS, **movement.CONVERTERS,
    **normalization.CONVERTERS, **pattern.CONVERTERS, **pool.CONVERTERS, **recurrent.CONVERTERS, **reduce.CONVERTERS,
    **resize.CONVERTERS, **scan.CONVERTERS, **softmax.CONVERTERS,
}  # fmt: skip


def read_graph(description: Mapping[str, Any], name: str = "webnn", shapes: Shapes | None = None) -> Graph:
    """The graph of a WebNN description {inputs, operators, expectedOutputs or outputs}.

    Raises:  ModelFormatError if names, shapes or arguments do not fit; LimitError; ShapeError if `shapes` does not;
             UnsupportedOpError listing every operator and type that is not supported
    """
    try:
        writer = _read(description, name)
    except WRONG_ARGUMENTS as error:  # a part of the description is not what it should be: a list, an object, a text
        raise ModelFormatError(f"{name}: not a WebNN description: {error}") from error
    check_names(shapes or {}, [value.name for value in writer.graph.inputs])
    for value in writer.graph.inputs:  # a description leaves no size open
        bound_shape(value.name, value.type.shape, value.type.shape, (shapes or {}).get(value.name), value.type.dtype)
    return writer.graph


def _read(description: Mapping[str, Any], name: str) -> GraphWriter:
    # Nothing is folded: what conformance cases describe is for the kernels to compute.
    writer, scope, problems = GraphWriter(name, folding=0, clamps_positions=True), dict[str, Value](), Problems()
    described = description.get("operators", ())
    if len(described) > MAX_OPERATORS:
        raise ModelFormatError(f"{len(described)} operators; the limit is {MAX_OPERATORS}")
    operations = [Operation(writer, scope, operator) for operator in described]
    for operation in operations:
        if operation.name not in CONVERTERS:
            problems.add(f"operator {operation.name}")
    for operand, details in (description.get("inputs") or {}).items():
        try:
            scope[operand] = _operand(writer, operand, details)
        except UnsupportedOpError as error:
            for problem in error.problems:
                problems.add(problem)
    problems.check()
    writer.graph.inputs += [value for value in scope.values() if not value.is_constant]
    convert_all(((operation, CONVERTERS[operation.name], "") for operation in operations), problems)
    problems.check()
    wanted = list(dict.fromkeys(description.get("outputs") or description.get("expectedOutputs") or {}))
    missing = [output for output in wanted if output not in scope]
    if missing:
        raise ModelFormatError(f"outputs {missing} are computed by no operator")
    writer.finish([(output, output, scope[output]) for output in wanted])
    return writer


def _operand(writer: GraphWriter, name: str, description: Mapping[str, Any]) -> Value:
    descriptor = description.get("descriptor")
    if not isinstance(descriptor, Mapping) or not isinstance(descriptor.get("shape"), Sequence):
        raise ModelFormatError(f"operand {name!r} has no descriptor with a shape")
    shape, dtype = descriptor["shape"], DTYPES.get(str(descriptor.get("dataType")))
    if dtype is None:
        raise UnsupportedOpError([f"operand {name!r}: data type {descriptor.get('dataType')}"])
    if any(not isinstance(d, int) or d < 1 for d in shape):
        raise ModelFormatError(f"operand {name!r}: dimensions {shape} must be positive integers")
    within(f"operand {name!r}: rank", len(shape), MAX_RANK, "use tensors of fewer dimensions")
    type = TensorType(tuple(shape), dtype.inner)
    constant = None
    if description.get("constant"):
        data = memoryview(_elements(name, description.get("data"), type))
        constant = Constant(to_inner(data, dtype), type.dtype)
    return writer.typed(Value(name, type, constant), dtype)


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
    within(f"constant {name!r} in bytes", type.nbytes, MAX_TENSOR_BYTES, "use a smaller constant")
    try:
        data = pack(numbers, type.dtype)
    except WRONG_ARGUMENTS as error:
        raise ModelFormatError(f"constant {name!r} is not made of numbers of type {type.dtype}: {error}") from error
    return data * type.size if len(numbers) == 1 else data
