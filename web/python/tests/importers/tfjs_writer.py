"""Writes small TensorFlow.js graph models: nodes and weights in, model.json and its shards out."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
KINDS = {"float32": "DT_FLOAT", "int32": "DT_INT32", "bool": "DT_BOOL"}


def attribute(value: Any) -> dict[str, Any]:
    """An attribute as the format writes it, by the type of its Python value; dictionaries are given as they are."""
    if isinstance(value, dict):
        return value
    if isinstance(value, bool):
        return {"b": value}
    if isinstance(value, int):
        return {"i": str(value)}
    if isinstance(value, float):
        return {"f": value}
    if isinstance(value, str):
        return {"type": value} if value.startswith("DT_") else {"s": base64.b64encode(value.encode()).decode()}
    if isinstance(value, tuple):
        return {"shape": {"dim": [{"size": str(d)} for d in value]}}
    if value and isinstance(value[0], str):
        return {"list": {"s": [base64.b64encode(word.encode()).decode() for word in value]}}
    return {"list": {"i": [str(n) for n in value]}}


def node(name: str, op: str, *inputs: str, **attributes: Any) -> dict[str, Any]:
    """One node."""
    return {"name": name, "op": op, "input": list(inputs), "attr": {k: attribute(v) for k, v in attributes.items()}}


def placeholder(name: str, shape: Sequence[int], dtype: str = "DT_FLOAT") -> dict[str, Any]:
    """An input; -1 leaves a size open."""
    return node(name, "Placeholder", dtype=dtype, shape=tuple(shape))


def model(
    nodes: Sequence[Mapping[str, Any]],
    weights: Mapping[str, Any] | None = None,
    quantized: Mapping[str, Mapping[str, Any]] | None = None,
    cuts: Sequence[int] = (),
    functions: Sequence[Mapping[str, Any]] = (),
    **more: Any,
) -> dict[str, bytes]:
    """The files of a model: model.json, and the weights' bytes in shards that end at `cuts`.

    Weights get Const nodes. `quantized` weights are arrays of levels with the quantisation that the manifest says.
    """
    entries, data = [], b""
    for name, array in (weights or {}).items():
        array = np.asarray(array)
        entry: dict[str, Any] = {"name": name, "shape": list(array.shape), "dtype": str(array.dtype)}
        if quantized and name in quantized:
            said = dict(quantized[name])
            entry |= {"dtype": said.pop("of", "float32"), "quantization": said}
        entries.append(entry)
        data += array.tobytes()
    ends = [*cuts, len(data)]
    shards = {f"shard{i}.bin": data[start:end] for i, (start, end) in enumerate(zip([0, *cuts], ends, strict=True))}
    constants = [node(name, "Const") for name in weights or {}]
    topology = {"node": [*constants, *nodes], "library": {"function": list(functions)}}
    manifest = [{"paths": list(shards), "weights": entries}]
    described = {"format": "graph-model", "modelTopology": topology, "weightsManifest": manifest, **more}
    return {"model.json": json.dumps(described).encode(), **shards}


def function(
    name: str, inputs: Sequence[str], nodes: Sequence[Mapping[str, Any]], outputs: Mapping[str, str]
) -> dict[str, Any]:
    """A function of the library; `outputs` are references to results of its nodes, by name."""
    signature = {
        "name": name, "inputArg": [{"name": i} for i in inputs], "outputArg": [{"name": o} for o in outputs],
    }  # fmt: skip
    return {"signature": signature, "nodeDef": list(nodes), "ret": dict(outputs)}


def calls(name: str) -> dict[str, Any]:
    """An attribute that names a function."""
    return {"func": {"name": name}}


def zipped(files: Mapping[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """A zip archive of the files."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", compression) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return held.getvalue()


def described(files: Mapping[str, bytes]) -> Any:
    """What a model's model.json says."""
    return json.loads(files["model.json"])


def layer(kind: str, name: str, /, *calls: Sequence[Any], **config: Any) -> dict[str, Any]:
    """One layer as Keras 2 writes it; each call lists what it reads: names, or (name, call, result)."""
    nodes = [[[*([r, 0, 0] if isinstance(r, str) else r), {}] for r in call] for call in calls]
    return {"class_name": kind, "name": name, "config": {"name": name, **config}, "inbound_nodes": nodes}


def layer3(kind: str, name: str, /, *calls: Sequence[Any], **config: Any) -> dict[str, Any]:
    """One layer as Keras 3 writes it."""
    nodes = []
    for call in calls:
        histories = [[r, 0, 0] if isinstance(r, str) else r for r in call]
        tensors: list[Any] = [
            {"class_name": "__keras_tensor__", "config": {"dtype": "float32", "keras_history": h}} for h in histories
        ]
        nodes.append({"args": tensors if len(tensors) == 1 else [tensors], "kwargs": {"training": False}})
    policy = {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "float32"}, "registered_name": None}
    return {
        "module": "keras.layers", "class_name": kind, "config": {"name": name, "dtype": policy, **config},
        "registered_name": None, "name": name, "inbound_nodes": nodes,
    }  # fmt: skip


def functional(layers: Sequence[Mapping[str, Any]], inputs: Sequence[Any], outputs: Sequence[Any]) -> dict[str, Any]:
    """A model of layers that are connected by name."""
    ends = [[[*([r, 0, 0] if isinstance(r, str) else r)] for r in refs] for refs in (inputs, outputs)]
    config = {"name": "model", "layers": list(layers), "input_layers": ends[0], "output_layers": ends[1]}
    return {"class_name": "Functional", "config": config}


def layers_model(described: Mapping[str, Any], weights: Mapping[str, Any] | None = None) -> dict[str, bytes]:
    """The files of a layers model."""
    held = model([], weights)
    manifest = json.loads(held["model.json"])["weightsManifest"]
    whole = {"format": "layers-model", "modelTopology": {"model_config": described}, "weightsManifest": manifest}
    return {**held, "model.json": json.dumps(whole).encode()}
