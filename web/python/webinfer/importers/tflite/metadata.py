"""What the writer of a TFLite file says of it in words: files in a zip archive that is appended to the model.

TensorFlow Lite's metadata API appends labels and vocabularies so, Ultralytics a JSON object of properties.
"""

from __future__ import annotations

import ast
import json
from typing import Any

from webinfer.errors import ModelFormatError
from webinfer.importers.core.limits import within
from webinfer.importers.readers.archive import unpack

END_OF_ARCHIVE, END_BYTES = b"PK\x05\x06", 22 + 65535  # the record that ends an archive, with its longest comment
DIRECTORY_BYTES, DIRECTORY_AT = 12, 16  # of that record: where the directory's size and its offset stand
LONGEST = 2**22  # bytes of properties


def metadata(data: memoryview, name: str) -> dict[str, str]:
    """Properties by their keys: those of a JSON object (or a Python literal), else each file's text by its name.

    An archive that is damaged is no part of the model: there is no metadata then.

    Raises:  LimitError
    """
    archive = _appended(data)
    if archive is None:
        return {}
    try:
        files = unpack(archive, name)
    except ModelFormatError:
        return {}
    found: dict[str, str] = {}
    for file, content in files.items():
        within(f"{name!r}: bytes of metadata", len(content), LONGEST)
        try:
            words = bytes(content).decode()
        except UnicodeDecodeError:
            continue
        properties = _properties(words)
        found |= {file: words} if properties is None else {str(k): _as_text(v) for k, v in properties.items()}
    return found


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
