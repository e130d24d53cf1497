"""What the writer of a TFLite file says of it in words: files in a zip archive that is appended to the model.

TensorFlow Lite's metadata API appends labels and vocabularies so, Ultralytics a JSON object of properties. What that
API says of outputs lies in a buffer of the model, of which the minimum score of classes is read.

Source:  tflite-support, metadata_schema.fbs (file identifier "M001")
"""

from __future__ import annotations

import ast
import json
from typing import Any

from webinfer.errors import ModelFormatError
from webinfer.importers.core.limits import within
from webinfer.importers.readers.archive import unpack
from webinfer.importers.readers.flatbuffer import Reader
from webinfer.importers.tflite.schema import SCHEMA, fields

END_OF_ARCHIVE, END_BYTES = b"PK\x05\x06", 22 + 65535  # the record that ends an archive, with its longest comment
DIRECTORY_BYTES, DIRECTORY_AT = 12, 16  # of that record: where the directory's size and its offset stand
LONGEST = 2**22  # bytes of properties
THRESHOLD = "score_threshold"  # the key of the score from which on an output's class counts
_OF_OUTPUTS = {
    "ModelMetadata": fields("- - - subgraph_metadata:[SubGraphMetadata]"),
    "SubGraphMetadata": fields("- - - output_tensor_metadata:[TensorMetadata]"),
    "TensorMetadata": fields("- - - - process_units:[ProcessUnit]"),
    "ProcessUnit": fields("options_type:u8 options:union"),
    "ScoreThresholdingOptions": fields("global_score_threshold:f32"),
}
_THRESHOLDING = 3  # ScoreThresholdingOptions in the union of process units


def metadata(data: memoryview, name: str) -> dict[str, str]:
    """Properties by their keys: those of a JSON object (or a Python literal), else each file's text by its name.

    "score_threshold" is the score from which on a class of the outputs counts, if the writer says one. An archive or a
    buffer that is damaged is not a part of the model: it says nothing then.

    Raises:  LimitError
    """
    try:
        found = _threshold(data, name)
    except ModelFormatError:
        found = {}
    archive = _appended(data)
    if archive is None:
        return found
    try:
        files = unpack(archive, name)
    except ModelFormatError:
        return found
    for file, content in files.items():
        within(f"{name!r}: bytes of metadata", len(content), LONGEST)
        try:
            words = bytes(content).decode()
        except UnicodeDecodeError:
            continue
        properties = _properties(words)
        found |= {file: words} if properties is None else {str(k): _as_text(v) for k, v in properties.items()}
    return found


def _threshold(data: memoryview, name: str) -> dict[str, str]:
    """The minimum score of the first output that has one."""
    model = Reader(data, name, SCHEMA).root("Model")
    places = [row.number("buffer") for row in model.tables("metadata") if row.text("name") == "TFLITE_METADATA"]
    buffers = model.tables("buffers") if places else []
    for told in (buffers[place].blob("data") for place in places if place < len(buffers)):
        for graph in Reader(told, name, _OF_OUTPUTS).root("ModelMetadata").tables("subgraph_metadata"):
            for unit in (
                unit for output in graph.tables("output_tensor_metadata") for unit in output.tables("process_units")
            ):
                options = unit.table("options", "ScoreThresholdingOptions")
                if unit.number("options_type") == _THRESHOLDING and options is not None:
                    return {THRESHOLD: str(options.real("global_score_threshold"))}
    return {}


def _appended(data: memoryview) -> memoryview | None:
    """The archive behind a model; its offsets may count from the file's start or from its own."""
    tail = bytes(data[-END_BYTES:])
    at = tail.rfind(END_OF_ARCHIVE)
    if at < 0 or at + 22 > len(tail):
        return None
    end = len(data) - len(tail) + at
    size, start = (int.from_bytes(tail[at + i : at + i + 4], "little") for i in (DIRECTORY_BYTES, DIRECTORY_AT))
    begins = end - size - start  # 0: offsets count from the file's start, as zipfile wants them
    return data if begins == 0 else data[begins:] if 0 < begins < end else None


def _properties(words: str) -> dict[Any, Any] | None:
    """The object that a file is, in JSON or as Python prints it; None for any other text."""
    if not words.lstrip().startswith("{"):
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            found = read(words)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(found, dict):
            return found
    return None


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)
