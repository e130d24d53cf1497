"""What bytes that are not a model look like: other formats, web pages, archives; and what to do about each."""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection
from typing import Any

from webinfer.errors import ModelFormatError
from webinfer.importers.readers.protobuf import BYTES, VARINT, fields

HEAD = 256  # bytes that tell a format
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAX_JSON = 1 << 16  # bytes of an error message in JSON
CORE_ML_FIELDS = range(200, 4000)  # of its kinds of models, in the message Model
_TENSORFLOW = "convert it to TFLite (tf.lite.TFLiteConverter) or to TensorFlow.js (tensorflowjs_converter)"
_TORCH = "export the model to ONNX with torch.onnx.export"
_PICKLE = f"a Python pickle, such as a PyTorch checkpoint; {_TORCH}"
_WEIGHTS_ALONE = "which holds weights without a graph; load an ONNX, TFLite or GGUF file of the model"
# Bytes, where they lie, and what they are.
_MAGIC = (
    (0, b"\x1f\x8b", "gzip-compressed; unpack it first"),
    (0, b"\x28\xb5\x2f\xfd", "zstd-compressed; unpack it first"),
    (0, b"\xfd7zXZ", "xz-compressed; unpack it first"),
    (0, b"BZh", "bzip2-compressed; unpack it first"),
    (0, b"7z\xbc\xaf", "a 7z archive; unpack it first"),
    (0, b"Rar!", "a RAR archive; unpack it first"),
    (257, b"ustar", "a tar archive; unpack it first"),
    (0, b"\x89HDF", f"an HDF5 file (Keras .h5); {_TENSORFLOW}"),
    (0, b"\x80\x02", _PICKLE), (0, b"\x80\x03", _PICKLE), (0, b"\x80\x04", _PICKLE), (0, b"\x80\x05", _PICKLE),
    (0, b"version https://git-lfs", "a Git LFS pointer, not the file itself; fetch it with `git lfs pull`"),
    (0, b"\x89PNG", "a PNG picture"), (0, b"\xff\xd8\xff", "a JPEG picture"), (0, b"GIF8", "a GIF picture"),
    (8, b"WEBP", "a WebP picture"), (0, b"%PDF", "a PDF document"), (0, b"\x93NUMPY", "a NumPy array (.npy)"),
    (4, b"ORTM", "an ONNX Runtime (.ort) model, which only ONNX Runtime reads; load the .onnx file it was made of"),
    (0, b"LITERTLM", "a LiteRT-LM bundle (.litertlm), which is not read; load a GGUF file of the language model"),
    (4, b"ET12", "an ExecuTorch program (.pte); export the model to ONNX or TFLite"),
    (0, b"lmgg", "a GGML file, older than GGUF; get or convert the model as GGUF"),
    (0, b"tjgg", "a GGML file, older than GGUF; get or convert the model as GGUF"),
    (0, b"\0asm", "a WebAssembly module"), (0, b"\x7fELF", "a program or a library"),
)  # fmt: skip
_MARKUP = (b"<!doctype", b"<html", b"<?xml", b"<head", b"<!--", b"<error", b"<net")
# Members of zip archives, by their ends.
_MEMBERS = (
    ("data.pkl", f"a PyTorch checkpoint; {_TORCH}"),
    ("saved_model.pb", f"a TensorFlow SavedModel; {_TENSORFLOW}"),
    ("model.weights.h5", f"a Keras model (.keras); {_TENSORFLOW}"),
    ("Manifest.json", "a Core ML package; export the model to ONNX or TFLite"),
    (".npy", "NumPy arrays (.npz)"),
    (".safetensors", f"safetensors, {_WEIGHTS_ALONE}"),
)


def description(data: memoryview) -> str:
    """What bytes of no known format look like, and what to do about it."""
    size, head = len(data), bytes(data[: HEAD + 8])
    if size == 0:
        return "empty (0 bytes); the download or the upload failed"
    if found := _by_magic(data):
        return found
    if not any(head):
        return f"{size} bytes that begin with zeros; the download was cut off or the file is damaged"
    if 2 <= int.from_bytes(head[:8], "little") <= size - 8 and head[8:9] == b"{":
        return f"a safetensors file, {_WEIGHTS_ALONE}"
    if size >= 8 and head[4:7] == b"TFL":
        return f"a TFLite file of version {chr(head[7])!r}, only version 3 is supported"
    if found := protobuf_kind(data):
        return found
    if size < 8:
        return f"{size} bytes long, too short for any model"
    if all(32 <= c < 127 or c in (9, 10, 13) for c in head):
        return f"{size} bytes of text that begin with {head[:40].decode('ascii')!r}"
    return f"{size} bytes that begin with {head[:8].hex(' ')}"


def _by_magic(data: memoryview) -> str:
    """What the first bytes say of a file, "" where they say nothing."""
    head = bytes(data[: HEAD + 8])
    text = head.removeprefix(BYTE_ORDER_MARK).lstrip()
    if text.lower().startswith(_MARKUP):
        if b"<net " in text and b"version=" in text:
            return "an OpenVINO model (.xml); export the model to ONNX or TFLite"
        return f"a web page ({len(data)} bytes of HTML or XML), perhaps an error page that was saved as a model"
    if text.startswith(b"{"):
        return _json_kind(data)
    return next((what for at, magic, what in _MAGIC if head[at : at + len(magic)] == magic), "")


def _json_kind(data: memoryview) -> str:
    described = _json_object(data)
    if "model_type" in described or "architectures" in described:
        return "a Hugging Face config.json, which describes a model without its weights; load an .onnx or .gguf file"
    if "class_name" in described:
        return f"the description of a Keras model without its weights; {_TENSORFLOW}"
    return "JSON, but no TensorFlow.js model, which has modelTopology and weightsManifest"


def _json_object(data: memoryview) -> dict[str, Any]:
    try:
        found = json.loads(bytes(data)) if len(data) <= MAX_JSON else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def protobuf_kind(data: memoryview) -> str:
    """What another format's protobuf message is, "" where it is none that is known."""
    try:
        found = [(number, wire, part) for number, wire, _, part in fields(data, "")]
    except ModelFormatError:
        return ""
    numbers = [number for number, _, _ in found]
    if numbers[:2] == [1, 2] and found[0][1] == VARINT and any(number in CORE_ML_FIELDS for number in numbers):
        return "a Core ML model (.mlmodel); export the model to ONNX or TFLite"
    if numbers[:2] == [1, 2] and set(numbers) <= {1, 2} and found[0][1] == VARINT and _has_first_message(found[1][2]):
        return f"a TensorFlow SavedModel (saved_model.pb); {_TENSORFLOW}"
    if numbers[:1] == [1] and set(numbers) <= {1, 2, 3, 4} and found[0][1] == BYTES and _is_node(found[0][2]):
        return f"a frozen TensorFlow graph (.pb); {_TENSORFLOW}"
    return ""


def _has_first_message(part: memoryview) -> bool:
    """Whether a MetaGraphDef begins here, with its meta_info_def or its graph_def."""
    return len(part) > 1 and part[0] in (0x0A, 0x12)


def _is_node(part: memoryview) -> bool:
    """Whether a NodeDef lies here: a name and an operator, both texts."""
    try:
        found = {number: bytes(text) for number, wire, _, text in fields(part, "") if wire == BYTES}
    except ModelFormatError:
        return False
    return all(number in found and found[number].isascii() and found[number] for number in (1, 2))


def archive_kind(files: Collection[str]) -> str:
    """What an archive of these files is, "" where it is none that is known."""
    return next((what for end, what in _MEMBERS if any(file.endswith(end) for file in files)), "")


def not_weights(data: memoryview) -> str:
    """What a file of weights is instead, "" where it may well be weights: any bytes may, but few begin as these do."""
    head = bytes(data[:HEAD])
    if head.startswith(b"\x1f\x8b"):
        return "gzip-compressed; unpack it first" if _is_gzip(data) else ""
    if head.startswith(b"version https://git-lfs") or head.lstrip().lower().startswith(_MARKUP):
        return description(data)
    if head.lstrip().startswith(b'{"') and _json_object(data):
        return f"JSON that begins with {head[:60].decode('utf-8', 'replace')!r}, perhaps an error message"
    return ""


def _is_gzip(data: memoryview) -> bool:
    """Whether the bytes are a gzip file: its head and the first of its blocks."""
    try:
        return bool(zlib.decompressobj(31).decompress(data[: 1 << 16], 64)) or len(data) < 64
    except zlib.error:
        return False
