"""TensorFlow.js → graph: the table of all operators, and the walk over a model's graph and functions."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from webinfer.errors import ModelFormatError, UnsupportedOpError
from webinfer.graph.ir import Graph, TensorType, Value
from webinfer.graph.printer import safe_name
from webinfer.importers.core.geometry import batch_to_space, space_to_batch
from webinfer.importers.core.operation import checked, convert_all
from webinfer.importers.core.partial_evaluation import DataDependentValue, KnownValues
from webinfer.importers.core.problems import Problems, Refusal
from webinfer.importers.core.spectral import Complex
from webinfer.importers.core.tensor_list import Listed
from webinfer.importers.core.writer import GraphWriter, Shapes, check_names, unique_names
from webinfer.importers.tfjs import (
    control,
    conv,
    elementwise,
    image,
    movement,
    noise,
    reduce,
    sparse,
    spectral,
    windows,
)
from webinfer.importers.tfjs.model import GraphInfo, ModelInfo, NodeInfo, read_model
from webinfer.importers.tfjs.open_sizes import bound, left_open, shown
from webinfer.importers.tfjs.operation import (
    DTYPES,
    Context,
    Convert,
    Dead,
    Operation,
    Scope,
    shape_of,
)
from webinfer.importers.tfjs.order import order_of, owner
from webinfer.importers.tfjs.weights import External, read_weights
from webinfer.importers.tflite import gather as tflite_gather
from webinfer.importers.tflite import movement as tflite_movement
from webinfer.importers.tflite import pattern as tflite_pattern

# Operators that TFLite has too, with the same inputs and options of the same names.
_TFLITE = {
    "BroadcastArgs": tflite_movement.CONVERTERS["BROADCAST_ARGS"],
    "BroadcastTo": tflite_pattern.CONVERTERS["BROADCAST_TO"],
    "ExpandDims": tflite_movement.CONVERTERS["EXPAND_DIMS"],
    "Fill": tflite_pattern.CONVERTERS["FILL"],
    "GatherNd": tflite_gather.CONVERTERS["GATHER_ND"],
    "Range": tflite_pattern.CONVERTERS["RANGE"],
    "Rank": tflite_pattern.CONVERTERS["RANK"],
    "Reshape": tflite_movement.CONVERTERS["RESHAPE"],
    "ReverseV2": tflite_movement.CONVERTERS["REVERSE_V2"],
    "ScatterNd": tflite_gather.CONVERTERS["SCATTER_ND"],
    "Slice": tflite_movement.CONVERTERS["SLICE"],
    "SparseToDense": tflite_gather.CONVERTERS["SPARSE_TO_DENSE"],
    "Squeeze": tflite_movement.CONVERTERS["SQUEEZE"],
    "Tile": tflite_movement.CONVERTERS["TILE"],
    "Transpose": tflite_movement.CONVERTERS["TRANSPOSE"],
}
CONVERTERS: dict[str, Convert] = {
    "BatchToSpaceND": batch_to_space, "SpaceToBatchND": space_to_batch,
    **{name: cast(Convert, row[0]) for name, row in _TFLITE.items()},
    **control.CONVERTERS, **conv.CONVERTERS, **elementwise.CONVERTERS, **image.CONVERTERS, **movement.CONVERTERS,
    **noise.CONVERTERS, **reduce.CONVERTERS, **sparse.CONVERTERS, **spectral.CONVERTERS, **windows.CONVERTERS,
}  # fmt: skip


def read_tfjs(
    described: Mapping[str, Any], name: str, shapes: Shapes, external: External | None = None,
    known_values: KnownValues | None = None,
) -> Graph:  # fmt: skip
    """The graph of a model.json. `shapes` binds the sizes of inputs by name; `external` are the files of weights.

    An open first axis is a batch, of one unless `shapes` says otherwise.

    Raises:  ModelFormatError if a rule is broken; UnsupportedOpError listing everything that is not supported;
             ShapeError if `shapes` does not fit; OpenSizes if it leaves a size open; LimitError for absurd sizes;
             with a known_values, DataDependentValue
    """
    with checked(name):
        model = read_model(described)
        weights, strange = read_weights(described, external or {})
        context = Context(
            GraphWriter(name, floats=True, known_values=known_values), weights, strange, model.functions, _run
        )
        walk, problems, scope = _Walk(context, model.graph), Problems(context.guessed), Scope()
        _add_inputs(walk, model, shapes, scope, problems)
        walk.given = set(scope)
        try:
            convert_all(walk.steps(walk.order.frames[()].nodes, scope), problems)
            problems.check()
            return _finish(walk, scope)
        except DataDependentValue as unknown:
            unknown.outputs = _declared(model)
            raise


class _Walk:
    """A graph or a function on its way into the graph that is written."""

    def __init__(self, context: Context, graph: GraphInfo) -> None:
        self.context, self.graph, self.order = context, graph, order_of(graph)
        self.given = {key for _, key in graph.inputs}  # nodes whose values come from outside

    def op_of(self, key: str) -> str:
        """The operator that makes a value."""
        return self.graph.nodes[owner(key, self.graph.nodes)].op

    def convert(self, nodes: Sequence[NodeInfo], scope: Scope) -> None:
        """Converts some of the nodes.

        Raises:  Refusal listing everything that is not supported; ModelFormatError; LimitError
        """
        problems = Problems(self.context.guessed)
        convert_all(self.steps(nodes, scope), problems)
        if lines := problems.lines():
            raise Refusal(*lines)

    def steps(self, nodes: Sequence[NodeInfo], scope: Scope) -> Iterator[tuple[Operation, Convert | None, str]]:
        """The nodes with their converters; what only an untaken way of a condition needs is left out."""
        for info in nodes:
            if info.name in self.given:
                continue
            keys = (*info.inputs, *info.controls) if self.context.branches else ()
            dead = [isinstance(scope.get(key), Dead) for key in keys]
            if all(dead[: len(info.inputs)]) and dead if info.op == "Merge" else any(dead):
                scope.update((key, Dead()) for key in info.outputs)
                continue
            convert = CONVERTERS.get(info.op)
            yield Operation(info, self.context, scope, self), convert, "" if convert is not None else "not supported"


def _run(context: Context, name: str, inputs: list[Value]) -> list[Value]:
    """The outputs of a function."""
    walk = context.walks.get(name)
    if walk is None:
        walk = context.walks[name] = _Walk(context, context.functions[name])
    given = [key for _, key in context.functions[name].inputs]
    if len(given) != len(inputs):
        raise ModelFormatError(f"function {safe_name(name)} has {len(given)} inputs, is given {len(inputs)}")
    scope: Scope = ChainMap(dict(zip(given, inputs, strict=True)))
    walk.convert(walk.order.frames[()].nodes, scope)
    return [_result(scope, key) for _, key in context.functions[name].outputs]


def _result(scope: Scope, key: str) -> Value:
    found = scope.get(key)
    if found is None or isinstance(found, Dead):
        raise ModelFormatError(f"the output {safe_name(key)} is computed by no node")
    return found


def _finish(walk: _Walk, scope: Scope) -> Graph:
    outputs = walk.graph.outputs
    values = [_result(scope, key) for _, key in outputs]
    for (name, _), value in zip(outputs, values, strict=True):
        if isinstance(value, (Complex, Listed)):
            raise UnsupportedOpError([f"output {safe_name(name)}, which is {type(value).__name__.lower()}"])
    names = unique_names([name for name, _ in outputs])
    return walk.context.writer.finish([(name, v.name, v) for name, v in zip(names, values, strict=True)])


def _add_inputs(walk: _Walk, model: ModelInfo, shapes: Shapes, scope: Scope, problems: Problems) -> None:
    told = model.shapes
    needed = {node.name for frame in walk.order.frames.values() for node in frame.nodes}
    inputs = [(n, key) for n, key in walk.graph.inputs if key in told or key in needed]
    names = unique_names([n for n, _ in inputs])
    check_names(shapes, names, walk.context.writer.known_values)
    unbound, listed = list[str](), list[Value]()
    for name, (_, key) in zip(names, inputs, strict=True):
        node = walk.graph.nodes[owner(key, walk.graph.nodes)]
        kind = str((node.attributes.get("dtype") or {}).get("type", "DT_FLOAT"))
        if kind not in DTYPES:
            problems.add(f"input {safe_name(name)}: type {safe_name(kind.removeprefix('DT_').lower())}")
            problems.guess((key,))
            continue
        own, usual = shape_of((node.attributes.get("shape") or {}).get("shape")), shape_of(told.get(key))
        allowed = usual if own is None else own
        shape = bound(name, allowed, usual, shapes, DTYPES[kind])
        if shape is None:
            sizes = "any rank" if allowed is None else ", ".join("?" if d < 0 else str(d) for d in allowed)
            unbound.append(f"{safe_name(name)} ({sizes})")
        value = Value(name, TensorType(shown(allowed) if shape is None else shape, DTYPES[kind]))
        listed.append(value)
        scope[key] = value
    if unbound:
        problems.check()
        raise left_open(walk.context.writer.graph.name, unbound, names[0], listed, _declared(model))
    walk.context.writer.graph.inputs += listed


def _declared(model: ModelInfo) -> list[Value]:
    """What the signature says of the outputs."""
    return [Value(name, TensorType(shown(shape_of(model.shapes.get(key))))) for name, key in model.graph.outputs]
