"""Quantised depthwise windows in every form that a build knows: weights that are bytes, and weights that are not."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import BUILDS, Target

from kernels_wasm.tests.kernel_cases import Variant
from kernels_wasm.tests.test_kernels import assert_right, outcome, problem_of
from webinfer.dtypes import DType
from webinfer.graph.ir import Case, Quantization, TensorType
from webinfer.host.interface import Kernels
from webinfer.host.native import NativeHost
from webinfer.kernel_constants import Q8_HEAD_BYTES, Q8_TAPS_3X3_S1
from webinfer.ops.conv import DEPTHWISE_CONV2D, Conv2dAttrs
from webinfer.tasks.workspace import Workspace

LACKING, NOT_PAIRED = 64, -1  # where a panel says that its weights are int16 (q8_form.h)
EXACT = (1, 2)  # what dots_of_bytes says where panels may have bytes

Bytes = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]


def weights(window: tuple[int, int], channels: int, zero: int) -> Bytes:
    """Bytes of [taps, channels], of which a third are the largest and the smallest."""
    rng = np.random.default_rng(channels + zero)
    shape = (window[0] * window[1], channels)
    return np.where(rng.random(shape) < 0.3, rng.choice([0, 255], shape), rng.integers(0, 256, shape)).astype(np.uint8)


def depthwise_case(
    label: str, size: tuple[int, int], window: tuple[int, int], channels: int, zero: int, *, near: bool = False,
    dtype: DType = DType.UINT8, step: float = 0.4, **extra: object,
) -> Case:  # fmt: skip
    """Data of which most are the least or the largest; `near` has a 3x3 window's first and last row around zero."""
    rng = np.random.default_rng(len(label))
    x, w = (1, *size, channels), weights(window, channels, zero)
    if near:
        w[[0, 1, 2, 6, 7, 8]] = np.clip(w[[0, 1, 2, 6, 7, 8]].astype(int), max(zero - 128, 0), min(zero + 127, 255))
    data = np.where(rng.random(x) < 0.7, rng.choice([0, 255], x), rng.integers(0, 256, x))
    shift = 128 if dtype is DType.INT8 else 0
    types = [
        TensorType(shape, dtype, Quantization((s,), (z - shift,)))
        for shape, s, z in ((x, 0.02, 3), ((1, *window, channels), 0.01, zero))
    ]
    attrs = Conv2dAttrs(out_type=(dtype, Quantization((step,), (131 - shift,))), **extra)
    values = {0: tuple((data - shift).ravel().tolist()), 1: tuple((w.astype(int) - shift).ravel().tolist())}
    return Case(
        label, (*types, TensorType((channels,), DType.INT32)), attrs, low=-900, high=900, constant=(1, 2), values=values
    )


SAME = {"pads": (1, 1, 1, 1)}
CASES = (
    depthwise_case("all weights bytes", (6, 7), (3, 3), 24, 128, **SAME),
    depthwise_case("the middle row beyond a byte", (6, 7), (3, 3), 24, 50, near=True, **SAME),
    depthwise_case("the middle row below a byte", (5, 8), (3, 3), 13, 230, near=True, **SAME),
    depthwise_case("other rows beyond a byte", (6, 7), (3, 3), 40, 100, **SAME),
    depthwise_case("zero point 0", (6, 7), (3, 3), 16, 0, near=True, **SAME),
    depthwise_case("zero point 255", (6, 7), (3, 3), 16, 255, near=True, **SAME),
    depthwise_case("int8", (7, 6), (3, 3), 20, 128, dtype=DType.INT8, **SAME),
    depthwise_case("one column", (7, 1), (3, 3), 9, 128, **SAME),
    depthwise_case("dilated", (9, 11), (3, 3), 12, 128, dilation=(2, 2), pads=(2, 2, 2, 2)),
    depthwise_case("stride 2", (9, 10), (3, 3), 20, 60, near=True, stride=(2, 2), pads=(0, 0, 1, 1)),
    depthwise_case("stride 2, int8, odd", (8, 9), (3, 3), 7, 128, dtype=DType.INT8, stride=(2, 2), **SAME),
    depthwise_case("5x5", (7, 8), (5, 5), 24, 128, pads=(2, 2, 2, 2)),
    depthwise_case("5x5, beyond a byte", (7, 8), (5, 5), 24, 120, pads=(2, 2, 2, 2)),
    depthwise_case("5x5 stride 2, int8", (9, 8), (5, 5), 10, 128, dtype=DType.INT8, stride=(2, 2), pads=(2, 2, 2, 2)),
    depthwise_case("results far beyond bytes", (6, 7), (3, 3), 16, 128, step=1e-9, **SAME),
    depthwise_case("results far beyond bytes, 5x5", (6, 7), (5, 5), 16, 100, step=1e-9),
    depthwise_case("2x4", (6, 7), (2, 4), 12, 128),
    depthwise_case("1x3", (6, 7), (1, 3), 12, 128),
)


@pytest.mark.parametrize("target", BUILDS, ids=str)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_a_quantised_window_is_right_in_this_build(case: Case, target: Target) -> None:
    target.demand()
    variant = Variant(DEPTHWISE_CONV2D, case)
    p, got = problem_of(variant), outcome(variant, str(dict(target.options)["isa"]))
    assert any(name.startswith("q8_depthwise_nhwc") for name in got.kernels)
    assert_right(p, got)


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_panels_have_bytes_where_their_weights_are_bytes_and_products_of_them_exact(target: Target) -> None:
    target.demand()
    kernels = run(NativeHost().kernels(str(dict(target.options)["isa"])))
    try:
        check_panels(kernels)
    finally:
        kernels.close()


def check_panels(kernels: Kernels) -> None:
    exact = kernels.call("dots_of_bytes") in EXACT
    w = np.full((9, 32), 128, np.uint8)
    w[4, 0], w[3, 9], w[5, 9], w[2, 17] = 255, 0, 127, 255  # the middle of one panel, of another; a corner
    got = packed_as_int16(kernels, w, zero=100, order=Q8_TAPS_3X3_S1)
    assert got == [not exact, not exact, True, not exact]
    assert packed_as_int16(kernels, w, zero=100, order=()) == [True, not exact, True, not exact]


def packed_as_int16(kernels: Kernels, w: Bytes, zero: int, order: tuple[int, ...]) -> list[bool]:
    """Which of the panels of [taps, channels] weights q8_pack_weights made of int16."""
    (taps, co), place = w.shape, Workspace(kernels)
    arrays: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]] = {
        "w": w,
        "zeros": np.full(co, zero, np.int32),
        "scales": np.ones(co, np.float32),
        "order": np.array(order, np.int32),
    }
    at = {name: place.put(name, array.tobytes() or bytes(4), max(array.nbytes, 4)) for name, array in arrays.items()}
    size = Q8_HEAD_BYTES + 32 * ((taps + 1) // 2)
    target = place.area("y", co // 8 * size)
    place.kernels.call(
        "q8_pack_weights", at["w"], 0, at["scales"], at["zeros"], at["order"] if order else 0, 0, target,
        co, taps, 1, 1, co, 0, 0, 3, 0, 0, co // 8,
    )  # fmt: skip
    heads = np.frombuffer(place.kernels.read(target, co // 8 * size), np.uint8).reshape(-1, size)
    return [int(head[LACKING : LACKING + 4].copy().view(np.int32)[0]) == NOT_PAIRED for head in heads]
