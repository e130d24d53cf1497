"""Operators that ONNX Runtime's optimisers write: layers with what was fused into them, tables of packed weights.

Source:  onnxruntime v1.31, docs/ContribOperators.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.onnx import attention, conv, matmul, recurrent
from webinfer.importers.onnx.layouts import arranged
from webinfer.importers.onnx.normalization import layer_normalized
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import gather
from webinfer.ops import reduce as red

_PLAIN = {"Relu": ew.RELU, "Sigmoid": ew.SIGMOID, "Tanh": ew.TANH}
_TUNED = {  # with their usual numbers
    "Clip": (ew.CLAMP, (-math.inf, math.inf)),
    "HardSigmoid": (ew.HARD_SIGMOID, (0.2, 0.5)),
    "LeakyRelu": (ew.LEAKY_RELU, (0.01,)),
}


def _activated(op: Operation, y: Value, given: Sequence[float]) -> Value:
    """y behind the activation that an attribute names; `given` are its numbers, as far as the file says them."""
    name = op.word("activation", "")
    if not name:
        return y
    if name not in _PLAIN and name not in _TUNED:
        op.refuse(f"activation {name[:40]}")
    kind, usual = _TUNED[name] if name in _TUNED else (_PLAIN[name], ())
    numbers = [*given, *usual[len(given) :]][: len(usual)]
    found = arranged(y)
    if name == "Clip":
        if numbers[0] > numbers[1]:
            op.fail(f"bounds {numbers}")
        return op.view(op.clamp(found.value, *numbers), found.perm)
    return op.view(op.unary(kind, found.value, *numbers), found.perm)


def _fused_conv(op: Operation) -> Value:
    """A convolution, a tensor that is added to it, and an activation."""
    y = conv.CONVERTERS["Conv"](op)
    assert isinstance(y, Value)
    if op.optional(3) is not None:
        found = arranged(y)
        if op.arranged(3).shape != y.type.shape:
            op.fail(f"{op.arranged(3).shape} is added to {y.type.shape}")
        y = op.view(op.binary(ew.ADD, found.value, op.like(op.arranged(3), found.perm)), found.perm)
    return _activated(op, y, op.reals("activation_params") or ())


def _fused_gemm(op: Operation) -> Value:
    y = matmul.CONVERTERS["Gemm"](op)
    assert isinstance(y, Value)
    names = ("activation_alpha", "activation_beta", "activation_gamma")
    return _activated(op, y, [op.real(name, 0.0) for name in names if name in op.attributes])


def _embedding(op: Operation) -> list[Value]:
    """The layer norm of the sum of the rows of tables for words, places and segments; how many words count; the sum."""
    words, segments, mask = op.value(0), op.optional(1), op.optional(7)
    if words.type.rank != 2:
        op.fail(f"words {words.type.shape}, needs [N, L]")
    n, length = words.type.shape

    def rows(table: Value, places: Value) -> Value:
        return op.emit(gather.GATHER, [table, places], gather.GatherAttrs(0))

    total = rows(op.value(2), words)
    if op.optional(8) is not None:
        places = rows(op.value(3), op.value(8))
    else:
        if op.value(3).type.rank != 2 or op.value(3).type.shape[0] < length:
            op.fail(f"places {op.value(3).type.shape} for {length} words")
        places = op.cut(op.value(3), 0, 0, length)
    total = op.binary(ew.ADD, total, places)
    if segments is not None:
        total = op.binary(ew.ADD, total, rows(op.value(4), segments))
    y, _, _ = layer_normalized(op, total, 2, op.value(5), op.value(6), op.real("epsilon", 1e-12))
    if mask is None:
        return [y, op.zeros((n,), DType.INT32), total]
    counts = op.emit(red.REDUCE_SUM, [op.cast(mask, DType.INT32)], red.ReduceAttrs((1,), False))
    return [y, counts, total]


def _integer_attention(op: Operation) -> Value | Sequence[Value]:
    """Attention whose input and weights are bytes with scales; sums of their products are floats."""
    x, w, bias, mask, past = op.value(0), op.value(1), op.optional(2), op.optional(5), op.optional(8)

    def real(x: Value, scale: int, zero: int) -> Value:
        y = op.cast(x, DType.FLOAT32)
        if op.optional(zero) is not None:
            y = op.binary(ew.SUB, y, op.cast(op.value(zero), DType.FLOAT32))
        y = op.binary(ew.MUL, y, op.cast(op.value(scale), DType.FLOAT32))
        return op.cast(y, op.value(scale).type.dtype)

    values = [real(x, 3, 6), real(w, 4, 7), bias, mask, past]
    inner = op.standing_for("Attention", "com.microsoft", op.opset, values)
    return attention.CONVERTERS["com.microsoft.Attention"](inner)


def _byte_lstm(op: Operation) -> Value | Sequence[Value]:
    """An LSTM whose weights [D, I, 4*H] are bytes, in real numbers; x and its state may be rounded to bytes."""

    def real(key: int, scale: int) -> Value:
        x = op.value(key)
        if x.type.rank != 3 or x.type.dtype not in (DType.INT8, DType.UINT8):
            op.fail(f"weights {x.type}")
        y = op.cast(x, DType.FLOAT32)
        for kind, number in ((ew.SUB, op.optional(scale + 1)), (ew.MUL, op.value(scale))):
            if number is None:
                continue
            shape = number.type.shape
            if shape not in ((), (1,), x.type.shape[:1], (x.type.shape[0], x.type.shape[2])):
                op.fail(f"scales {shape} of weights {x.type.shape}")
            wide = op.reshape(number, (shape[0] if shape else 1, 1, shape[1] if len(shape) == 2 else 1))
            y = op.binary(kind, y, op.cast(wide, DType.FLOAT32))
        return op.transpose(y, (0, 2, 1))

    values = [op.value(0), real(1, 8), real(2, 10), *(op.optional(key) for key in range(3, 8))]
    return recurrent.rounded_lstm(op.standing_for("LSTM", "", 14, values))


def _gathered_blocks(op: Operation) -> Value:
    """Rows of a table of 2, 4 or 8 bits with a scale for each block of a row, as real numbers."""
    table, places, scales, zeros = op.value(0), op.value(1), op.value(2), op.optional(3)
    bits, block = op.whole("bits", 4), op.whole("block_size", 128)
    packed = table.type.dtype is DType.UINT8 and op.file_type(0) is DType.UINT8 and bits in (2, 4)
    if table.type.rank != 2 or op.whole("gather_axis", 0) or op.axis(op.whole("quantize_axis", 1), 2) != 1:
        op.refuse(f"blocks of a table {table.type.shape} along other axes than the last")
    if bits not in (2, 4, 8) or block < 16:
        op.refuse(f"weights of {bits} bits in blocks of {block}")
    width = table.type.shape[1] * (8 // bits if packed else 1)
    blocks = -(-width // block)
    if scales.type.shape != (table.type.shape[0], blocks) or width % block:
        op.refuse(f"scales {scales.type.shape} of a table {table.type.shape} in blocks of {block}")

    def rows(x: Value, count: int) -> Value:
        found = op.cast(op.emit(gather.GATHER, [x, places], gather.GatherAttrs(0)), DType.FLOAT32)
        if packed and x is not scales:
            size, parts = float(1 << bits), []
            for _ in range(8 // bits):
                high = op.unary(ew.FLOOR, op.unary(ew.LINEAR, found, 1 / size))
                parts.append(op.binary(ew.SUB, found, op.unary(ew.LINEAR, high, size)))
                found = high
            found = op.stack(parts, found.type.rank)
            found = op.reshape(found, (*places.type.shape, found.type.shape[-2] * len(parts)))
            found = op.cut(found, found.type.rank - 1, 0, count)
        return found

    y = op.reshape(rows(table, width), (*places.type.shape, blocks, block))
    if zeros is not None:
        y = op.binary(ew.SUB, y, op.reshape(rows(zeros, blocks), (*places.type.shape, blocks, 1)))
    elif op.file_type(0) is DType.UINT8:  # of uint4 the zero point is 0
        y = op.unary(ew.LINEAR, y, 1.0, -float(1 << (bits - 1)))
    y = op.binary(ew.MUL, y, op.reshape(rows(scales, blocks), (*places.type.shape, blocks, 1)))
    return op.cast(op.reshape(y, (*places.type.shape, width)), scales.type.dtype)


CONVERTERS: dict[str, Convert] = {
    "com.microsoft.DynamicQuantizeLSTM": _byte_lstm,
    "com.microsoft.EmbedLayerNormalization": _embedding,
    "com.microsoft.FusedConv": _fused_conv,
    "com.microsoft.FusedGemm": _fused_gemm,
    "com.microsoft.GatherBlockQuantized": _gathered_blocks,
    "com.microsoft.QAttention": _integer_attention,
}
