"""MediaPipe's custom operators for attention on landmarks: find a region, sample it, map points back.

Source: google-ai-edge/mediapipe, mediapipe/util/tflite/operations, version 2 of each operator.
"""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.errors import ShapeError
from webinfer.expr import formula as f
from webinfer.expr.formula import Formula
from webinfer.expr.kernel import Kernel, Kind, Tensor, axes, lengths, real, reals, sizes, whole
from webinfer.graph.ir import Case, Cost, Op, TensorType, Tolerance
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.registry import all_real, declare, elementwise_cost, moved_bytes, need

Inputs = Sequence[TensorType | None]
Types = Sequence[TensorType]


@dataclass(frozen=True, slots=True)
class LandmarksToTransformMatrixAttrs:
    """The region is the box around the `subset` landmarks, turned so that left-to-right has the
    target angle, scaled by `scale` = (x, y), mapped from an image of `size` = (OH, OW) pixels."""

    left: int
    right: int
    subset: tuple[int, ...]
    size: tuple[int, int]
    scale: tuple[float, float] = (1.0, 1.0)
    target_radians: float = 0.0


@dataclass(frozen=True, slots=True)
class TransformTensorAttrs:
    """y[oy, ox] = x sampled bilinearly at matrix * (ox, oy, 0, 1); zero outside the image.

    `half_pixel_centers` maps (ox + 0.5, oy + 0.5) and takes 0.5 off the result.
    """

    size: tuple[int, int]  # (OH, OW)
    half_pixel_centers: bool = True


@dataclass(frozen=True, slots=True)
class TransformLandmarksAttrs:
    """The matrix's translation is multiplied by `scale` (1 in version 2)."""

    scale: float = 1.0


def _to_matrix(inputs: Inputs, a: LandmarksToTransformMatrixAttrs) -> tuple[TensorType, ...]:
    """Shapes:  landmarks [1, L, 3] (x, y, z) -> matrix [1, 4, 4]"""
    name = "landmarks_to_transform_matrix"
    x = need(name, "landmarks", inputs[0], 3)
    if x.shape[0] != 1 or x.shape[2] != 3:
        raise ShapeError(f"{name}: landmarks {x.shape} need shape (1, count, 3)")
    if not a.subset or any(not 0 <= i < x.shape[1] for i in (a.left, a.right, *a.subset)):
        raise ShapeError(f"{name}: an index of {(a.left, a.right, *a.subset)} is not one of {x.shape[1]} landmarks")
    if min(a.size) < 1:
        raise ShapeError(f"{name}: size {a.size} must be positive")
    if not abs(a.target_radians) <= 1e4:
        raise ShapeError(f"{name}: the angle {a.target_radians} is too large for float32 to tell turns apart")
    return (TensorType((1, 4, 4), x.dtype),)


def _matrix(name: str, inputs: Inputs) -> TensorType:
    matrix = need(name, "matrix", inputs[1], 3)
    if matrix.shape != (1, 4, 4):
        raise ShapeError(f"{name}: matrix has shape {matrix.shape}, needs (1, 4, 4)")
    return matrix


def _transform_tensor(inputs: Inputs, a: TransformTensorAttrs) -> tuple[TensorType, ...]:
    """Shapes:  x [1, IH, IW, C], matrix [1, 4, 4] -> y [1, OH, OW, C]"""
    name = "transform_tensor_bilinear"
    x = need(name, "x", inputs[0], 4)
    _matrix(name, inputs)
    if x.shape[0] != 1 or min(*a.size, *x.shape) < 1:
        raise ShapeError(f"{name}: cannot sample {x.shape} into {a.size}; the batch must be 1")
    return (TensorType((1, *a.size, x.shape[3]), x.dtype),)


def _transform_landmarks(inputs: Inputs, a: TransformLandmarksAttrs) -> tuple[TensorType, ...]:
    """Shapes:  landmarks [..., D] with D 2 or 3 (a third number passes unchanged), matrix [1, 4, 4]"""
    name = "transform_landmarks"
    x = need(name, "landmarks", inputs[0])
    _matrix(name, inputs)
    if x.rank < 1 or x.shape[-1] not in (2, 3):
        raise ShapeError(f"{name}: landmarks {x.shape} need 2 or 3 numbers each")
    return (TensorType(x.shape, x.dtype),)


def _landmarks_kernel(inputs: Types, outputs: Types, a: TransformLandmarksAttrs) -> Kernel:
    points, numbers = lengths(inputs[0].shape, points=inputs[0].rank - 1, numbers=inputs[0].rank)
    (side,), (scale,) = sizes(side=4), reals(scale=a.scale)
    x, matrix = Tensor("x", (points, numbers), Kind.NUMBER), Tensor("matrix", (side, side), Kind.NUMBER)
    p, d = axes(p=points, d=numbers)
    turned = x[p, 0] * matrix[d, 0] + x[p, 1] * matrix[d, 1] + matrix[d, 3] * scale
    return Kernel("transform_landmarks", (x, matrix), (p, d), f.select(d > 1, x[p, d], turned), Kind.NUMBER)


def _tensor_kernel(inputs: Types, outputs: Types, a: TransformTensorAttrs) -> Kernel:
    _, ih, iw, c = lengths(inputs[0].shape, batch=1, ih=2, iw=3, c=4)
    oh, ow, side = sizes(oh=a.size[0], ow=a.size[1], side=4)
    (half,) = reals(half=0.5 if a.half_pixel_centers else 0.0)
    x, matrix = Tensor("x", (ih, iw, c), Kind.NUMBER), Tensor("matrix", (side, side), Kind.NUMBER)
    oy, ox, i = axes(oy=oh, ox=ow, i=c)

    def at(row: int) -> Formula:
        return matrix[row, 0] * (real(ox) + half) + matrix[row, 1] * (real(oy) + half) + matrix[row, 3] - half

    sx, sy = at(0), at(1)
    inside = (sx >= 0) & (sx <= real(iw - 1)) & (sy >= 0) & (sy <= real(ih - 1))
    left, top = whole(sx), whole(sy)
    right, bottom, across, down = f.min(left + 1, iw - 1), f.min(top + 1, ih - 1), sx - real(left), sy - real(top)
    above = x[top, left, i] * (1 - across) + x[top, right, i] * across
    below = x[bottom, left, i] * (1 - across) + x[bottom, right, i] * across
    (zero,) = reals(zero=0.0)
    value = f.select(inside, above * (1 - down) + below * down, zero)
    return Kernel("transform_tensor_bilinear", (x, matrix), (oy, ox, i), value, Kind.NUMBER)


def _sample_cost(inputs: Inputs, outputs: Sequence[TensorType], a: object) -> Cost:
    return Cost(8 * outputs[0].size, moved_bytes(inputs, outputs))


_GEOMETRY = Tolerance(
    absolute=1e-5, relative=2e-5, reason="sine, cosine and arc tangent of float32 numbers", summed=True
)
_FACE = tuple(n for x, y in ((3, 9), (12, 4), (7, 15), (9, 2), (5, 5)) for n in (float(x), float(y), 0.25))
_TURNED = (0.75, -0.5, 0.0, 3.25, 0.5, 0.75, 0.0, 1.5, 0, 0, 1, 0, 0, 0, 0, 1)
_STRAIGHT = (1.5, 0, 0, -2.0, 0, 1.25, 0, -1.0, 0, 0, 1, 0, 0, 0, 0, 1)

LANDMARKS_TO_TRANSFORM_MATRIX = declare(
    Op(
        "landmarks_to_transform_matrix", LandmarksToTransformMatrixAttrs, _to_matrix, elementwise_cost, _GEOMETRY,
        (
            Case("turned", (TensorType((1, 5, 3)),), LandmarksToTransformMatrixAttrs(0, 1, (0, 1, 2, 3), (16,
                12), (1.5, 1.25)), values={0: _FACE}),
            Case("backwards, target angle", (TensorType((1, 5, 3)),), LandmarksToTransformMatrixAttrs(1, 2, (4,
                3, 2), (8, 8), target_radians=0.5), values={0: _FACE}),
        ),
        types=(all_real,),
    )
)  # fmt: skip
TRANSFORM_TENSOR_BILINEAR = declare(
    Op(
        "transform_tensor_bilinear", TransformTensorAttrs, _transform_tensor, _sample_cost,
        Tolerance(1e-5, 1e-5, "the positions are rounded before they weigh", summed=True),
        (
            Case("turned, partly outside", (TensorType((1, 9, 10, 8)), TensorType((1, 4, 4))),
                TransformTensorAttrs((7, 8)), values={1: _TURNED}),
            Case("odd channels", (TensorType((1, 9, 10, 3)), TensorType((1, 4, 4))), TransformTensorAttrs((8,
                9)), values={1: _STRAIGHT}),
            Case("corners aligned", (TensorType((1, 9, 10, 4)), TensorType((1, 4, 4))),
                TransformTensorAttrs((7, 8), False), values={1: _TURNED}),
        ),
        types=(all_real,), kernel=_tensor_kernel,
    )
)  # fmt: skip
TRANSFORM_LANDMARKS = declare(
    Op(
        "transform_landmarks", TransformLandmarksAttrs, _transform_landmarks, elementwise_cost, _GEOMETRY,
        (
            Case("plane", (TensorType((1, 7, 2)), TensorType((1, 4, 4))), TransformLandmarksAttrs(),
                values={1: _TURNED}),
            Case("space", (TensorType((1, 5, 3)), TensorType((1, 4, 4))), TransformLandmarksAttrs(),
                values={1: _TURNED}),
            Case("scaled translation", (TensorType((1, 5, 2)), TensorType((1, 4, 4))),
                TransformLandmarksAttrs(16.0), values={1: _TURNED}),
        ),
        types=(all_real,), kernel=_landmarks_kernel,
    )
)  # fmt: skip
