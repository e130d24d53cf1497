"""Layers of Keras → graph: the table of all layers, and the walk over models and the models in them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from webinfer.dtypes import DType
from webinfer.graph.ir import Graph, TensorType, Value
from webinfer.graph.printer import safe_name
from webinfer.importers.core.operation import checked, convert_all
from webinfer.importers.core.partial_evaluation import DataDependentValue, KnownValues
from webinfer.importers.core.problems import Problems, Refusal
from webinfer.importers.core.writer import GraphWriter, Shapes, check_names, unique_names
from webinfer.importers.keras import (
    attention,
    conv,
    conv_recurrent,
    elementwise,
    movement,
    preprocessing,
    recurrent,
    volumes,
)
from webinfer.importers.keras.model import MODELS, LayerInfo, ModelInfo, Reference, read_model, top_model
from webinfer.importers.keras.operation import Context, Convert, Operation, Path, Weights
from webinfer.importers.tfjs.model import damaged
from webinfer.importers.tfjs.open_sizes import Sizes, bound, left_open, shown
from webinfer.importers.tfjs.order import in_order
from webinfer.importers.tfjs.weights import External, read_weights
from webinfer.ops import elementwise as ew

# Layers that let pass which steps count.
_MASKED = {
    *elementwise.JOINED, "Activation", "BatchNormalization", "Bidirectional", "Concatenate", "Dense", "Dropout", "ELU",
    "GaussianNoise", "LayerNormalization", "LeakyReLU", "PReLU", "ReLU", "SpatialDropout1D", "ThresholdedReLU",
    "TimeDistributed",
}  # fmt: skip
_WHOLE = ("int8", "uint8", "int16", "uint16", "int32", "int64")


def read_layers(
    described: Mapping[str, Any], name: str, shapes: Shapes, external: External | None = None,
    known_values: KnownValues | None = None,
) -> Graph:  # fmt: skip
    """The graph of a model.json with layers. `shapes` binds the sizes of inputs by name; `external` are the weights.

    An open first axis is a batch, of one unless `shapes` says otherwise.

    Raises:  ModelFormatError if a rule is broken; UnsupportedOpError listing everything that is not supported;
             ShapeError if `shapes` does not fit; OpenSizes if it leaves a size open; LimitError for absurd sizes;
             with a known_values, DataDependentValue
    """
    with checked(name):
        kind, config = top_model(described)
        if kind not in MODELS:
            damaged(f"its class is {safe_name(kind)}, needs one of {', '.join(MODELS)}")
        model = read_model(kind, config)
        weights = Weights(*read_weights(described, external or {}))
        context = Context(GraphWriter(name, known_values=known_values), weights, CONVERTERS)
        problems = Problems(context.guessed)
        inputs = _inputs(context.writer, model, shapes, problems)
        own = str(config.get("name") or "") if isinstance(config, dict) else ""
        try:
            results = _walk(context, model, inputs, (own,), problems)
        except DataDependentValue as unknown:
            unknown.outputs = _declared(model)
            raise
        problems.check()
        names = unique_names([reference[0] for reference in model.outputs])
        return context.writer.finish([(n, n, v) for n, v in zip(names, results, strict=True)])


def _key(reference: Reference) -> str:
    return f"{_call(reference)}:{reference[2]}"


def _call(reference: Reference) -> str:
    return f"{reference[0]}:{reference[1]}"


def _walk(
    context: Context, model: ModelInfo, inputs: Sequence[Value], path: Path, problems: Problems
) -> list[Value]:  # fmt: skip
    """The outputs of a model, with these values as its inputs."""
    if len(inputs) != len(model.inputs):
        damaged(f"model {safe_name('/'.join(path))} reads {len(model.inputs)} values, is given {len(inputs)}")
    scope = {_key(reference): value for reference, value in zip(model.inputs, inputs, strict=True)}
    calls = {f"{name}:{i}": (layer, call) for name, layer in model.layers.items() for i, call in enumerate(layer.calls)}
    named = {f"{name}:{i}": each for name, layer in model.layers.items() for i, each in enumerate(layer.named)}
    calls |= {f"{name}:0": (model.layers[name], []) for name, *_ in model.inputs if name in model.layers}
    outputs: dict[str, dict[str, int]] = {}  # keys that are read, by call
    for _, call in (*calls.values(), (None, model.outputs)):
        for reference in call:
            outputs.setdefault(_call(reference), {})[_key(reference)] = reference[2]
    given = {name for name, *_ in model.inputs}
    missing = sorted(outputs.keys() - calls.keys())
    if missing:
        damaged(f"{safe_name(missing[0])} is read, and no such call of a layer is there")
    before = {name: [_call(reference) for reference in call] for name, (_, call) in calls.items()}
    ends = [_call(reference) for reference in model.outputs]

    def steps() -> Iterator[tuple[Operation, Convert | None, str]]:
        for name in in_order(ends, before):
            layer, call = calls[name]
            if not call and layer.name in given:
                continue
            keys = [_key(reference) for reference in call]
            op = Operation(context, layer, (*path, layer.name), scope, keys, outputs.get(name, {}), named.get(name, ()))
            convert = CONVERTERS.get(layer.kind)
            yield op, convert and _masked(convert), "" if convert is not None else "not supported"

    convert_all(steps(), problems)
    return [scope.get(_key(reference)) or Value("missing", TensorType(())) for reference in model.outputs]


def _masked(convert: Convert) -> Convert:
    """The converter, which passes on which steps of its values count."""

    def run(op: Operation) -> Sequence[Value]:
        results = convert(op)
        results = [results] if isinstance(results, Value) else list(results)
        found = [mask for v in op.values() if (mask := op.context.masks.get(v)) is not None]
        if found and op.name in _MASKED and results[0] not in op.context.masks and results[0].type.rank > 2:
            mask = functools.reduce(lambda a, b: a if a is b else op.binary(ew.LOGICAL_AND, a, b), found)
            if results[0].type.shape[:2] != mask.type.shape:
                op.refuse("a mask")
            op.context.masks[results[0]] = mask
        return results

    return run


def _nested(op: Operation) -> list[Value]:
    """A model as a layer."""
    inside = Problems(op.context.guessed)
    with op.writer.nested(op.what):
        found = op.context.models.get(id(op.config)) or (op.config, read_model(op.name, op.config))
        _, model = op.context.models[id(op.config)] = found
        for _ in model.layers:
            op.writer.count_operator()
        results = _walk(op.context, model, op.values(), op.path, inside)
    if lines := inside.lines():
        raise Refusal(*lines)
    return results


def _inputs(writer: GraphWriter, model: ModelInfo, shapes: Shapes, problems: Problems) -> list[Value]:
    layers = [model.layers.get(name) or damaged(f"no layer {safe_name(name)}") for name, *_ in model.inputs]
    names = unique_names([layer.name for layer in layers])
    check_names(shapes, names, writer.known_values)
    listed, unbound = list[Value](), list[str]()
    for name, layer in zip(names, layers, strict=True):
        dtype, allowed = _dtype(layer, problems), _sizes(layer)
        shape = bound(name, allowed, allowed, shapes, dtype)
        if shape is None:
            unbound.append(f"{safe_name(name)} ({', '.join(map(str, shown(allowed)))})")
        listed.append(Value(name, TensorType(shown(allowed) if shape is None else shape, dtype)))
    if unbound:
        raise left_open(writer.graph.name, unbound, names[0], listed, _declared(model))
    writer.graph.inputs += listed
    return listed


def _declared(model: ModelInfo) -> list[Value]:
    """The outputs, of whose sizes the file says nothing."""
    return [Value(reference[0], TensorType(())) for reference in model.outputs]


def _dtype(layer: LayerInfo, problems: Problems) -> DType:
    """The element type of an input: a word, or Keras 3's object with one."""
    found = layer.config.get("dtype")
    if isinstance(found, dict):
        found = (found.get("config") or {}).get("name")
    word = str(found or "float32")
    if word == "string":
        problems.add(f"input {safe_name(layer.name)}: type string")
    return DType.INT32 if word in _WHOLE else DType.BOOL if word == "bool" else DType.FLOAT32


def _sizes(layer: LayerInfo) -> Sizes:
    """The shape that an input layer says, -1 for open sizes; None if it says none."""
    found = layer.config.get("batch_shape") or layer.config.get("batch_input_shape")
    if found is None:
        return None
    sizes = tuple(-1 if d is None else d for d in found)
    if any(type(d) is not int or d < -1 for d in sizes):
        damaged(f"input {safe_name(layer.name)} has shape {str(found)[:80]}")
    return sizes


CONVERTERS: dict[str, Convert] = {
    **dict.fromkeys(MODELS, _nested),
    **attention.CONVERTERS,
    **conv.CONVERTERS,
    **conv_recurrent.CONVERTERS,
    **elementwise.CONVERTERS,
    **movement.CONVERTERS,
    **preprocessing.CONVERTERS,
    **recurrent.CONVERTERS,
    **volumes.CONVERTERS,
}
