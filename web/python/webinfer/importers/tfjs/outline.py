"""The outline of a TensorFlow.js model: a graph model's nodes, or a layers model's layers."""

from __future__ import annotations

import math
from base64 import b64decode
from collections.abc import Mapping
from typing import Any

from webinfer.importers.core.operation import checked
from webinfer.importers.core.outline import Outline, OutlineNode, OutlineValue, StoredWeight, shown, type_text
from webinfer.importers.keras.model import read_model as read_layers
from webinfer.importers.keras.model import top_model
from webinfer.importers.tfjs.model import NodeInfo, part, parts, read_model
from webinfer.importers.tfjs.operation import shape_of
from webinfer.importers.tfjs.weights import External, read_weights

_FACTS = ("format", "generatedBy", "convertedBy")


def outline(described: Mapping[str, Any], name: str) -> Outline:
    """The model's nodes as model.json lists them.

    Raises:  ModelFormatError if a rule is broken; LimitError
    """
    with checked(name):
        return _outline(described, name)


def weights(described: Mapping[str, Any], name: str, files: External) -> dict[str, StoredWeight]:
    """The weights that the manifest lists, by their keys in the outline; levels are made real.

    Raises:  ModelFormatError if the manifest breaks a rule, or a file beside the model is missing; LimitError
    """
    with checked(name):
        values, _ = read_weights(described, files)
    constants = {key: value.constant for key, value in values.items() if value.constant is not None}
    return {
        key: StoredWeight(one.data.cast("B"), one.stored)
        for key, one in constants.items()
        if isinstance(one.data, memoryview)
    }


def _outline(described: Mapping[str, Any], name: str) -> Outline:
    found = Outline()
    found.say(**{key: described.get(key) for key in _FACTS})
    _weights(described, found)
    topology = part(described, "modelTopology", dict, name)
    if "node" not in topology:
        _layers(described, found)
        return found
    graph = (model := read_model(described)).graph
    kinds = {key: _kind(node) for node in graph.nodes.values() for key in node.outputs}
    for key, kind in kinds.items():
        found.values.setdefault(key, OutlineValue(key, type_text(kind, shape_of(model.shapes.get(key)))))
    found.inputs, found.outputs = ([key for _, key in ends] for ends in (graph.inputs, graph.outputs))
    told = {key: name for name, key in (*graph.inputs, *graph.outputs)}
    for key in told:
        found.values[key] = OutlineValue(told[key], found.values[key].type, found.values[key].bytes)
    for node in graph.nodes.values():
        if node.op not in ("Const", "Placeholder"):
            attributes = {key: _shown(value) for key, value in node.attributes.items()}
            found.nodes.append(OutlineNode(node.op, node.name, node.inputs, node.outputs, attributes, node.index))
    return found


def _kind(node: NodeInfo) -> str:
    found = node.attributes.get("dtype") or node.attributes.get("T")
    return str(found.get("type", "")).removeprefix("DT_").lower() if isinstance(found, dict) else ""


def _shown(value: Any) -> str:
    """An attribute, which names the kind of its value; texts are base64."""
    kind = ""
    while isinstance(value, dict) and len(value) == 1:
        ((kind, value),) = value.items()
    if kind == "s":
        value = [b64decode(each).decode("utf-8", "replace") for each in (value if isinstance(value, list) else [value])]
        value = value[0] if len(value) == 1 else value
    return shown([] if value == {} else value)


def _weights(described: Mapping[str, Any], found: Outline) -> None:
    for group in parts(described, "weightsManifest", dict, "the model"):
        for weight in parts(group, "weights", dict, "weightsManifest"):
            name, shape = part(weight, "name", str, "a weight"), parts(weight, "shape", int, "a weight")
            stored = part(weight, "quantization", dict, "a weight").get("dtype") or weight.get("dtype")
            size = {"float16": 2, "uint16": 2, "uint8": 1, "bool": 1}.get(str(stored), 4)
            found.values[name] = OutlineValue(name, type_text(stored, shape), math.prod(shape) * size)


def _layers(described: Mapping[str, Any], found: Outline) -> None:
    model = read_layers(*top_model(described))
    for layer in model.layers.values():
        inputs = [name for call in layer.calls for name, *_ in call]
        found.values.setdefault(layer.name, OutlineValue(layer.name, ""))
        attributes = {k: shown(v) for k, v in layer.config.items() if v not in (None, layer.name, {}, [])}
        found.nodes.append(OutlineNode(layer.kind, layer.name, inputs, [layer.name], attributes, layer.index))
    found.inputs, found.outputs = ([name for name, *_ in ends] for ends in (model.inputs, model.outputs))
