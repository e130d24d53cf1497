"""ONNX operators that name the scales of what they read and write, and products with packed weights.

They become real numbers, an operator, and integers again; a pass makes them one operator of integers.

Source:  onnx v1.23, QLinearConv-10, QLinearMatMul-21; onnxruntime v1.31, docs/ContribOperators.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import itemgetter

from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Quantization, TensorType, Value
from webinfer.importers.onnx import conv, elementwise, matmul, pool, reduce, softmax
from webinfer.importers.onnx.layouts import arranged, channels_last
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.importers.onnx.packed_bits import in_halves, packed_rows, unpacked
from webinfer.importers.onnx.quantized import (
    BYTES,
    exact_qlinear_conv,
    exact_qlinear_matmul,
    real_of,
    scales_of,
    stored_as,
)
from webinfer.ops import elementwise as ew
from webinfer.ops import gather
from webinfer.ops import packed_matmul as pk
from webinfer.ops.registry import NoAttrs

_TABLES = {**conv.CONVERTERS, **elementwise.CONVERTERS, **matmul.CONVERTERS, **pool.CONVERTERS, **reduce.CONVERTERS,
           **softmax.CONVERTERS, "QLinearAveragePool": pool.average_of_whole_windows}  # fmt: skip


def _real(op: Operation, key: int, scale: int, axis: int = 0) -> Value:
    """The real numbers of an input, whose scale and zero point are inputs `scale` and `scale + 1`."""
    x = op.value(key)
    quant = scales_of(op, x, x.type.dtype, scale, axis)
    if quant is None or x.type.dtype not in BYTES or (quant.axis is not None and not x.is_constant):
        _check_scale(op, scale)
        op.refuse(f"{x.type} with scales that are computed, or one for each part of an axis")
    if x.is_constant:
        return real_of(op, Value(x.name, TensorType(x.type.shape, x.type.dtype, quant), x.constant))
    return op.each(lambda x: real_of(op, stored_as(op, x, quant)), key)


def _stored(op: Operation, y: Value, scale: int) -> Value:
    """y as integers, whose scale and zero point are inputs `scale` and `scale + 1`."""
    zero = op.optional(scale + 1)
    dtype = zero.type.dtype if zero is not None else op.kind
    quant = scales_of(op, None, dtype, scale)
    if quant is None or dtype not in BYTES:
        _check_scale(op, scale)
        op.refuse(f"a result of {dtype} whose scale is computed")
    given = arranged(y)
    return op.view(stored_as(op, op.emit(ew.QUANTIZE, [given.value], ew.CastAttrs(dtype, quant)), None), given.perm)


def _check_scale(op: Operation, key: int) -> None:
    """Refuses a known scale that is no positive number: ONNX Runtime's quantizer writes infinity beside full masks."""
    wrong = [number for number in op.value(key).numbers() if not 0 < number < math.inf] if op.known(key) else []
    if wrong:
        op.refuse(f"a scale of {wrong[0]:g}")


def _inside(op: Operation, kind: str, values: Sequence[Value | None]) -> Value:
    """What the operator of that name makes of these values, with the attributes of this one."""
    y = _TABLES[kind](op.standing_for(kind, "", op.opset if op.info.domain == "" else 13, values))
    return y if isinstance(y, Value) else next(iter(y))


def _one(kind: str) -> Convert:
    """An operator of one operand: x, its scale and zero point, those of y."""
    return lambda op: _stored(op, _as_laid_out(op, _inside(op, kind, [_channels_first(op, _real(op, 0, 1))])), 3)


def _channels_first(op: Operation, x: Value) -> Value:
    """An image of the file as [N, C, ...], which is how the operator inside reads it."""
    return op.channels_first(op.dense(x)) if op.whole("channels_last", 0) else x


def _as_laid_out(op: Operation, y: Value) -> Value:
    """An image [N, C, ...] as the file has it."""
    return op.like(arranged(y), channels_last(y.type.rank)) if op.whole("channels_last", 0) else y


def _two(kind: str) -> Convert:
    """An operator of two operands: each with its scale and zero point, then those of y."""
    return lambda op: _stored(op, _inside(op, kind, [_real(op, 0, 1), _real(op, 3, 4)]), 6)


def _where(op: Operation) -> Value:
    """Elements of x or y, as a condition says: each with its scale and zero point, then those of z."""
    values = [op.dense(_real(op, key, key + 1)) for key in (1, 4)]
    return _stored(op, op.emit(ew.WHERE, [op.value(0), *values], NoAttrs()), 7)


def _concat(op: Operation) -> Value:
    parts = [_real(op, key, key + 1) for key in range(2, len(op.inputs), 3)]
    axis = op.axis(op.whole("axis", 0), parts[0].type.rank)
    return _stored(op, op.concat([op.dense(part) for part in parts], axis), 0)


def _bias(op: Operation, key: int, x: Value, w: Value) -> Value | None:
    """An int32 bias in the scale of the products."""
    bias = op.optional(key)
    if bias is None:
        return None
    steps = scales_of(op, None, DType.INT8, 1), scales_of(op, w, w.type.dtype, 4, 0)
    if None in steps or not bias.is_constant or bias.type.dtype is not DType.INT32:
        op.refuse("a bias that is computed, or of another type than int32")
    first, second = steps
    assert first is not None
    assert second is not None
    scales = tuple(first.scales[0] * s for s in second.scales)
    quant = Quantization(scales, (0,) * len(scales), None if len(scales) == 1 else 0)
    return real_of(op, Value(bias.name, TensorType(bias.type.shape, DType.INT32, quant), bias.constant))


def _conv(op: Operation) -> Value:
    if not _known(op, (1, 2, 4, 5, 6, 7)):
        if op.whole("channels_last", 0):
            op.refuse("images with channels last and scales that are computed")
        return exact_qlinear_conv(op)
    x, w = _channels_first(op, _real(op, 0, 1)), _real(op, 3, 4)
    return _stored(op, _as_laid_out(op, _inside(op, "Conv", [x, w, _bias(op, 8, x, op.value(3))])), 6)


def _known(op: Operation, keys: Sequence[int]) -> bool:
    return all(op.optional(key) is None or op.known(key) for key in keys)


def _product(op: Operation) -> Value:
    sizes = [op.value(key).type.size for key in (1, 6)]
    if not _known(op, (1, 2, 4, 5, 6, 7)) or max(sizes) > 1 or not (op.known(3) or op.value(4).type.size == 1):
        return exact_qlinear_matmul(op)
    return _stored(op, _inside(op, "MatMul", [_real(op, 0, 1), _real(op, 3, 4, -1)]), 6)


def _gemm(op: Operation) -> Value:
    """Inputs a, b and the bias c; without a scale of y the result stays real."""
    alpha = op.real("alpha", 1.0)
    if alpha != 1.0 or len(op.value(3).type.shape) != 2:
        op.refuse(f"alpha {alpha}")
    turned = bool(op.whole("transB", 0))
    w = op.value(3)
    a, b = _real(op, 0, 1), _real(op, 3, 4, 0 if turned else 1)
    y = _inside(op, "Gemm", [a, b, _bias(op, 6, a, w)])
    return y if op.optional(7) is None else _stored(op, y, 7)


# ---- packed weights


def _matmul_nbits(op: Operation) -> Value:
    """x times a matrix [N, K] of 2, 4 or 8 bits with a scale for each block of a row."""
    x, w, scales, zeros, bias = op.value(0), op.value(1), op.value(2), op.optional(3), op.optional(5)
    k, n, bits, block = (
        op.whole(name, default) for name, default in (("K", 0), ("N", 0), ("bits", 4), ("block_size", 0))
    )
    if bits not in (2, 4, 8):
        op.refuse(f"weights of {bits} bits")
    if min(k, n) < 1 or block < 16:
        op.fail(f"a matrix of {n} x {k} in blocks of {block}")
    blocks = -(-k // block)
    if bits == 2:
        bits, w, zeros = 4, in_halves(op, w), _zeros_of_quarters(op, zeros, (n, blocks), x.type.dtype)
    elif zeros is not None and zeros.type.dtype is DType.UINT8:
        zeros = op.cast(zeros, x.type.dtype)
        if bits == 4:
            rows = op.reshape(zeros, (n, -(-blocks // 2)))
            high = op.unary(ew.FLOOR, op.unary(ew.LINEAR, rows, 1 / 16))
            low = op.binary(ew.SUB, rows, op.unary(ew.LINEAR, high, 16.0))
            zeros = op.cut(op.reshape(op.stack([low, high], 2), (n, 2 * -(-blocks // 2))), 1, 0, blocks)
    parts = [None if v is None else _shaped(op, v, (n, blocks)) for v in (scales, zeros)]
    packed = _shaped(op, w, (n, blocks * block * bits // 8))
    if op.optional(4) is not None:
        x, packed = _by_groups(op, x, packed, bits, block)
    return op.emit(pk.PACKED_MATMUL, [x, packed, *parts, bias], pk.PackedMatmulAttrs(bits, block))


def _by_groups(op: Operation, x: Value, w: Value, bits: int, block: int) -> tuple[Value, Value]:
    """x and the weights with their columns in the order of the groups that share a scale, which input 4 tells of each.

    Quantisers that go by a column's importance (GPTQ with `desc_act`) write such files.
    """
    k, groups = x.type.shape[-1], op.integers(4)
    if len(groups) < k:
        op.fail(f"groups of {len(groups)} columns, of {k}")
    order = sorted(range(k), key=groups.__getitem__)
    if any(groups[column] != place // block for place, column in enumerate(order)):
        op.refuse(f"groups of other sizes than {block}")
    if order == list(range(k)):
        return x, w
    n, stored = w.type.shape[0], w.type.shape[1] * 8 // bits
    numbers = unpacked(op, w, bits, (1, n, stored), rows=True)
    assert numbers.constant is not None
    moved, data = itemgetter(*order, *range(k, stored)), bytes(numbers.constant.data)
    rows = [bytes(moved(data[start : start + stored])) for start in range(0, len(data), stored)]
    packed = Constant(memoryview(packed_rows(rows, bits)), DType.UINT8)
    places = op.constant(order, DType.INT32)
    x = op.emit(gather.GATHER, [x, places], gather.GatherAttrs(x.type.rank - 1))
    return x, Value(w.name, w.type, packed)


def _zeros_of_quarters(op: Operation, zeros: Value | None, shape: tuple[int, int], dtype: DType) -> Value:
    """The zero points of weights of 2 bits as numbers: 2 where none are given, four in a byte, or as they are."""
    n, blocks = shape
    if zeros is None:
        return op.constant([2.0] * (n * blocks), dtype, shape)
    if zeros.type.dtype is not DType.UINT8:
        return zeros
    return op.reshape(op.cast(unpacked(op, zeros, 2, (1, n, blocks), rows=True), dtype), shape)


def _shaped(op: Operation, x: Value, shape: tuple[int, int]) -> Value:
    """x in that shape; constants stay constants."""
    if not x.is_constant or x.type.size != shape[0] * shape[1]:
        return op.reshape(x, shape)
    return Value(x.name, TensorType(shape, x.type.dtype), x.constant)


CONVERTERS: dict[str, Convert] = {
    "QLinearConv": _conv,
    "QLinearMatMul": _product,
    "com.microsoft.MatMulNBits": _matmul_nbits,
    "com.microsoft.QGemm": _gemm,
    "com.microsoft.QLinearAdd": _two("Add"),
    "com.microsoft.QLinearAveragePool": _one("QLinearAveragePool"),
    "com.microsoft.QLinearConcat": _concat,
    "com.microsoft.QLinearConv": _conv,
    "com.microsoft.QLinearGlobalAveragePool": _one("GlobalAveragePool"),
    "com.microsoft.QLinearLeakyRelu": _one("LeakyRelu"),
    "com.microsoft.QLinearMul": _two("Mul"),
    "com.microsoft.QLinearReduceMean": _one("ReduceMean"),
    "com.microsoft.QLinearSigmoid": _one("Sigmoid"),
    "com.microsoft.QLinearSoftmax": _one("Softmax"),
    "com.microsoft.QLinearWhere": _where,
}
