"""TFLite → graph: the table of all operators, and the walk over a file's subgraphs.

A converter is a row of a family's table. Shapes come from the operators' own inference; the shapes in
the file are hints for inputs only, as an input's size may be bound to another one at load.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from webinfer.errors import InputError, UnsupportedOpError
from webinfer.graph.ir import Graph, TensorType, Value
from webinfer.graph.printer import safe_name
from webinfer.importers.core.operation import convert_all
from webinfer.importers.core.partial_evaluation import DataDependentValue, KnownValues
from webinfer.importers.core.problems import Problems, Refusal
from webinfer.importers.core.writer import GraphWriter, Shapes, bound_shape, check_names, unique_names
from webinfer.importers.tflite import (
    control,
    conv,
    custom,
    elementwise,
    gather,
    matmul,
    movement,
    noise,
    pattern,
    pool,
    recurrent,
    reduce,
    resize,
    scan,
    segments,
    softmax,
    spectral,
    suppression,
    svdf,
    variables,
    volumes,
    windows,
)
from webinfer.importers.tflite.model import OperatorInfo, SignatureInfo, TensorInfo, read_signatures, read_subgraphs
from webinfer.importers.tflite.operation import Conversion, Convert, Model, Operation, Row, declared_value
from webinfer.importers.tflite.schema import VERSIONS

CONVERTERS: dict[str, Row] = {
    **control.CONVERTERS, **conv.CONVERTERS, **elementwise.CONVERTERS, **gather.CONVERTERS, **matmul.CONVERTERS,
    **movement.CONVERTERS, **noise.CONVERTERS, **pattern.CONVERTERS, **pool.CONVERTERS, **recurrent.CONVERTERS,
    **reduce.CONVERTERS, **resize.CONVERTERS, **scan.CONVERTERS, **segments.CONVERTERS, **softmax.CONVERTERS,
    **spectral.CONVERTERS, **suppression.CONVERTERS, **svdf.CONVERTERS,
    **variables.CONVERTERS, **volumes.CONVERTERS, **windows.CONVERTERS,
}  # fmt: skip


_NOTHING = memoryview(b"")


def read_tflite(
    data: memoryview, name: str, shapes: Shapes, signature: str | None = None, known_values: KnownValues | None = None
) -> Graph:
    """The model's first subgraph, or that of a signature. `shapes` binds the sizes of inputs by name.

    With a signature, inputs and outputs have the names that it gives them.

    Raises:  ModelFormatError if the file breaks a rule; UnsupportedOpError listing everything that is
             not supported; ShapeError if `shapes` does not fit the model; LimitError for absurd sizes;
             InputError if there is no such signature; with a known_values, DataDependentValue
    """
    subgraphs = read_subgraphs(data, name)
    called = _signature(data, name, signature)
    model = Model(
        subgraphs, GraphWriter(name, known_values=known_values), _run, assigned=variables.assigned_variables(subgraphs)
    )
    conversion, problems = Conversion(model, called.subgraph), Problems()
    _add_inputs(conversion, called.inputs, shapes, problems)
    tensors = conversion.subgraph.tensors
    outputs = tuple(called.outputs.values()) if signature is not None else conversion.subgraph.outputs
    names = list(called.outputs) or [tensors[i].name or f"output_{k}" for k, i in enumerate(outputs)]
    names = unique_names(names)
    try:
        convert_all(_steps(conversion), problems)
        problems.check()
        values = _outputs(conversion, outputs)
    except Refusal as refusal:
        raise UnsupportedOpError([f"an output of the model: {reason}" for reason in refusal.reasons]) from refusal
    except DataDependentValue as unknown:
        unknown.outputs = [_declared(tensors[i], n) for i, n in zip(outputs, names, strict=True)]
        raise
    kinds = {n: kind for n, i in zip(names, outputs, strict=True) if (kind := tensors[i].kind) is not None}
    return model.writer.finish([(n, tensors[i].name, v) for n, i, v in zip(names, outputs, values, strict=True)], kinds)


def _declared(tensor: TensorInfo, name: str) -> Value:
    """What the file says of an output whose size is known at run time only."""
    value = declared_value(tensor)
    sizes: Any = tuple("?" if d < 0 else d for d in tensor.signature or tensor.shape)
    value.name, value.type = name, TensorType(sizes, tensor.kind or value.type.dtype, value.type.quant)
    return value


def _signature(data: memoryview, name: str, wanted: str | None) -> SignatureInfo:
    if wanted is None:
        return SignatureInfo(0, {}, {})
    known = read_signatures(data, name)
    if wanted not in known:
        raise InputError(f"{name!r} has no signature {wanted!r}; it has {', '.join(map(safe_name, known)) or 'none'}")
    return known[wanted]


def _run(model: Model, number: int, inputs: list[Value]) -> list[Value]:
    """The outputs of a subgraph: a loop's condition or body, or a branch."""
    conversion, problems = Conversion(model, number), Problems()
    conversion.values.update(zip(conversion.subgraph.inputs, inputs, strict=True))
    convert_all(_steps(conversion), problems)
    if lines := problems.lines():
        raise Refusal(*(f"subgraph {number}: {line}" for line in lines))
    return _outputs(conversion, conversion.subgraph.outputs)


def _outputs(conversion: Conversion, outputs: Sequence[int]) -> list[Value]:
    """The values of a subgraph's outputs. An operator that reads one finds constants too."""
    infos = [OperatorInfo(-1, "output", False, 1, (i,), (), (), None, _NOTHING) for i in outputs]
    return [Operation(info, conversion, "").value(0) for info in infos]


def _steps(conversion: Conversion) -> Iterator[tuple[Operation, Convert | None, str]]:
    for info in conversion.subgraph.operators:
        row = custom.converter(info.name) if info.custom else CONVERTERS.get(info.name)
        convert, kind = row or (None, "")
        yield Operation(info, conversion, kind), convert, _obstacle(info, row)


def _obstacle(info: OperatorInfo, row: Row | None) -> str:
    """Why no converter can be asked, or nothing."""
    if row is None:
        return "a custom operator; register_operator can add it" if info.custom else "not supported"
    if info.custom:
        return ""
    newest = VERSIONS.get(info.name, 1)
    return "" if 1 <= info.version <= newest else f"version {info.version}; known are versions up to {newest}"


def _add_inputs(conversion: Conversion, called: Mapping[int, str], shapes: Shapes, problems: Problems) -> None:
    tensors = [conversion.subgraph.tensors[i] for i in conversion.subgraph.inputs]
    names = unique_names([called.get(t.index) or t.name or f"input_{k}" for k, t in enumerate(tensors)])
    known_values = conversion.model.writer.known_values
    check_names(shapes, names, known_values)
    for tensor, name in zip(tensors, names, strict=True):
        fixed = tensor.shape if known_values is not None and known_values.only_open else (-1,) * len(tensor.shape)
        allowed = tensor.signature if -1 in tensor.signature else fixed
        shape = bound_shape(name, tensor.shape, allowed, shapes.get(name), tensor.dtype)
        value = declared_value(tensor)
        value.name, value.type = name, TensorType(shape, value.type.dtype, value.type.quant)
        conversion.values[tensor.index] = conversion.model.writer.typed(value, tensor.kind or value.type.dtype)
        conversion.model.writer.graph.inputs.append(value)
        if tensor.dtype is None:
            problems.add(f"input {safe_name(name)}: type {tensor.type_name}", 0)
