"""The formats that models are read from, one row each, and what other bytes look like."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from webinfer.errors import InputError, ModelFormatError
from webinfer.graph.ir import Graph
from webinfer.graph.printer import safe_name
from webinfer.importers.core.files_beside import plain_name, with_plain_names
from webinfer.importers.core.other_files import BYTE_ORDER_MARK, HEAD, archive_kind, description
from webinfer.importers.core.outline import Outline, StoredWeight
from webinfer.importers.core.partial_evaluation import KnownValues
from webinfer.importers.readers.archive import is_archive, unpack
from webinfer.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from webinfer.importers.core.caches import Caches

SHARD = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf")
Reader = Callable[..., Graph]  # of source, name and sizes of inputs; where the format has them, of more (see Format)


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
    weights: str = (
        ""  # "module:function" for stored weights by their keys in the outline; takes the files beside it, too
    )
    metadata: str = ""  # "module:function" for the words that its writer left in it; takes the bytes and the name
    caches: str = ""  # "module:function" for inputs that come back longer; takes the bytes and the name


# A new format is one row here and its folder.
FORMATS = [
    Format(
        "TensorFlow Lite", (".tflite",), "webinfer.importers.tflite.convert:read_tflite",
        "every other operator, all of a model's in one error", signature=lambda head: head[4:8] == b"TFL3",
        names="webinfer.importers.tflite.model:signature_names", known_values=True,
        outline="webinfer.importers.tflite.outline:outline", weights="webinfer.importers.tflite.outline:weights",
        metadata="webinfer.importers.tflite.metadata:metadata",
    ),
    Format(
        "ONNX", (".onnx",), "webinfer.importers.onnx.convert:read_onnx",
        "every other operator, all of a model's in one error", signature=lambda head: _is_onnx(head), known_values=True,
        beside="webinfer.importers.onnx.tensors:files_beside", outline="webinfer.importers.onnx.outline:outline",
        weights="webinfer.importers.onnx.outline:weights",
        metadata="webinfer.importers.onnx.metadata:metadata", caches="webinfer.importers.onnx.caches:caches",
    ),
    Format(
        "TensorFlow.js", ("/model.json",), "webinfer.importers.tfjs.convert:read_tfjs",
        "every other operator, all of a model's in one error; strings",
        keys=frozenset(("modelTopology.node", "weightsManifest")), known_values=True,
        beside="webinfer.importers.tfjs.weights:files_beside", outline="webinfer.importers.tfjs.outline:outline",
        weights="webinfer.importers.tfjs.outline:weights",
    ),
    Format(
        "TensorFlow.js layers", ("/model.json",), "webinfer.importers.keras.convert:read_layers",
        "every other layer, all of a model's in one error; strings, lambdas",
        keys=frozenset(("modelTopology", "weightsManifest")), known_values=True,
        beside="webinfer.importers.tfjs.weights:files_beside", outline="webinfer.importers.tfjs.outline:outline",
        weights="webinfer.importers.tfjs.outline:weights",
    ),
    Format(
        "GGUF", (".gguf",), "webinfer.importers.gguf.convert:read_gguf",
        "architectures beside llama, qwen2 and qwen3; weights of IQ types, Q2_K, Q3_K",
        signature=lambda head: head[:4] == b"GGUF", outline="webinfer.importers.gguf.convert:outline",
        weights="webinfer.importers.gguf.convert:weights",
        beside="webinfer.importers.gguf.shards:files_beside",
    ),
    Format(
        "WebNN graphs", (".webnn.json",), "webinfer.importers.webnn.convert:read_graph",
        "every other operator", keys=frozenset(("inputs", "operators")),
    ),
]  # fmt: skip


def is_package(data: bytes | bytearray | memoryview) -> bool:
    """Whether these are the first bytes of a compiled package."""
    return bytes(data[:8]) == b"webinfer"


# Compiled already: no table of converters, no node.
PACKAGE = Format(
    "webinfer package", (".webinfer",), "webinfer.package.reading:read_package", "packages of another version",
    signature=is_package,
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
    if is_archive(data):
        return chosen(unpack(data, name), name, member)
    if member is not None:
        raise InputError(f"{name!r} has no member {member!r}: it is a single file, not a bundle")
    return data, {}


def chosen(
    files: Mapping[str, memoryview], name: str, member: str | None = None
) -> tuple[memoryview, Mapping[str, memoryview]]:
    """The one model among files, or the named one, and the files of its folder by their names in it.

    Raises:  ModelFormatError if none of them is a model by its name, or several are and no `member` is named;
             InputError if there is no such member
    """
    files = with_plain_names(files)
    suffixes = {suffix: row for row in FORMATS for suffix in row.suffixes}
    member = member and next((file for file in (member, *_plain(member)) if file in files), member)
    found = _first_of_shards(files) or models_of(files) or [file for file in files if file.endswith(".json")]
    listed = ", ".join(map(safe_name, list(found or files)[:8])) or "nothing"
    if member is not None:
        if member not in files:
            raise InputError(f"{name!r} has no member {member!r}; its models are {listed}")
        found = [member]
    if len(found) != 1:
        other = archive_kind(files)
        what = f"several models: {listed}; name one with `member`" if found else f"no model: {listed}"
        if other and not found:
            raise ModelFormatError(f"{name!r} is not a model of a known format: it is {other}")
        raise ModelFormatError(f"{name!r} holds {what}")
    (file,) = found
    folder = file[: file.rfind("/") + 1]
    row = next((row for suffix, row in suffixes.items() if f"/{file}".endswith(suffix)), None)
    alone = row is not None and not row.beside
    beside = {} if alone else {other[len(folder) :]: files[other] for other in files if other.startswith(folder)}
    return files[file], beside


def _plain(name: str) -> list[str]:
    try:
        return [plain_name(name)]
    except ModelFormatError:
        return []


def _first_of_shards(files: Iterable[str]) -> list[str]:
    """The first of several files that are one model, if all models among the files are its shards."""
    found = sorted(models_of(files))
    shards = [SHARD.fullmatch(file) for file in found]
    one = len({(shard[1], shard[3]) for shard in shards if shard is not None}) == 1
    return found[:1] if len(found) > 1 and one and all(shards) else []


def read(
    data: memoryview,
    name: str,
    shapes: Mapping[str, Sequence[int]],
    signature: str | None = None,
    files: Mapping[str, memoryview] | None = None,
    known_values: KnownValues | None = None,
) -> Graph:
    """The graph of a model of any format, or of one of its signatures; `files` are those beside it.

    Raises:  ModelFormatError if the bytes are not a model that is read here, and all that the reader raises;
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
        more["external"] = with_plain_names(files)
    if row.known_values:
        more["known_values"] = known_values
    return reader(source, name, shapes, **more)


def signature_names(data: memoryview, name: str) -> tuple[str, ...]:
    """The names of a model's signatures.

    Raises:  ModelFormatError if the bytes are not a model that is read here, and all that the reader raises
    """
    row, source = _row(data, name)
    return tuple(_function(row, row.names, name)(source, name)) if row.names else ()


def files_beside(data: memoryview, name: str) -> tuple[str, ...]:
    """The names of files that a model needs beside its own, relative to its folder, each once (`plain_name`).

    A query behind a name, as signed addresses have it, is kept.

    Raises:  ModelFormatError if one would leave the folder, and all that reading the model raises
    """
    try:
        row, source = _row(data, name)
    except ModelFormatError:
        return ()  # which reading the model will say better
    found: Sequence[str] = _function(row, row.beside, name)(source, name) if row.beside else ()
    try:
        plain = [(plain_name(file), file.partition("?")[2]) for file in found]
    except ModelFormatError as error:
        raise ModelFormatError(f"{name!r} names {error}") from error
    return tuple(dict.fromkeys(f"{file}?{query}" if query else file for file, query in plain))


def format_name(data: memoryview, name: str) -> str:
    """The name of a model's format.

    Raises:  ModelFormatError if the bytes are not a model that is read here
    """
    return _row(data, name)[0].name


def metadata(data: memoryview, name: str) -> dict[str, str]:
    """The words that a model's writer left in its file, by their keys; none if its format has no place for them.

    Raises:  ModelFormatError if the bytes are not a model that is read here, or break a rule
    """
    row, source = _row(data, name)
    found: dict[str, str] = _function(row, row.metadata, name)(source, name) if row.metadata else {}
    return found


def caches(data: memoryview, name: str) -> Caches | None:
    """The inputs that come back longer among the outputs; None where the format has no way to tell.

    Raises:  ModelFormatError if the bytes are not a model that is read here, or break a rule; LimitError
    """
    row, source = _row(data, name)
    found: Caches | None = _function(row, row.caches, name)(source, name) if row.caches else None
    return found


def outline(data: memoryview, name: str) -> tuple[str, Outline]:
    """The name of a model's format, and what its file says of itself; nothing is converted.

    Raises:  ModelFormatError if the bytes are not a model that is read here, or break a rule; LimitError
    """
    row, source = _row(data, name)
    found: Outline = _function(row, row.outline, name)(source, name) if row.outline else Outline()
    return row.name, found


def weights(data: memoryview, name: str, files: Mapping[str, memoryview]) -> dict[str, StoredWeight]:
    """The weights as the file stores them, by their keys in the outline; `files` are those beside it.

    Raises:  ModelFormatError if the bytes are not a model that is read here, or break a rule; LimitError
    """
    row, source = _row(data, name)
    if not row.weights:
        return {}
    found: dict[str, StoredWeight] = _function(row, row.weights, name)(source, name, with_plain_names(files))
    return found


def _row(data: memoryview, name: str) -> tuple[Format, Any]:
    """The format of these bytes, and what its reader takes."""
    head = bytes(data[:HEAD])
    for row in (*FORMATS, PACKAGE):
        if row.signature is not None and row.signature(head):
            return row, data
    described = _json_object(data) if head.removeprefix(BYTE_ORDER_MARK).lstrip().startswith(b"{") else {}
    for row in FORMATS:
        if row.keys and all(_holds(described, key) for key in row.keys):
            return row, described
    known = ", ".join(row.name for row in FORMATS)
    raise ModelFormatError(f"{name!r} is not a model of a known format ({known}): it is {description(data)}")


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


def _is_onnx(head: bytes) -> bool:
    """Whether this is a protobuf whose first field is a small ir_version followed by ONNX's next fields."""
    return (
        len(head) > 4
        and head[0] == 0x08
        and 1 <= head[1] <= 32
        and head[2] in (0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42)
    )
