"""What model.json says of a model of layers, checked: the layers, what each call of them reads, inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from webinfer.graph.printer import safe_name
from webinfer.importers.core.limits import MAX_DEPTH, MAX_OPERATORS, within
from webinfer.importers.tfjs.model import damaged, part, parts
from webinfer.lazy_dataclass import dataclass

SEQUENTIAL = "Sequential"
MODELS = ("Functional", "Model", SEQUENTIAL)  # class names
Reference = tuple[str, int, int]  # a layer, the number of one of its calls, and of a result
Arguments = list[tuple[str, int, Any]]  # by name: how many values it stands for, or with none of them what it is
_MAX_CALLS = 65536


@dataclass(slots=True)
class LayerInfo:
    """One layer. `calls` holds for each call what it reads, `named` what of that has a name, and other arguments."""

    index: int
    name: str
    kind: str
    config: Mapping[str, Any]
    calls: list[list[Reference]] = field(default_factory=list)
    named: list[Arguments] = field(default_factory=list)


@dataclass(slots=True)
class ModelInfo:
    """A model, which may be a layer of another one."""

    layers: dict[str, LayerInfo]
    inputs: list[Reference]
    outputs: list[Reference]


def top_model(described: Mapping[str, Any]) -> tuple[str, Any]:
    """Class name and configuration of the whole model.

    Raises:  ModelFormatError if there is none
    """
    topology = part(described, "modelTopology", dict, "the model")
    return layer_of(part(topology, "model_config", dict, "modelTopology") or topology)


def layer_of(described: Mapping[str, Any]) -> tuple[str, Any]:
    """Class name and configuration of a described layer or model."""
    config = described.get("config")
    if not isinstance(config, (dict, list)):
        damaged(f"a layer has the configuration {type(config).__name__}, must have an object")
    return part(described, "class_name", str, "a layer"), config


def read_model(kind: str, config: Any) -> ModelInfo:
    """The layers of a model and how they are connected.

    Raises:  ModelFormatError if a rule is broken; LimitError
    """
    listed = config if isinstance(config, list) else parts(config, "layers", dict, "a model")
    within("layers of a model", len(listed), MAX_OPERATORS)
    layers, chain = dict[str, LayerInfo](), kind == SEQUENTIAL
    last: Reference | None = None
    for index, each in enumerate(listed):
        if not isinstance(each, dict):
            damaged(f"layer {index} is a {type(each).__name__}, must be an object")
        own, settings = layer_of(each)
        name = str(each.get("name") or (settings.get("name") if isinstance(settings, dict) else None) or own)
        if name in layers:
            damaged(f"two layers are called {safe_name(name)}")
        layer = LayerInfo(index, name, own, {"layers": settings} if isinstance(settings, list) else settings)
        if chain and last is None and own != "InputLayer":
            first = LayerInfo(index, f"{name}_input", "InputLayer", _first_input(each, config))
            layers[first.name], last = first, (first.name, 0, 0)
        layers[name] = layer
        if not chain:
            nodes = part(each, "inbound_nodes", list, safe_name(name))
            layer.calls, layer.named = [references(call) for call in nodes], [arguments(call) for call in nodes]
        elif last is not None:
            layer.calls = [[last]]
        last = (name, 0, 0)
    if chain and last is not None:
        return ModelInfo(layers, [(next(iter(layers)), 0, 0)], [last])
    ends = [references(config[key]) for key in ("input_layers", "output_layers") if not chain and config.get(key)]
    if len(ends) != 2 or not all(ends):
        damaged("a model of layers has no layers, no inputs or no outputs")
    _count_from_zero([*(call for layer in layers.values() for call in layer.calls), *ends], layers)
    return ModelInfo(layers, *ends)


def _count_from_zero(calls: Sequence[list[Reference]], layers: Mapping[str, LayerInfo]) -> None:
    """Calls of models that are layers count from 1 in files of Keras 2: the model itself is call 0."""
    read: dict[str, set[int]] = {}
    for call in calls:
        for name, number, _ in call:
            read.setdefault(name, set()).add(number)
    moved = {
        name for name, found in read.items()
        if name in layers and layers[name].kind in MODELS and min(found) and max(found) >= len(layers[name].calls)
    }  # fmt: skip
    for call in calls:
        call[:] = [(name, number - (name in moved), result) for name, number, result in call]


def references(described: Any) -> list[Reference]:
    """What a call reads, in order, as Keras 2 (lists) or Keras 3 (objects with a history) writes it."""
    found, waiting = list[Reference](), [described]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            history = part(each, "config", dict, "a call").get("keras_history") if "class_name" in each else None
            waiting.extend(reversed(list(each.values())) if history is None else [history])
        elif isinstance(each, list):
            if len(each) > 2 and isinstance(each[0], str) and all(type(n) is int for n in each[1:3]):
                found.append((each[0], _counted(each[1]), _counted(each[2])))
                each = each[3:]
            waiting.extend(reversed(each))
    return found


def arguments(described: Any) -> Arguments:
    """The arguments of a call that have names, in order, which stand behind those that have none."""
    if isinstance(described, dict):
        found = described.get("kwargs")
    else:
        first = described[0] if isinstance(described, list) and described else None
        found = first[3] if isinstance(first, list) and len(first) > 3 else None
    return [(name, len(references(each)), each) for name, each in found.items()] if isinstance(found, dict) else []


def _counted(number: int) -> int:
    if not 0 <= number < _MAX_CALLS:
        damaged(f"a layer is called {number} times, or has so many results")
    return number


def _first_input(described: Mapping[str, Any], model: Any) -> Mapping[str, Any]:
    """The configuration of the input that a sequence of layers begins with, which its first layer says."""
    each: Any = described
    for _ in range(MAX_DEPTH):
        _, config = layer_of(each)
        settings = config if isinstance(config, dict) else {"layers": config}
        for key in ("batch_input_shape", "batch_shape"):
            if settings.get(key) is not None:
                return {"batch_shape": settings[key], "dtype": settings.get("dtype")}
        listed = parts(settings, "layers", dict, "a model")
        if not listed:
            break
        named = (references(settings.get("input_layers")) or [("", 0, 0)])[0][0]
        each = next((layer for layer in listed if layer.get("name") == named), listed[0])
    shape = model.get("build_input_shape") if isinstance(model, dict) else None
    return {"batch_shape": shape}
