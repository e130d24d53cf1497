"""ONNX's Fourier transforms, as products with constant waves.

Source:  onnx v1.23, DFT-20, STFT-17
"""

from __future__ import annotations

import math

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.limits import within
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import gather
from webinfer.ops import matmul as mm

LONGEST = 1024  # elements of a transform


def _waves(op: Operation, inputs: int, size: int, outputs: int, inverse: bool) -> Value:
    """Real and imaginary parts side by side. Shapes:  [2*inputs, 2*outputs], for complex rows laid out in pairs"""
    sign, scale = (1, 1 / size) if inverse else (-1, 1.0)
    cos = [math.cos(2 * math.pi * i / size) * scale for i in range(size)]
    sin = [sign * math.sin(2 * math.pi * i / size) * scale for i in range(size)]
    numbers: list[float] = []
    for i in range(inputs):
        places = [i * k % size for k in range(outputs)]
        numbers += [v for p in places for v in (cos[p], sin[p])]  # of the real part
        numbers += [v for p in places for v in (-sin[p], cos[p])]  # of the imaginary part
    return op.constant(numbers, DType.FLOAT32, (2 * inputs, 2 * outputs))


def transformed(op: Operation, x: Value, size: int, inverse: bool, onesided: bool) -> Value:
    """The transform of the last axis but one. Shapes:  x [..., L, 1 or 2] -> [..., size or size//2 + 1, 2]"""
    *outer, length, parts = x.type.shape
    within("elements of a Fourier transform", size, LONGEST, "use a shorter signal")
    if parts not in (1, 2) or x.type.dtype is not DType.FLOAT32 or (onesided and parts == 2 and not inverse):
        op.refuse(f"a transform of {x.type}")
    used = min(length, size)
    if used < length:
        x = op.cut(x, x.type.rank - 2, 0, used)
    outputs = size // 2 + 1 if onesided else size
    waves = _waves(op, used, size, outputs, inverse)
    rows = op.reshape(x, (math.prod(outer), used * parts))
    if parts == 1:
        waves = op.reshape(op.cut(op.reshape(waves, (used, 2, 2 * outputs)), 1, 0, 1), (used, 2 * outputs))
    y = op.emit(mm.MATMUL, [rows, waves], mm.MatmulAttrs())
    return op.reshape(y, (*outer, outputs, 2))


def _dft(op: Operation) -> Value:
    x, inverse, onesided = op.value(0), bool(op.whole("inverse", 0)), bool(op.whole("onesided", 0))
    rank = x.type.rank
    if rank < 2 or (inverse and onesided):
        op.refuse(f"a one-sided inverse, or {x.type.shape}")
    wanted = op.integer(2) if op.optional(2) is not None else op.whole("axis", 1) if op.opset < 20 else -2
    axis = op.axis(wanted, rank)
    if axis == rank - 1:
        op.fail("the last axis holds real and imaginary parts")
    size = op.integer(1) if op.optional(1) is not None else x.type.shape[axis]
    order = [i for i in range(rank - 1) if i != axis] + [axis, rank - 1]
    y = transformed(op, op.transpose(x, order), size, inverse, onesided)
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
    within("elements of all frames", frames * size, 2**20, "use a shorter signal")
    places = op.constant([f * step + i for f in range(frames) for i in range(size)], DType.INT32, (frames, size))
    cut = op.emit(gather.GATHER, [x, places], gather.GatherAttrs(1))
    if window is not None:
        cut = op.binary(ew.MUL, cut, op.reshape(window, (size, 1)))
    return transformed(op, cut, size, False, bool(op.whole("onesided", 1)))


CONVERTERS: dict[str, Convert] = {
    "DFT": _dft,
    "STFT": _stft,
}
