"""The outline of a TFLite file: its first subgraph, and what its metadata says of it.

Source: tflite-support v0.4.4, tensorflow_lite_support/metadata/metadata_schema.fbs
"""

from __future__ import annotations

from webinfer.errors import ModelFormatError
from webinfer.importers.core.files_beside import Files
from webinfer.importers.core.outline import Outline, OutlineNode, OutlineValue, StoredWeight, shown, type_text
from webinfer.importers.readers.flatbuffer import Field, Reader, Table
from webinfer.importers.tflite.model import OperatorInfo, read_signatures, read_subgraphs
from webinfer.importers.tflite.schema import ACTIVATIONS, PADDINGS, SCHEMA, TENSOR_TYPES

_METADATA = {
    "ModelMetadata": {name: Field(i, "str") for i, name in enumerate(("name", "description", "version"))}
    | {"author": Field(4, "str"), "license": Field(5, "str")}
}
_WORDS = {
    "fused_activation_function": ACTIVATIONS, "padding": PADDINGS, "in_data_type": TENSOR_TYPES,
    "out_data_type": TENSOR_TYPES, "output_type": TENSOR_TYPES, "out_type": TENSOR_TYPES,
}  # fmt: skip


def outline(data: memoryview, name: str) -> Outline:
    """The file's first subgraph as it is written.

    Raises:  ModelFormatError if the file breaks a rule; LimitError
    """
    subgraphs, found = read_subgraphs(data, name), Outline()
    graph, signatures = subgraphs[0], read_signatures(data, name)
    _facts(Reader(data, name, SCHEMA).root("Model"), found)
    found.say(subgraphs=len(subgraphs) if len(subgraphs) > 1 else "", signatures=list(signatures))
    for tensor in graph.tensors:
        kind = type_text(tensor.type_name.lower(), tensor.signature or tensor.shape)
        if tensor.quant is not None:
            scales = tensor.quant.scales
            kind += f" × {shown(scales[0])}" if len(scales) == 1 else f" × {len(scales)} scales"
        found.values[str(tensor.index)] = OutlineValue(tensor.name, kind, len(tensor.data) if tensor.data else 0)
    found.inputs, found.outputs = list(map(str, graph.inputs)), list(map(str, graph.outputs))
    for op in graph.operators:
        inputs = ["" if i < 0 else str(i) for i in op.inputs]
        label = graph.tensors[op.outputs[0]].name if op.outputs else ""
        found.nodes.append(OutlineNode(op.name, label, inputs, list(map(str, op.outputs)), _attributes(op), op.index))
    return found


def weights(data: memoryview, name: str, files: Files) -> dict[str, StoredWeight]:
    """The constants of the first subgraph, by their keys in the outline.

    Raises:  ModelFormatError if the file breaks a rule; LimitError
    """
    constants = [tensor for tensor in read_subgraphs(data, name)[0].tensors if tensor.data]
    return {
        str(one.index): StoredWeight(one.data, one.kind or one.dtype if one.sparsity is None else None)
        for one in constants
        if one.data is not None
    }


def _attributes(op: OperatorInfo) -> dict[str, str]:
    found = {} if op.version == 1 else {"version": str(op.version)}
    options = op.options
    if options is not None:
        for name, field in SCHEMA[options.kind].items():
            if options.has(name) or field.kind in ("bool", "f32") or field.kind[0] in "iu":
                found[name] = _value(options, name, field.kind)
    return found


def _value(options: Table, name: str, kind: str) -> str:
    if kind.startswith("["):
        return shown(options.reals(name) if kind == "[f32]" else options.numbers(name))
    if kind == "str":
        return shown(options.text(name))
    if kind in ("bool", "f32"):
        return shown(options.flag(name) if kind == "bool" else options.real(name))
    number, words = options.number(name), _WORDS.get(name, ())
    return str(words[number] if 0 <= number < len(words) else number)


def _facts(model: Table, found: Outline) -> None:
    found.say(description=model.text("description"))
    entries = {entry.text("name"): entry.number("buffer") for entry in model.tables("metadata")}
    buffers = model.tables("buffers")
    if "min_runtime_version" in entries:
        version = bytes(buffers[entries["min_runtime_version"]].blob("data")).rstrip(b"\0")
        found.say(needs_runtime=version.decode("ascii", "replace"))
    blob = buffers[entries["TFLITE_METADATA"]].blob("data") if "TFLITE_METADATA" in entries else b""
    if len(blob):
        try:
            told = Reader(memoryview(blob), "metadata", _METADATA).root("ModelMetadata")
            found.say(**{field: told.text(field) for field in _METADATA["ModelMetadata"]})
        except ModelFormatError as error:
            found.say(metadata=error)
