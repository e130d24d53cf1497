"""ONNX → graph: the walk over a file's graphs and functions."""

from __future__ import annotations

import functools
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from webinfer.dtypes import DType
from webinfer.errors import ModelFormatError, ShapeError, UnsupportedOpError
from webinfer.graph.dims import whole
from webinfer.graph.ir import Graph, TensorType, Value
from webinfer.graph.printer import safe_name
from webinfer.importers.core.limits import MAX_RANK, check_bytes, within
from webinfer.importers.core.narrow import narrowed
from webinfer.importers.core.operation import convert_all
from webinfer.importers.core.partial_evaluation import DataDependentValue, Key, KnownValues, OpenSizes
from webinfer.importers.core.problems import Problems, Refusal
from webinfer.importers.core.tensor_list import Listed
from webinfer.importers.core.writer import GraphWriter, Shapes, bound_shape, check_names
from webinfer.importers.onnx.families import CONVERTERS
from webinfer.importers.onnx.layouts import View
from webinfer.importers.onnx.model import GraphInfo, ModelInfo, NodeInfo, ValueInfo, plain_domain, read_file
from webinfer.importers.onnx.operation import (
    Attributes,
    Context,
    Convert,
    Operation,
    Scope,
    computed_values,
    scope_copy,
)
from webinfer.importers.onnx.tensors import DTYPES, External, constant_of, dtype_of

_ELSEWHERE = {  # domains whose operators no other runtime can have, and what helps
    "com.microsoft.nchwc": "optimised for one processor; save the model with ORT_ENABLE_EXTENDED, not ORT_ENABLE_ALL",
}
OLDEST, NEWEST = 7, 28  # opsets of ONNX itself
MAX_NAMES = 8  # inputs with open sizes that one error lists


def read_onnx(
    data: memoryview,
    name: str,
    shapes: Shapes,
    external: External | None = None,
    known_values: KnownValues | None = None,
) -> Graph:
    """The model's graph. `shapes` binds the sizes of inputs by name; `external` are files beside the model.

    Raises:  ModelFormatError if the file breaks a rule; UnsupportedOpError listing everything that is not supported;
             ShapeError if `shapes` does not fit; OpenSizes if it leaves a size open; LimitError for absurd sizes;
             with a known_values, DataDependentValue
    """
    model = _file(data, name, known_values)
    context = Context(
        model,
        GraphWriter(name, floats=True, known_values=known_values),
        external or {},
        _run,
        given_out=_given_out(model.graph),
    )
    problems = Problems(context.guessed)
    version = model.opsets.get("", 0)
    if model.opsets and "" in model.opsets and not OLDEST <= version <= NEWEST:
        problems.add(f"opset {version}; known: {OLDEST} to {NEWEST}")
        problems.check()
    scope: Scope = ChainMap()
    _add_constants(context, model.graph, scope, problems)
    _add_inputs(context, shapes, scope, problems)
    return _converted(context, scope, problems, 0)


def _given_out(graph: GraphInfo) -> frozenset[str]:
    """The names of the results, and of the values that results are slices of."""
    results = {info.name for info in graph.outputs}
    parts = (node for node in graph.nodes if node.op == "Slice" and node.inputs and node.outputs)
    return frozenset(results | {node.inputs[0] for node in parts if node.outputs[0] in results})


def _file(data: memoryview, name: str, known_values: KnownValues | None) -> ModelInfo:
    """The file's records, which are read once for all graphs that are made of a file part by part."""
    kept = {} if known_values is None else known_values.kept
    if kept.get("data") is not data.obj or kept["name"] != name:
        kept |= {"data": data.obj, "name": name, "model": read_file(data, name), "surveyed": False}
    model: ModelInfo = kept["model"]
    return model


def _converted(context: Context, scope: Scope, problems: Problems, first: int) -> Graph:
    """The graph, from the operator of number `first` on."""
    graph, known_values = context.model.graph, context.writer.known_values

    def stopped(number: int, mark: tuple[int, ...], unknown: DataDependentValue) -> bool:
        at = first + number
        progress = context.loops.get(graph.nodes[at].index)  # the turns that are written are not written again
        mark = mark if progress is None else progress.mark
        before, later = context.copied(context.writer.copied(mark)), _read_later(context.model, at, scope)
        kept = scope_copy(later, before.writer.graph.nodes)
        values = [*kept.values(), *(() if progress is None else progress.values())]
        unknown.live = [v for value in values for v in computed_values(value) if not v.is_constant]
        unknown.resume = functools.partial(_resumed, before, kept, at)
        return known_values is None or not known_values.kept.get("surveyed")  # once for a file is enough

    try:
        convert_all(_steps(context, graph, scope, {}, context.model.opsets, first), problems, stopped)
        problems.check()
        return _finish(context, scope)
    except DataDependentValue as unknown:
        if known_values is not None:
            known_values.kept["surveyed"] = True
        unknown.outputs = [_declared(info) for info in graph.outputs]
        raise


def _resumed(before: Context, scope: Scope, first: int, known: Mapping[Key, Any]) -> Graph:
    """As `_converted`, from what was read before that operator, which is left as it is."""
    context = before.copied(before.writer.copied(before.writer.mark()))
    assert context.writer.known_values is not None
    context.writer.known_values = replace(context.writer.known_values, known=known)
    return _converted(context, scope_copy(scope, context.writer.graph.nodes), Problems(context.guessed), first)


def _read_later(model: ModelInfo, first: int, scope: Scope) -> Scope:
    """Those values of a scope that operators from `first` on or outputs name."""
    if not model.last_reads:
        for place, node in enumerate(model.graph.nodes):
            model.last_reads |= dict.fromkeys(node.reads(), place)
        model.last_reads |= dict.fromkeys((info.name for info in model.graph.outputs), len(model.graph.nodes))
    last = model.last_reads
    return ChainMap({name: value for name, value in scope.items() if last.get(name, -1) >= first})


def _finish(context: Context, scope: Scope) -> Graph:
    graph = context.model.graph
    if not graph.outputs:
        raise ModelFormatError(f"{context.model.name}: the graph has no outputs")
    names = [info.name for info in graph.outputs]
    if len(set(names)) != len(names):
        raise ModelFormatError(f"{context.model.name}: two outputs have the same name")
    reader = Operation(NodeInfo(-1, op="output"), context, scope, 0, {})
    outputs, kinds = [], {info.name: DTYPES[info.kind] for info in graph.outputs if info.kind in DTYPES}
    for key in names:
        before = context.writer.position
        found = scope.get(key)
        if isinstance(found, Listed):
            raise UnsupportedOpError([f"output {safe_name(key)}: a sequence"])
        value = reader.named(key)
        if isinstance(found, View) and context.writer.position > before:
            value.name = key
        kind = kinds.get(key, value.type.dtype)
        if kind is DType.BFLOAT16 and context.writer.kind(value) is not kind and value.type.dtype is kind.inner:
            value = narrowed(reader, value, kind)
        outputs.append((key, key, value))
    return context.writer.finish(outputs, kinds)


def _run(context: Context, graph: GraphInfo, scope: Scope, given: Attributes, domain: str) -> list[Value]:
    """The outputs of a branch, of a loop's body or of a function; `given` are the attributes of the call."""
    problems, context = Problems(context.guessed), replace(context, is_whole=False)
    _add_constants(context, graph, scope, problems)
    opsets = {**context.model.opsets, **graph.opsets}
    convert_all(_steps(context, graph, scope, {**graph.defaults, **given}, opsets), problems)
    if lines := problems.lines():
        raise Refusal(*(f"graph {safe_name(graph.name or domain)}: {line}" for line in lines))
    missing = [info.name for info in graph.outputs if info.name not in scope]
    if problems.guessed(missing):
        raise Refusal
    if missing:
        raise ModelFormatError(f"outputs {missing} of graph {safe_name(graph.name)} are computed by no operator")
    return [scope[info.name] for info in graph.outputs]


def _steps(
    context: Context, graph: GraphInfo, scope: Scope, given: Attributes, opsets: Mapping[str, int], first: int = 0
) -> Iterator[tuple[Operation, Convert | None, str]]:
    for info in graph.nodes[first:] if first else graph.nodes:
        domain = plain_domain(info.domain)
        operation = Operation(info, context, scope, opsets.get(domain, 0) or opsets.get("", 0), given)
        function = context.model.functions.get((domain, info.op))
        convert = CONVERTERS.get(operation.name) if function is None else _call(function)
        yield operation, convert, "" if convert is not None else _ELSEWHERE.get(domain, "not supported")


def _call(function: GraphInfo) -> Convert:
    """The converter of a function of the file: its body, written in the place of the call."""

    def convert(op: Operation) -> list[Value]:
        found = [op.scope.get(name) if name else None for name in op.inputs]
        names = [info.name for info in function.inputs]
        if len(found) > len(names):
            op.fail(f"{len(found)} inputs for a function of {len(names)}")
        inner: Scope = ChainMap()
        for name, value in zip(names, found, strict=False):
            if value is not None:
                inner[name] = value
        with op.writer.called(op.what):
            return op.context.run(op.context, function, inner, op.attributes, op.name)

    return convert


def _add_constants(context: Context, graph: GraphInfo, scope: Scope, problems: Problems) -> None:
    if graph.sparse:
        problems.add("sparse initializers")
    for name, tensor in graph.tensors.items():
        try:
            scope[name] = context.writer.typed(constant_of(tensor, name, context.external), DTYPES[tensor.kind])
        except Refusal as refusal:
            problems.add(refusal.reasons[0])
            problems.guess((name,))


def _add_inputs(context: Context, shapes: Shapes, scope: Scope, problems: Problems) -> None:
    graph, name = context.model.graph, context.model.name
    infos = [info for info in graph.inputs if info.name not in graph.tensors]
    names = [info.name for info in infos]
    if len(set(names)) != len(names):
        raise ModelFormatError(f"{name}: two inputs have the same name")
    check_names(shapes, names, context.writer.known_values)
    sizes = _bound_names(infos, shapes)
    unbound: list[str] = []
    for info in infos:
        try:
            if info.container or not info.kind:
                raise Refusal(f"input {safe_name(info.name)}: a {info.container or 'value without a type'}")
            dtype = dtype_of(info.kind, f"input {safe_name(info.name)}")
        except Refusal as refusal:
            problems.add(refusal.reasons[0])
            problems.guess((info.name,))
            continue
        shape = _input_shape(info, dtype, shapes, sizes)
        if shape is None:
            unbound.append(_listed(info))
            continue
        scope[info.name] = context.writer.input(info.name, shape, dtype)
    if unbound:
        problems.check()
        more = f" and {len(unbound) - MAX_NAMES} more" if len(unbound) > MAX_NAMES else ""
        raise OpenSizes(
            f"{name}: the model leaves sizes of inputs open: {', '.join(unbound[:MAX_NAMES])}{more}; bind them with "
            f"`shapes`, for example shapes={{{infos[0].name!r}: (...)}}",
            [_declared(info, _input_shape(info, None, shapes, sizes)) for info in infos],
            [_declared(info) for info in graph.outputs],
        )


def _declared(info: ValueInfo, shape: tuple[int, ...] | None = None) -> Value:
    """What the file says of an input or an output; "?" stands for a size of which it says nothing."""
    sizes: Any = tuple(d if d != "" else "?" for d in info.shape or ()) if shape is None else shape
    try:
        return Value(info.name, TensorType(sizes, dtype_of(info.kind, "")))
    except Refusal:
        return Value(info.name, TensorType(sizes))


def _listed(info: ValueInfo) -> str:
    if info.shape is None:
        return f"{safe_name(info.name)} (no shape)"
    return f"{safe_name(info.name)} ({', '.join(safe_name(str(d)) if d != '' else '?' for d in info.shape)})"


def _bound_names(infos: list[ValueInfo], shapes: Shapes) -> dict[str, int]:
    """The sizes that names of dimensions get by what is given.

    Raises:  ShapeError if one name gets two sizes
    """
    sizes: dict[str, int] = {}
    for info in infos:
        wanted = shapes.get(info.name)
        if wanted is None or info.shape is None or len(wanted) != len(info.shape):
            continue
        for dimension, size in zip(info.shape, wanted, strict=True):
            if isinstance(dimension, str) and dimension and sizes.setdefault(dimension, whole(size)) != whole(size):
                raise ShapeError(f"size {dimension!r} is bound to {sizes[dimension]} and, by {info.name!r}, to {size}")
    return sizes


def _input_shape(
    info: ValueInfo, dtype: DType | None, shapes: Shapes, sizes: Mapping[str, int]
) -> tuple[int, ...] | None:
    """The shape that an input gets, or None if sizes are left open."""
    wanted = shapes.get(info.name)
    if info.shape is None:
        if wanted is None:
            return None
        within(f"input {safe_name(info.name)}: rank", len(wanted), MAX_RANK, "use tensors of fewer dimensions")
        return bound_shape(info.name, (), (-1,) * len(wanted), wanted, dtype)
    within(f"input {safe_name(info.name)}: rank", len(info.shape), MAX_RANK, "use tensors of fewer dimensions")
    known = [sizes.get(d, -1) if isinstance(d, str) else d for d in info.shape]
    if wanted is not None:
        return bound_shape(info.name, (), [d if isinstance(d, int) else -1 for d in info.shape], wanted, dtype)
    if -1 in known:
        return None
    check_bytes(known, dtype, f"input {safe_name(info.name)}")
    return tuple(known)
