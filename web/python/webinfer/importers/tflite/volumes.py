"""TFLite's convolutions over volumes."""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core import volumes
from webinfer.importers.core.geometry import transposed_volume_pads, volume_pads
from webinfer.importers.tflite.operation import Operation, Row

_AXES = "dhw"


def _float_volume(op: Operation, x: Value, w: Value) -> None:
    if x.type.dtype is not DType.FLOAT32 or w.type.dtype is not DType.FLOAT32:
        op.refuse(f"x of type {x.type.dtype}, weights of type {w.type.dtype}")
    if x.type.rank != 5 or w.type.rank != 5:
        op.fail(f"x {x.type.shape} and weights {w.type.shape} must have rank 5")


def _steps(op: Operation) -> tuple[tuple[int, ...], tuple[int, ...]]:
    stride = op.positive(*(f"stride_{axis}" for axis in _AXES))
    return stride, op.positive(*(f"dilation_{axis}_factor" for axis in _AXES))


def _conv3d(op: Operation) -> Value:
    """Weights [KD, KH, KW, CI, CO]"""
    x, w = op.value(0), op.value(1)
    _float_volume(op, x, w)
    if w.type.shape[3] != x.type.shape[4]:
        op.fail(f"weights {w.type.shape} do not fit x {x.type.shape}")
    stride, dilation = _steps(op)
    if (nothing := op.without_windows(x, w.type.shape[:3], stride, dilation, w.type.shape[4])) is not None:
        return nothing
    pads = volume_pads(x.type.shape, w.type.shape[:3], stride, dilation) if op.same() else [(0, 0)] * 3
    w = op.transpose(w, (4, 0, 1, 2, 3))
    return volumes.convolve(op, x, w, op.bias(2, x), stride, pads, dilation, activation=op.fused_clamp())


def _transposed(op: Operation) -> Value:
    """Weights [KD, KH, KW, CO, CI]"""
    shape, w, x = op.integers(0), op.value(1), op.value(2)
    _float_volume(op, x, w)
    stride, dilation = _steps(op)
    if len(shape) != 5 or min(shape) < 1 or dilation != (1, 1, 1):
        op.refuse(f"a result of shape {shape}, dilations {dilation}")
    if w.type.shape[4] != x.type.shape[4]:
        op.fail(f"weights {w.type.shape} do not fit x {x.type.shape}")
    pads, more = transposed_volume_pads(op, op.same(), x.type.shape, shape[1:4], w.type.shape[:3], stride)
    w, activation = op.transpose(w, (3, 0, 1, 2, 4)), op.fused_clamp()
    y = volumes.convolve_transposed(op, x, w, op.bias(3, x), stride, pads, more, activation=activation)
    if y.type.shape != tuple(shape):
        op.fail(f"the result is to be {shape}, x and weights make {y.type.shape}")
    return y


CONVERTERS: dict[str, Row] = {
    "CONV_3D": (_conv3d, "Conv3DOptions"),
    "CONV_3D_TRANSPOSE": (_transposed, "Conv3DOptions"),
}
