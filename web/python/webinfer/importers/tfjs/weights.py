"""The weights of a model: shards joined, each weight cut out, whole numbers of 8 and 16 bits made real."""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, TensorType, Value
from webinfer.graph.printer import safe_name
from webinfer.importers.core.files_beside import Files, bytes_beside
from webinfer.importers.core.limits import MAX_RANK, MAX_TENSORS, check_bytes, within
from webinfer.importers.core.steps import pack
from webinfer.importers.tfjs.model import MAX_FILES, damaged, part, parts

External = Files
_DTYPES = {"float32": DType.FLOAT32, "int32": DType.INT32, "bool": DType.BOOL}
_QUANTIZED = {"float16": 2, "uint8": 1, "uint16": 2}  # bytes of an element
_SMALL = 64  # elements of float16 that may be read while the model is


def files_beside(described: Mapping[str, Any], name: str) -> list[str]:
    """The names of the shards that the manifest lists, each once.

    Raises:  ModelFormatError if the manifest breaks a rule; LimitError
    """
    groups = parts(described, "weightsManifest", dict, name)
    found = dict.fromkeys(path for group in groups for path in parts(group, "paths", str, "weightsManifest"))
    within("files of weights", len(found), MAX_FILES, "join them")
    return list(found)


class _Shards:
    """The bytes of one group's files, one after the other."""

    def __init__(self, parts: Sequence[memoryview]) -> None:
        self._parts, self._at = [part for part in parts if len(part)][::-1], 0
        self.left = sum(map(len, parts))

    def take(self, size: int, what: str) -> memoryview:
        """The next bytes: a view where they lie in one file."""
        if size > self.left:
            damaged(f"{what} needs {size} bytes, its files have {self.left} left; the model is damaged, get it again")
        self.left -= size
        taken: list[memoryview] = []
        while size:
            piece = self._parts[-1][self._at : self._at + size]
            taken.append(piece)
            self._at, size = self._at + len(piece), size - len(piece)
            if self._at == len(self._parts[-1]):
                self._parts.pop()
                self._at = 0
        return taken[0] if len(taken) == 1 else memoryview(b"".join(taken))


def read_weights(described: Mapping[str, Any], external: External) -> tuple[dict[str, Value], dict[str, str]]:
    """The constants by name; and for each weight of a type that cannot be held, its type.

    Raises:  ModelFormatError if files are missing or do not have the bytes that the manifest says; LimitError
    """
    found, strange = dict[str, Value](), dict[str, str]()
    for group in parts(described, "weightsManifest", dict, "the model"):
        paths = parts(group, "paths", str, "weightsManifest")
        shards = _Shards([bytes_beside(external, path, "a part of the weights") for path in paths])
        for weight in parts(group, "weights", dict, "weightsManifest"):
            _read(weight, shards, found, strange)
        if shards.left:
            damaged(f"{shards.left} bytes of {', '.join(map(safe_name, paths[:3]))} belong to no weight")
    return found, strange


def _read(weight: Mapping[str, Any], shards: _Shards, found: dict[str, Value], strange: dict[str, str]) -> None:
    name = part(weight, "name", str, "a weight")
    what, shape = f"weight {safe_name(name)}", parts(weight, "shape", int, f"weight {safe_name(name)}")
    within("weights", len(found) + len(strange), MAX_TENSORS)
    within(f"{what}: rank", len(shape), MAX_RANK)
    if name in found or name in strange or any(isinstance(d, bool) or d < 0 for d in shape):
        damaged(f"{what} is there twice, or its shape {shape} is none")
    kind = part(weight, "dtype", str, what)
    dtype = _DTYPES.get(kind)
    check_bytes(shape, dtype or DType.FLOAT32, what)
    count = math.prod(shape)
    if kind == "string":
        strange[name] = kind
        for _ in range(count):
            shards.take(int.from_bytes(shards.take(4, what), "little"), what)
        return
    if dtype is None:
        strange[name] = kind
        if kind != "complex64":
            damaged(f"{what} has the type {safe_name(kind)}, which the format lacks")
        shards.take(8 * count, what)
        return
    quantization = part(weight, "quantization", dict, what)
    if not quantization:
        data, stored = shards.take(count * dtype.itemsize, what), dtype
        if dtype is DType.BOOL:
            data = memoryview(bytes(data).translate(bytes([0]) + bytes([1]) * 255))
    else:
        data, stored = _dequantized(quantization, dtype, shards, count, what)
    found[name] = Value(name, TensorType(tuple(shape), dtype), Constant(data, stored))


def _dequantized(
    quantization: Mapping[str, Any], dtype: DType, shards: _Shards, count: int, what: str
) -> tuple[memoryview, DType]:
    """Bytes, and the type that these have: float16 stays as it is, levels become stored * scale + min."""
    kind = part(quantization, "dtype", str, what)
    if kind not in _QUANTIZED or dtype is DType.BOOL or (kind == "float16" and dtype is not DType.FLOAT32):
        damaged(f"{what}: {dtype} stored as {safe_name(kind)} is not known")
    data = shards.take(count * _QUANTIZED[kind], what)
    if kind == "float16":
        if count > _SMALL:
            return data, DType.FLOAT16
        return memoryview(pack(struct.unpack(f"<{count}e", data), dtype)), dtype
    scale, least = (quantization.get(key) for key in ("scale", "min"))
    numbers = [float(n) for n in (scale, least) if isinstance(n, (int, float)) and abs(n) < math.inf]
    if len(numbers) != 2:
        damaged(f"{what}: scale {scale!r} and min {least!r} must be numbers")
    words = array("H", bytes(data)) if kind == "uint16" else array("B")
    known = sorted(set(words)) if kind == "uint16" else range(256)
    levels = [n * numbers[0] + numbers[1] for n in known]
    if dtype is DType.INT32:
        levels = [min(max(math.floor(n + 0.5), -(2**31)), 2**31 - 1) for n in levels]
    table = pack(levels, dtype)
    if kind == "uint16":
        meanings = dict(zip(known, memoryview(table).cast("I"), strict=True))
        return memoryview(array("I", map(meanings.__getitem__, words))).cast("B"), dtype
    result = bytearray(4 * count)
    for i in range(4):  # byte by byte, as a table of 256 says
        result[i::4] = bytes(data).translate(table[i::4])
    return memoryview(result), dtype
