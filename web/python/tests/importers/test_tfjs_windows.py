"""TensorFlow.js windows that graphs have no operator for, windows that do not fit, and nodes on lists of positions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.importers.test_tfjs_operators import Array, f, fixed, of

IMAGE = f(2, 5, 6, 3)


def ints(*numbers: int) -> Array:
    return fixed(np.array(numbers, np.int32))


def windows(x: Array, k: tuple[int, int], step: int, apart: int, same: bool) -> tuple[Array, Array]:
    """What windows hold, minus infinity where they leave the picture, and the pixels' numbers; taps come last."""
    sizes = x.shape[1:3]
    reach = [(n - 1) * apart + 1 for n in k]
    out = [-(-size // step) if same else (size - r) // step + 1 for size, r in zip(sizes, reach, strict=True)]
    pads = [max((o - 1) * step + r - size, 0) if same else 0 for o, r, size in zip(out, reach, sizes, strict=True)]
    edges = [(0, 0), *((p // 2, p - p // 2) for p in pads), (0, 0)]
    wide = np.pad(x, edges, constant_values=-np.inf)
    numbers = np.pad(np.arange(x[0].size).reshape(1, *x.shape[1:]), edges)
    parts = [
        (slice(None), slice(i * apart, i * apart + (out[0] - 1) * step + 1, step), slice(j * apart, None, step))
        for i in range(k[0]) for j in range(k[1])
    ]  # fmt: skip
    return tuple(np.stack([a[p][:, :, : out[1]] for p in parts], -1) for a in (wide, numbers))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("same", "step", "apart"), [(True, 1, 1), (True, 2, 1), (False, 1, 2), (True, 4, 1), (False, 3, 1)]
)
def test_dilation_takes_the_largest_sum(same: bool, step: int, apart: int) -> None:
    w = f(3, 2, 3)
    (got,) = of(
        "Dilation2D", IMAGE, fixed(w), strides=[1, step, step, 1], dilations=[1, apart, apart, 1],
        padding="SAME" if same else "VALID",
    )  # fmt: skip
    held, _ = windows(IMAGE, (3, 2), step, apart, same)
    np.testing.assert_allclose(got, np.max(held + np.moveaxis(w, 2, 0).reshape(3, 6), -1), 1e-6)


@pytest.mark.parametrize(("same", "step", "batch"), [(True, 1, False), (False, 2, True), (True, 3, True)])
def test_positions_of_the_largest(same: bool, step: int, batch: bool) -> None:
    x = np.round(IMAGE).astype(np.float32)  # ties: the first wins
    got, places = of(
        "MaxPoolWithArgmax", x, results=2, ksize=[1, 3, 2, 1], strides=[1, step, step, 1],
        padding="SAME" if same else "VALID", include_batch_in_index=batch,
    )  # fmt: skip
    held, numbers = windows(x, (3, 2), step, 1, same)
    best = np.argmax(held, -1)[..., None]
    np.testing.assert_array_equal(got, np.max(held, -1))
    want = np.take_along_axis(np.broadcast_to(numbers, held.shape), best, -1)[..., 0]
    np.testing.assert_array_equal(places, want + batch * np.arange(2).reshape(2, 1, 1, 1) * x[0].size)


@pytest.mark.parametrize(
    "call",
    [
        lambda a: of("Conv2D", IMAGE, fixed(f(6, 3, 3, 7)), **a),
        lambda a: of("DepthwiseConv2dNative", IMAGE, fixed(f(6, 3, 3, 2)), **a),
        lambda a: of("MaxPool", IMAGE, ksize=[1, 6, 3, 1], **a),
        lambda a: of("Dilation2D", IMAGE, fixed(f(6, 3, 3)), **a),
    ],
)
def test_windows_that_do_not_fit_give_nothing(call: Callable[[dict[str, object]], list[Array]]) -> None:
    (got,) = call({"strides": [1, 2, 2, 1], "dilations": [1, 1, 1, 1], "padding": "VALID"})
    assert got.shape[:3] == (2, 0, 2)


def test_volumes_begin_where_tensorflow_js_begins() -> None:
    x = np.arange(9, dtype=np.float32).reshape(1, 9, 1, 1, 1)
    (got,) = of("MaxPool3D", x, ksize=[1, 1, 1, 1, 1], strides=[1, 4, 1, 1, 1], padding="SAME")
    np.testing.assert_array_equal(got.reshape(-1), [0, 4, 8])  # nothing is left over
    x = np.arange(8, dtype=np.float32).reshape(1, 8, 1, 1, 1)
    (got,) = of("MaxPool3D", x, ksize=[1, 1, 1, 1, 1], strides=[1, 4, 1, 1, 1], padding="SAME")
    np.testing.assert_array_equal(got.reshape(-1), [2, 6])  # three planes too many: two before, one behind


def test_sums_and_means_of_segments() -> None:
    x, rows, segments = f(5, 3), ints(0, 2, 4, 1), ints(0, 0, 1, 3)
    sums = np.stack([x[0] + x[2], x[4], np.zeros(3), x[1]])
    np.testing.assert_allclose(of("SparseSegmentSum", x, rows, segments)[0], sums, 1e-6)
    want = sums / np.array([[2], [1], [1], [1]])
    np.testing.assert_allclose(of("SparseSegmentMean", x, rows, segments)[0], want, 1e-6)


def test_sparse_shapes_and_differences() -> None:
    places = fixed(np.array([[0, 0, 1], [1, 1, 2]], np.int32))
    got, shape = of("SparseReshape", places, ints(2, 3, 6), ints(9, -1), results=2)
    np.testing.assert_array_equal(got, [[0, 1], [6, 2]])
    np.testing.assert_array_equal(shape, [9, 4])
    left, at = of("ListDiff", ints(5, 1, 4, 1, 5), ints(1, 2), results=2)
    np.testing.assert_array_equal(left, [5, 4, 5])
    np.testing.assert_array_equal(at, [0, 2, 4])


def test_numbers_are_counted_row_by_row() -> None:
    x, none = fixed(np.array([[1, 1, 0], [3, 0, 9]], np.int32)), fixed(np.zeros(0, np.float32))
    (got,) = of("DenseBincount", x, ints(4).reshape(()), none, binary_output=False)
    np.testing.assert_array_equal(got, [[1, 2, 0, 0], [1, 0, 0, 1]])
    (got,) = of("DenseBincount", x, ints(4).reshape(()), none, binary_output=True)
    np.testing.assert_array_equal(got, [[1, 1, 0, 0], [1, 0, 0, 1]])


def test_integers_stay_integers_where_pictures_grow() -> None:
    x = np.arange(6, dtype=np.int32).reshape(1, 2, 3, 1)
    (got,) = of("ResizeNearestNeighbor", x, ints(4, 3), align_corners=False, half_pixel_centers=False)
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got[0, :, :, 0], np.repeat(x[0, :, :, 0], 2, 0))


def test_boxes_are_padded_to_no_more_than_there_are() -> None:
    boxes, scores = f(3, 4), f(3)
    kept, _ = of(
        "NonMaxSuppressionV4", boxes, scores, ints(20).reshape(()), fixed(np.array(0.5, np.float32)),
        fixed(np.array(-9.0, np.float32)), results=2, pad_to_max_output_size=True,
    )  # fmt: skip
    assert kept.shape == (3,)
