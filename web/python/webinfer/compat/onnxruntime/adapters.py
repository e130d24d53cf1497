"""LoRA adapters: files of values for a model's overridable initializers, and the runs that take them.

Source:  ONNX Runtime 1.31, lora/adapter_format/adapter_schema.fbs, and files that it wrote
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import webinfer
from webinfer.compat.onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument, failure
from webinfer.compat.onnxruntime.types import numpy_name, type_number
from webinfer.compat.onnxruntime.values import OrtValue
from webinfer.importers.readers.flatbuffer import Field, Reader

IDENTIFIER, FORMAT_VERSION = b"TORT", 1
_SCHEMA = {
    "Adapter": {
        "format_version": Field(0, "i32"), "adapter_version": Field(1, "i32"), "model_version": Field(2, "i32"),
        "parameters": Field(3, "[Parameter]"),
    },
    "Parameter": {
        "name": Field(0, "str"), "dims": Field(1, "[i64]"), "data_type": Field(2, "i32"), "raw_data": Field(3, "[u8]"),
    },
}  # fmt: skip


class AdapterFormat:
    """An adapter's versions and parameters, to be written to a file or read from one."""

    def __init__(self, adapter: Any = None) -> None:
        self._format = FORMAT_VERSION
        self._adapter_version = self._model_version = 0
        self._parameters: dict[str, OrtValue] = {}

    @staticmethod
    def read_adapter(file_path: str | os.PathLike[str]) -> AdapterFormat:
        """The adapter of a file.

        Raises:  RuntimeError if there is no such file, or it is not an adapter
        """
        found, data = AdapterFormat(), _data(file_path)
        try:
            root = Reader(memoryview(data), os.fspath(file_path), _SCHEMA).root("Adapter")
            found._format = int(root.number("format_version"))
            found._adapter_version = int(root.number("adapter_version"))
            found._model_version = int(root.number("model_version"))
            found._parameters = {one.text("name"): OrtValue(_array(one)) for one in root.tables("parameters")}
        except (webinfer.WebinferError, ValueError, TypeError) as error:
            raise RuntimeError(f"{file_path} is a damaged adapter: {error}") from error
        return found

    def export_adapter(self, file_path: str | os.PathLike[str]) -> None:
        """Writes the adapter."""
        arrays = {name: value.numpy() for name, value in self._parameters.items()}
        Path(file_path).write_bytes(_packed(self._adapter_version, self._model_version, arrays))

    def get_format_version(self) -> int:
        """The version of the format: 1."""
        return self._format

    def get_adapter_version(self) -> int:
        """The adapter's own version."""
        return self._adapter_version

    def set_adapter_version(self, adapter_version: int) -> None:
        """Sets the adapter's own version."""
        self._adapter_version = adapter_version

    def get_model_version(self) -> int:
        """The version of the model that the adapter is for."""
        return self._model_version

    def set_model_version(self, model_version: int) -> None:
        """Sets the version of the model that the adapter is for."""
        self._model_version = model_version

    def get_parameters(self) -> dict[str, OrtValue]:
        """The values by the names of the model's inputs."""
        return dict(self._parameters)

    def set_parameters(self, params: Mapping[str, OrtValue]) -> None:
        """Sets the values."""
        self._parameters = dict(params)


class LoraAdapter:
    """An adapter that runs can be given, by `RunOptions.add_active_adapter`."""

    def __init__(self) -> None:
        self._parameters: dict[str, OrtValue] = {}

    def Load(self, file_path: str) -> None:
        """Reads a file. Raises: RuntimeError if there is no such file, or it is not an adapter."""
        self._parameters = AdapterFormat.read_adapter(file_path).get_parameters()


def _data(path: str | os.PathLike[str]) -> bytes:
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        text = f"[ONNXRuntimeError] : {InvalidArgument.code} : INVALID_ARGUMENT : cannot read the adapter: {error}"
        raise RuntimeError(text) from error
    if data[4:8] != IDENTIFIER:
        raise RuntimeError(f"{path}: The buffer does not appear to be a valid lora parameter format")
    return data


def _array(parameter: Any) -> Any:
    """The values of a parameter. Raises: TypeError, ValueError if type, sizes and bytes do not fit."""
    import numpy as np

    dtype = np.dtype(numpy_name(int(parameter.number("data_type"))))
    return np.frombuffer(bytes(parameter.blob("raw_data")), dtype).reshape(parameter.numbers("dims"))


def _packed(adapter_version: int, model_version: int, arrays: Mapping[str, Any]) -> bytes:
    """The file: both kinds of tables have four fields of four bytes, and share one list of fields."""
    out = bytearray(4) + IDENTIFIER
    fields = len(out)
    out += struct.pack("<6H", 12, 20, 4, 8, 12, 16)

    def link(at: int) -> None:
        struct.pack_into("<I", out, at, len(out) - at)

    def vector(at: int, count: int, data: bytes) -> int:
        """Writes a vector that the offset at `at` points to, its items at a multiple of eight; gives their place."""
        out.extend(bytes(-(len(out) + 4) % 8))
        link(at)
        out.extend(struct.pack("<I", count) + data)
        return len(out) - len(data)

    link(0)
    at = len(out)
    out += struct.pack("<iiiiI", at - fields, FORMAT_VERSION, adapter_version, model_version, 0)
    places = vector(at + 16, len(arrays), bytes(4 * len(arrays)))
    for i, (name, array) in enumerate(arrays.items()):
        if not type_number(array.dtype):
            raise failure(InvalidArgument, f"parameter {name!r} is {array.dtype}, which adapters cannot hold")
        out += bytes(-len(out) % 4)
        link(places + 4 * i)
        at = len(out)
        out += struct.pack("<iIIiI", at - fields, 0, 0, type_number(array.dtype), 0)
        text = name.encode()
        vector(at + 4, len(text), text + b"\0")  # a string ends with a zero byte, which is not counted
        vector(at + 8, array.ndim, struct.pack(f"<{array.ndim}q", *array.shape))
        vector(at + 16, array.nbytes, array.tobytes())
    return bytes(out)
