"""TFLite → graph: every operator through its converter, every obstacle collected before one error.

A converter is a row of a family's table. Shapes come from the operators' own inference; the shapes in
the file are hints for inputs only, as an input's size may be bound to another one at load.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from webinfer.errors import LimitError, ModelFormatError, ShapeError, UnsupportedOpError
from webinfer.graph.ir import Graph, Node, TensorType, Value
from webinfer.graph.printer import safe_name
from webinfer.importers.tflite import (
    blocks,
    control,
    custom,
    elementwise,
    movement,
    products,
    recurrent,
    reductions,
    windows,
)
from webinfer.importers.tflite.model import OperatorInfo, TensorInfo, check_bytes, read_subgraphs
from webinfer.importers.tflite.operation import MAX_CONVERTED, QUANTIZED, Conversion, Model, Operation, Refusal, Row
from webinfer.importers.tflite.schema import VERSIONS
from webinfer.ops import elementwise as ew

CONVERTERS: dict[str, Row] = {
    **blocks.CONVERTERS, **control.CONVERTERS, **elementwise.CONVERTERS, **movement.CONVERTERS, **products.CONVERTERS,
    **recurrent.CONVERTERS, **reductions.CONVERTERS, **windows.CONVERTERS,
}  # fmt: skip


def read_tflite(data: memoryview, name: str, shapes: Mapping[str, Sequence[int]]) -> Graph:
    """The model's first subgraph. `shapes` binds the sizes of inputs by name.

    Raises:  ModelFormatError if the file breaks a rule; UnsupportedOpError listing everything that is
             not supported; ShapeError if `shapes` does not fit the model; LimitError for absurd sizes.
    """
    model = Model(read_subgraphs(data, name), Graph(name, [], [], []), _run)
    conversion = Conversion(model, 0, [None] * len(model.subgraphs[0].tensors))
    problems = _Problems()
    _add_inputs(conversion, shapes, problems)
    for info in conversion.subgraph.operators:
        _convert(info, conversion, problems)
    if problems.found:
        raise UnsupportedOpError(problems.lines())
    _add_outputs(conversion)
    return model.graph


def _run(model: Model, number: int, inputs: list[Value]) -> list[Value]:
    """The outputs of a subgraph: a loop's condition or body, or a branch."""
    conversion = Conversion(model, number, [None] * len(model.subgraphs[number].tensors))
    for index, value in zip(conversion.subgraph.inputs, inputs, strict=True):
        conversion.values[index] = value
    problems = _Problems()
    for info in conversion.subgraph.operators:
        _convert(info, conversion, problems)
    if problems.found:
        raise Refusal(*(f"subgraph {number}: {line}" for line in problems.lines()))
    return [_reader(conversion, index).value(0) for index in conversion.subgraph.outputs]


def _reader(conversion: Conversion, index: int) -> Operation:
    """An operator that reads one tensor: how an output gets its value, which may be a constant."""
    return Operation(OperatorInfo(-1, "output", False, 1, (index,), (), (), None, memoryview(b"")), conversion, "")


class _Problems:
    """What is not supported, each thing once with the operators that need it."""

    def __init__(self) -> None:
        self.found: dict[str, list[int]] = {}
        self.tainted: set[int] = set()  # tensors whose type is a guess, as their writer is not supported

    def add(self, info: OperatorInfo, reason: str) -> None:
        self.found.setdefault(f"{safe_name(info.name)}: {reason}", []).append(info.index)
        self.tainted.update(info.outputs)

    def lines(self) -> list[str]:
        return [f"{what} ({_places(indices)})" for what, indices in self.found.items()]


def _places(indices: list[int]) -> str:
    shown = ", ".join(map(str, indices[:5]))
    more = f" and {len(indices) - 5} more" if len(indices) > 5 else ""
    return f"operator{'s' if len(indices) > 1 else ''} {shown}{more}"


def _convert(info: OperatorInfo, conversion: Conversion, problems: _Problems) -> None:
    conversion.model.operators_left -= 1
    if conversion.model.operators_left < 0:
        raise LimitError("operators to read, loops unrolled", MAX_CONVERTED + 1, MAX_CONVERTED, "use a smaller model")
    row = custom.converter(info.name) if info.custom else CONVERTERS.get(info.name)
    guessed = not problems.tainted.isdisjoint(info.inputs)
    obstacle = _obstacle(info)
    if row is None or obstacle:
        problems.add(info, obstacle)
    else:
        operation = Operation(info, conversion, row[1])
        try:
            produced = row[0](operation)
            _bind(operation, [produced] if isinstance(produced, Value) else list(produced), conversion)
        except Refusal as refusal:
            if guessed:
                problems.tainted.update(info.outputs)
            else:
                for reason in refusal.reasons:
                    problems.add(info, reason)
        except (ModelFormatError, ShapeError) as error:
            if not guessed:
                raise _located(error, info, conversion.model.graph.name) from error
            problems.tainted.update(info.outputs)
    for index in info.outputs:
        if conversion.values[index] is None:  # a stand-in, so that what follows is looked at too
            conversion.values[index] = _declared(conversion.subgraph.tensors[index])


def _obstacle(info: OperatorInfo) -> str:
    """Why no converter can be asked, or nothing."""
    if info.custom:
        return "" if custom.converter(info.name) else "a custom operator; register_operator can add it"
    if info.name not in CONVERTERS:
        return "not supported"
    newest = VERSIONS.get(info.name, 1)
    return "" if 1 <= info.version <= newest else f"version {info.version}; known are versions up to {newest}"


def _located(error: Exception, info: OperatorInfo, name: str) -> ModelFormatError:
    text = str(error)
    return ModelFormatError(f"{name}: {text}" if text.startswith("operator") else f"{name}: {info}: {text}")


def _declared(tensor: TensorInfo) -> Value:
    kind = TensorType(tensor.shape) if tensor.dtype is None else TensorType(tensor.shape, tensor.dtype, tensor.quant)
    return Value(tensor.name, kind)


def _bind(operation: Operation, produced: list[Value], conversion: Conversion) -> None:
    """Makes the results of an operator the values of its output tensors."""
    info = operation.info
    if len(produced) < len(info.outputs):
        raise ModelFormatError(f"{info}: {len(info.outputs)} outputs are listed, the operator has {len(produced)}")
    made = operation.made()
    for i, (index, value) in enumerate(zip(info.outputs, produced, strict=False)):
        tensor, declared = conversion.subgraph.tensors[index], operation.declared(i)
        if value.type.dtype is not declared.dtype:
            raise ModelFormatError(
                f"{info}: output {i} is declared {declared.dtype}, its inputs make {value.type.dtype}"
            )
        _check_scale(operation, value, declared)
        if value in made:
            value.name = tensor.name
        conversion.values[index] = value


def _check_scale(operation: Operation, value: Value, declared: TensorType) -> None:
    """Operators that only move elements must not change what the stored numbers mean."""
    mine, theirs = value.type.quant, declared.quant
    if declared.dtype not in QUANTIZED or mine is None or theirs is None or mine == theirs:
        return
    same = len(mine.scales) == len(theirs.scales) and mine.zero_points == theirs.zero_points
    if not same or not all(math.isclose(p, q, rel_tol=1e-5) for p, q in zip(mine.scales, theirs.scales, strict=True)):
        operation.refuse("an output whose scale differs from its input's")


def _add_inputs(conversion: Conversion, shapes: Mapping[str, Sequence[int]], problems: _Problems) -> None:
    subgraph = conversion.subgraph
    tensors = [subgraph.tensors[i] for i in subgraph.inputs]
    names = unique_names([t.name or f"input_{k}" for k, t in enumerate(tensors)])
    unknown = sorted(set(shapes) - set(names))
    if unknown:
        raise ShapeError(f"sizes are given for {unknown}; the model's inputs are {names}")
    for tensor, name in zip(tensors, names, strict=True):
        shape = _bound_shape(tensor, name, shapes.get(name))
        value = _declared(tensor)
        value.name, value.type = name, TensorType(shape, value.type.dtype, value.type.quant)
        conversion.values[tensor.index] = value
        conversion.model.graph.inputs.append(value)
        if tensor.dtype is None:
            problems.found.setdefault(f"input {safe_name(name)}: type {tensor.type_name}", []).append(0)


def _bound_shape(tensor: TensorInfo, name: str, wanted: Sequence[int] | None) -> tuple[int, ...]:
    """The shape that an input gets: the file's, or the wanted one if the file leaves those sizes open."""
    if wanted is None:
        return tensor.shape
    shape = tuple(map(int, wanted))
    fixed = tensor.signature if -1 in tensor.signature else (-1,) * len(tensor.shape)
    if len(shape) != len(fixed) or any(d < 1 or s not in (-1, d) for d, s in zip(shape, fixed, strict=True)):
        allowed = ", ".join("any" if s == -1 else str(s) for s in fixed)
        raise ShapeError(f"input {name!r} cannot have shape {shape}; the model allows ({allowed})")
    check_bytes(shape, tensor.dtype, f"input {name!r}")
    return shape


def _add_outputs(conversion: Conversion) -> None:
    """Every output is a value of its own that carries the tensor's name."""
    graph, subgraph = conversion.model.graph, conversion.subgraph
    produced = {value for node in graph.nodes for value in node.outputs}
    names = unique_names([subgraph.tensors[i].name or f"output_{k}" for k, i in enumerate(subgraph.outputs)])
    taken: set[Value] = set()
    for index, name in zip(subgraph.outputs, names, strict=True):
        value = conversion.values[index]
        if value is None:  # a constant that no operator reads
            value = _reader(conversion, index).value(0)
        if value not in produced or value in taken or value.name != subgraph.tensors[index].name:
            copy = Value(name, value.type)
            attrs = ew.UnaryAttrs()
            graph.nodes.append(Node(ew.IDENTITY, [value], [copy], attrs, safe_name(name)))
            value = copy
        value.name = name
        taken.add(value)
        graph.outputs.append(value)


def unique_names(names: list[str]) -> list[str]:
    """The names themselves where they differ, else with a number behind."""
    used: dict[str, int] = {}
    result = []
    for name in names:
        unique = name
        while unique in used:
            used[name] += 1
            unique = f"{name}_{used[name]}"
        used[unique] = 0
        result.append(unique)
    return result
