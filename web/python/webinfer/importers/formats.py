"""What bytes are, when they are not a model that we read."""

from __future__ import annotations

from webinfer.errors import ModelFormatError

_MAGIC = (
    (b"PK\x03\x04", "a zip archive; if it is a .task bundle, take the .tflite file out of it"),
    (b"\x1f\x8b", "gzip-compressed; unpack it first"),
    (b"\x89HDF", "an HDF5 file (Keras); convert it to TFLite"),
    (b"GGUF", "a GGUF file, which holds language models"),
    (b"\x80\x02", "a Python pickle (PyTorch); convert it to TFLite"),
    (b"version https://git-lfs", "a Git LFS pointer, not the file itself; fetch it with `git lfs pull`"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"%PDF", "a PDF document"),
    (b"{", "JSON; if it is a TensorFlow.js model, convert it to TFLite"),
    (b"ORTM", "an ONNX Runtime (.ort) model; convert it to TFLite"),
)
_MARKUP = (b"<!doctype", b"<html", b"<?xml", b"<head", b"<!--")


def refuse(data: memoryview, name: str) -> ModelFormatError:
    """The error for bytes that are no TFLite model: it says what they look like."""
    return ModelFormatError(f"{name!r} is not a TFLite model: it is {_describe(data)}")


def _describe(data: memoryview) -> str:
    size = len(data)
    head = bytes(data[:256])
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
    if _is_onnx(head):
        return "an ONNX model (protobuf); convert it to TFLite"
    if size < 8:
        return f"{size} bytes long, too short for any model"
    if all(32 <= c < 127 or c in (9, 10, 13) for c in head):
        return f"{size} bytes of text that begin with {head[:40].decode('ascii')!r}"
    return f"{size} bytes that begin with {head[:8].hex(' ')}, where TFLite has 'TFL3' at byte 4"


def _is_onnx(head: bytes) -> bool:
    """Whether this is a protobuf whose first field is a small ir_version followed by ONNX's next fields."""
    return (
        len(head) > 4
        and head[0] == 0x08
        and 1 <= head[1] <= 32
        and head[2] in (0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42)
    )
