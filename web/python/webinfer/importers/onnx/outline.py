"""The outline of an ONNX file."""

from __future__ import annotations

from typing import Any

from webinfer.importers.core.outline import Outline, OutlineNode, OutlineValue, StoredWeight, shown, type_text
from webinfer.importers.onnx.model import Attribute, GraphInfo, ModelInfo, Tensor, ValueInfo, read_file, value_info
from webinfer.importers.onnx.tensors import DTYPES, NAMES, External, constant_of
from webinfer.importers.readers.protobuf import BYTES, VARINT, fields, text
from webinfer.packing import file_bytes

_FACTS = {1: "IR_version", 2: "producer", 3: "producer_version", 4: "domain", 5: "model_version", 6: "description"}


def outline(data: memoryview, name: str) -> Outline:
    """The file's graph as it is written.

    Raises:  ModelFormatError if the bytes break a rule; LimitError
    """
    model, found = read_file(data, name), Outline()
    graph = model.graph
    _facts(data, model, found)
    infos = [*graph.inputs, *graph.outputs, *(value_info(part, name) for part in graph.declared)]
    found.values |= {info.name: OutlineValue(info.name, _type(info)) for info in infos}
    found.values |= {name: _constant(name, tensor) for name, tensor in graph.tensors.items()}
    found.inputs = [info.name for info in graph.inputs if info.name not in graph.tensors]
    found.outputs = [info.name for info in graph.outputs]
    for node in graph.nodes:
        for key in filter(None, (*node.inputs, *node.outputs)):
            found.values.setdefault(key, OutlineValue(key, ""))
        attributes = {key: _shown(a) for key, a in node.attributes.items()}
        label = node.name or next(iter(node.outputs), "")
        found.nodes.append(OutlineNode(node.full_name, label, node.inputs, node.outputs, attributes, node.index))
    return found


def weights(data: memoryview, name: str, files: External) -> dict[str, StoredWeight]:
    """The graph's tensors, by their keys in the outline.

    Raises:  ModelFormatError if the bytes break a rule, or a file beside the model is missing; LimitError
    """
    found = {}
    for key, tensor in read_file(data, name).graph.tensors.items():
        if tensor.kind in DTYPES:
            constant = constant_of(tensor, key, files).constant
            assert constant is not None
            assert isinstance(constant.data, memoryview)
            found[key] = StoredWeight(constant.data.cast("B"), constant.stored)
    return found


def _facts(data: memoryview, model: ModelInfo, found: Outline) -> None:
    for number, wire, value, part in fields(data, model.name):
        if number in _FACTS and wire in (VARINT, BYTES):
            found.say(**{_FACTS[number]: value if wire == VARINT else text(part)})
        elif number == 14 and wire == BYTES:
            pair = {n: text(inner) for n, _, _, inner in fields(part, model.name) if n in (1, 2)}
            found.say(**{pair.get(1, "note"): pair.get(2, "")})
    opsets = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in model.opsets.items())
    found.say(opset=opsets, graph=model.graph.name, functions=len(model.functions))


def _kind(number: int) -> str:
    return str(DTYPES.get(number) or NAMES.get(number, f"type {number}"))


def _type(info: ValueInfo) -> str:
    return info.container or type_text(_kind(info.kind), info.shape)


def _constant(name: str, tensor: Tensor) -> OutlineValue:
    count = 1
    for size in tensor.dims:
        count *= max(size, 0)
    known = DTYPES.get(tensor.kind)
    return OutlineValue(name, type_text(_kind(tensor.kind), tensor.dims), file_bytes(known, count) if known else count)


def _shown(attribute: Attribute) -> str:
    return f"of the call: {attribute.refers}" if attribute.refers else shown(_plain(attribute.value))


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, Tensor):
        return _constant("", value).type
    return f"graph of {len(value.nodes)} operators" if isinstance(value, GraphInfo) else value
