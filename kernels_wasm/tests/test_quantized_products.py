"""Quantised products in every form that a build knows: sums of bytes or of int16, what weights lack added or not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import BUILDS, Target

from kernels_wasm.tests.kernel_cases import Variant
from kernels_wasm.tests.test_kernels import assert_right, outcome, problem_of
from webinfer.dtypes import DType
from webinfer.graph.ir import Case, Quantization, TensorType
from webinfer.host.native import NativeHost
from webinfer.ops.activation import Activation
from webinfer.ops.conv import CONV2D, Conv2dAttrs, quantized_conv_case
from webinfer.tasks.workspace import Workspace


def narrow(shape: tuple[int, ...], zero: int, often: float = 0.004) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Weights near their zero point but for a few, which are the largest and the smallest that a byte holds."""
    rng = np.random.default_rng(sum(shape) + zero)
    near = np.clip(rng.integers(zero - 20, zero + 21, shape), 0, 255)
    return np.where(rng.random(shape) < often, rng.choice([0, 255], shape), near).astype(np.uint8)


def normal(shape: tuple[int, ...], zero: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Weights of which one in twelve is too large for its neighbours: groups get an order, columns corrections."""
    rng = np.random.default_rng(sum(shape))
    return np.clip(np.rint(rng.normal(zero, 31, shape)), 0, 255).astype(np.uint8)


def narrow_case(
    label: str, x: tuple[int, ...], w: tuple[int, ...], zero: int, step: float = 0.2,
    weights: Callable[..., np.ndarray[tuple[int, ...], np.dtype[np.uint8]]] = narrow, **extra: object,
) -> Case:  # fmt: skip
    """uint8 data, of which most are 0 or 255, and narrow weights."""
    rng = np.random.default_rng(len(label))
    data = np.where(rng.random(x) < 0.7, rng.choice([0, 255], x, p=(0.2, 0.8)), rng.integers(0, 256, x))
    types = [
        TensorType(shape, DType.UINT8, Quantization((s,), (z,))) for shape, s, z in ((x, 0.02, 255), (w, 0.01, zero))
    ]
    attrs = Conv2dAttrs(out_type=(DType.UINT8, Quantization((step * np.prod(w[1:]) ** 0.5,), (131,))), **extra)
    values = {0: tuple(data.ravel().tolist()), 1: tuple(weights(w, zero).ravel().tolist())}
    inputs = (*types, TensorType((w[0],), DType.INT32))
    return Case(label, inputs, attrs, low=-900, high=900, constant=(1, 2), values=values)


CASES = (
    narrow_case("narrow weights", (1, 5, 7, 96), (24, 1, 1, 96), 128),
    narrow_case("narrow weights, zero point 0", (1, 3, 3, 44), (17, 1, 1, 44), 0),
    narrow_case("narrow weights, zero point 255", (1, 3, 6, 37), (9, 1, 1, 37), 255),
    narrow_case("narrow weights, results far beyond bytes", (1, 3, 7, 40), (9, 1, 1, 40), 128, 1e-9),
    narrow_case(
        "narrow weights, bounds within bytes", (1, 3, 7, 40), (9, 1, 1, 40), 128, 0.02, activation=Activation.RELU6
    ),
    narrow_case("narrow weights, more steps than are joined at once", (1, 3, 5, 1100), (9, 1, 1, 1100), 128),
    narrow_case("narrow weights, one pixel", (1, 1, 1, 130), (9, 1, 1, 130), 122),
    narrow_case("narrow weights, 3x3, stride 2", (1, 9, 9, 5), (11, 3, 3, 5), 140, stride=(2, 2), pads=(1, 0, 1, 0)),
    narrow_case("normal weights, odd groups", (1, 5, 7, 570), (23, 1, 1, 570), 128, weights=normal),
    narrow_case("normal weights, one pixel", (1, 1, 1, 300), (16, 1, 1, 300), 128, weights=normal),
    narrow_case("normal weights, 3x3", (1, 6, 5, 44), (9, 3, 3, 44), 128, weights=normal, pads=(1, 1, 1, 1)),
    narrow_case("narrow weights, 3 channels", (2, 7, 5, 3), (9, 3, 3, 3), 128, pads=(1, 1, 1, 1)),
    quantized_conv_case("uint8, sums in parts", (1, 2, 3, 4201), (9, 1, 1, 4201), DType.UINT8, None, 9),
    quantized_conv_case(
        "int8, sums in parts, 3x3", (1, 3, 3, 500), (9, 3, 3, 500), DType.INT8, 0, 9, pads=(1, 1, 1, 1)
    ),
    quantized_conv_case("uint8, one pixel", (1, 1, 1, 37), (9, 1, 1, 37), DType.UINT8, None, 9),
    quantized_conv_case("uint8, one pixel after tiles", (1, 1, 5, 18), (16, 1, 1, 18), DType.UINT8, None, 16),
    quantized_conv_case("int8, many pixels", (1, 23, 21, 6), (19, 3, 3, 6), DType.INT8, None, 19, pads=(1, 1, 1, 1)),
    quantized_conv_case("uint8, many pixels", (1, 23, 21, 6), (19, 3, 3, 6), DType.UINT8, None, 19, stride=(2, 2)),
)
NARROW = 12  # of the cases, the first ones


@pytest.mark.parametrize("target", BUILDS, ids=str)
@pytest.mark.parametrize("variant", [Variant(CONV2D, case) for case in CASES], ids=lambda v: v.case.label)
def test_a_quantised_product_is_right_in_this_build(variant: Variant, target: Target) -> None:
    target.demand()
    p, got = problem_of(variant), outcome(variant, str(dict(target.options)["isa"]))
    assert "q8_conv2d_nhwc" in got.kernels
    assert_right(p, got)


def weigh(kernels: Workspace, w: np.ndarray[tuple[int, int], np.dtype[np.uint8]], zero: int) -> int:
    """What q8_weigh_pairs says of a matrix of weights."""
    (co, ci), zeros = w.shape, np.full(w.shape[0], zero, np.int32)
    source, offsets = kernels.put("w", w.tobytes(), w.nbytes), kernels.put("zeros", zeros.tobytes(), zeros.nbytes)
    target = kernels.area("y", 4)
    kernels.kernels.call("q8_weigh_pairs", source, offsets, target, co, 1, ci, ci, 0, 1, 0)
    return int(np.frombuffer(kernels.kernels.read(target, 4), np.int32)[0])


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_narrow_weights_are_multiplied_in_pairs_where_that_is_exact(target: Target) -> None:
    target.demand()
    kernels = run(NativeHost().kernels(str(dict(target.options)["isa"])))
    try:
        there, place = int(kernels.call("dots_of_bytes") == 3), Workspace(kernels)
        rng = np.random.default_rng(5)
        for case in CASES[:NARROW]:
            w, zero = np.array(case.values[1], np.uint8), case.inputs[1].quant.zero_points[0]
            assert (weigh(place, w.reshape(case.inputs[1].shape[0], -1), zero) > 0) == there, case.label
        assert weigh(place, narrow((40, 4), 128, 0.0), 128) == there * 5 * (96 + 64)
        assert weigh(place, narrow((8, 3), 128), 128) == 0  # no room for a whole chunk
        assert weigh(place, narrow((8, 4097), 128), 128) == 0  # sums in parts
        assert weigh(place, rng.integers(0, 256, (64, 64)).astype(np.uint8), 128) == 0
        rare = narrow((64, 64), 128, 0.0)
        rare[9] = rng.choice([0, 255], 64)  # the corrections of one panel lie where others need less
        assert (weigh(place, rare, 128) > 0) == there
        rare[9:30] = rng.choice([0, 255], (21, 64))  # more corrections than there is room for
        assert weigh(place, rare, 128) == 0
    finally:
        kernels.close()
