"""The landmark operators, checked on geometry that one can work out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from webinfer.backends.reference.executor import compute
from webinfer.graph.ir import Op, TensorType, Value, apply
from webinfer.ops.landmarks import (
    LANDMARKS_TO_TRANSFORM_MATRIX,
    TRANSFORM_LANDMARKS,
    TRANSFORM_TENSOR_BILINEAR,
    LandmarksToTransformMatrixAttrs,
    TransformLandmarksAttrs,
    TransformTensorAttrs,
)

Array = np.ndarray[Any, np.dtype[Any]]


def result(op: Op, arrays: list[Array], attrs: Any) -> Array:
    node = apply(op, [Value(f"x{i}", TensorType(a.shape)) for i, a in enumerate(arrays)], attrs)
    return compute(node, [a.astype(np.float32) for a in arrays])[0]


def matrix(a: float, b: float, tx: float, c: float, d: float, ty: float) -> Array:
    return np.array([[[a, b, 0, tx], [c, d, 0, ty], [0, 0, 1, 0], [0, 0, 0, 1]]], np.float32)


def box(*points: tuple[float, float]) -> Array:
    return np.array([[(x, y, 0.0) for x, y in points]])


def test_an_upright_box_is_scaled_about_its_centre() -> None:
    corners = box((10, 20), (30, 20), (30, 60), (10, 60))
    attrs = LandmarksToTransformMatrixAttrs(0, 1, (0, 1, 2, 3), (8, 4), (1.0, 1.0))
    m = result(LANDMARKS_TO_TRANSFORM_MATRIX, [corners], attrs)[0]
    np.testing.assert_allclose(m @ (0, 0, 0, 1), (10, 20, 0, 1), atol=1e-5)
    np.testing.assert_allclose(m @ (4, 8, 0, 1), (30, 60, 0, 1), atol=1e-5)


def test_scale_widens_the_region_about_the_same_centre() -> None:
    corners = box((10, 20), (30, 20), (30, 60), (10, 60))
    attrs = LandmarksToTransformMatrixAttrs(0, 1, (0, 1, 2, 3), (8, 4), (2.0, 1.0))
    m = result(LANDMARKS_TO_TRANSFORM_MATRIX, [corners], attrs)[0]
    np.testing.assert_allclose(m @ (2, 4, 0, 1), (20, 40, 0, 1), atol=1e-5)
    np.testing.assert_allclose(m @ (0, 4, 0, 1), (0, 40, 0, 1), atol=1e-5)


def test_a_turned_face_gives_a_turned_region() -> None:
    turned = math.radians(30)
    c, s = math.cos(turned), math.sin(turned)
    flat = [(0, 0), (6, 0), (6, 4), (0, 4)]
    corners = box(*((c * x - s * y + 50, s * x + c * y + 40) for x, y in flat))
    attrs = LandmarksToTransformMatrixAttrs(0, 1, (0, 1, 2, 3), (4, 6))
    m = result(LANDMARKS_TO_TRANSFORM_MATRIX, [corners], attrs)[0]
    for (x, y), corner in zip(flat, corners[0], strict=True):
        np.testing.assert_allclose((m @ (x, y, 0, 1))[:2], corner[:2], atol=1e-4)


def test_the_identity_copies_and_what_lies_outside_is_zero() -> None:
    x = np.arange(2 * 3 * 2, dtype=np.float32).reshape(1, 2, 3, 2) + 1
    y = result(TRANSFORM_TENSOR_BILINEAR, [x, matrix(1, 0, 0, 0, 1, 0)], TransformTensorAttrs((3, 4)))
    np.testing.assert_array_equal(y[:, :2, :3], x)
    assert not y[:, 2].any()
    assert not y[:, :, 3].any()


def test_half_a_pixel_to_the_right_is_the_mean_of_two() -> None:
    x = np.array([1.0, 3.0, 7.0]).reshape(1, 1, 3, 1)
    y = result(TRANSFORM_TENSOR_BILINEAR, [x, matrix(1, 0, 0.5, 0, 1, 0)], TransformTensorAttrs((1, 3)))
    np.testing.assert_allclose(y.reshape(-1), (2, 5, 0))


def test_half_pixel_centres_matter_when_the_matrix_scales() -> None:
    x = np.arange(4.0).reshape(1, 1, 4, 1)
    twice = matrix(2, 0, 0, 0, 1, 0)
    centred = result(TRANSFORM_TENSOR_BILINEAR, [x, twice], TransformTensorAttrs((1, 2)))
    corner = result(TRANSFORM_TENSOR_BILINEAR, [x, twice], TransformTensorAttrs((1, 2), half_pixel_centers=False))
    np.testing.assert_allclose(centred.reshape(-1), (0.5, 2.5))
    np.testing.assert_allclose(corner.reshape(-1), (0, 2))


def test_points_follow_the_matrix_and_depth_stays() -> None:
    points = np.array([[[1.0, 2.0, 9.0], [0.0, 0.0, -4.0]]])
    y = result(TRANSFORM_LANDMARKS, [points, matrix(0, -1, 5, 1, 0, 7)], TransformLandmarksAttrs())
    np.testing.assert_allclose(y, [[[3, 8, 9], [5, 7, -4]]])


def test_scale_multiplies_the_translation_only() -> None:
    y = result(
        TRANSFORM_LANDMARKS, [np.array([[[1.0, 2.0]]]), matrix(2, 0, 0.5, 0, 2, 1)], TransformLandmarksAttrs(8.0)
    )
    np.testing.assert_allclose(y, [[[6, 12]]])
