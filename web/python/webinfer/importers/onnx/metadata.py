"""What the writer of an ONNX file says of it in words: `metadata_props` of ModelProto."""

from __future__ import annotations

from webinfer.importers.readers.protobuf import BYTES, fields, text

METADATA_PROPS = 14  # the field's number in onnx.proto; each entry is a StringStringEntryProto: 1 key, 2 value


def metadata(data: memoryview, name: str) -> dict[str, str]:
    """The file's properties by their keys.

    Raises:  ModelFormatError if the bytes break a rule of protobuf
    """
    found: dict[str, str] = {}
    for number, wire, _, entry in fields(data, name):
        if number == METADATA_PROPS and wire == BYTES:
            pair = {key: text(value) for key, wire, _, value in fields(entry, f"{name}: metadata") if wire == BYTES}
            found[pair.get(1, "")] = pair.get(2, "")
    return found
