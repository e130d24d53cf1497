"""Custom operators, by the name in the file: MediaPipe's, and PoseNet's decoder.

Their options are FlexBuffer maps, or the raw C struct of the built-in operator they descend from.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any

from webinfer.dtypes import DType
from webinfer.errors import InputError, ModelFormatError
from webinfer.graph.ir import Value
from webinfer.importers.core.geometry import image_pads
from webinfer.importers.core.limits import MAX_STRIDE
from webinfer.importers.readers.flexbuffer import read_map
from webinfer.importers.tflite.operation import Operation, Row
from webinfer.ops import conv, landmarks, pool, pose, suppression
from webinfer.ops.activation import Activation
from webinfer.ops.custom import BY_CODE, attributes

MAX_DETECTIONS = 65536
_SAME, _VALID = 1, 2  # TfLitePadding in C, where 0 is unknown
_ACTIVATIONS = (Activation.NONE, Activation.RELU, Activation.RELU_N1_TO_1, Activation.RELU6)  # TfLiteFusedActivation


class _Options:
    """A map of options, each asked for by name and type."""

    def __init__(self, op: Operation) -> None:
        self._op = op
        self._map: dict[str, Any] = read_map(op.info.custom_options, op.what)

    def real(self, name: str, default: float | None = None) -> float:
        value = self._map.get(name, default)
        if not isinstance(value, int | float) or not math.isfinite(value):
            self._op.fail(f"option {name} is {value!r}, needs a number")
        return float(value)

    def number(self, name: str, default: int | None = None) -> int:
        value = self.real(name, default)
        if value != int(value):
            self._op.fail(f"option {name} is {value}, needs a whole number")
        return int(value)

    def numbers(self, name: str) -> tuple[int, ...]:
        value = self._map.get(name)
        if not isinstance(value, tuple):
            self._op.fail(f"option {name} is {value!r}, needs a vector")
        return tuple(map(int, value))


def _struct(op: Operation, count: int) -> tuple[int, ...]:
    """The first int32 fields of a raw struct: a padding, then numbers of at least 1."""
    data = op.info.custom_options
    if len(data) < 4 * count:
        op.fail(f"its options have {len(data)} bytes, need {4 * count}")
    numbers = struct.unpack_from(f"<{count}i", data, 0)
    if numbers[0] not in (_SAME, _VALID):
        op.fail(f"padding is {numbers[0]}, must be 1 (SAME) or 2 (VALID)")
    if not 1 <= min(numbers[1:5]) <= max(numbers[1:5]) <= MAX_STRIDE:
        op.fail(f"strides and window are {numbers[1:5]}, allowed are 1 to {MAX_STRIDE}")
    return numbers


def _image(op: Operation) -> Value:
    x = op.value(0)
    if x.type.rank != 4 or x.type.dtype is not DType.FLOAT32:
        op.fail(f"x is {x.type}, needs float32 of rank 4")
    return x


def _transpose_conv_bias(op: Operation) -> Value:
    """A transposed convolution whose size follows from its input's.

    Source:  mediapipe, util/tflite/operations/transpose_conv_bias.cc
    """
    x = _image(op)
    w = op.weights(1, x)
    if w.type.rank != 4:
        op.fail(f"weights have shape {w.type.shape}, need rank 4")
    padding, stride_w, stride_h = _struct(op, 3)
    pads: list[int] = []
    for size, window, stride in zip(x.type.shape[1:3], w.type.shape[1:3], (stride_h, stride_w), strict=True):
        total = max(window - (size - 1) % stride - 1, 0) if padding == _SAME else 0
        pads += [total // 2, total - total // 2]
    attrs = conv.ConvTranspose2dAttrs((stride_h, stride_w), (pads[0], pads[1], pads[2], pads[3]))
    return op.emit(conv.CONV_TRANSPOSE2D, [x, w, op.as_float(op.value(2))], attrs)


def _max_pool_argmax(op: Operation) -> list[Value]:
    """Maxima and the taps that won: of equals the first column by column, as XNNPACK, which runs it in LiteRT, looks.

    Source:  mediapipe, util/tflite/operations/max_pool_argmax.cc; XNNPACK, src/indirection.c
    """
    x = _image(op)
    padding, sw, sh, kw, kh, code = _struct(op, 6)
    if not 0 <= code < len(_ACTIVATIONS):
        op.refuse(f"fused activation number {code}")
    pads = (0, 0, 0, 0)
    if padding == _SAME:
        pads = image_pads(x.type.shape, (kh, kw), (sh, sw))
    attrs = pool.Pool2dAttrs((kh, kw), (sh, sw), pads, activation=_ACTIVATIONS[code], by_columns=True)
    return op.emit_all(pool.MAX_POOL_WITH_ARGMAX2D, [x], attrs)


def _max_unpool(op: Operation) -> Value:
    """Maxima back to where they came from; the result is a window's size larger, whatever the stride.

    Source:  mediapipe, util/tflite/operations/max_unpooling.cc
    """
    x = _image(op)
    _, sw, sh, kw, kh = _struct(op, 5)
    size = (x.type.shape[1] * kh, x.type.shape[2] * kw)
    top = max((x.type.shape[1] - 1) * sh + kh - size[0], 0) // 2
    left = max((x.type.shape[2] - 1) * sw + kw - size[1], 0) // 2
    attrs = pool.MaxUnpool2dAttrs((kh, kw), (sh, sw), (top, left), size)
    return op.emit(pool.MAX_UNPOOL2D, [x, op.value(1)], attrs)


def _version_2(op: Operation) -> None:
    if op.info.version != 2:
        op.refuse(f"version {op.info.version}; only version 2 is known")


def _landmarks_to_matrix(op: Operation) -> Value:
    _version_2(op)
    options = _Options(op)
    attrs = landmarks.LandmarksToTransformMatrixAttrs(
        left=options.number("left_rotation_idx"),
        right=options.number("right_rotation_idx"),
        subset=options.numbers("subset_idxs"),
        size=(options.number("output_height"), options.number("output_width")),
        scale=(options.real("scale_x"), options.real("scale_y")),
        target_radians=options.real("target_rotation_radians"),
    )
    return op.emit(landmarks.LANDMARKS_TO_TRANSFORM_MATRIX, [op.value(0)], attrs)


def _transform_tensor(op: Operation) -> Value:
    _version_2(op)
    options = _Options(op)
    attrs = landmarks.TransformTensorAttrs((options.number("output_height"), options.number("output_width")))
    return op.emit(landmarks.TRANSFORM_TENSOR_BILINEAR, [op.value(0), op.value(1)], attrs)


def _transform_landmarks(op: Operation) -> Value:
    _version_2(op)
    return op.emit(landmarks.TRANSFORM_LANDMARKS, [op.value(0), op.value(1)], landmarks.TransformLandmarksAttrs())


def _detection_postprocess(op: Operation) -> list[Value]:
    options = _Options(op)
    attrs = suppression.DetectionPostprocessAttrs(
        limit=options.number("max_detections"),
        classes=options.number("num_classes"),
        per_box=options.number("max_classes_per_detection"),
        per_class=options.number("detections_per_class", 100),
        regular=bool(options.number("use_regular_nms", 0)),
        least=options.real("nms_score_threshold"),
        overlap=options.real("nms_iou_threshold"),
        scale=(options.real("y_scale"), options.real("x_scale"), options.real("h_scale"), options.real("w_scale")),
    )
    if not 1 <= attrs.limit * attrs.per_box <= MAX_DETECTIONS:
        op.fail(f"{attrs.limit} detections of {attrs.per_box} classes, allowed are 1 to {MAX_DETECTIONS} in all")
    return op.emit_all(suppression.DETECTION_POSTPROCESS, [op.as_float(x) for x in op.values()], attrs)


def _posenet_decoder(op: Operation) -> list[Value]:
    options = _Options(op)
    attrs = pose.PosenetDecoderAttrs(
        max_detections=options.number("max_detections"),
        score_threshold=options.real("score_threshold"),
        stride=options.number("stride"),
        nms_radius=options.real("nms_radius"),
    )
    if not 1 <= attrs.max_detections <= 1000:
        op.fail(f"max_detections is {attrs.max_detections}, allowed are 1 to 1000")
    return op.emit_all(pose.POSENET_DECODER, [op.as_float(x) for x in op.values()], attrs)


CONVERTERS: dict[str, Row] = {
    "Convolution2DTransposeBias": (_transpose_conv_bias, ""),
    "Landmarks2TransformMatrix": (_landmarks_to_matrix, ""),
    "MaxPoolingWithArgmax2D": (_max_pool_argmax, ""),
    "MaxUnpooling2D": (_max_unpool, ""),
    "PosenetDecoderOp": (_posenet_decoder, ""),
    "TFLite_Detection_PostProcess": (_detection_postprocess, ""),
    "TransformLandmarks": (_transform_landmarks, ""),
    "TransformTensorBilinear": (_transform_tensor, ""),
}


def _registered(op: Operation) -> list[Value]:
    """An operator that the user registered: its options are a map of parameters, or the user reads them."""
    custom = BY_CODE[op.info.name]
    data = op.info.custom_options
    options: Mapping[str, Any] = {}
    if custom.read_options:
        try:
            options = custom.read_options(bytes(data))
        except Exception as error:  # of the user's own code: any kind
            kind = type(error).__name__
            raise ModelFormatError(f"{op.what}: its options cannot be read: {kind}: {error}") from error
    elif data:
        options = read_map(data, op.what)
    try:
        attrs = attributes(custom, options)
    except InputError as error:
        raise ModelFormatError(f"{op.what}: {error}") from error
    return op.emit_all(custom, op.values(), attrs)


def converter(name: str) -> Row | None:
    """The row of a custom operator; what the user registered comes first."""
    return (_registered, "") if name in BY_CODE else CONVERTERS.get(name)
