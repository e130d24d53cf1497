"""MediaPipe's operators for attention on landmarks."""

from __future__ import annotations

import math

import numpy as np

from webinfer.backends.reference.arrays import Array, Compute, Inputs, required, rounded, wide
from webinfer.graph.ir import Node, Op
from webinfer.ops import landmarks as ops


def _turn(radians: float) -> Array:
    c, s = math.cos(radians), math.sin(radians)
    return np.array([[c, -s], [s, c]])


def to_transform_matrix(inputs: Inputs, node: Node) -> list[Array]:
    """The matrix from pixels of a region to pixels of the image: shift(center) * turn(-r) * scale * shift(-size / 2).

    The region is the box around a subset of the landmarks, after r turned left-to-right to the target angle.

    Shapes:  landmarks [1, L, 3] -> [1, 4, 4]
    """
    a, points = node.attrs, wide(required(inputs[0]))[0]
    dx, dy = (points[a.right] - points[a.left])[:2]
    radians = a.target_radians - math.atan2(dy, dx)
    upright = points[list(a.subset), :2] @ _turn(radians).T
    low, high = upright.min(axis=0), upright.max(axis=0)
    center = _turn(-radians) @ ((low + high) / 2.0)
    height, width = a.size
    scale = np.array(a.scale) * (high - low) / (width, height)
    linear = _turn(-radians) * scale
    matrix = np.eye(4)
    matrix[:2, :2] = linear
    matrix[:2, 3] = center - linear @ (width / 2.0, height / 2.0)
    return [rounded(matrix, node.output.type)]


def transform_tensor(inputs: Inputs, node: Node) -> list[Array]:
    """Bilinear samples of x where the matrix sends each output pixel; 0 outside of x.

    Shapes:  x [1, IH, IW, C], matrix [1, 4, 4] -> [1, OH, OW, C]
    """
    a, x = node.attrs, wide(required(inputs[0]))[0]
    matrix = wide(required(inputs[1]))[0]
    (oh, ow), (ih, iw) = a.size, x.shape[:2]
    half = 0.5 if a.half_pixel_centers else 0.0
    oy, ox = np.mgrid[0:oh, 0:ow] + half
    sx = matrix[0, 0] * ox + matrix[0, 1] * oy + matrix[0, 3] - half
    sy = matrix[1, 0] * ox + matrix[1, 1] * oy + matrix[1, 3] - half
    inside = (sx >= 0) & (sx <= iw - 1) & (sy >= 0) & (sy <= ih - 1)
    sx, sy = np.where(inside, sx, 0.0), np.where(inside, sy, 0.0)
    left, top = np.floor(sx).astype(int), np.floor(sy).astype(int)
    right, bottom = np.minimum(left + 1, iw - 1), np.minimum(top + 1, ih - 1)
    wx, wy = (sx - left)[..., None], (sy - top)[..., None]
    upper = x[top, left] * (1 - wx) + x[top, right] * wx
    lower = x[bottom, left] * (1 - wx) + x[bottom, right] * wx
    y = np.where(inside[..., None], upper * (1 - wy) + lower * wy, 0.0)
    return [rounded(y, node.output.type)]


def transform_landmarks(inputs: Inputs, node: Node) -> list[Array]:
    """Landmarks sent through the matrix: x and y only, the shift multiplied by the node's scale."""
    y, matrix = wide(required(inputs[0])).copy(), wide(required(inputs[1]))[0]
    y[..., :2] = y[..., :2] @ matrix[:2, :2].T + matrix[:2, 3] * node.attrs.scale
    return [rounded(y, node.output.type)]


LOWERINGS: dict[Op, Compute] = {
    ops.LANDMARKS_TO_TRANSFORM_MATRIX: to_transform_matrix,
    ops.TRANSFORM_LANDMARKS: transform_landmarks,
    ops.TRANSFORM_TENSOR_BILINEAR: transform_tensor,
}
