"""Convolutions and pools over volumes [N, D, H, W, C]."""

from __future__ import annotations

from webinfer.graph.ir import Op, Value
from webinfer.importers.core import volumes
from webinfer.importers.core.geometry import check_window, transposed_volume_pads, volume_pads
from webinfer.importers.keras.elementwise import activated
from webinfer.importers.keras.operation import Convert, Operation
from webinfer.ops import movement as mv
from webinfer.ops import pool

_LAST, _FIRST = (0, 2, 3, 4, 1), (0, 4, 1, 2, 3)
Three = tuple[int, ...]


def _volume(op: Operation) -> Value:
    """The first value with its channels last."""
    x = op.real()
    if x.type.rank != 5:
        op.fail(f"it reads {x.type}, needs rank 5")
    return op.transpose(x, _LAST) if op.channels_first else x


def _shown(op: Operation, y: Value) -> Value:
    """A result as the layer gives it, behind its function."""
    return activated(op, op.transpose(y, _FIRST) if op.channels_first else y)


def _numbers(op: Operation, name: str, default: object = 1) -> Three:
    return check_window(op, {f"{name} {i}": n for i, n in enumerate(op.wholes(name, default, 3))})


def _pads(op: Operation, x: Value, window: Three, stride: Three, dilation: Three = (1, 1, 1)) -> list[tuple[int, int]]:
    if op.chosen("padding", ("valid", "same"), "valid") == "valid":
        return [(0, 0)] * 3
    return volume_pads(x.type.shape, window, stride, dilation)


def _conv(op: Operation) -> Value:
    """Weights [KD, KH, KW, CI/groups, CO]"""
    x, w = _volume(op), op.weight("kernel", 5)
    stride, dilation = _numbers(op, "strides"), _numbers(op, "dilation_rate")
    inner, channels = w.type.shape[3], x.type.shape[4]
    if inner < 1 or channels % inner:
        op.fail(f"weights {w.type.shape} do not divide the channels of {x.type}")
    pads = _pads(op, x, w.type.shape[:3], stride, dilation)
    turned = op.transpose(w, (4, 0, 1, 2, 3))
    return _shown(op, volumes.convolve(op, x, turned, op.bias(), stride, pads, dilation, max(channels // inner, 1)))


def _transposed(op: Operation) -> Value:
    """Weights [KD, KH, KW, CO, CI]"""
    x, w, stride = _volume(op), op.weight("kernel", 5), _numbers(op, "strides")
    if _numbers(op, "dilation_rate") != (1, 1, 1) or op.config.get("output_padding") is not None:
        op.refuse("dilation or output_padding")
    same = op.chosen("padding", ("valid", "same"), "valid") == "same"
    window = w.type.shape[:3]
    sizes = zip(x.type.shape[1:4], window, stride, strict=True)
    outputs = [size * step + (0 if same else max(wide - step, 0)) for size, wide, step in sizes]
    pads, more = transposed_volume_pads(op, same, x.type.shape, outputs, window, stride)
    turned = op.transpose(w, (3, 0, 1, 2, 4))
    return _shown(op, volumes.convolve_transposed(op, x, turned, op.bias(), stride, pads, more))


def _pool(target: Op) -> Convert:
    def convert(op: Operation) -> Value:
        x, window = _volume(op), _numbers(op, "pool_size", 2)
        stride = _numbers(op, "strides", window)
        pads = _pads(op, x, window, stride)
        return _shown(op, volumes.pooled(op, target, x, window, stride, pads, (1, 1, 1)))

    return convert


def _upsampling(op: Operation) -> Value:
    """Each element repeated along three axes."""
    x, times = _volume(op), _numbers(op, "size", 2)
    for axis, count in enumerate(times, 1):
        shape = [*x.type.shape]
        wide = op.reshape(x, (*shape[:axis], shape[axis], 1, *shape[axis + 1 :]))
        wide = op.emit(mv.EXPAND, [wide], mv.ExpandAttrs((*shape[: axis + 1], count, *shape[axis + 1 :])))
        x = op.reshape(wide, (*shape[:axis], shape[axis] * count, *shape[axis + 1 :]))
    return _shown(op, x)


CONVERTERS: dict[str, Convert] = {
    "AveragePooling3D": _pool(pool.AVERAGE_POOL2D),
    "Conv3D": _conv,
    "Conv3DTranspose": _transposed,
    "MaxPooling3D": _pool(pool.MAX_POOL2D),
    "UpSampling3D": _upsampling,
}
