"""Convolutions, pools, dense layers, and layers that resample; a row [N, W, C] is an image of one line."""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.graph.ir import Op, Value
from webinfer.importers.core.geometry import check_window, image_pads, transposed_pads
from webinfer.importers.core.limits import MAX_REACH
from webinfer.importers.keras.elementwise import activated
from webinfer.importers.keras.operation import Convert, Operation
from webinfer.ops import conv, matmul, pool, reduce, resize

Pair = tuple[int, int]


def _image(op: Operation, axes: int) -> Value:
    """The first value as [N, H, W, C], of a layer for so many axes beside these."""
    x = op.real()
    if x.type.rank != axes + 2:
        op.fail(f"it reads {x.type}, needs rank {axes + 2}")
    x = op.transpose(x, (0, *range(2, axes + 2), 1)) if op.channels_first else x
    return x if axes == 2 else op.reshape(x, (x.type.shape[0], 1, *x.type.shape[1:]))


def _shown(op: Operation, y: Value, axes: int) -> Value:
    """A result [N, H, W, C] as the layer gives it, behind its function."""
    y = y if axes == 2 else op.reshape(y, (y.type.shape[0], *y.type.shape[2:]))
    y = op.transpose(y, (0, axes + 1, *range(1, axes + 1))) if op.channels_first else y
    return activated(op, y)


def kernel(op: Operation, name: str, axes: int) -> Value:
    """Weights [KH, KW, ., .], of rows too."""
    w = op.weight(name, axes + 2)
    return w if axes == 2 else op.reshape(w, (1, *w.type.shape))


def _pair(op: Operation, name: str, axes: int, default: object = 1) -> Pair:
    numbers = op.wholes(name, default, axes)
    found = check_window(op, {f"{name} {i}": n for i, n in enumerate((1,) * (2 - axes) + numbers)})
    return found[0], found[1]


def _pads(op: Operation, x: Value, window: Sequence[int], stride: Pair, dilation: Pair = (1, 1)) -> tuple[int, ...]:
    padding = op.chosen("padding", ("valid", "same", *(["causal"] if op.name.endswith("1D") else ())), "valid")
    reach = [(k - 1) * d for k, d in zip(window, dilation, strict=True)]
    if max(reach) > MAX_REACH:
        op.fail(f"a window of {window} with dilation {dilation} reaches too far")
    if padding == "causal":
        return 0, 0, reach[1], 0
    return image_pads(x.type.shape, window, stride, dilation) if padding == "same" else (0, 0, 0, 0)


def attributes(op: Operation, x: Value, w: Value, axes: int, groups: int = 1) -> conv.Conv2dAttrs:
    """Strides, pads and dilation of a convolution. Shapes:  x [N, H, W, C], w [KH, KW, ., .]"""
    stride, dilation = _pair(op, "strides", axes), _pair(op, "dilation_rate", axes)
    top, bottom, left, right = _pads(op, x, w.type.shape[:2], stride, dilation)
    return conv.Conv2dAttrs(stride, (top, bottom, left, right), dilation, groups)


def _conv(axes: int) -> Convert:
    def convert(op: Operation) -> Value:
        x, w = _image(op, axes), kernel(op, "kernel", axes)
        groups = x.type.shape[3] // max(w.type.shape[2], 1)
        attrs = attributes(op, x, w, axes, max(groups, 1))
        return _shown(op, op.emit(conv.CONV2D, [x, op.transpose(w, (3, 0, 1, 2)), op.bias()], attrs), axes)

    return convert


def _depthwise(axes: int, separable: bool = False) -> Convert:
    """Weights [KH, KW, C, M]; of a separable one there are others [1, 1, C*M, CO]."""

    def convert(op: Operation) -> Value:
        x, w = _image(op, axes), kernel(op, "depthwise_kernel", axes)
        if x.type.shape[3] != w.type.shape[2]:
            op.fail(f"it reads {x.type}, its weights {w.type.shape} do not fit")
        row = op.reshape(w, (1, *w.type.shape[:2], w.type.shape[2] * w.type.shape[3]))
        bias = op.bias()
        y = op.emit(conv.DEPTHWISE_CONV2D, [x, row, None if separable else bias], attributes(op, x, w, axes))
        if separable:
            points = op.transpose(kernel(op, "pointwise_kernel", axes), (3, 0, 1, 2))
            y = op.emit(conv.CONV2D, [y, points, bias], conv.Conv2dAttrs())
        return _shown(op, y, axes)

    return convert


def _transposed(axes: int) -> Convert:
    """Weights [KH, KW, CO, CI]"""

    def convert(op: Operation) -> Value:
        x, w, stride = _image(op, axes), kernel(op, "kernel", axes), _pair(op, "strides", axes)
        if _pair(op, "dilation_rate", axes) != (1, 1) or op.config.get("output_padding") is not None:
            op.refuse("dilation or output_padding")
        same = op.chosen("padding", ("valid", "same"), "valid") == "same"
        pads, more = list[int](), list[int]()
        for size, window, step in zip(x.type.shape[1:3], w.type.shape[:2], stride, strict=True):
            outputs = size * step + (0 if same else max(window - step, 0))
            before, after, extra = transposed_pads(op, same, size, outputs, window, step)
            pads += (before, after)
            more.append(extra)
        attrs = conv.ConvTranspose2dAttrs(
            stride, (pads[0], pads[1], pads[2], pads[3]), output_padding=(more[0], more[1])
        )
        y = op.emit(conv.CONV_TRANSPOSE2D, [x, op.transpose(w, (2, 0, 1, 3)), op.bias()], attrs)
        return _shown(op, y, axes)

    return convert


def _pool(target: Op, axes: int) -> Convert:
    def convert(op: Operation) -> Value:
        x, window = _image(op, axes), _pair(op, "pool_size", axes, 2)
        stride = _pair(op, "strides", axes, window[-axes:])
        top, bottom, left, right = _pads(op, x, window, stride)
        return _shown(op, op.emit(target, [x], pool.Pool2dAttrs(window, stride, (top, bottom, left, right))), axes)

    return convert


def _global(target: Op, axes: int) -> Convert:
    def convert(op: Operation) -> Value:
        x, first = op.real(), 2 if op.channels_first else 1
        if x.type.rank != axes + 2:
            op.fail(f"it reads {x.type}, needs rank {axes + 2}")
        if op.mask() is not None:
            op.refuse("a mask")
        return op.emit(target, [x], reduce.ReduceAttrs(tuple(range(first, first + axes)), op.flag("keepdims")))

    return convert


def _dense(op: Operation) -> Value:
    x, w = op.real(), op.weight("kernel", 2)
    if x.type.rank < 2:
        op.fail(f"it reads {x.type}, needs rank 2")
    return activated(op, op.emit(matmul.MATMUL, [x, w, op.bias()], matmul.MatmulAttrs()))


def _upsampling(op: Operation) -> Value:
    """As TensorFlow.js resamples: pixels have no half."""
    x, (high, wide) = _image(op, 2), _pair(op, "size", 2, 2)
    way = op.chosen("interpolation", ("nearest", "bilinear"), "nearest")
    attrs = resize.ResizeAttrs((x.type.shape[1] * high, x.type.shape[2] * wide))
    return _shown(op, op.emit(resize.RESIZE_NEAREST if way == "nearest" else resize.RESIZE_BILINEAR, [x], attrs), 2)


def _upsampling_row(op: Operation) -> Value:
    x, (times,) = op.value(0), op.wholes("size", 2, 1)
    check_window(op, {"size": times})
    n, steps, channels = x.type.shape
    return op.reshape(op.expand(op.reshape(x, (n, steps, 1, channels)), (n, steps, times, channels)),
                      (n, steps * times, channels))  # fmt: skip


def _resizing(op: Operation) -> Value:
    """As Keras resamples: pixels are sampled at their middle."""
    x, ((high,), (wide,)) = _image(op, 2), (op.wholes("height", None, 1), op.wholes("width", None, 1))
    way = op.chosen("interpolation", ("nearest", "bilinear"), "bilinear")
    if op.flag("crop_to_aspect_ratio") or op.flag("pad_to_aspect_ratio"):
        op.refuse("an aspect ratio that is kept")
    attrs = resize.ResizeAttrs((high, wide), half_pixel_centers=True)
    return _shown(op, op.emit(resize.RESIZE_NEAREST if way == "nearest" else resize.RESIZE_BILINEAR, [x], attrs), 2)


CONVERTERS: dict[str, Convert] = {
    "Dense": _dense,
    "Resizing": _resizing,
    "UpSampling1D": _upsampling_row,
    "UpSampling2D": _upsampling,
    "GlobalAveragePooling3D": _global(reduce.REDUCE_MEAN, 3),
    "GlobalMaxPooling3D": _global(reduce.REDUCE_MAX, 3),
    **{
        f"{name}{axes}D": make
        for axes in (1, 2)
        for name, make in {
            "AveragePooling": _pool(pool.AVERAGE_POOL2D, axes), "Conv": _conv(axes),
            "DepthwiseConv": _depthwise(axes), "GlobalAveragePooling": _global(reduce.REDUCE_MEAN, axes),
            "GlobalMaxPooling": _global(reduce.REDUCE_MAX, axes), "MaxPooling": _pool(pool.MAX_POOL2D, axes),
            "SeparableConv": _depthwise(axes, separable=True),
        }.items()
    },
    "Conv1DTranspose": _transposed(1),
    "Conv2DTranspose": _transposed(2),
}  # fmt: skip
