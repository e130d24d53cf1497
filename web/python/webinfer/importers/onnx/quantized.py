"""ONNX operators on integers that stand for real numbers, computed as their definitions say.

Products of 8-bit integers are exact: float32 adds so few of them that it holds every sum (`exact_products`), and
these sums are added as int32.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Quantization, TensorType, Value
from webinfer.importers.core.narrow import narrowed
from webinfer.importers.core.windows import padded
from webinfer.importers.onnx import conv
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.importers.onnx.tensors import dtype_of
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul as mm
from webinfer.ops import reduce as red
from webinfer.ops import stored_matmul as st
from webinfer.packing import SMALL_FLOATS

EXACT_SUM = 2**24  # float32 holds every whole number up to here
EXACT_PRODUCTS = EXACT_SUM // (255 * 255) // 4 * 4  # of any bytes less any zero points, in whole quads
MAX_SCALES = 65536
# Of a convolution whose windows are worth writing down: of 3 channels they take 2.4 to 7.7 times as long on webgpu.
LEAST_CHANNELS, LEAST_OUTPUTS = 16, 8
BYTES = (DType.INT8, DType.UINT8)


def _spread(op: Operation, x: Value, shape: tuple[int, ...], axis: int, block: int) -> Value:
    """A scale or zero point made to broadcast: one number, one for each element of an axis, or one a block of it."""
    if x.type.size == 1 and x.type.rank <= 1:
        return op.reshape(x, ())
    axis = op.axis(axis, len(shape))
    if block:
        if x.type.rank != len(shape) or x.type.shape[axis] != -(-shape[axis] // block):
            op.fail(f"scales {x.type.shape} do not fit blocks of {block} along axis {axis} of {shape}")
        parts = x.type.shape
        wide = op.reshape(x, (*parts[: axis + 1], 1, *parts[axis + 1 :]))
        wide = op.expand(wide, (*parts[: axis + 1], block, *parts[axis + 1 :]))
        full = op.reshape(wide, (*parts[:axis], parts[axis] * block, *parts[axis + 1 :]))
        return op.cut(full, axis, 0, shape[axis]) if full.type.shape != shape else full
    if x.type.shape != (shape[axis],):
        op.fail(f"scales {x.type.shape} do not fit axis {axis} of {shape}")
    return op.reshape(x, [d if i == axis else 1 for i, d in enumerate(shape)])


def stored_as(op: Operation, x: Value, quant: Quantization | None) -> Value:
    """The same integers with another scale, or with none."""
    return op.emit(ew.CAST, [x], ew.CastAttrs(x.type.dtype, quant))


def real_of(op: Operation, x: Value) -> Value:
    """The real numbers that stored integers stand for."""
    return op.emit(ew.DEQUANTIZE, [x], ew.CastAttrs(DType.FLOAT32))


def quantized(op: Operation, x: Value, scale: Value, zero: Value | None, dtype: DType) -> Value:
    """clamp(round(x / scale) + zero point), rounded to even"""
    if dtype.is_float and dtype.inner is not dtype:
        if zero is not None and (zero.constant is None or any(zero.numbers())):
            op.refuse(f"quantisation to {dtype} with a zero point")
        return narrowed(op, op.binary(ew.DIV, x, scale), dtype, bool(op.whole("saturate", 1)))
    if dtype.inner not in (*BYTES, DType.INT16, DType.UINT16):
        op.refuse(f"quantisation to {dtype}")
    shifted = op.unary(ew.ROUND_EVEN, op.binary(ew.DIV, x, scale))
    if zero is not None:
        shifted = op.binary(ew.ADD, shifted, op.cast(zero, x.type.dtype))
    y = op.emit(ew.CAST, [op.unary(ew.CLAMP, shifted, *map(float, dtype.range))], ew.CastAttrs(dtype.inner))
    return op.writer.typed(y, dtype)


def dequantized(op: Operation, x: Value, scale: Value, zero: Value | None) -> Value:
    """(x - zero point) * scale; the difference is exact."""
    if x.type.dtype is DType.INT32:
        whole = x if zero is None else op.binary(ew.SUB, x, zero)
        return op.binary(ew.MUL, op.cast(whole, scale.type.dtype), scale)
    real = op.cast(x, scale.type.dtype)
    if zero is not None:
        real = op.binary(ew.SUB, real, op.cast(zero, scale.type.dtype))
    return op.binary(ew.MUL, real, scale)


def scales_of(
    op: Operation, x: Value | None, dtype: DType, key: int = 1, axis: int | None = None
) -> Quantization | None:
    """The scales and zero points of inputs `key` and the next, where they are known.

    There is one of each, or where x is given one for each part of its axis: the attribute's, or that of the argument.
    """
    known = op.known(key) and (op.optional(key + 1) is None or op.known(key + 1)) and not op.whole("block_size", 0)
    scale, zero = op.value(key), op.optional(key + 1)
    if not known or scale.type.dtype is not DType.FLOAT32 or scale.type.rank > 1 or scale.type.size > MAX_SCALES:
        return None
    scales = tuple(map(float, scale.numbers()))
    if not scales:
        if x is None or x.type.size:
            op.fail(f"input {key} holds no scale")
        return Quantization((1.0,), (0,))  # of no elements, with a scale for each
    zeros = (0,) * len(scales) if zero is None else tuple(map(int, zero.numbers()))
    if len(zeros) == 1:
        zeros *= len(scales)
    if len(zeros) != len(scales) or not all(map((0.0).__lt__, scales)) or max(scales) == math.inf:
        return None
    if len(scales) == 1:
        return Quantization(scales, zeros)
    if x is None or dtype not in (*BYTES, DType.INT32):
        return None
    place = op.axis(op.whole("axis", 1) if axis is None else axis, x.type.rank)
    return Quantization(scales, zeros, place) if x.type.shape[place] == len(scales) else None


def _quantize_linear(op: Operation) -> Value:
    x, scale, zero = op.value(0), op.value(1), op.optional(2)
    if op.whole("precision", 0) not in (0, 1) or not x.type.dtype.is_float or scale.type.dtype is not x.type.dtype:
        op.refuse(f"quantisation of {x.type.dtype} by a scale of {scale.type.dtype}")
    kind = op.whole("output_dtype", 0)
    dtype = op.file_type(2) if zero is not None else dtype_of(kind, "output_dtype") if kind else DType.UINT8
    quant = scales_of(op, None, dtype) if dtype in BYTES and x.type.dtype is DType.FLOAT32 else None
    if quant is not None:
        return op.each(lambda x: stored_as(op, op.emit(ew.QUANTIZE, [x], ew.CastAttrs(dtype, quant)), None))
    axis, block = op.whole("axis", 1), op.whole("block_size", 0)
    spread = [None if v is None else _spread(op, v, x.type.shape, axis, block) for v in (scale, zero)]
    assert spread[0] is not None
    return quantized(op, x, spread[0], spread[1], dtype)


def _dequantize_linear(op: Operation) -> Value:
    x, scale, zero = op.value(0), op.value(1), op.optional(2)
    real = x.type.dtype.is_float and op.file_type(0) in SMALL_FLOATS
    if not (real or x.type.dtype in (*BYTES, DType.INT16, DType.UINT16, DType.INT32)) or not scale.type.dtype.is_float:
        op.refuse(f"{x.type.dtype} with a scale of {scale.type.dtype}")
    kernels = x.type.dtype in (*BYTES, DType.INT16, DType.INT32)
    quant = scales_of(op, x, x.type.dtype) if kernels else None
    if quant is not None and x.is_constant:
        return real_of(op, Value(x.name, TensorType(x.type.shape, x.type.dtype, quant), x.constant))
    if quant is not None and quant.axis is None and x.type.dtype in BYTES:
        return op.each(lambda x: real_of(op, stored_as(op, x, quant)))
    axis, block = op.whole("axis", 1), op.whole("block_size", 0)
    spread = [None if v is None else _spread(op, v, x.type.shape, axis, block) for v in (scale, zero)]
    assert spread[0] is not None
    return dequantized(op, x, spread[0], spread[1])


def _dynamic_quantize(op: Operation) -> list[Value]:
    """x as uint8, its scale and its zero point, from its least and its largest element."""
    x = op.value(0)
    if not x.type.size:
        return [op.empty(x.type.shape, DType.UINT8), op.scalar_of(1.0, x.type.dtype), op.scalar_of(0, DType.UINT8)]
    whole = red.ReduceAttrs(tuple(range(x.type.rank)))
    zero = op.scalar_of(0.0, x.type.dtype)
    low = op.binary(ew.MINIMUM, op.emit(red.REDUCE_MIN, [x], whole), zero)
    high = op.binary(ew.MAXIMUM, op.emit(red.REDUCE_MAX, [x], whole), zero)
    scale = op.binary(ew.DIV, op.binary(ew.SUB, high, low), op.scalar_of(255.0, x.type.dtype))
    start = op.unary(ew.ROUND_EVEN, op.binary(ew.DIV, op.unary(ew.NEG, low), scale))
    place = op.cast(op.unary(ew.CLAMP, start, 0.0, 255.0), DType.UINT8)
    return [quantized(op, x, scale, place, DType.UINT8), scale, place]


def _centred(op: Operation, key: int, zero_key: int) -> Value:
    """An integer operand less its zero point, as exact float32."""
    x, zero = op.value(key), op.optional(zero_key)
    if x.type.dtype not in BYTES:
        op.refuse(f"a product of {x.type.dtype}")
    real = op.cast(x, DType.FLOAT32)
    if zero is None:
        return real
    z = op.cast(zero, DType.FLOAT32)
    if z.type.size == 1:
        return op.binary(ew.SUB, real, op.reshape(z, ()))
    if z.type.rank == 1 and key != 0 and z.type.shape[0] == x.type.shape[-1]:
        return op.binary(ew.SUB, real, z)
    if z.type.rank == 1 and key == 0 and x.type.rank >= 2 and z.type.shape[0] == x.type.shape[-2]:
        return op.binary(ew.SUB, real, op.reshape(z, (z.type.shape[0], 1)))
    return op.binary(ew.SUB, real, z)


def _farthest(op: Operation, key: int, zero_key: int) -> int:
    """How far an 8-bit operand can be from its zero point, as its type says and, where it is known, the zero point."""
    zero, (low, high) = op.optional(zero_key), op.value(key).type.dtype.range
    if zero is None:
        return max(-low, high)
    if not op.known(zero_key):
        return high - low
    return max((max(int(z) - low, high - int(z)) for z in zero.numbers()), default=1)


def exact_products(op: Operation, first: tuple[int, int], second: tuple[int, int]) -> int:
    """How many products of two operands, each given by its key and its zero point's, float32 adds without rounding.

    Whole quads of them, which the fast kernels want.
    """
    return EXACT_SUM // (_farthest(op, *first) * _farthest(op, *second)) // 4 * 4


def exact_product(op: Operation, a: Value, b: Value, step: int) -> Value:
    """The int32 product of matrices of whole numbers; float32 holds the sum of any `step` of their products."""
    if min(a.type.rank, b.type.rank) < 2:
        op.refuse(f"a product of {a.type.shape} and {b.type.shape}")
    inner, total, attrs = a.type.shape[-1], None, mm.MatmulAttrs(exact=True)
    for start in range(0, inner, step):
        size = min(step, inner - start)
        parts = [op.cut(a, a.type.rank - 1, start, size), op.cut(b, b.type.rank - 2, start, size)]
        part = op.cast(op.emit(mm.MATMUL, parts if size < inner else [a, b], attrs), DType.INT32)
        total = part if total is None else op.binary(ew.ADD, total, part)
    if total is None:
        op.refuse("a product over nothing")
    return total


def _matmul_integer(op: Operation) -> Value:
    whole = _integer_product(op, op.value(0), op.optional(2), 1, 3)
    if whole is not None:
        return whole
    return exact_product(op, _centred(op, 0, 2), _centred(op, 1, 3), exact_products(op, (0, 2), (1, 3)))


def _integer_product(op: Operation, a: Value, start: Value | None, key: int, zero_key: int) -> Value | None:
    """The int32 product of bytes less a zero point and a constant matrix of bytes; None for others.

    Sums of so few products that float32 holds them are added as int32. What the first zero point, which a run may
    have to tell, adds to each column is taken off again.
    """
    b = op.value(key)
    if b.type.rank != 2 or a.type.rank < 2 or not _are_bytes(op, a, start, key, zero_key):
        return None
    stored = stored_as(op, a, Quantization((1.0,), (_known_zero(start),)))
    return _stored_product(op, stored, start, b, op.optional(zero_key))


def _are_bytes(op: Operation, a: Value, start: Value | None, key: int, zero_key: int) -> bool:
    """Whether a is of bytes less one zero point, and the operand of this key constant bytes less known zero points."""
    b, zero = op.value(key), op.optional(zero_key)
    dense = b.constant is not None and b.constant.sparsity is None and (zero is None or op.known(zero_key))
    return dense and {a.type.dtype, b.type.dtype} <= {*BYTES} and (start is None or start.type.size == 1)


def _known_zero(start: Value | None) -> int:
    """A zero point; 0 where only a run tells it."""
    return 0 if start is None or start.constant is None else int(start.numbers()[0])


def _stored_product(op: Operation, stored: Value, start: Value | None, b: Value, zero: Value | None) -> Value | None:
    """The product of stored bytes and a constant matrix; where only a run tells `start`, what it adds is taken off."""
    assert b.constant is not None
    zeros = (0,) if zero is None else tuple(map(int, zero.numbers()))
    quant = Quantization((1.0,) * len(zeros), zeros, 1 if len(zeros) > 1 else None)
    (inner, columns), total = b.type.shape, None
    step = EXACT_PRODUCTS if any(zeros) or b.type.dtype is DType.UINT8 else 2 * EXACT_PRODUCTS
    for at in range(0, inner, step):  # rows of the matrix lie together
        size = min(step, inner - at)
        data = b.constant.data[at * columns : (at + size) * columns]
        w = Value(b.name, TensorType((size, columns), b.type.dtype, quant), Constant(data, b.type.dtype))
        part = op.cut(stored, stored.type.rank - 1, at, size) if size < inner else stored
        whole = op.cast(op.emit(st.STORED_MATMUL, [part, w], st.StoredMatmulAttrs()), DType.INT32)
        total = whole if total is None else op.binary(ew.ADD, total, whole)
    if total is None or start is None or start.constant is not None:
        return total
    real = op.cast(b, DType.FLOAT32)
    if zero is not None:
        real = op.binary(ew.SUB, real, op.reshape(op.cast(zero, DType.FLOAT32), (zero.type.size,)))
    sums = op.emit(red.REDUCE_SUM, [op.cast(real, DType.INT32)], red.ReduceAttrs((0,)))
    return op.binary(ew.SUB, total, op.binary(ew.MUL, sums, op.reshape(op.cast(start, DType.INT32), ())))


def _scaled_product(
    op: Operation, a: Value, start: Value | None, scale: Value, keys: tuple[int, int, int], bias: Value | None
) -> Value:
    """Bytes less a zero point times the matrix at `keys` (its integers, scales, zero points), scaled, and a bias."""
    whole = _integer_product(op, a, start, keys[0], keys[2])
    if whole is None:
        real = op.cast(a, DType.FLOAT32)
        real = real if start is None else op.binary(ew.SUB, real, op.cast(start, DType.FLOAT32))
        whole = exact_product(op, real, _centred(op, keys[0], keys[2]), EXACT_PRODUCTS)
    factor = op.binary(ew.MUL, op.value(keys[1]), scale)
    y = op.binary(ew.MUL, op.cast(whole, DType.FLOAT32), factor)
    return y if bias is None else op.binary(ew.ADD, y, bias)


def _integer_to_float(op: Operation) -> Value:
    a, zero = op.value(0), op.optional(4)
    if a.type.dtype not in BYTES:
        op.refuse(f"a product of {a.type.dtype}")
    return _scaled_product(op, a, None if zero is None else _single(op, 4), _single(op, 2), (1, 3, 5), op.optional(6))


def _dynamic_product(op: Operation) -> Value:
    stored, scale, zero = _dynamic_quantize(op)
    return _scaled_product(op, stored, zero, scale, (1, 2, 3), op.optional(4))


def _rescaled(op: Operation, total: Value, first: Value, second: Value, out: Value, zero: Value) -> Value:
    """Sums of products in the scale of the result."""
    factor = op.binary(ew.DIV, op.binary(ew.MUL, first, second), out)
    real = op.binary(ew.MUL, op.cast(total, DType.FLOAT32), factor)
    shifted = op.binary(ew.ADD, op.unary(ew.ROUND_EVEN, real), op.cast(zero, DType.FLOAT32))
    dtype = zero.type.dtype
    return op.emit(ew.CAST, [op.unary(ew.CLAMP, shifted, *map(float, dtype.range))], ew.CastAttrs(dtype))


def _single(op: Operation, key: int) -> Value:
    value = op.value(key)
    value = op.cast(value, DType.FLOAT32) if value.type.dtype is DType.FLOAT16 else value
    return op.reshape(value, ()) if value.type.size == 1 else value


def exact_qlinear_matmul(op: Operation) -> Value:
    """QLinearMatMul by exact sums, for scales and zero points that the integer kernels do not take."""
    if any(not op.value(key).type.dtype.is_float for key in (1, 4, 6)):
        op.refuse("scales that are not real numbers")
    total = exact_product(op, _centred(op, 0, 2), _centred(op, 3, 5), exact_products(op, (0, 2), (3, 5)))
    first = op.cast(op.value(1), DType.FLOAT32)
    first = (
        op.reshape(first, (first.type.shape[0], 1)) if first.type.size > 1 and first.type.rank == 1 else _single(op, 1)
    )
    return _rescaled(op, total, first, _single(op, 4), _single(op, 6), _single(op, 7))


def _exact_convolution(op: Operation, x: Value, w: Value, most: int) -> Value:
    """The int32 convolution of an image [N, ..., C] with weights [CO, CI, ...], both whole numbers.

    `most`: how many products of theirs float32 adds without rounding.
    """
    rank = x.type.rank
    kernel = w.type.shape[2:]
    if w.type.rank != rank:
        op.fail(f"weights {w.type.shape} do not fit an image of {rank} axes")
    geometry = conv.window(op, x.type.shape[1:-1], kernel)
    taps, ci, groups = math.prod(kernel), w.type.shape[1], conv.check_groups(op, x, op.whole("group", 1))
    if taps > most:
        op.refuse(f"windows of {taps} taps, whose sums are not exact")
    step, total, image = most // max(taps, 1), None, conv.flat(op, x)
    step = step // 4 * 4 or step
    for start in range(0, ci, step):
        size = min(step, ci - start)
        parts = (image, w) if size == ci else (_channels(op, image, groups, start, size), op.cut(w, 1, start, size))
        part = op.cast(conv.convolve(op, *parts, None, geometry, groups, exact=True), DType.INT32)
        total = part if total is None else op.binary(ew.ADD, total, part)
    if total is None:
        op.refuse("a convolution of no channels")
    return total


def _channels(op: Operation, image: Value, groups: int, start: int, size: int) -> Value:
    """`size` channels of each group of an image [N, H, W, C], from `start` of the group on."""
    *pixels, channels = image.type.shape
    if groups == 1:
        return op.cut(image, 3, start, size)
    parted = op.cut(op.reshape(image, (*pixels, groups, channels // groups)), 4, start, size)
    return op.reshape(parted, (*pixels, groups * size))


def _image(op: Operation, key: int, zero_key: int) -> Value:
    """An image of integers less its zero point, channels last."""
    x, zero = op.channels_last(key), op.optional(zero_key)
    if x.type.dtype not in BYTES:
        op.refuse(f"a convolution of {x.type.dtype}")
    real = op.cast(x, DType.FLOAT32)
    return real if zero is None else op.binary(ew.SUB, real, op.reshape(op.cast(zero, DType.FLOAT32), ()))


def _weights(op: Operation, key: int, zero_key: int) -> Value:
    w, zero = op.value(key), op.optional(zero_key)
    real = op.cast(w, DType.FLOAT32)
    if zero is None:
        return real
    z = op.cast(zero, DType.FLOAT32)
    return op.binary(ew.SUB, real, op.reshape(z, () if z.type.size == 1 else (z.type.size, *(1,) * (w.type.rank - 1))))


def _conv_integer(op: Operation) -> Value:
    rank = len(op.arranged(0).perm)
    total = _product_of_windows(op)
    if total is None:
        total = _exact_convolution(op, _image(op, 0, 2), _weights(op, 1, 3), exact_products(op, (0, 2), (1, 3)))
    return conv.unflat(op, total, rank)


def _product_of_windows(op: Operation) -> Value | None:
    """A dense convolution as the product of its windows, each a row of bytes, with a matrix; None for others.

    Weights take half the memory that float32 takes, and the products the time of bytes.
    """
    x, w, start = op.channels_last(0), op.value(1), op.optional(2)
    if not 3 <= x.type.rank <= 4 or w.type.rank != x.type.rank or not _are_bytes(op, x, start, 1, 3):
        return None
    (co, ci, *window), taps = w.type.shape, math.prod(w.type.shape[2:])
    if op.whole("group", 1) != 1 or ci != x.type.shape[-1] or ci < LEAST_CHANNELS or co < LEAST_OUTPUTS:
        return None
    kernel, strides, dilations, pads = conv.window(op, x.type.shape[1:-1], window)
    image = stored_as(op, _surrounded(op, x, start, pads), Quantization((1.0,), (_known_zero(start),)))
    sizes = [
        (size - (k - 1) * dilation - 1) // stride + 1
        for size, k, stride, dilation in zip(image.type.shape[1:-1], kernel, strides, dilations, strict=True)
    ]
    if min(sizes) < 1:
        return None
    steps, shape = (1, *strides, 1), (x.type.shape[0], *sizes, ci)
    corners = itertools.product(*(range(0, k * d, d) for k, d in zip(kernel, dilations, strict=True)))
    rows = [op.sliced(image, (0, *corner, 0), shape, steps) for corner in corners]
    assert w.constant is not None
    data, depth = bytes(w.constant.data), ci * taps  # [CO, CI, taps] is [taps * CI, CO] here
    turned = b"".join(data[c * taps + tap :: depth] for tap in range(taps) for c in range(ci))
    matrix = Value(w.name, TensorType((depth, co), w.type.dtype), Constant(memoryview(turned), w.type.dtype))
    rows_of_bytes = rows[0] if len(rows) == 1 else op.concat(rows, x.type.rank - 1)
    total = _stored_product(op, rows_of_bytes, start, matrix, op.optional(3))
    return None if total is None else conv.flat(op, total)


def _surrounded(op: Operation, x: Value, start: Value | None, pads: Sequence[tuple[int, int]]) -> Value:
    """An image with its zero point around it."""
    if start is None or start.constant is not None:
        before, after = ((0, *(pad[side] for pad in pads), 0) for side in (0, 1))
        return padded(op, x, before, after, float(_known_zero(start)))
    for axis, pad in enumerate(pads, start=1):
        edges = [
            op.expand(op.reshape(start, (1,) * x.type.rank), (*x.type.shape[:axis], n, *x.type.shape[axis + 1 :]))
            for n in pad
        ]
        x = op.concat([edge for edge in (edges[0], x, edges[1]) if edge.type.shape[axis]], axis)
    return x


def exact_qlinear_conv(op: Operation) -> Value:
    """QLinearConv by exact sums, for scales and zero points that the integer kernels do not take."""
    rank = len(op.arranged(0).perm)
    total = _exact_convolution(op, _image(op, 0, 2), _weights(op, 3, 5), exact_products(op, (0, 2), (3, 5)))
    if op.optional(8) is not None:
        total = op.binary(ew.ADD, total, op.value(8))
    return conv.unflat(op, _rescaled(op, total, _single(op, 1), _single(op, 4), _single(op, 6), _single(op, 7)), rank)


CONVERTERS: dict[str, Convert] = {
    "ConvInteger": _conv_integer,
    "DequantizeLinear": _dequantize_linear,
    "DynamicQuantizeLinear": _dynamic_quantize,
    "MatMulInteger": _matmul_integer,
    "QuantizeLinear": _quantize_linear,
    "com.microsoft.DequantizeLinear": _dequantize_linear,
    "com.microsoft.DynamicQuantizeMatMul": _dynamic_product,
    "com.microsoft.MatMulIntegerToFloat": _integer_to_float,
    "com.microsoft.QuantizeLinear": _quantize_linear,
}
