"""ONNX's Fourier transforms, real and imaginary parts side by side.

Source:  onnx v1.23, DFT-20, STFT-17, MelWeightMatrix-17
"""

from __future__ import annotations

import math

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.fourier import real_of_half, transform
from webinfer.importers.core.limits import within
from webinfer.importers.core.spectral import Complex
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.importers.onnx.tensors import dtype_of
from webinfer.ops import elementwise as ew
from webinfer.ops import gather

_MOST_BINS = 2**14
_MOST_PARTS = 2**21  # of frames, each gathered by its place


def transformed(op: Operation, x: Value, size: int, inverse: bool, onesided: bool) -> Value:
    """The transform of the last axis but one. Shapes:  x [..., L, 1 or 2] -> [..., size or size//2 + 1, 2]"""
    parts, floats = x.type.shape[-1], (DType.FLOAT32, DType.FLOAT16)
    if parts not in (1, 2) or size < 1 or (onesided and parts == 2) or x.type.dtype not in floats:
        op.refuse(f"a transform of {size} elements of {x.type}")
    return op.in_float32(x, lambda v: _transformed(op, v, size, inverse, onesided))


def _transformed(op: Operation, x: Value, size: int, inverse: bool, onesided: bool) -> Value:
    parts = x.type.shape[-1]
    columns = _parts(op, x)
    z: Value = Complex(*columns) if parts == 2 else columns[0]
    z = transform(op, z, size, size // 2 + 1 if onesided else size, inverse)
    return op.stack([z.real, z.imaginary], z.real.type.rank)


def _parts(op: Operation, x: Value) -> list[Value]:
    """Real and imaginary parts, which lie side by side. Shapes:  x [..., L, 1 or 2] -> each [..., L]"""
    return [op.row(x, x.type.rank - 1, i) for i in range(x.type.shape[-1])]


def _real(op: Operation, x: Value, size: int) -> Value:
    """The real signal of which x is half of the transform. Shapes:  x [..., L, 2] -> [..., size, 1]"""
    if x.type.shape[-1] != 2 or size < 1 or x.type.dtype is not DType.FLOAT32:
        op.refuse(f"{size} elements of half a transform {x.type}")
    y = real_of_half(op, Complex(*_parts(op, x)), size)
    return op.reshape(y, (*y.type.shape, 1))


def _mel_weights(op: Operation) -> Value:
    """What of each bin of a spectrum belongs to each band, whose sides are straight. Shapes:  [bins, bands]"""
    bands, size, rate = (op.integer(i) for i in range(3))
    ends = [2595 * math.log10(1 + float(op.scalar(i)) / 700) for i in (3, 4)]
    if min(bands, size, rate) < 1 or max(bands, size) > _MOST_BINS:
        op.fail(f"{bands} bands of {size} elements at {rate} a second")
    step, bins = (ends[1] - ends[0]) / (bands + 2), size // 2 + 1
    edges = [700 * (10 ** ((ends[0] + i * step) / 2595) - 1) for i in range(bands + 2)]
    places = [int((size + 1) * edge // rate) for edge in edges]
    if min(places) < 0 or max(places[1:]) > bins or max(places[1:-1], default=0) >= bins:
        op.fail(f"bands up to bin {max(places)} of {bins}")
    weights = [0.0] * (bins * bands)
    for band, (low, middle, high) in enumerate(zip(places, places[1:], places[2:], strict=False)):
        for i in range(low, middle + 1):
            weights[i * bands + band] = (i - low) / (middle - low) if middle > low else 1.0
        for i in range(middle, high if high > middle else middle):
            weights[i * bands + band] = (high - i) / (high - middle)
    dtype = dtype_of(op.whole("output_datatype", 1), "output_datatype").inner
    return op.cast(op.constant(weights, DType.FLOAT32, (bins, bands)), dtype)


def _dft(op: Operation) -> Value:
    x, inverse, onesided = op.value(0), bool(op.whole("inverse", 0)), bool(op.whole("onesided", 0))
    rank = x.type.rank
    if rank < 2:
        op.refuse(f"a transform of {x.type.shape}")
    wanted = op.integer(2) if op.optional(2) is not None else op.whole("axis", 1) if op.opset < 20 else -2
    axis = op.axis(wanted, rank)
    if axis == rank - 1:
        op.fail("the last axis holds real and imaginary parts")
    half = inverse and onesided
    usual = 2 * (x.type.shape[axis] - 1) if half else x.type.shape[axis]
    size = op.integer(1) if op.optional(1) is not None else usual
    order = [i for i in range(rank - 1) if i != axis] + [axis, rank - 1]
    turned = op.transpose(x, order)
    y = _real(op, turned, size) if half else transformed(op, turned, size, inverse, onesided)
    return op.transpose(y, [order.index(i) for i in range(rank)])


def _stft(op: Operation) -> Value:
    """Transforms of windows that overlap. Shapes:  signal [N, L] or [N, L, 1 or 2] -> [N, frames, bins, 2]"""
    x, step = op.value(0), op.integer(1)
    x = op.reshape(x, (*x.type.shape, 1)) if x.type.rank == 2 else x
    window = op.optional(2)
    if x.type.rank != 3 or step < 1:
        op.fail(f"a signal of {x.type.shape} in steps of {step}")
    size = op.integer(3) if op.optional(3) is not None else window.type.shape[0] if window is not None else 0
    length = x.type.shape[1]
    if not 1 <= size <= length or (window is not None and window.type.shape != (size,)):
        op.fail(f"frames of {size} do not fit {length} elements")
    frames = (length - size) // step + 1
    block = math.gcd(size, step)  # elements that stay together in every frame
    within("parts of all frames", frames * size // block, _MOST_PARTS, "use a shorter signal")
    rows, _, parts = x.type.shape
    blocks = op.reshape(op.cut(x, 1, 0, length - length % block), (rows, length // block, block * parts))
    starts = [(f * step + i) // block for f in range(frames) for i in range(0, size, block)]
    places = op.constant(starts, DType.INT32, (frames, size // block))
    cut = op.emit(gather.GATHER, [blocks, places], gather.GatherAttrs(1))
    cut = op.reshape(cut, (rows, frames, size, parts))
    if window is not None:
        cut = op.binary(ew.MUL, cut, op.reshape(window, (size, 1)))
    return transformed(op, cut, size, False, bool(op.whole("onesided", 1)))


CONVERTERS: dict[str, Convert] = {
    "DFT": _dft,
    "MelWeightMatrix": _mel_weights,
    "STFT": _stft,
}
