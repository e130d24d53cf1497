"""Tensors of an ONNX file as constants: views of the file's bytes wherever it stores elements side by side."""

from __future__ import annotations

import struct

from webinfer.dtypes import DType
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Constant, TensorType, Value
from webinfer.graph.printer import safe_name
from webinfer.importers.core.files_beside import Files, bytes_beside
from webinfer.importers.core.limits import MAX_RANK, check_bytes, within
from webinfer.importers.core.problems import Refusal
from webinfer.importers.onnx.model import GraphInfo, Tensor, read_file
from webinfer.importers.readers.protobuf import signed, varints
from webinfer.packing import file_bytes, spread, to_inner

DTYPES = {
    1: DType.FLOAT32, 2: DType.UINT8, 3: DType.INT8, 4: DType.UINT16, 5: DType.INT16, 6: DType.INT32, 7: DType.INT64,
    9: DType.BOOL, 10: DType.FLOAT16, 11: DType.FLOAT64, 12: DType.UINT32, 13: DType.UINT64, 16: DType.BFLOAT16,
    17: DType.FLOAT8_E4M3FN, 18: DType.FLOAT8_E4M3FNUZ, 19: DType.FLOAT8_E5M2, 20: DType.FLOAT8_E5M2FNUZ,
    21: DType.UINT4, 22: DType.INT4, 23: DType.FLOAT4_E2M1FN, 24: DType.FLOAT8_E8M0FNU, 25: DType.UINT2,
    26: DType.INT2,
}  # fmt: skip
NAMES = {0: "undefined", 8: "string", 14: "complex64", 15: "complex128"}
MAX_FILES = 1000
External = Files


def dtype_of(kind: int, what: str) -> DType:
    """The element type of that number in the file.

    Raises:  Refusal naming the type if there is none in the engine
    """
    if kind not in DTYPES:
        raise Refusal(f"{what}: element type {NAMES.get(kind, kind)}")
    return DTYPES[kind]


def constant_of(tensor: Tensor, name: str, external: External) -> Value:
    """The tensor as a constant, in the type that its elements are computed in.

    Raises:  Refusal for element types that the engine lacks; ModelFormatError if the elements do not fill the shape
    """
    what = f"tensor {safe_name(name)}"
    dtype = dtype_of(tensor.kind, what)
    if any(d < 0 for d in tensor.dims):
        raise ModelFormatError(f"{what} has shape {tensor.dims}; sizes are 0 or more")
    within(f"{what}: rank", len(tensor.dims), MAX_RANK, "use tensors of fewer dimensions")
    check_bytes(tensor.dims, dtype, what)
    type = TensorType(tuple(tensor.dims), dtype.inner)
    needed = file_bytes(dtype, type.size)
    data = _external(tensor, what, external, needed) if tensor.is_external else _bytes(tensor, dtype, type.size, what)
    if data.nbytes != needed:
        raise ModelFormatError(f"{what} has {data.nbytes} bytes, its shape {type.shape} of {dtype} needs {needed}")
    if dtype is DType.BOOL and any(byte > 1 for byte in bytes(data)):
        data = memoryview(bytes(byte != 0 for byte in data))
    if type.dtype is not dtype:
        data = to_inner(spread(data, dtype, type.size), dtype)
    return Value(name, type, Constant(data, type.dtype))


def _external(tensor: Tensor, what: str, external: External, nbytes: int) -> memoryview:
    """The tensor's bytes in a file beside the model."""
    place = tensor.external.get("location", "")
    data = bytes_beside(external, place, what)
    try:
        start = int(tensor.external.get("offset") or 0)
        length = int(tensor.external.get("length") or nbytes)
    except ValueError as error:
        raise ModelFormatError(f"{what}: offset and length in {safe_name(place)} are not numbers") from error
    if not 0 <= start <= len(data) or not 0 <= length <= len(data) - start:
        raise ModelFormatError(
            f"{what}: {length} bytes from byte {start} leave {safe_name(place)}, which has {len(data)} bytes"
        )
    return data[start : start + length]


def _bytes(tensor: Tensor, dtype: DType, count: int, what: str) -> memoryview:
    """The elements as bytes, from whichever list holds them."""
    if tensor.raw is not None:
        return tensor.raw
    if tensor.floats:
        if dtype is not (DType.FLOAT64 if tensor.is_double else DType.FLOAT32):
            raise ModelFormatError(f"{what} of {dtype} holds floats")
        return tensor.floats[0] if len(tensor.floats) == 1 else memoryview(b"".join(tensor.floats))
    return _packed(tensor, dtype, count, what)


def _packed(tensor: Tensor, dtype: DType, count: int, what: str) -> memoryview:
    """The elements that the file stores as numbers of any length."""
    numbers = list(tensor.loose)
    for packed in tensor.varints:
        numbers += varints(packed, what)
        if len(numbers) > count:
            break
    if dtype in (DType.FLOAT32, DType.FLOAT64):
        if numbers:
            raise ModelFormatError(f"{what} of {dtype} holds integers")
        return memoryview(b"")
    if dtype in (DType.FLOAT16, DType.BFLOAT16):
        return memoryview(struct.pack(f"<{len(numbers)}H", *(n & 0xFFFF for n in numbers)))
    if dtype.inner is not dtype:  # bytes, as a file without lists has them
        return memoryview(bytes(n & 0xFF for n in numbers))
    if dtype is DType.UINT64:
        return memoryview(struct.pack(f"<{len(numbers)}Q", *numbers))
    low, high = dtype.range
    whole = [signed(n) for n in numbers] if max(numbers, default=0) >> 63 else numbers
    if whole and not low <= min(whole) <= max(whole) <= high:
        raise ModelFormatError(f"{what} holds numbers beyond {dtype}")
    return memoryview(struct.pack(f"<{len(whole)}{dtype.letter}", *whole))


def files_beside(data: memoryview, name: str) -> list[str]:
    """The names of the files that hold tensors of the model.

    Raises:  ModelFormatError if the bytes break a rule; LimitError
    """
    found: dict[str, None] = {}
    model = read_file(data, name)
    waiting = [model.graph, *model.functions.values()]
    while waiting:
        graph = waiting.pop()
        given = [graph.defaults, *(node.attributes for node in graph.nodes)]
        values = [a.value for attributes in given for a in attributes.values()]
        values = [part for v in values for part in (v if isinstance(v, list) else (v,))]
        waiting += [v for v in values if isinstance(v, GraphInfo)]
        tensors = [*graph.tensors.values(), *(v for v in values if isinstance(v, Tensor))]
        found |= dict.fromkeys(t.external.get("location", "") for t in tensors if t.is_external)
    within("files beside the model", len(found), MAX_FILES, "join them")
    return list(found)
