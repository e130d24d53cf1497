"""How a face lies in space: the matrix from MediaPipe's canonical face to a face that was found.

Source:  mediapipe/modules/face_geometry (libs/geometry_pipeline.cc, libs/procrustes_solver.cc; the weights and points
         are those of data/geometry_pipeline_metadata.pbtxt and data/canonical_face_model.obj)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Point = tuple[float, float, float]
Matrix = tuple[tuple[float, float, float, float], ...]  # 4 rows; the last one is 0, 0, 0, 1

VERTICAL_FIELD = math.radians(63.0)  # of view, of the camera that MediaPipe takes for granted
NEAR = 1.0  # centimetres: the plane on which the picture lies
SWEEPS = 12  # of Jacobi's method at most; 4x4 matrices take four to six
ANCHORS: tuple[
    tuple[int, float, float, float, float], ...
] = (  # number of a landmark, its weight, and where it lies in the canonical face, in centimetres
    (4, 0.070909939706326, 0, -0.46317, 7.58658),
    (6, 0.032100144773722, 0, 2.473255, 5.788627),
    (10, 0.008446550928056, 0, 8.261778, 4.481535),
    (33, 0.058724168688059, -4.445859, 2.663991, 3.173422),
    (54, 0.007667080033571, -6.279331, 6.615427, 1.42585),
    (67, 0.009078059345484, -3.523964, 8.005976, 3.729163),
    (117, 0.009791937656701, -5.258659, 0.945811, 2.974312),
    (119, 0.014565368182957, -3.300681, 0.861641, 3.872784),
    (121, 0.018591361120343, -1.820731, 1.467954, 4.224124),
    (127, 0.005197994410992, -7.743095, 2.364999, -2.005167),
    (129, 0.120625205338001, -1.785794, -0.978284, 4.85047),
    (132, 0.005560018587857, -7.270895, -2.890917, -2.252455),
    (133, 0.05328618362546, -1.856432, 2.585245, 3.757904),
    (136, 0.066890455782413, -5.085276, -7.17859, 0.714711),
    (143, 0.014816547743976, -6.407571, 2.236021, 1.560843),
    (147, 0.014262833632529, -6.234883, -1.94443, 1.663542),
    (198, 0.025462191551924, -1.246815, 0.230297, 5.681036),
    (205, 0.047252278774977, -3.832928, -1.537326, 4.137731),
    (263, 0.058724168688059, 4.445859, 2.663991, 3.173422),
    (284, 0.007667080033571, 6.279331, 6.615427, 1.42585),
    (297, 0.009078059345484, 3.523964, 8.005976, 3.729163),
    (346, 0.009791937656701, 5.258659, 0.945811, 2.974312),
    (348, 0.014565368182957, 3.300681, 0.861641, 3.872784),
    (350, 0.018591361120343, 1.820731, 1.467954, 4.224124),
    (356, 0.005197994410992, 7.743095, 2.364999, -2.005167),
    (358, 0.120625205338001, 1.785794, -0.978284, 4.85047),
    (361, 0.005560018587857, 7.270895, -2.890917, -2.252455),
    (362, 0.05328618362546, 1.856432, 2.585245, 3.757904),
    (365, 0.066890455782413, 5.085276, -7.17859, 0.714711),
    (372, 0.014816547743976, 6.407571, 2.236021, 1.560843),
    (376, 0.014262833632529, 6.234883, -1.94443, 1.663542),
    (420, 0.025462191551924, 1.246815, 0.230297, 5.681036),
    (425, 0.047252278774977, 3.832928, -1.537326, 4.137731),
)


def transformation_matrix(normalized: Sequence[float], size: tuple[int, int]) -> Matrix:
    """The matrix that brings points of the canonical face, in centimetres, to a face before the camera.

    `normalized` are x, y and z of all landmarks in parts of the picture, whose width and height `size` has. The camera
    lies at 0, 0, 0 and looks along -z; x goes to the right and y upwards. It scales all three axes alike.
    """
    high = 2 * NEAR * math.tan(VERTICAL_FIELD / 2)
    wide = high * size[0] / size[1]
    depths = normalized[2 : 3 * 468 : 3]
    mean = wide * sum(depths) / len(depths)
    places = []
    for index, *_ in ANCHORS:
        x, y, z = normalized[3 * index : 3 * index + 3]
        places.append(((x - 0.5) * wide, (0.5 - y) * high, z * wide))
    scale = _length(_solved([(x, y, -z) for x, y, z in places]))
    scale *= _length(_solved(_unprojected(places, mean, scale)))
    return _solved(_unprojected(places, mean, scale))


def _unprojected(places: Sequence[Point], mean: float, scale: float) -> list[Point]:
    """Points before the camera of points on the near plane, where a face is so many times as large as it seems."""
    deep = [(z - mean + NEAR) / scale for _, _, z in places]
    return [(x * z / NEAR, y * z / NEAR, -z) for (x, y, _), z in zip(places, deep, strict=True)]


def _length(matrix: Matrix) -> float:
    return math.hypot(*(row[0] for row in matrix[:3]))


def _solved(targets: Sequence[Point]) -> Matrix:
    """The rotation, scale and shift that bring the canonical anchors nearest to their targets, by weighted squares.

    The rotation is Horn's: as a quaternion it is the eigenvector of the largest eigenvalue of a symmetric 4x4 matrix.
    """
    weights = [weight for _, weight, *_ in ANCHORS]
    sources: Sequence[Point] = [(x, y, z) for _, _, x, y, z in ANCHORS]
    total = sum(weights)
    centres = [
        [sum(w * point[axis] for w, point in zip(weights, points, strict=True)) / total for axis in range(3)]
        for points in (sources, targets)
    ]
    sums = [[0.0] * 3 for _ in range(3)]  # of source times target
    spread = 0.0
    for weight, source, target in zip(weights, sources, targets, strict=True):
        at = [weight * (source[axis] - centres[0][axis]) for axis in range(3)]
        spread += sum(at[axis] * source[axis] for axis in range(3))
        for row in range(3):
            for column in range(3):
                sums[row][column] += at[row] * target[column]
    rotation = _rotation(sums)
    scale = sum(rotation[i][j] * sums[j][i] for i in range(3) for j in range(3)) / spread
    rows = []
    for i in range(3):
        x, y, z = (scale * number for number in rotation[i])
        shift = centres[1][i] - sum(a * b for a, b in zip((x, y, z), centres[0], strict=True))
        rows.append((x, y, z, shift))
    return (*rows, (0.0, 0.0, 0.0, 1.0))


def _rotation(s: Sequence[Sequence[float]]) -> list[list[float]]:
    """The rotation that brings sources to targets, of the sums of their products.

    Source:  Horn, Closed-form solution of absolute orientation using unit quaternions, 1987
    """
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = s
    w, x, y, z = _largest([
        [xx + yy + zz, yz - zy, zx - xz, xy - yx],
        [yz - zy, xx - yy - zz, xy + yx, zx + xz],
        [zx - xz, xy + yx, yy - xx - zz, yz + zy],
        [xy - yx, zx + xz, yz + zy, zz - xx - yy],
    ])  # fmt: skip
    return [
        [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
    ]


def _largest(a: list[list[float]]) -> list[float]:
    """The unit eigenvector of a symmetric matrix's largest eigenvalue, by Jacobi's method. `a` is overwritten."""
    n = len(a)
    vectors = [[float(i == j) for j in range(n)] for i in range(n)]
    least = 1e-30 * sum(x * x for row in a for x in row)
    for _ in range(SWEEPS):
        if sum(a[i][j] ** 2 for i in range(n) for j in range(i)) <= least:
            break
        for p in range(n):
            for q in range(p + 1, n):
                if a[p][q]:
                    _turn(a, vectors, p, q)
    best = max(range(n), key=lambda i: a[i][i])
    return [row[best] for row in vectors]


def _turn(a: list[list[float]], vectors: list[list[float]], p: int, q: int) -> None:
    """Makes a[p][q] zero by a rotation in the plane of both axes."""
    ratio = (a[q][q] - a[p][p]) / (2 * a[p][q])
    tan = math.copysign(1.0, ratio) / (abs(ratio) + math.hypot(ratio, 1.0))
    cos = 1 / math.hypot(tan, 1.0)
    sin = tan * cos
    for rows in (a, vectors):
        for row in rows:
            row[p], row[q] = cos * row[p] - sin * row[q], sin * row[p] + cos * row[q]
    for k in range(len(a)):
        a[p][k], a[q][k] = cos * a[p][k] - sin * a[q][k], sin * a[p][k] + cos * a[q][k]
