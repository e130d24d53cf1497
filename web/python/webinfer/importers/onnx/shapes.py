"""ONNX operators whose results are known while the model is read: shapes, sizes, ranges, filled tensors."""

from __future__ import annotations

import math
import struct
from functools import lru_cache

from webinfer.dtypes import DType
from webinfer.graph.dims import has_size, whole
from webinfer.graph.ir import Constant, TensorType, Value
from webinfer.importers.core.limits import MAX_RANK, MAX_READ, check_bytes, within
from webinfer.importers.core.nonzero import not_zero
from webinfer.importers.core.spans import sized_range
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.importers.onnx.tensors import dtype_of
from webinfer.ops import elementwise as ew

FILLED = 65536  # elements of a filled tensor that are written out; larger ones are expanded from one


def _shape(op: Operation) -> Value:
    shape = op.arranged(0).shape
    start, end = op.whole("start", 0), op.whole("end", len(shape))
    return op.constant(shape[slice(start, end)], DType.INT64)


def _size(op: Operation) -> Value:
    return op.scalar_of(math.prod(op.arranged(0).shape), DType.INT64)


def _constant(op: Operation) -> Value:
    if (tensor := op.tensor("value")) is not None:
        return tensor
    given = op.attributes
    if "value_float" in given:
        return op.scalar_of(op.real("value_float", 0.0), DType.FLOAT32)
    if "value_int" in given:
        return op.scalar_of(op.whole("value_int", 0), DType.INT64)
    if "value_floats" in given:
        return op.constant(op.reals("value_floats") or (), DType.FLOAT32)
    if "value_ints" in given:
        return op.constant(op.wholes("value_ints") or (), DType.INT64)
    op.refuse(f"a constant of kind {', '.join(sorted(given)) or 'none'}")


def filled(op: Operation, number: float, dtype: DType, shape: tuple[int, ...]) -> Value:
    """A tensor of one number."""
    if any(d < 0 for d in shape):
        op.fail(f"shape {shape} has a negative size")
    within("rank", len(shape), MAX_RANK, "use tensors of fewer dimensions")
    check_bytes(shape, dtype, op.what)
    one = op.scalar_of(number, dtype)
    if has_size(shape) or math.prod(shape) > FILLED:
        return op.expand(one, shape)
    assert one.constant is not None
    kind = TensorType(shape, dtype)
    return Value("filled", kind, Constant(memoryview(_repeated(bytes(one.constant.data), kind.size)), dtype))


@lru_cache(64)
def _repeated(one: bytes, count: int) -> bytes:
    """The same bytes for all that are filled alike: a voice of 2,755 nodes holds 217 such constants, 3 MB."""
    return one * count


def _constant_of_shape(op: Operation) -> Value:
    value = op.tensor("value")
    shape = op.integers(0)
    if value is None:
        return filled(op, 0.0, DType.FLOAT32, shape)
    if value.type.size != 1:
        op.fail(f"value has shape {value.type.shape}, needs one number")
    return filled(op, value.numbers()[0], value.type.dtype, shape)


def _range(op: Operation) -> Value:
    start, limit = op.scalar(0), op.scalar(1)
    step = op.scalar(2) if op.optional(2) is not None else 1  # which ONNX Runtime's own Range may lack
    dtype = op.value(0).type.dtype
    if dtype not in (DType.FLOAT32, DType.FLOAT16, DType.INT32, DType.INT64, DType.INT16):
        op.refuse(f"a range of {dtype}")
    if step == 0:
        op.fail("a range of step 0")
    if has_size((start, limit, step)):
        return sized_range(op, whole(start), whole(limit), int(step), dtype)
    count = max(math.ceil((limit - start) / step), 0)
    within("elements of a range", count, MAX_READ, "use a smaller model")
    return op.constant([start + i * step for i in range(count)], dtype)


def _eye_like(op: Operation) -> Value:
    shape = op.arranged(0).shape
    if len(shape) != 2:
        op.fail(f"{shape} is not a matrix")
    kind = op.whole("dtype", 0)
    dtype = dtype_of(kind, "dtype").inner if kind else op.kind
    within("elements of an identity matrix", math.prod(shape), MAX_READ, "use a smaller model")
    diagonal = op.whole("k", 0)
    if has_size(shape):  # where the row's number is the column's
        height, width = shape
        rows = op.reshape(sized_range(op, 0, height, 1, DType.INT32), (height, 1))
        columns = op.reshape(sized_range(op, -diagonal, width - diagonal, 1, DType.INT32), (1, width))
        return op.cast(op.binary(ew.EQUAL, rows, columns), dtype)
    numbers = [int(column - row == diagonal) for row in range(shape[0]) for column in range(shape[1])]
    return op.constant(numbers, dtype, shape)


def _non_zero(op: Operation) -> Value:
    """Positions of what is not zero."""
    if not op.known(0):
        return not_zero(op, op.value(0), 0)
    numbers, shape = op._constants(0), op.value(0).type.shape
    found = [i for i, n in enumerate(numbers) if n]
    rows, step = [], math.prod(shape)
    for size in shape:
        step //= max(size, 1)
        rows += [i // step % size for i in found]
    data = struct.pack(f"<{len(rows)}q", *rows)
    return Value(
        "positions", TensorType((len(shape), len(found)), DType.INT64), Constant(memoryview(data), DType.INT64)
    )


CONVERTERS: dict[str, Convert] = {
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "EyeLike": _eye_like,
    "NonZero": _non_zero,
    "Range": _range,
    "Shape": _shape,
    "Size": _size,
    "com.microsoft.Range": _range,
}
