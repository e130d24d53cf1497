"""TensorFlow.js operators by family, against numbers that NumPy or the case itself knows."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from tests.importers.tfjs_writer import Array, model, node, placeholder

import webinfer
from webinfer.importers import read_model
from webinfer.importers.core.partial_evaluation import KnownValues
from webinfer.importers.tfjs.convert import CONVERTERS


def run(files: Mapping[str, bytes], inputs: Mapping[str, Array] | None = None, **options: Any) -> dict[str, Array]:
    """What the reference computes."""

    async def loaded() -> dict[str, Array]:
        with await webinfer.load(files, **{"backend": "reference", **options}) as session:
            return {name: t.numpy().copy() for name, t in (await session.run(dict(inputs or {}))).items()}

    return asyncio.run(loaded())


def of(op: str, *inputs: Any, results: int = 1, **attributes: Any) -> list[Array]:
    """The results of one node. Arrays that are not float32 or lie in a list are weights, others are fed."""
    fed, weights, names, nodes = dict[str, Array](), dict[str, Array](), [], []
    for i, given in enumerate(inputs):
        array = np.asarray(given, np.float32 if isinstance(given, float) else None)
        names.append(f"i{i}")
        if isinstance(given, np.ndarray) and given.flags.writeable:
            fed[f"i{i}"] = given
            kind = {"float32": "DT_FLOAT", "int32": "DT_INT32", "bool": "DT_BOOL"}[str(given.dtype)]
            nodes.append(placeholder(f"i{i}", given.shape, kind))
        else:
            weights[f"i{i}"] = array.astype(np.int32) if array.dtype == np.int64 else array
    nodes.append(node("y", op, *names, **attributes))
    nodes += [node(f"z{i}", "Identity", "y" if i == 0 else f"y:{i}") for i in range(results)]
    got = run(model(nodes, weights), fed)
    return [got[f"z{i}"] for i in range(results)]


def f(*shape: int, low: float = -2.0, high: float = 2.0) -> Array:
    return np.random.default_rng(math.prod(shape) + 7).uniform(low, high, shape).astype(np.float32)


def fixed(array: Array) -> Array:
    """An array that becomes a weight."""
    array = array.copy()
    array.flags.writeable = False
    return array


X = f(2, 5)
IMAGE = f(1, 5, 6, 3)
CUBE = f(1, 4, 3, 5, 2)
INTS = np.array([[7, -7, 6], [-6, 0, 5]], np.int32)

UNARY: dict[str, tuple[Array, Any]] = {
    "Abs": (X, np.abs), "Acos": (f(9, low=-1, high=1), np.arccos), "Acosh": (f(9, low=1, high=9), np.arccosh),
    "Asin": (f(9, low=-1, high=1), np.arcsin), "Asinh": (f(9, low=-9, high=9), np.arcsinh),
    "Atan": (f(40, low=-9, high=9), np.arctan), "Atanh": (f(9, low=-0.9, high=0.9), np.arctanh),
    "Ceil": (X, np.ceil), "Cos": (X, np.cos), "Cosh": (X, np.cosh),
    "Elu": (X, lambda x: np.where(x > 0, x, np.expm1(x))),
    "Exp": (X, np.exp), "Expm1": (X, np.expm1), "Floor": (X, np.floor), "Log": (np.abs(X), np.log),
    "Log1p": (np.abs(X), np.log1p), "Neg": (X, np.negative), "Reciprocal": (X, lambda x: 1 / x),
    "Relu": (X, lambda x: np.maximum(x, 0)), "Relu6": (4 * X, lambda x: np.clip(x, 0, 6)),
    "Round": (np.array([0.5, 1.5, -2.5], np.float32), lambda x: np.array([0, 2, -2])),
    "Rsqrt": (np.abs(X), lambda x: 1 / np.sqrt(x)),
    "Selu": (X, lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))),
    "Sigmoid": (X, lambda x: 1 / (1 + np.exp(-x))), "Sign": (X, np.sign), "Sin": (X, np.sin), "Sinh": (X, np.sinh),
    "Softplus": (X, lambda x: np.log1p(np.exp(x))), "Sqrt": (np.abs(X), np.sqrt), "Square": (INTS, np.square),
    "Tan": (X, np.tan), "Tanh": (X, np.tanh), "LogicalNot": (X > 0, np.logical_not),
    "IsNan": (np.array([1, np.nan, np.inf], np.float32), np.isnan),
    "IsInf": (np.array([1, np.nan, -np.inf], np.float32), np.isinf),
    "IsFinite": (np.array([1, np.nan, -np.inf], np.float32), np.isfinite),
    "Erf": (X, lambda x: np.vectorize(math.erf)(x)),
}  # fmt: skip
BINARY: dict[str, tuple[Any, Any, Any]] = {
    "AddV2": (X, f(5), np.add), "Sub": (X, INTS[0, :1], np.subtract), "Mul": (INTS, X[:, :3], np.multiply),
    "RealDiv": (INTS, INTS[:1, :1], np.floor_divide), "Div": (X, f(5), np.divide),
    "DivNoNan": (
        X, np.array([1, 0, 2, 0, -1], np.float32), lambda a, b: np.where(b == 0, 0, a / np.where(b == 0, 1, b)),
    ),
    "FloorDiv": (INTS, np.array([2], np.int32), np.floor_divide), "FloorMod": (INTS, np.array([4], np.int32), np.mod),
    "Mod": (X, f(5, low=0.5), np.mod), "Maximum": (X, f(5), np.maximum), "Minimum": (X, f(5), np.minimum),
    "Pow": (np.abs(X), f(5), np.power), "SquaredDifference": (X, f(5), lambda a, b: (a - b) ** 2),
    "Atan2": (f(60, low=-2), f(60, low=-1, high=3)[::-1].copy(), np.arctan2), "BiasAdd": (X, f(5), np.add),
    "Prelu": (X, f(5, low=0.1, high=0.4), lambda a, b: np.where(a >= 0, a, a * b)),
    "Equal": (INTS, INTS[:, ::-1].copy(), np.equal), "NotEqual": (X > 0, X < 1, np.not_equal),
    "Greater": (X, INTS[0, :1], np.greater), "GreaterEqual": (X, f(5), np.greater_equal), "Less": (X, f(5), np.less),
    "LessEqual": (INTS, INTS[:1], np.less_equal), "LogicalAnd": (X > 0, X < 1, np.logical_and),
    "LogicalOr": (X > 0, X < -1, np.logical_or),
}  # fmt: skip


@pytest.mark.parametrize("op", UNARY)
def test_one_operand(op: str) -> None:
    x, formula = UNARY[op]
    np.testing.assert_allclose(of(op, x)[0], formula(x), 2e-5, 2e-6)


@pytest.mark.parametrize("op", ["Asinh", "Atanh", "Sinh"])
def test_small_numbers_keep_their_digits(op: str) -> None:
    x = np.array([1e-4, -3e-6, 1e-12], np.float32)
    np.testing.assert_allclose(of(op, x)[0], UNARY[op][1](x), 1e-6)


@pytest.mark.parametrize("op", BINARY)
def test_two_operands_of_any_types(op: str) -> None:
    a, b, formula = BINARY[op]
    np.testing.assert_allclose(of(op, a, b)[0], formula(a, b), 2e-5, 2e-6)


@pytest.mark.parametrize("backend", ["reference", "wasm"])
def test_a_direction_of_zeros_and_infinities_is_that_of_ieee_754(backend: str) -> None:
    numbers = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-38, -3e-39, 1e30], np.float32)
    y, x = (a.ravel().copy() for a in np.meshgrid(numbers, numbers))
    nodes = [placeholder("y", y.shape), placeholder("x", x.shape), node("a", "Atan2", "y", "x")]
    got, want = run(model(nodes), {"y": y, "x": x}, backend=backend)["a"], np.arctan2(y, x)
    np.testing.assert_allclose(got, want, 1e-6)
    real = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[real]), np.signbit(want[real]))


def _conv(x: Array, w: Array, stride: int, pads: tuple[int, int, int, int]) -> Array:
    padded = np.pad(x, ((0, 0), pads[:2], pads[2:], (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[:2], (1, 2))[:, ::stride, ::stride]
    return np.asarray(np.einsum("nhwcij,ijco->nhwo", windows, w))


W, BIAS, SLOPE = f(3, 3, 3, 4), f(4), f(4, low=0.1, high=0.4)
SAME = {"padding": "SAME", "strides": [1, 2, 2, 1]}
WAVES = np.exp(-2j * np.pi * np.outer(np.arange(6), np.arange(6)) / 6)
BOXES = np.array([[0, 0, 1, 1], [0.25, 0.5, 0.75, 1.5]], np.float32)


def _crops() -> Array:
    """Two crops of a ramp of 4 rows and columns; the second one leaves the picture."""
    rows, columns = [[0, 1.5, 3], [0.75, 1.5, 2.25]], [[0, 1.5, 3], [1.5, 3, -1]]
    return np.array([[[[10 * r + c if c >= 0 else 9] for c in columns[i]] for r in rows[i]] for i in (0, 1)])


RAMP = (10 * np.arange(4)[:, None] + np.arange(4)).astype(np.float32).reshape(1, 4, 4, 1)
CASES: dict[str, tuple[list[Any], dict[str, Any], Any]] = {
    "Conv2D": ([IMAGE, fixed(W)], SAME, _conv(IMAGE, W, 2, (1, 1, 0, 1))),
    "Conv2D explicit": (
        [IMAGE, fixed(W)],
        {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 2, 0, 1, 3, 0, 0], "strides": [1, 1, 1, 1]},
        _conv(IMAGE, W, 1, (2, 0, 1, 3)),
    ),
    "_FusedConv2D": (
        [IMAGE, fixed(W), fixed(BIAS), fixed(SLOPE)],
        {**SAME, "fused_ops": ["BiasAdd", "Prelu"], "num_args": 2},
        np.vectorize(lambda a, s: a if a >= 0 else a * s)(_conv(IMAGE, W, 2, (1, 1, 0, 1)) + BIAS, SLOPE),
    ),
    "_FusedConv2D leaky": (
        [IMAGE, fixed(W), fixed(BIAS)],
        {**SAME, "fused_ops": ["BiasAdd", "LeakyRelu"], "leakyrelu_alpha": 0.3},
        (lambda y: np.where(y >= 0, y, 0.3 * y))(_conv(IMAGE, W, 2, (1, 1, 0, 1)) + BIAS),
    ),
    "FusedDepthwiseConv2dNative": (
        [IMAGE, fixed(f(3, 3, 3, 2)), fixed(f(6))],
        {**SAME, "fused_ops": ["BiasAdd", "Relu6"]},
        np.clip(
            np.concatenate(
                [_conv(IMAGE[..., c : c + 1], f(3, 3, 3, 2)[:, :, c : c + 1], 2, (1, 1, 0, 1)) for c in range(3)], 3
            )
            + f(6),
            0,
            6,
        ),
    ),
    "Conv1D": (
        [IMAGE[0], fixed(W[0])],
        {"padding": "VALID", "stride": 1},
        np.stack([_conv(row[None, None], W[:1], 1, (0, 0, 0, 0))[0, 0] for row in IMAGE[0]]),
    ),
    "Conv2DBackpropInput": (
        [[1, 4, 4, 1], fixed(np.ones((2, 2, 1, 1), np.float32)), np.array([[[[1], [2]], [[3], [4]]]], np.float32)],
        {"padding": "VALID", "strides": [1, 2, 2, 1]},
        np.kron([[1, 2], [3, 4]], np.ones((2, 2))).reshape(1, 4, 4, 1),
    ),
    "MaxPool": (
        [RAMP.copy()],
        {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"},
        np.array([11, 13, 31, 33]).reshape(1, 2, 2, 1),
    ),
    "AvgPool": (
        [RAMP.copy()],
        {"ksize": [1, 3, 3, 1], "strides": [1, 3, 3, 1], "padding": "SAME"},
        np.array([5.5, 7.5, 25.5, 27.5]).reshape(1, 2, 2, 1),
    ),
    "Conv3D": (
        [CUBE, fixed(f(2, 1, 3, 2, 3))],
        {"padding": "VALID", "strides": [1, 2, 1, 1, 1]},
        np.einsum(
            "ndhwcijk,ijkco->ndhwo",
            np.lib.stride_tricks.sliding_window_view(CUBE, (2, 1, 3), (1, 2, 3))[:, ::2],
            f(2, 1, 3, 2, 3),
        ),
    ),
    "BitwiseAnd": ([fixed(np.array([12, -1, 7], np.int32)), np.array([10, 5, -8], np.int32)], {}, [8, 5, 0]),
    "MaxPool3D": (
        [CUBE],
        {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 1, 2, 1], "padding": "VALID"},
        np.lib.stride_tricks.sliding_window_view(CUBE, (2, 2, 2), (1, 2, 3))[:, ::2, :, ::2].max((5, 6, 7)),
    ),
    "AvgPool3D": (
        [np.ones((1, 3, 2, 2, 1), np.float32)],
        {"ksize": [1, 2, 2, 2, 1], "strides": [1, 1, 1, 1, 1], "padding": "SAME"},
        np.ones((1, 3, 2, 2, 1)),
    ),
    "MatMul": ([f(4, 3), fixed(f(4, 2))], {"transpose_a": True}, f(4, 3).T @ f(4, 2)),
    "BatchMatMulV2": ([f(2, 3, 4), f(1, 5, 4)], {"adj_y": True}, f(2, 3, 4) @ f(1, 5, 4).transpose(0, 2, 1)),
    "_FusedMatMul": (
        [X, fixed(f(5, 4)), fixed(BIAS)],
        {"fused_ops": ["BiasAdd", "Elu"]},
        UNARY["Elu"][1](X @ f(5, 4) + BIAS),
    ),
    "_FusedMatMul that adds without a word": ([X, fixed(f(5, 4)), fixed(BIAS)], {}, X @ f(5, 4) + BIAS),
    "Einsum": (
        [f(2, 3, 4), f(5, 4, 2)],
        {"equation": "bij,kjb->bik"},
        np.einsum("bij,kjb->bik", f(2, 3, 4), f(5, 4, 2)),
    ),
    "Einsum of none": ([f(0, 3), f(3, 2)], {"equation": "ij,jk->ik"}, np.zeros((0, 2))),
    "Einsum one": ([f(2, 3, 4)], {"equation": "abc->cab"}, f(2, 3, 4).transpose(2, 0, 1)),
    "Max": ([IMAGE, [1, -1]], {"keep_dims": True}, IMAGE.max((1, 3), keepdims=True)),
    "Mean": ([INTS, [0]], {}, INTS.mean(0)),
    "Prod": ([X, [-1]], {}, X.prod(-1)),
    "Any": ([X > 1.5, [0]], {}, (X > 1.5).any(0)),
    "EuclideanNorm": ([X, [1]], {}, np.linalg.norm(X, axis=1)),
    "ArgMax": ([X, 1], {}, X.argmax(1)),
    "Cumsum": ([X, 1], {"exclusive": True, "reverse": True}, X[:, ::-1].cumsum(1)[:, ::-1] - X),
    "Cumprod": ([X, -1], {}, X.cumprod(1)),
    "FusedBatchNormV3": (
        [IMAGE, *(fixed(f(3, low=0.5) + i) for i in range(4))],
        {"epsilon": 0.01},
        (IMAGE - (f(3, low=0.5) + 2)) / np.sqrt(f(3, low=0.5) + 3.01) * f(3, low=0.5) + f(3, low=0.5) + 1,
    ),
    "LRN": (
        [np.ones((1, 1, 1, 3), np.float32)],
        {"depth_radius": 1, "bias": 1.0, "alpha": 1.0, "beta": 0.5},
        (1 / np.sqrt([3.0, 4.0, 3.0])).reshape(1, 1, 1, 3),
    ),
    "Softmax": ([X], {}, np.exp(X) / np.exp(X).sum(-1, keepdims=True)),
    "LogSoftmax": ([X], {}, X - np.log(np.exp(X).sum(-1, keepdims=True))),
    "DenseBincount": ([np.array([1, 3, 1, 0], np.int32), 3, fixed(np.zeros(0, np.float32))], {}, np.array([1, 2, 0])),
    "UpperBound": (
        [np.array([[0, 3, 9, 9]], np.float32), np.array([[2, 9, 10]], np.float32)],
        {},
        np.array([[1, 4, 4]]),
    ),
    "AddN": ([X, INTS[:, :1], X], {}, 2 * X + INTS[:, :1]),
    "ClipByValue": ([X, -0.5, 1.0], {}, np.clip(X, -0.5, 1)),
    "ClipByValue to what is not a number": ([X, math.nan, 1.0], {}, np.minimum(X, 1)),
    "LeakyRelu": ([X], {}, np.where(X >= 0, X, 0.2 * X)),
    "Cast": ([X], {"DstT": "DT_INT64"}, X.astype(np.int32)),
    "SelectV2": ([X > 0, X, 1.0], {}, np.where(X > 0, X, 1)),
    "Select": ([np.array([True, False]), X, -X], {}, np.stack([X[0], -X[1]])),
    "ConcatV2": ([X, INTS, -1], {}, np.concatenate([X, INTS], 1)),
    "Pack": ([X, -X], {"axis": 1, "N": 2}, np.stack([X, -X], 1)),
    "GatherV2": (
        [X, np.array([[4, 0], [1, 2]], np.int32), 1],
        {"batch_dims": 1},
        np.stack([X[0, [4, 0]], X[1, [1, 2]]]),
    ),
    "Gather": ([X, 1], {}, X[1]),
    "GatherNd": ([X, [[1, 4], [0, 0]]], {}, X[[1, 0], [4, 0]]),
    "ScatterNd": ([[[1], [1], [0]], np.array([3, 4, 5], np.float32), [3]], {}, np.array([5, 7, 0])),
    "TensorScatterUpdate": ([X, [[1]], f(1, 5)], {}, np.concatenate([X[:1], f(1, 5)])),
    "SparseToDense": ([[1, 3], [5], np.array([4, 6], np.float32), 9.0], {}, np.array([9, 4, 9, 6, 9])),
    "Slice": ([X, [0, 2], [-1, 2]], {}, X[:, 2:4]),
    "StridedSlice": (
        [IMAGE, [0, 1, 9], [0, -1, 9], [1, 2, 1]],
        {"begin_mask": 1, "end_mask": 1, "new_axis_mask": 4, "shrink_axis_mask": 0},
        IMAGE[:, 1:-1:2, None],
    ),
    "StridedSlice drops an axis": (  # begin_mask does not count there
        [X, [-1, -4], [0, 9], [1, 2]],
        {"begin_mask": 1, "end_mask": 3, "shrink_axis_mask": 1},
        X[-1, -4::2],
    ),
    "Reverse": ([X, fixed(np.array([False, True]))], {}, X[:, ::-1]),
    "ReverseV2": ([X, [0]], {}, X[::-1]),
    "Tile": ([X, [2, 1]], {}, np.tile(X, (2, 1))),
    "Transpose": ([IMAGE, [0, 3, 1, 2]], {}, IMAGE.transpose(0, 3, 1, 2)),
    "Reshape": ([IMAGE, [-1, 9]], {}, IMAGE.reshape(-1, 9)),
    "ExpandDims": ([X, -1], {"Tdim": "DT_INT32"}, X[..., None]),
    "Squeeze": ([IMAGE], {"squeeze_dims": [0]}, IMAGE[0]),
    "PadV2": ([X, [[1, 0], [0, 2]], -math.inf], {}, np.pad(X, ((1, 0), (0, 2)), constant_values=-np.inf)),
    "MirrorPad": ([X, [[0, 0], [2, 1]]], {"mode": "REFLECT"}, np.pad(X, ((0, 0), (2, 1)), "reflect")),
    "SpaceToBatchND": (
        [RAMP.copy(), [2, 2], [[0, 0], [0, 0]]],
        {},
        np.stack([RAMP[0, a::2, b::2] for a in (0, 1) for b in (0, 1)]),
    ),
    "BatchToSpaceND": (
        [np.arange(4, dtype=np.float32).reshape(4, 1, 1, 1), [2, 2], [[0, 0], [0, 0]]],
        {},
        np.arange(4).reshape(1, 2, 2, 1),
    ),
    "DepthToSpace": (
        [np.arange(4, dtype=np.float32).reshape(1, 1, 1, 4)],
        {"block_size": 2},
        np.arange(4).reshape(1, 2, 2, 1),
    ),
    "BroadcastTo": ([X[:, :1].copy(), [2, 3]], {}, np.broadcast_to(X[:, :1], (2, 3))),
    "OneHot": ([np.array([2, 0], np.int32), 3, 5.0, -1.0], {}, np.array([[-1, -1, 5], [5, -1, -1]])),
    "Fill": ([[2, 2], 3.5], {}, np.full((2, 2), 3.5)),
    "Range": ([1, 9, 3], {}, np.array([1, 4, 7])),
    "LinSpace": ([0.0, 1.0, 5], {}, np.linspace(0, 1, 5)),
    "ZerosLike": ([X], {}, np.zeros((2, 5))),
    "OnesLike": ([X], {}, np.ones((2, 5))),
    "Ones": ([[2, 3]], {"dtype": "DT_FLOAT"}, np.ones((2, 3))),
    "Shape": ([IMAGE], {}, np.array([1, 5, 6, 3])),
    "Size": ([IMAGE], {}, np.array(90)),
    "Rank": ([IMAGE], {}, np.array(4)),
    "MatrixBandPart": ([f(4, 5), 1, 0], {}, np.tril(f(4, 5)) - np.tril(f(4, 5), -2)),
    "EnsureShape": ([X], {"shape": (2, -1)}, X),
    "ResizeBilinear": (
        [RAMP.copy(), [7, 7]],
        {"align_corners": True},
        np.add.outer(np.linspace(0, 30, 7), np.linspace(0, 3, 7)).reshape(1, 7, 7, 1),
    ),
    "ResizeNearestNeighbor": ([RAMP.copy(), [2, 2]], {"half_pixel_centers": True}, RAMP[:, 1::2, 1::2]),
    "CropAndResize": (
        [RAMP.copy(), BOXES, fixed(np.zeros(2, np.int32)), [3, 3]],
        {"extrapolation_value": 9.0},
        _crops(),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_one_node(case: str) -> None:
    inputs, attributes, wanted = CASES[case]
    (got,) = of(case.split()[0], *inputs, **attributes)
    assert got.shape == np.shape(wanted)
    np.testing.assert_allclose(got, wanted, 2e-5, 2e-5)


def test_several_results() -> None:
    values, places = of("TopKV2", X, 2, results=2)
    np.testing.assert_array_equal(places, np.argsort(-X, 1)[:, :2])
    np.testing.assert_array_equal(values, -np.sort(-X, 1)[:, :2])
    for got, wanted in zip(of("Unpack", X, axis=1, num=5, results=3), X.T, strict=False):
        np.testing.assert_array_equal(got, wanted)
    for got, wanted in zip(of("SplitV", X, [1, -1, 2], 1, results=3), (X[:, :1], X[:, 1:3], X[:, 3:]), strict=True):
        np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(of("Split", 0, X, num_split=2, results=2)[1], X[1:])


def test_padded_non_maximum_suppression() -> None:
    boxes = np.array([[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]], np.float32)
    scores = np.array([0.5, 0.9, 0.4], np.float32)
    chosen, count = of("NonMaxSuppressionV4", boxes, scores, 3, 0.5, 0.1, pad_to_max_output_size=True, results=2)
    np.testing.assert_array_equal(chosen, [1, 2, 0])
    assert count == 2


def test_as_many_boxes_as_data_keeps() -> None:
    boxes = np.array([[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3], [4, 4, 5, 5]], np.float32)
    scores = np.array([0.5, 0.9, 0.05, 0.4], np.float32)
    (chosen,) = of("NonMaxSuppressionV3", boxes, scores, 9, 0.5, 0.1)
    np.testing.assert_array_equal(chosen, [1, 3])
    chosen, kept = of("NonMaxSuppressionV5", boxes, scores, 9, 0.5, 0.1, 0.0, results=2)
    np.testing.assert_array_equal(chosen, [1, 3])
    np.testing.assert_allclose(kept, [0.9, 0.4])
    (chosen,) = of("NonMaxSuppressionV2", boxes, scores, 2, 0.99)
    np.testing.assert_array_equal(chosen, [1, 0])


@pytest.mark.parametrize("level", [0.5, 99.0])
def test_positions_of_what_is_true(level: float) -> None:
    nodes = [placeholder("x", [2, 5]), node("held", "Greater", "x", "level"), node("y", "Where", "held")]
    nodes += [node("n", "Size", "y"), node("rows", "GatherNd", "x", "y")]
    got = run(model(nodes, {"level": np.float32(level)}), {"x": X})
    np.testing.assert_array_equal(got["n"], 2 * (X > level).sum())
    np.testing.assert_array_equal(got["rows"], X[level < X])


@pytest.mark.parametrize("kind", ["float32", "int32"])
def test_different_elements_as_they_come(kind: str) -> None:
    row = np.array([5, 3, 5, -1, 3, 9, 9, 5], kind)
    values, places = of("Unique", row, results=2)
    np.testing.assert_array_equal(values, [5, 3, -1, 9])
    np.testing.assert_array_equal(places, [0, 1, 0, 2, 1, 3, 3, 0])


@pytest.mark.parametrize("size", [6, 5, 257, 360, 1030, 1031, 2062])
def test_fourier_transforms(size: int) -> None:
    """Short ones, prime ones, products, one of a large prime number, and a product with one."""
    x = f(3, size)

    def halves(op: str, *more: dict[str, Any]) -> list[Array]:
        parts = [node("re", "Real", "y"), node("im", "Imag", "y"), node("abs", "ComplexAbs", "y")]
        got = run(model([placeholder("x", x.shape), node("y", op, "x", *(("n",) if more else ())), *parts]), {"x": x})
        return [got["re"], got["im"], got["abs"]]

    half, whole, near = np.fft.rfft(x), np.fft.fft(x), 1e-6 * np.sqrt(size)
    for got, wanted in (("RFFT", half), ("FFT", whole), ("IFFT", np.fft.ifft(x))):
        for part, number in zip(halves(got), (wanted.real, wanted.imag, np.abs(wanted)), strict=True):
            np.testing.assert_allclose(part, number, 0, near * (1 if got != "IFFT" else 1 / size))
    nodes = [placeholder("x", x.shape), node("h", "RFFT", "x"), node("y", "IRFFT", "h", "n")]
    np.testing.assert_allclose(run(model(nodes, {"n": np.int32(size)}), {"x": x})["y"], x, 0, near)


def test_every_converter_is_an_operator_of_the_format() -> None:
    assert len(CONVERTERS) > 170
    assert all(name[0].isupper() or name.startswith("_Fused") for name in CONVERTERS)


@pytest.mark.parametrize("kind", [np.bool_, np.int32, np.float32])
def test_positions_in_a_constant_are_known_while_the_model_is_read(kind: type) -> None:
    held = np.array([[1, 0, 1], [0, 1, 0]], kind)
    files = model([node("y", "Where", "held")], {"held": held})
    graph = read_model(files["model.json"], files={name: memoryview(data) for name, data in files.items()})
    assert {made.op.name for made in graph.nodes} <= {"identity"}
    np.testing.assert_array_equal(run(files)["y"], np.argwhere(held))


def test_a_shape_without_any_positions_to_set_is_known_when_the_model_is_read() -> None:
    weights = {"none": np.zeros((0, 1), np.int32), "one": np.array([1], np.int32), "no": np.zeros(0, np.int32)}
    weights |= {"zero": np.array(0, np.int32), "ten": np.array([10], np.int32)}
    nodes = [
        placeholder("x", (2, 5)),
        node("zeros", "SparseToDense", "none", "one", "no", "zero"),
        node("shape", "AddV2", "zeros", "ten"),
        node("y", "Reshape", "x", "shape"),
    ]
    files = model(nodes, weights)
    beside = {name: memoryview(data) for name, data in files.items()}
    graph = read_model(files["model.json"], "m", files=beside, known_values=KnownValues({}, False, False))
    assert [v.type.shape for v in graph.outputs] == [(10,)]


def test_the_mean_and_the_extremes_of_nothing_are_read() -> None:
    nothing = np.zeros((2, 0, 3), np.float32)
    for op, number in (("Mean", np.nan), ("Max", -np.inf), ("Min", np.inf), ("Sum", 0.0)):
        (got,) = of(op, nothing, np.int32([1]).tolist(), keep_dims=False)
        np.testing.assert_array_equal(got, np.full((2, 3), number, np.float32), op)
