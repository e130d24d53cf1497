"""Quantised operators: int8 and uint8, one scale a tensor or one a channel."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.importers.runs import (
    Q8,
    Q8Y,
    QU,
    RNG,
    S1,
    S2,
    SAME,
    VALID,
    Run,
    bias32,
    f,
    per_channel,
    real,
    weights8,
    whole,
)


def y8(*shape: int) -> tuple[Any, ...]:
    """A result of int8."""
    return (shape, "int8", Q8Y)


def _quantized() -> list[Run]:
    x8 = ((1, 7, 6, 4), "int8", Q8)
    xu = ((1, 7, 6, 4), "uint8", QU)
    w, wu = (
        (weights8(6, 3, 3, 4), per_channel(6, 0)),
        (RNG.integers(0, 256, (6, 3, 3, 4)).astype(np.uint8), (0.01, 130)),
    )
    d = (weights8(1, 3, 3, 4), per_channel(4, 3))
    relu = {"fused_activation_function": 1}
    wide = {"low": -128, "high": 128}
    byte = {"low": 0, "high": 256}
    return [
        Run("CONV_2D", [x8, w, bias32(6)], [y8(1, 7, 6, 6)], {**SAME, **S1}, "int8 per channel", version=3, **wide),
        Run("CONV_2D", [x8, w, bias32(6)], [y8(1, 4, 3, 6)], {**SAME, **S2, **relu}, "int8 relu", version=3, **wide),
        Run("CONV_2D", [xu, wu, bias32(6)], [((1, 5, 4, 6), "uint8", (0.06, 99))], {**VALID, **S1}, "uint8", **byte),
        Run(
            "DEPTHWISE_CONV_2D",
            [x8, d, bias32(4)],
            [y8(1, 7, 6, 4)],
            {**SAME, **S1, "depth_multiplier": 1},
            "int8",
            version=3,
            **wide,
        ),
        Run(
            "FULLY_CONNECTED",
            [((2, 8), "int8", Q8), (weights8(5, 8), (0.01, 0)), bias32(5)],
            [y8(2, 5)],
            {},
            "int8",
            version=4,
            **wide,
        ),
        Run(
            "FULLY_CONNECTED",
            [f(2, 8), (weights8(5, 8), (0.01, 0)), real(5)],
            [f(2, 5)],
            {},
            "float by int8 weights",
            version=3,
            tolerance=2e-2,
        ),
        Run("ADD", [x8, ((1, 7, 6, 4), "int8", (0.03, 7))], [y8(1, 7, 6, 4)], {}, "int8", version=2, **wide),
        Run("ADD", [xu, xu], [((1, 7, 6, 4), "uint8", (0.03, 110))], relu, "uint8 relu", **byte),
        Run("MUL", [x8, ((1, 7, 6, 4), "int8", (0.03, 7))], [y8(1, 7, 6, 4)], {}, "int8", version=2, **wide),
        Run("SUB", [x8, ((1, 7, 6, 4), "int8", (0.03, 7))], [y8(1, 7, 6, 4)], {}, "int8", version=2, **wide),
        Run(
            "CONCATENATION",
            [((20, 30), "uint8", QU), ((20, 25), "uint8", (0.0213, 100))],
            [((20, 55), "uint8", QU)],
            {"axis": 1},
            "uint8, two scales",
            exact=1.0,
            **byte,
        ),
        Run(
            "AVERAGE_POOL_2D",
            [x8],
            [((1, 4, 3, 4), "int8", Q8)],
            {**SAME, **S2, "filter_height": 3, "filter_width": 3},
            "int8",
            version=2,
            **wide,
        ),
        Run(
            "MAX_POOL_2D",
            [xu],
            [((1, 4, 3, 4), "uint8", QU)],
            {**SAME, **S2, "filter_height": 3, "filter_width": 3},
            "uint8",
            **byte,
        ),
        Run("MEAN", [x8, whole(1, 2)], [((1, 4), "int8", Q8Y)], {}, "int8", version=2, **wide),
        Run(
            "SOFTMAX",
            [((2, 9), "int8", (0.1, 3))],
            [((2, 9), "int8", (1 / 256, -128))],
            {"beta": 1.0},
            "int8",
            version=2,
            **wide,
        ),
        Run(
            "SOFTMAX", [((2, 9), "uint8", (0.1, 3))], [((2, 9), "uint8", (1 / 256, 0))], {"beta": 1.0}, "uint8", **byte
        ),
        Run(
            "LOGISTIC",
            [((2, 9), "int8", (0.05, 3))],
            [((2, 9), "int8", (1 / 256, -128))],
            {},
            "int8",
            version=2,
            **wide,
        ),
        Run("TANH", [((2, 9), "int8", (0.05, 3))], [((2, 9), "int8", (1 / 128, 0))], {}, "int8", version=2, **wide),
        Run("HARD_SWISH", [((2, 9), "int8", (0.05, 3))], [((2, 9), "int8", (0.04, -40))], {}, "int8", **wide),
        Run("RELU", [x8], [((1, 7, 6, 4), "int8", (0.01, -128))], {}, "int8", version=2, **wide),
        Run("LEAKY_RELU", [x8], [y8(1, 7, 6, 4)], {"alpha": 0.2}, "int8", version=2, **wide),
        # LiteRT rounds twice (first to halves): what lies 0.4 above a number becomes the next one there.
        Run("PRELU", [x8, (weights8(1, 1, 4), (0.01, 0))], [y8(1, 7, 6, 4)], {}, "int8", exact=0.75, **wide),
        Run("QUANTIZE", [f(3, 7)], [((3, 7), "int8", Q8)], {}, "float to int8"),
        Run(
            "QUANTIZE",
            [((3, 7), "uint8", (0.05, 130))],
            [((3, 7), "int8", (0.03, 2))],
            {},
            "uint8 to int8",
            version=2,
            **byte,
        ),
        Run("DEQUANTIZE", [((3, 7), "int8", Q8)], [f(3, 7)], {}, "int8", version=2, **wide),
        Run(
            "PAD",
            [x8, np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32)],
            [((1, 9, 8, 4), "int8", Q8)],
            {},
            "int8 zero point",
            version=2,
            **wide,
        ),
        Run("RESIZE_BILINEAR", [x8, whole(14, 12)], [((1, 14, 12, 4), "int8", Q8)], {}, "int8", version=2, **wide),
        Run(
            "RESIZE_NEAREST_NEIGHBOR",
            [x8, whole(14, 12)],
            [((1, 14, 12, 4), "int8", Q8)],
            {},
            "int8",
            version=2,
            **wide,
        ),
        Run("MAXIMUM", [x8, x8], [((1, 7, 6, 4), "int8", Q8)], {}, "int8", version=2, **wide),
        Run("SUM", [x8, whole(1, 2)], [((1, 4), "int8", (0.4, 5))], {}, "int8", version=2, **wide),
        Run(
            "GATHER",
            [((5, 3), "int8", Q8), whole(4, 0)],
            [((2, 3), "int8", Q8)],
            {"axis": 0},
            "int8",
            version=2,
            **wide,
        ),
        Run(
            "BATCH_MATMUL",
            [((2, 3, 4), "int8", Q8), ((2, 4, 5), "int8", (0.03, 4))],
            [((2, 3, 5), "int8", (0.04, 1))],
            {},
            "int8",
            version=3,
            **wide,
        ),
        Run(
            "TRANSPOSE_CONV",
            [whole(1, 14, 12, 6), (weights8(6, 3, 3, 4), per_channel(6, 0)), x8, bias32(6)],
            [y8(1, 14, 12, 6)],
            {**SAME, **S2},
            "int8",
            version=3,
            **wide,
        ),
        Run(
            "L2_NORMALIZATION",
            [((2, 9), "int8", (0.05, 3))],
            [((2, 9), "int8", (1 / 128, 0))],
            {},
            "int8",
            version=2,
            **wide,
        ),
        Run("GREATER", [x8, y8(1, 7, 6, 4)], [((1, 7, 6, 4), "bool")], {}, "int8, two scales", version=2, **wide),
        Run("EQUAL", [x8, x8], [((1, 7, 6, 4), "bool")], {}, "int8", version=2, **wide),
        Run(
            "SQUARED_DIFFERENCE",
            [x8, y8(1, 1, 1, 4)],
            [((1, 7, 6, 4), "int8", (0.2, -128))],
            {},
            "int8",
            version=2,
            **wide,
        ),
        Run(
            "SOFTMAX",
            [((3, 50), "int16", (0.001, 0))],
            [((3, 50), "int16", (2.0**-15, 0))],
            {"beta": 1.0},
            "int16",
            exact=1.0,
            low=-32768,
            high=32767,
            version=3,
        ),
        Run("GELU", [x8], [((1, 7, 6, 4), "int8", (0.02, -120))], {}, "int8", version=2, **wide),
        Run("EXP", [x8], [((1, 7, 6, 4), "int8", (0.05, -128))], {}, "int8", version=2, **wide),
        Run("LOG", [x8], [((1, 7, 6, 4), "int8", (0.05, 20))], {}, "int8", version=2, **wide),
        Run("REDUCE_MAX", [x8, whole(3)], [((1, 7, 6), "int8", Q8)], {}, "int8", version=2, **wide),
        Run("ARG_MAX", [x8, whole(3)], [((1, 7, 6), "int64")], {"output_type": 4}, "int8", version=2, **wide),
        Run("TRANSPOSE", [x8, whole(0, 3, 1, 2)], [((1, 4, 7, 6), "int8", Q8)], {}, "int8", version=2, **wide),
        Run(
            "SPACE_TO_BATCH_ND",
            [((1, 4, 4, 2), "int8", Q8), whole(2, 2), np.array([[0, 0], [0, 2]], np.int32)],
            [((4, 2, 3, 2), "int8", Q8)],
            {},
            "int8",
            version=2,
            **wide,
        ),
    ]


def _short() -> list[Run]:
    """16-bit data: LiteRT's kernels differ in how they round, by operator and by the type of the bias."""
    x, y = ((1, 7, 6, 8), "int16", (1e-4, 0)), (3e-4, 0)
    w, d = (weights8(6, 3, 3, 8), per_channel(6, 0)), (weights8(1, 3, 3, 8), per_channel(8, 3))
    rows, flat, channels = (
        ((40, 8), "int16", (1e-4, 0)),
        (weights8(6, 8), (0.007, 0)),
        (weights8(6, 8), per_channel(6, 0)),
    )
    out, image = [((40, 6), "int16", y)], [((1, 5, 4, 6), "int16", y)]
    narrow = {"quantized_bias_type": 2}
    wide = {"low": -32768, "high": 32768, "version": 7}
    scale = (7e-7, 0)
    back = whole(1, 9, 8, 6)
    return [
        Run("CONV_2D", [x, w, bias32(6)], image, {**VALID, **S1, **narrow}, "int16, bias of int32", **wide),
        Run("CONV_2D", [x, w, bias32(6).astype(np.int64)], image, {**VALID, **S1}, "int16", **wide),
        Run("DEPTHWISE_CONV_2D", [x, d, bias32(8).astype(np.int64)], [((1, 5, 4, 8), "int16", y)],
            {**VALID, **S1, "depth_multiplier": 1}, "int16", **wide),
        Run("TRANSPOSE_CONV", [back, w, x, bias32(6)], [((1, 9, 8, 6), "int16", y)], {**VALID, **S1, **narrow},
            "int16, bias of int32", **wide | {"version": 4}),
        Run("TRANSPOSE_CONV", [back, w, x], [((1, 9, 8, 6), "int16", y)], {**VALID, **S1, **narrow},
            "int16, sums of 32 bits", **wide | {"version": 4}),
        Run("FULLY_CONNECTED", [rows, flat, (bias32(6), scale)], out, {}, "int16, bias of int32", **wide),
        Run("FULLY_CONNECTED", [rows, flat, (bias32(6).astype(np.int64), scale)], out, {}, "int16", **wide),
        Run("FULLY_CONNECTED", [rows, channels, bias32(6)], out, narrow, "int16, per channel",
            **wide | {"version": 12}),
        Run("FULLY_CONNECTED", [rows, flat], out, {}, "int16, no bias", **wide),
        Run("BATCH_MATMUL", [((2, 30, 8), "int16", (1e-4, 0)), ((1, 6, 8), "int16", (2e-4, 0))],
            [((2, 30, 6), "int16", (0.002, 0))], {"adj_y": True}, "int16", **wide | {"version": 3}),
    ]  # fmt: skip


def _rounded() -> list[Run]:
    """Where halves go, which results of few elements show, and what LiteRT computes on stored numbers."""
    x, scale = ((2, 4, 50), "int8", (0.03, 5)), (0.03, 5)
    wide = {"low": -128, "high": 128, "version": 2}
    short = {"low": -32768, "high": 32768, "version": 2}
    a, b = ((3, 50), "int16", (3e-4, 0)), ((3, 50), "int16", (4e-4, 0))
    plain = ((3, 50), "int16")
    return [
        Run("MEAN", [x, whole(1)], [((2, 50), "int8", scale)], {}, "int8, halves", exact=1.0, **wide),
        Run("MEAN", [x, whole(0)], [((4, 50), "int8", (0.03, -3))], {}, "int8, first axis", exact=1.0, **wide),
        Run("SUM", [x, whole(0)], [((4, 50), "int8", (0.06, 5))], {}, "int8, halves", exact=1.0, **wide),
        *(
            Run(op, [x], [((2, 4, 50), "int8", (0.02, -7))], {}, "int8, halves", exact=1.0, **wide)
            for op in ("ABS", "RELU", "RELU6")
        ),
        Run("SQRT", [((2, 90), "int8", (0.05, -128))], [((2, 90), "int8", (0.02, -128))], {}, "int8, cut", **wide),
        Run("GREATER", [a, b], [((3, 50), "bool")], {}, "int16, two scales", **short),
        *(Run(op, [plain, plain], [plain], {}, "int16 without a scale", **short) for op in ("ADD", "MUL", "MAXIMUM")),
    ]  # fmt: skip


QUANTIZED_RUNS = [*_quantized(), *_short(), *_rounded()]
