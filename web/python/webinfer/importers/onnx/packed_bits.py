"""Constants of 2, 4 or 8 bits, several in a byte, the first in its lowest bits."""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, TensorType, Value
from webinfer.importers.onnx.operation import Operation

_QUARTERS = bytes(b & 3 | (b & 12) << 2 for b in range(256)), bytes(b >> 4 & 3 | (b & 192) >> 2 for b in range(256))


def in_halves(op: Operation, w: Value) -> Value:
    """Constant weights of 2 bits as such of 4."""
    if w.constant is None or w.type.dtype is not DType.UINT8:
        op.refuse("weights of 2 bits that are computed")
    data = bytearray(2 * w.type.size)
    data[0::2], data[1::2] = (bytes(w.constant.data).translate(table) for table in _QUARTERS)
    return Value(w.name, TensorType((len(data),), DType.UINT8), Constant(memoryview(data), DType.UINT8))


def unpacked(op: Operation, x: Value, bits: int, shape: tuple[int, int, int], rows: bool) -> Value:
    """A constant's numbers as bytes of that shape; each row of the last axis begins a byte, or each of the last two."""
    count, n, width = shape
    length = width if rows else n * width  # numbers from one whole byte to the next
    per_byte, lines = 8 // bits, count * n * width // max(length, 1)
    stored = -(-length // per_byte)
    if x.constant is None or x.type.dtype is not DType.UINT8 or x.type.size != lines * stored:
        op.refuse(f"zero points {x.type} of {bits} bits for {shape}")
    data = bytearray(x.type.size * per_byte)
    for i in range(per_byte):
        table = bytes(b >> (i * bits) & (1 << bits) - 1 for b in range(256))
        data[i::per_byte] = bytes(x.constant.data).translate(table)
    wide = stored * per_byte
    if wide != length:
        data = bytearray(b"".join(data[line * wide : line * wide + length] for line in range(lines)))
    return Value(x.name, TensorType(shape, DType.UINT8), Constant(memoryview(data), DType.UINT8))


def packed_rows(rows: Sequence[bytes], bits: int) -> bytes:
    """Rows of numbers, a byte each, several in a byte; each row is a whole number of bytes."""
    packed = []
    for row in rows:
        together = sum(int.from_bytes(row[i :: 8 // bits], "little") << i * bits for i in range(8 // bits))
        packed.append(together.to_bytes(len(row) * bits // 8, "little"))
    return b"".join(packed)
