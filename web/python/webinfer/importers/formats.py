"""The formats that models are read from, one row each, and what other bytes look like."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from webinfer.errors import InputError, ModelFormatError
from webinfer.graph.ir import Graph
from webinfer.graph.printer import safe_name
from webinfer.importers.core.outline import Outline
from webinfer.importers.core.partial_evaluation import KnownValues
from webinfer.importers.readers.archive import SIGNATURE, unpack

Reader = Callable[..., Graph]  # of source, name and sizes of inputs; where the format has them, of more (see Format)
_HEAD = 256  # bytes that tell a format
MAX_FILE_NAME = 255  # characters of the name of a file beside a model
_STRANGE = frozenset("\\:?#%\0")  # means more than a name to some system or in a URL


@dataclass(frozen=True, slots=True)
class Format:
    """One format. A file belongs to it if its first bytes pass `signature`, or if it is a JSON object with `keys`,
    "a.b" for b in a. The first such row counts.

    `reader` is "module:function"; the module is imported when the first such model is read. It takes the file's
    bytes, or the JSON object, with the model's name and the sizes that `shapes=` binds. The module's table
    `CONVERTERS` names the operators that it reads. `help` says what it does not read, and where it is not installed.
    """

    name: str
    suffixes: tuple[str, ...]  # of file names
    reader: str
    help: str
    signature: Callable[[bytes], bool] | None = None
    names: str = ""  # "module:function" for the names of a model's signatures; the reader takes `signature=`
    keys: frozenset[str] = frozenset()
    known_values: bool = False  # whether sizes and conditions may depend on data; the reader takes `known_values=`
    beside: str = ""  # "module:function" for the files that a model needs beside it; the reader takes `external=`
    outline: str = ""  # "module:function" for what the file says of itself; takes what the reader takes, and the name
    metadata: str = ""  # "module:function" for the words that its writer left in it; takes the bytes and the name


# A new format is one row here and its folder.
FORMATS = [
    Format(
        "TensorFlow Lite", (".tflite",), "webinfer.importers.tflite.convert:read_tflite",
        "every other operator, all of a model's in one error", signature=lambda head: head[4:8] == b"TFL3",
        names="webinfer.importers.tflite.model:signature_names", known_values=True,
        outline="webinfer.importers.tflite.outline:outline", metadata="webinfer.importers.tflite.metadata:metadata",
    ),
    Format(
        "ONNX", (".onnx",), "webinfer.importers.onnx.convert:read_onnx",
        "every other operator, all of a model's in one error", signature=lambda head: _is_onnx(head), known_values=True,
        beside="webinfer.importers.onnx.tensors:files_beside", outline="webinfer.importers.onnx.outline:outline",
        metadata="webinfer.importers.onnx.metadata:metadata",
    ),
    Format(
        "TensorFlow.js", ("/model.json",), "webinfer.importers.tfjs.convert:read_tfjs",
        "every other operator, all of a model's in one error; strings",
        keys=frozenset(("modelTopology.node", "weightsManifest")), known_values=True,
        beside="webinfer.importers.tfjs.weights:files_beside", outline="webinfer.importers.tfjs.outline:outline",
    ),
    Format(
        "TensorFlow.js layers", ("/model.json",), "webinfer.importers.keras.convert:read_layers",
        "every other layer, all of a model's in one error; strings, lambdas",
        keys=frozenset(("modelTopology", "weightsManifest")), known_values=True,
        beside="webinfer.importers.tfjs.weights:files_beside", outline="webinfer.importers.tfjs.outline:outline",
    ),
    Format(
        "GGUF", (".gguf",), "webinfer.importers.gguf.convert:read_gguf",
        "architectures beside llama and qwen2; weights of IQ types, Q2_K, Q3_K",
        signature=lambda head: head[:4] == b"GGUF", outline="webinfer.importers.gguf.convert:outline",
    ),
    Format(
        "WebNN graphs", (".webnn.json",), "webinfer.importers.webnn.convert:read_graph",
        "every other operator", keys=frozenset(("inputs", "operators")),
    ),
]  # fmt: skip
# Compiled already: no table of converters, no node.
PACKAGE = Format(
    "webinfer package", (".webinfer",), "webinfer.package.reading:read_package", "packages of another version",
    signature=lambda head: head[:8] == b"webinfer",
)  # fmt: skip


def model_names(files: Iterable[str]) -> list[str]:
    """The names of those files that are models by their suffix, without folder and suffix."""
    ends = dict.fromkeys((file, suffix) for file in files for row in FORMATS for suffix in row.suffixes)
    return [file.removesuffix(suffix).rpartition("/")[2] for file, suffix in ends if file.endswith(suffix)]


def models_of(files: Iterable[str]) -> list[str]:
    """Those files that are models by their suffix, with folder and suffix."""
    ends = tuple(suffix for row in FORMATS for suffix in row.suffixes)
    return [file for file in files if f"/{file}".endswith(ends)]


def unpacked(data: memoryview, name: str, member: str | None = None) -> tuple[memoryview, Mapping[str, memoryview]]:
    """The model itself and the files beside it, if the bytes are a zip archive; else just the bytes.

    Raises:  ModelFormatError if the archive is damaged, or holds no model, or several and no `member` is named;
             InputError if the bytes hold no such member; LimitError
    """
    if data[:4] == SIGNATURE:
        return chosen(unpack(data, name), name, member)
    if member is not None:
        raise InputError(f"{name!r} has no member {member!r}: it is a single file, no bundle")
    return data, {}


def chosen(
    files: Mapping[str, memoryview], name: str, member: str | None = None
) -> tuple[memoryview, Mapping[str, memoryview]]:
    """The one model among files, or the named one, and the files of its folder by their names in it.

    Raises:  ModelFormatError if none of them is a model by its name, or several are and no `member` is named;
             InputError if there is no such member
    """
    suffixes = {suffix: row for row in FORMATS for suffix in row.suffixes}
    found = models_of(files) or [file for file in files if file.endswith(".json")]
    listed = ", ".join(map(safe_name, list(found or files)[:8])) or "nothing"
    if member is not None:
        if member not in files:
            raise InputError(f"{name!r} has no member {member!r}; its models are {listed}")
        found = [member]
    if len(found) != 1:
        what = f"several models: {listed}; name one with `member`" if found else f"no model: {listed}"
        raise ModelFormatError(f"{name!r} holds {what}")
    (file,) = found
    folder = file[: file.rfind("/") + 1]
    row = next((row for suffix, row in suffixes.items() if f"/{file}".endswith(suffix)), None)
    alone = row is not None and not row.beside
    beside = {} if alone else {other[len(folder) :]: files[other] for other in files if other.startswith(folder)}
    return files[file], beside


def read(
    data: memoryview,
    name: str,
    shapes: Mapping[str, Sequence[int]],
    signature: str | None = None,
    files: Mapping[str, memoryview] | None = None,
    known_values: KnownValues | None = None,
) -> Graph:
    """The graph of a model of any format, or of one of its signatures; `files` are those beside it.

    Raises:  ModelFormatError if the bytes are no model that is read here, and all that the reader raises;
             InputError if models of the format have no signatures
    """
    row, source = _row(data, name)
    reader: Reader = _function(row, row.reader, name)
    more: dict[str, Any] = {}
    if signature is not None:
        if not row.names:
            raise InputError(f"{name!r} has no signature {signature!r}: models of the format {row.name} have none")
        more["signature"] = signature
    if files and row.beside:
        more["external"] = files
    if row.known_values:
        more["known_values"] = known_values
    return reader(source, name, shapes, **more)


def signature_names(data: memoryview, name: str) -> tuple[str, ...]:
    """The names of a model's signatures.

    Raises:  ModelFormatError if the bytes are no model that is read here, and all that the reader raises
    """
    row, source = _row(data, name)
    return tuple(_function(row, row.names, name)(source, name)) if row.names else ()


def files_beside(data: memoryview, name: str) -> tuple[str, ...]:
    """The names of files that a model needs beside its own, relative to its folder.

    Raises:  ModelFormatError if one would leave the folder, and all that reading the model raises
    """
    try:
        row, source = _row(data, name)
    except ModelFormatError:
        return ()  # which reading the model will say better
    found: Sequence[str] = _function(row, row.beside, name)(source, name) if row.beside else ()
    for file in found:
        parts = file.split("/")
        if len(file) > MAX_FILE_NAME or any(p in ("", ".", "..") for p in parts) or set(file) & _STRANGE:
            raise ModelFormatError(f"{name!r} names the file {file[:MAX_FILE_NAME]!r}, which is not inside its folder")
    return tuple(found)


def format_name(data: memoryview, name: str) -> str:
    """The name of a model's format.

    Raises:  ModelFormatError if the bytes are no model that is read here
    """
    return _row(data, name)[0].name


def metadata(data: memoryview, name: str) -> dict[str, str]:
    """The words that a model's writer left in its file, by their keys; none if its format has no place for them.

    Raises:  ModelFormatError if the bytes are no model that is read here, or break a rule
    """
    row, source = _row(data, name)
    found: dict[str, str] = _function(row, row.metadata, name)(source, name) if row.metadata else {}
    return found


def outline(data: memoryview, name: str) -> tuple[str, Outline]:
    """The name of a model's format, and what its file says of itself; nothing is converted.

    Raises:  ModelFormatError if the bytes are no model that is read here, or break a rule; LimitError
    """
    row, source = _row(data, name)
    found: Outline = _function(row, row.outline, name)(source, name) if row.outline else Outline()
    return row.name, found


def _row(data: memoryview, name: str) -> tuple[Format, Any]:
    """The format of these bytes, and what its reader takes."""
    head = bytes(data[:_HEAD])
    for row in (*FORMATS, PACKAGE):
        if row.signature is not None and row.signature(head):
            return row, data
    described = _json_object(data) if head.startswith(b"{") else {}
    for row in FORMATS:
        if row.keys and all(_holds(described, key) for key in row.keys):
            return row, described
    known = ", ".join(row.name for row in FORMATS)
    raise ModelFormatError(f"{name!r} is not a model of a known format ({known}): it is {_describe(data)}")


def _holds(described: Mapping[str, Any], key: str) -> bool:
    first, _, rest = key.partition(".")
    inner = described.get(first)
    return first in described and (not rest or (isinstance(inner, dict) and rest in inner))


def _function(row: Format, path: str, name: str) -> Any:
    module, _, function = path.partition(":")
    try:
        reader = getattr(import_module(module), function)
    except ModuleNotFoundError as error:
        raise ModelFormatError(
            f"{name!r} is of the format {row.name}, and this installation of webinfer has no reader for it "
            f"({error.name}); convert the model, or load it in CPython"
        ) from error
    return reader


def _json_object(data: memoryview) -> dict[str, Any]:
    """The JSON object that the bytes are, or an empty one."""
    try:
        found = json.loads(bytes(data))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


_MAGIC = (
    (b"\x1f\x8b", "gzip-compressed; unpack it first"),
    (b"\x89HDF", "an HDF5 file (Keras); convert it to TFLite"),
    (b"\x80\x02", "a Python pickle (PyTorch); convert it to TFLite"),
    (b"version https://git-lfs", "a Git LFS pointer, not the file itself; fetch it with `git lfs pull`"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"%PDF", "a PDF document"),
    (b"{", "JSON, but no TensorFlow.js model, which has modelTopology and weightsManifest"),
    (b"ORTM", "an ONNX Runtime (.ort) model; convert it to TFLite"),
)
_MARKUP = (b"<!doctype", b"<html", b"<?xml", b"<head", b"<!--")


def _describe(data: memoryview) -> str:
    """What bytes of no known format look like, and what to do about it."""
    size = len(data)
    head = bytes(data[:_HEAD])
    if size == 0:
        return "empty (0 bytes); the download or the upload failed"
    if not any(head):
        return f"{size} bytes that begin with zeros; the download was cut off or the file is damaged"
    text = head.lstrip().lower()
    if text.startswith(_MARKUP):
        return f"a web page ({size} bytes of HTML or XML), perhaps an error page that was saved as a model"
    for magic, what in _MAGIC:
        if head.startswith(magic):
            return what
    if size >= 8 and head[4:7] == b"TFL":
        return f"a TFLite file of version {chr(head[7])!r}, only version 3 is in use"
    if size < 8:
        return f"{size} bytes long, too short for any model"
    if all(32 <= c < 127 or c in (9, 10, 13) for c in head):
        return f"{size} bytes of text that begin with {head[:40].decode('ascii')!r}"
    return f"{size} bytes that begin with {head[:8].hex(' ')}"


def _is_onnx(head: bytes) -> bool:
    """Whether this is a protobuf whose first field is a small ir_version followed by ONNX's next fields."""
    return (
        len(head) > 4
        and head[0] == 0x08
        and 1 <= head[1] <= 32
        and head[2] in (0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42)
    )
