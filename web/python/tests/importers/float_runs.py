"""Float, integer and boolean operators, each with the deviations that its options allow."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.importers.runs import S1, S2, SAME, VALID, Run, X, bytes8, f, real, scalar, whole


def _windows() -> list[Run]:
    w, b, d = real(6, 3, 3, 4), real(6), real(1, 3, 3, 4)
    pool = {"filter_height": 3, "filter_width": 2}
    return [
        Run("CONV_2D", [X, w, b], [f(1, 7, 6, 6)], {**SAME, **S1}),
        Run("CONV_2D", [X, w, b], [f(1, 4, 3, 6)], {**SAME, **S2, "fused_activation_function": 1}, "stride 2, relu"),
        Run(
            "CONV_2D",
            [X, w, b],
            [f(1, 3, 4, 6)],
            {**VALID, "stride_h": 2, "stride_w": 1, "fused_activation_function": 3},
            "valid, relu6",
        ),
        Run(
            "CONV_2D",
            [X, w, b],
            [f(1, 7, 6, 6)],
            {**SAME, **S1, "dilation_h_factor": 2, "dilation_w_factor": 3},
            "dilated",
        ),
        Run("CONV_2D", [X, w, b], [f(1, 7, 6, 6)], {**SAME, **S1, "fused_activation_function": 2}, "relu_n1"),
        Run("CONV_2D", [X, real(6, 3, 3, 2), b], [f(1, 7, 6, 6)], {**SAME, **S1}, "two groups", version=6),
        Run(
            "CONV_2D",
            [X, (bytes8(6, 3, 3, 4), (0.01, 0)), b],
            [f(1, 7, 6, 6)],
            {**SAME, **S1},
            "bytes",
            1e-2,
            version=2,
        ),
        Run("DEPTHWISE_CONV_2D", [X, d, real(4)], [f(1, 7, 6, 4)], {**SAME, **S1, "depth_multiplier": 1}),
        Run(
            "DEPTHWISE_CONV_2D",
            [X, real(1, 3, 3, 8), real(8)],
            [f(1, 4, 3, 8)],
            {**SAME, **S2, "depth_multiplier": 2},
            "multiplier 2",
        ),
        Run(
            "DEPTHWISE_CONV_2D",
            [f(1, 12, 11, 4), d, real(4)],
            [f(1, 12, 11, 4)],
            {**SAME, **S1, "depth_multiplier": 1, "dilation_h_factor": 3, "dilation_w_factor": 2},
            "dilated",
        ),
        Run("TRANSPOSE_CONV", [whole(1, 14, 12, 6), real(6, 3, 3, 4), X], [f(1, 14, 12, 6)], {**SAME, **S2}),
        Run(
            "TRANSPOSE_CONV",
            [whole(1, 13, 11, 6), real(6, 3, 3, 4), X],
            [f(1, 13, 11, 6)],
            {**SAME, **S2},
            "odd result",
        ),
        Run(
            "TRANSPOSE_CONV",
            [whole(1, 15, 13, 6), real(6, 3, 3, 4), X, real(6)],
            [f(1, 15, 13, 6)],
            {**VALID, **S2},
            "valid, bias",
            version=3,
        ),
        Run("TRANSPOSE_CONV", [whole(1, 14, 12, 2), real(2, 2, 2, 4), X], [f(1, 14, 12, 2)], {**VALID, **S2}, "2x2"),
        Run("MAX_POOL_2D", [X], [f(1, 7, 6, 4)], {**SAME, **S1, **pool}),
        Run(
            "MAX_POOL_2D", [X], [f(1, 3, 3, 4)], {**VALID, **S2, **pool, "fused_activation_function": 1}, "valid, relu"
        ),
        Run("AVERAGE_POOL_2D", [X], [f(1, 4, 3, 4)], {**SAME, **S2, **pool}),
        Run(
            "AVERAGE_POOL_2D",
            [X],
            [f(1, 1, 1, 4)],
            {**VALID, **S1, "filter_height": 7, "filter_width": 6},
            "whole image",
        ),
        Run("L2_POOL_2D", [X], [f(1, 4, 3, 4)], {**SAME, **S2, **pool}),
        *_larger_than_their_input(),
        # LiteRT's kernels clamp alone: they leave TANH out, the delegate all that follows a concatenation
        Run("CONV_2D", [X, w, b], [f(1, 7, 6, 6)], {**SAME, **S1, "fused_activation_function": 4}, "fused tanh"),
        Run("MUL", [X, X], [X], {"fused_activation_function": 5}, "fused sign bit"),
        Run("CONCATENATION", [X, X], [f(1, 7, 6, 8)], {"axis": 3, "fused_activation_function": 1}, "fused relu"),
    ]


def _larger_than_their_input() -> list[Run]:
    """VALID windows that do not fit: results are empty, or what LiteRT's delegate makes of pools."""
    pool = {**VALID, **S1, "filter_height": 9, "filter_width": 2}
    return [
        Run("CONV_2D", [X, real(6, 8, 3, 4), real(6)], [f(1, 0, 4, 6)], {**VALID, **S1}, "window larger than x"),
        Run("CONV_2D", [X, real(6, 9, 9, 4), real(6)], [f(1, 0, 0, 6)], {**VALID, **S2}, "windows both ways larger"),
        Run("DEPTHWISE_CONV_2D", [X, real(1, 3, 7, 4), real(4)], [f(1, 5, 0, 4)],
            {**VALID, **S1, "depth_multiplier": 1}, "window larger than x"),
        Run("MAX_POOL_2D", [X], [f(1, 1, 5, 4)], pool, "window larger than x"),
        Run("AVERAGE_POOL_2D", [X], [f(1, 1, 5, 4)], pool, "window larger than x"),
        Run("L2_POOL_2D", [X], [f(1, 0, 5, 4)], pool, "window larger than x"),
    ]  # fmt: skip


def _products() -> list[Run]:
    x = f(2, 3, 8)
    return [
        Run("FULLY_CONNECTED", [f(2, 8), real(5, 8), real(5)], [f(2, 5)]),
        Run("FULLY_CONNECTED", [f(2, 8), (bytes8(5, 8), (0.01, 7)), real(5)], [f(2, 5)], {}, "bytes", 1e-2, version=2),
        Run("FULLY_CONNECTED", [x, real(5, 8), None], [f(6, 5)], {"fused_activation_function": 1}, "flattened, relu"),
        Run("FULLY_CONNECTED", [x, real(5, 8), real(5)], [f(2, 3, 5)], {"keep_num_dims": True}, "rank kept", version=2),
        Run("FULLY_CONNECTED", [f(1, 2, 2, 4), real(5, 16), real(5)], [f(1, 5)], {}, "image flattened"),
        Run("BATCH_MATMUL", [f(2, 3, 4), f(2, 4, 5)], [f(2, 3, 5)]),
        Run("BATCH_MATMUL", [f(2, 4, 3), f(1, 5, 4)], [f(2, 3, 5)], {"adj_x": True, "adj_y": True}, "both transposed"),
        Run("GATHER", [f(5, 3), whole(4, 0, 1)], [f(3, 3)], {"axis": 0}),
        Run(
            "GATHER",
            [f(2, 5, 3), np.array([[4, 0], [1, 2]], np.int32)],
            [f(2, 2, 3)],
            {"axis": 1, "batch_dims": 1},
            "batch",
            version=5,
        ),
        Run("GATHER", [f(2, 5, 3), whole(2)], [f(2, 5, 1)], {"axis": -1}, "last axis"),
        Run("GATHER_ND", [f(3, 4, 2), np.array([[0, 3], [2, 1]], np.int32)], [f(2, 2)]),
        Run("UNSORTED_SEGMENT_SUM", [f(5, 3), whole(0, -1, 2, 0, 1), scalar(4)], [f(4, 3)], {}, "numbers below zero"),
        Run("EMBEDDING_LOOKUP", [whole(2, 0, 3), real(4, 5)], [f(3, 5)]),
        Run("SCATTER_ND", [np.array([[1], [3], [1]], np.int32), f(3, 2), whole(5, 2)], [f(5, 2)]),
        Run(
            "ONE_HOT",
            [((3,), "int32"), scalar(4), scalar(2.0, np.float32), scalar(-1.0, np.float32)],
            [f(3, 4)],
            {"axis": -1},
            low=0,
            high=5,
        ),
        Run(
            "ONE_HOT",
            [((3,), "int32"), scalar(4), scalar(7), scalar(1)],
            [((4, 3), "int32")],
            {"axis": 0},
            "first axis, int32",
            low=0,
            high=5,
        ),
    ]


def _movement() -> list[Run]:
    strided = {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}
    y = f(4, 5, 6)
    return [
        Run("RESHAPE", [X, whole(1, -1, 8)], [f(1, 21, 8)], {"new_shape": [1, 21, 8]}),
        Run("RESHAPE", [f(1, 1)], [f()], {"new_shape": []}, "to a scalar by option"),
        Run("SQUEEZE", [f(1, 3, 1, 2)], [f(3, 2)]),
        Run("SQUEEZE", [f(1, 3, 1, 2)], [f(1, 3, 2)], {"squeeze_dims": [-2]}, "one axis"),
        Run("EXPAND_DIMS", [f(3, 2), scalar(-1)], [f(3, 2, 1)]),
        Run("TRANSPOSE", [X, whole(0, 3, 1, 2)], [f(1, 4, 7, 6)]),
        Run("CONCATENATION", [f(2, 3), f(2, 2)], [f(2, 5)], {"axis": -1}),
        Run("PACK", [f(2, 3), f(2, 3)], [f(2, 2, 3)], {"axis": 1, "values_count": 2}),
        Run("UNPACK", [f(2, 3)], [f(2), f(2), f(2)], {"axis": -1, "num": 3}),
        Run("SPLIT", [scalar(1), f(2, 6)], [f(2, 2), f(2, 2), f(2, 2)], {"num_splits": 3}),
        Run("SPLIT", [scalar(1), f(2, 6)], [f(2, 6)], {"num_splits": 1}, "into one"),
        Run("SPLIT_V", [f(2, 6), whole(1, -1, 2), scalar(-1)], [f(2, 1), f(2, 3), f(2, 2)], {"num_splits": 3}),
        Run("SLICE", [y, whole(1, 0, 2), whole(2, -1, 3)], [f(2, 5, 3)]),
        Run("STRIDED_SLICE", [y, whole(1, 0, 5), whole(4, 5, 0), whole(2, 3, -2)], [f(2, 2, 3)], strided),
        Run(
            "STRIDED_SLICE",
            [y, whole(1, 1, 1), whole(3, 3, 3), whole(1, 1, 1)],
            [f(3, 4, 2)],
            {**strided, "begin_mask": 1, "end_mask": 2},
            "open ends",
        ),
        Run(
            "STRIDED_SLICE",
            [y, whole(-1, 1, 0), whole(0, 3, 6), whole(1, 1, 1)],
            [f(2, 6)],
            {**strided, "shrink_axis_mask": 1},
            "shrunk, negative",
        ),
        Run(
            "STRIDED_SLICE",
            [y, whole(0, 2), whole(0, 5), whole(1, 2)],
            [f(4, 5, 2)],
            {**strided, "ellipsis_mask": 1},
            "ellipsis",
            version=3,
        ),
        Run(
            "STRIDED_SLICE",
            [y, whole(0, 1), whole(0, 3), whole(1, 1)],
            [f(1, 2, 5, 6)],
            {**strided, "new_axis_mask": 1},
            "new axis",
            version=3,
        ),
        Run(
            "STRIDED_SLICE",
            [y, whole(-100, 2, 3), whole(100, 2, 1), whole(1, 1, 1)],
            [f(4, 0, 0)],
            strided,
            "clamped and empty",
        ),
        Run("PAD", [X, np.array([[0, 0], [1, 2], [0, 1], [0, 3]], np.int32)], [f(1, 10, 7, 7)]),
        Run("PADV2", [f(2, 3), np.array([[1, 0], [0, 2]], np.int32), scalar(1.5, np.float32)], [f(3, 5)]),
        Run("MIRROR_PAD", [f(3, 4), np.array([[1, 2], [3, 0]], np.int32)], [f(6, 7)], {"mode": 0}, "reflect"),
        Run("MIRROR_PAD", [f(3, 4), np.array([[3, 2], [1, 4]], np.int32)], [f(8, 9)], {"mode": 1}, "symmetric"),
        Run("TILE", [f(2, 3), whole(2, 3)], [f(4, 9)]),
        Run("BROADCAST_TO", [f(3, 1), whole(2, 3, 4)], [f(2, 3, 4)], version=2),
        Run("FILL", [whole(2, 3), f()], [f(2, 3)]),
        Run("REVERSE_V2", [y, whole(1)], [y]),
        Run("DEPTH_TO_SPACE", [f(1, 2, 3, 12)], [f(1, 4, 6, 3)], {"block_size": 2}),
        Run("SPACE_TO_DEPTH", [f(1, 4, 6, 3)], [f(1, 2, 3, 12)], {"block_size": 2}),
        Run("SPACE_TO_BATCH_ND", [f(1, 5, 6, 2), whole(2, 3), np.array([[0, 1], [2, 1]], np.int32)], [f(6, 3, 3, 2)]),
        Run("BATCH_TO_SPACE_ND", [f(6, 3, 3, 2), whole(2, 3), np.array([[0, 1], [2, 1]], np.int32)], [f(1, 5, 6, 2)]),
        Run("RESIZE_BILINEAR", [X, whole(14, 12)], [f(1, 14, 12, 4)]),
        Run(
            "RESIZE_BILINEAR",
            [X, whole(5, 9)],
            [f(1, 5, 9, 4)],
            {"half_pixel_centers": True},
            "half pixel",
            version=3,
            tolerance=1e-5,
        ),
        Run(
            "RESIZE_BILINEAR", [X, whole(13, 11)], [f(1, 13, 11, 4)], {"align_corners": True}, "aligned", tolerance=1e-5
        ),
        Run("RESIZE_NEAREST_NEIGHBOR", [X, whole(14, 5)], [f(1, 14, 5, 4)]),
        Run(
            "RESIZE_NEAREST_NEIGHBOR",
            [X, whole(10, 9)],
            [f(1, 10, 9, 4)],
            {"half_pixel_centers": True},
            "half pixel",
            version=3,
        ),
        Run("RESIZE_NEAREST_NEIGHBOR", [X, whole(10, 9)], [f(1, 10, 9, 4)], {"align_corners": True}, "aligned"),
        Run("DYNAMIC_UPDATE_SLICE", [f(4, 5), f(2, 3), whole(1, 2)], [f(4, 5)]),
        Run("DYNAMIC_UPDATE_SLICE", [f(4, 5), f(2, 3), whole(3, 4)], [f(4, 5)], {}, "moved inside"),
        Run("DYNAMIC_UPDATE_SLICE", [f(4, 5), f(0, 3), whole(1, 2)], [f(4, 5)], {}, "by nothing"),
        Run("REVERSE_SEQUENCE", [f(3, 4, 2), whole(2, 4, 1)], [f(3, 4, 2)], {"seq_dim": 1, "batch_dim": 0}),
    ]


def _reductions() -> list[Run]:
    x = f(2, 3, 4)
    keep = {"keep_dims": True}
    return [
        Run("MEAN", [X, whole(1, 2)], [f(1, 1, 1, 4)], keep),
        Run("MEAN", [X, whole(-1)], [f(1, 7, 6)], {}, "last axis"),
        Run("SUM", [x, whole(0, 2)], [f(3)]),
        Run("REDUCE_MAX", [x, whole(1)], [f(2, 4)]),
        Run("REDUCE_MIN", [x, whole(-1, 2)], [f(2, 3, 1)], keep, "an axis named twice"),
        Run("REDUCE_PROD", [x, whole(0)], [f(3, 4)]),
        Run("REDUCE_ANY", [((2, 3), "bool"), whole(1)], [((2,), "bool")], low=0, high=2),
        Run("REDUCE_ALL", [((2, 3), "bool"), whole(1)], [((2,), "bool")], low=0, high=2),
        Run("ARG_MAX", [x, scalar(2)], [((2, 3), "int32")], {"output_type": 2}),
        Run("ARG_MAX", [x, scalar(-2)], [((2, 4), "int64")], {"output_type": 4}, "int64"),
        Run("ARG_MIN", [x, scalar(0)], [((3, 4), "int32")], {"output_type": 2}),
        Run("SOFTMAX", [f(2, 5)], [f(2, 5)], {"beta": 1.0}),
        Run("SOFTMAX", [x], [x], {"beta": 0.5}, "beta, rank 3"),
        Run("LOG_SOFTMAX", [f(2, 5)], [f(2, 5)]),
        Run("L2_NORMALIZATION", [x], [x]),
        Run(
            "LOCAL_RESPONSE_NORMALIZATION",
            [X],
            [X],
            {"radius": 1, "bias": 2.0, "alpha": 0.5, "beta": 0.75},
            tolerance=1e-5,
        ),
        Run("CUMSUM", [x, scalar(1)], [x]),
        Run("CUMSUM", [x, scalar(-1)], [x], {"exclusive": True, "reverse": True}, "exclusive, reversed"),
        Run("TOPK_V2", [f(2, 7), scalar(3)], [f(2, 3), ((2, 3), "int32")]),
    ]


def _elementwise() -> list[Run]:
    x, y = f(2, 3, 4), f(3, 1)
    i, b = ((2, 3), "int32"), ((2, 3), "bool")
    unary = ["ABS", "CEIL", "COS", "ELU", "EXP", "FLOOR", "GELU", "HARD_SWISH", "LOGISTIC", "NEG", "RELU", "RELU6",
             "RELU_0_TO_1", "RELU_N1_TO_1", "ROUND", "SIGN", "SIN", "SQUARE", "TANH", "ZEROS_LIKE"]  # fmt: skip
    binary = ["ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"]
    compare = ["EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"]
    curves = {"EXP": 1e-6, "GELU": 1e-6}
    return [
        *(Run(op, [x], [x], {}, tolerance=curves.get(op, 5e-7)) for op in unary),
        *(Run(op, [x], [x], {}, low=0.3) for op in ("LOG", "SQRT", "RSQRT")),
        *(Run(op, [x, y], [x], {}, "broadcast") for op in binary),
        *(Run(op, [x, y], [x], {}, low=0.4) for op in ("DIV", "POW", "FLOOR_DIV", "FLOOR_MOD")),
        *(Run(op, [i, i], [b]) for op in compare),
        *(Run(op, [i, i], [i], {}, "int32", low=-9, high=9) for op in ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM")),
        Run("GELU", [x], [x], {"approximate": True}, "tanh", tolerance=1e-6),
        Run("LEAKY_RELU", [x], [x], {"alpha": 0.3}),
        Run("ADD", [x, x], [x], {"fused_activation_function": 1}, "relu"),
        Run("MUL", [x, x], [x], {"fused_activation_function": 3}, "relu6"),
        Run("ADD_N", [x, x, x], [x]),
        Run("PRELU", [X, real(1, 1, 4)], [X]),
        Run("FLOOR_DIV", [i, np.full((2, 3), 4, np.int32)], [i], {}, "int32", low=-9, high=9),
        Run("FLOOR_MOD", [i, np.full((2, 3), 4, np.int32)], [i], {}, "int32", low=-9, high=9),
        Run("LOGICAL_AND", [b, b], [b], low=0, high=2),
        Run("LOGICAL_OR", [b, b], [b], low=0, high=2),
        Run("LOGICAL_NOT", [b], [b], low=0, high=2),
        Run("SELECT", [((2,), "bool"), f(2, 3), f(2, 3)], [f(2, 3)], low=0, high=2),
        Run("SELECT_V2", [((3, 1), "bool"), f(2, 1, 4), f(3, 4)], [f(2, 3, 4)], low=0, high=2),
        Run("CAST", [x], [((2, 3, 4), "int32")], {"in_data_type": 0, "out_data_type": 2}),
        Run("CAST", [((2, 3), "uint8")], [f(2, 3)], {"in_data_type": 3, "out_data_type": 0}, "uint8", low=0, high=255),
        Run("FAKE_QUANT", [x], [x], {"min": -1.0, "max": 2.0, "num_bits": 8}, tolerance=5e-3),
    ]


def _segments() -> list[Run]:
    return [
        Run("ATAN2", [f(4, 9), f(4, 9)], [f(4, 9)]),
        Run("ATAN2", [np.array([0, 0, 0, 2, -2, 3], np.float32), f(6)], [f(6)], {}, "along axes"),
        Run("SEGMENT_SUM", [f(4, 3), whole(0, 0, 1, 2)], [f(3, 3)]),
        Run("UNSORTED_SEGMENT_SUM", [f(4, 3), whole(2, 0, 2, 1), scalar(5)], [f(5, 3)]),
        Run(
            "SPARSE_TO_DENSE",
            [np.array([[0, 1], [2, 0]], np.int32), whole(3, 2), f(2), scalar(0.5, np.float32)],
            [f(3, 2)],
        ),
        Run("SPARSE_TO_DENSE", [whole(1, 3), whole(5), f(2), scalar(-1.0, np.float32)], [f(5)], {}, "one axis"),
        Run("MATRIX_DIAG", [f(2, 3)], [f(2, 3, 3)]),
        Run("MATRIX_SET_DIAG", [f(2, 3, 4), f(2, 3)], [f(2, 3, 4)]),
        Run("MATRIX_SET_DIAG", [f(4, 3), f(3)], [f(4, 3)], {}, "tall"),
    ]


def variable(*shape: int) -> tuple[Any, ...]:
    """A state that lives in the model."""
    return (shape, "float32", None, True)


def _recurrent() -> list[Run]:
    t, b, k, n = 5, 2, 3, 4
    weights, loops, biases = [real(n, k) for _ in range(4)], [real(n, n) for _ in range(4)], [real(n) for _ in range(4)]
    none3, none2, states = [None] * 3, [None] * 2, [variable(b, n), variable(b, n)]
    x, tanh = f(t, b, k), {"fused_activation_function": 4}
    plain = [*weights, *loops, *none3, *biases, *none2, *states]
    coupled = [None, *weights[1:], None, *loops[1:], *none3, None, *biases[1:], *none2, *states]
    peeping = [*weights, *loops, real(n), real(n), real(n), *biases, *none2, *states]
    narrow = [real(n, 2) for _ in range(4)]
    projected = [*weights, *narrow, *none3, *biases, real(2, n), None, variable(b, 2), variable(b, n)]
    op, both, rnns = "UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_RNN"
    one_way = [*weights, *loops, *none3, *biases, *none2]
    ways = [*one_way, *one_way, *states, *states, *[None] * 9]
    rnn = [real(n, k), real(n, n), real(n), variable(b, n)]
    two = [*rnn, real(3, k), real(3, 3), real(3), variable(b, 3), *none3]
    merged = {"merge_outputs": True, "time_major": True, **tanh}
    return [
        Run(both, [x, *ways], [f(t, b, 2 * n)], merged),
        Run(both, [f(b, t, k), *ways], [f(b, t, n), f(b, t, n)], {"time_major": False, **tanh}, "apart, batch major"),
        Run(rnns, [x, *two], [f(t, b, n + 3)], merged),
        Run(rnns, [f(b, t, k), *two], [f(b, t, n), f(b, t, 3)], {"fused_activation_function": 3}, "apart"),
        Run("RNN", [f(b, k), *rnn], [f(b, n)], tanh),
        Run("LSTM", [f(b, k), *plain], [f(b, n)], {"cell_clip": 0.2, **tanh}),
        Run(op, [x, *plain], [f(t, b, n)], {"time_major": True, **tanh}),
        Run(op, [f(b, t, k), *plain], [f(b, t, n)], tanh, "batch major"),
        Run(op, [f(1, b, k), *plain], [f(1, b, n)], {"time_major": True, **tanh}, "one step"),
        Run(op, [x, *coupled], [f(t, b, n)], {"time_major": True, **tanh}, "coupled"),
        Run(op, [x, *peeping], [f(t, b, n)], {"time_major": True, "cell_clip": 0.5, **tanh}, "peepholes, clip"),
        Run(op, [x, *projected], [f(t, b, 2)], {"time_major": True, "proj_clip": 0.3, **tanh}, "projection"),
        Run(
            "UNIDIRECTIONAL_SEQUENCE_RNN",
            [x, real(n, k), real(n, n), real(n), variable(b, n)],
            [f(t, b, n)],
            {"time_major": True, **tanh},
        ),
        Run(
            "UNIDIRECTIONAL_SEQUENCE_RNN",
            [f(b, t, k), real(n, k), real(n, n), real(n), variable(b, n)],
            [f(b, t, n)],
            {"fused_activation_function": 1},
            "batch major",
        ),
    ]


def _volumes() -> list[Run]:
    x, w, b = f(1, 5, 6, 4, 3), real(2, 3, 3, 3, 5), real(5)
    one = {"stride_d": 1, "stride_h": 1, "stride_w": 1}
    turned, large = real(3, 2, 3, 5, 3), whole(1, 10, 6, 8, 5)
    return [
        Run("CONV_3D", [x, w, b], [f(1, 5, 6, 4, 5)], {**SAME, **one}),
        Run(
            "CONV_3D",
            [x, w],
            [f(1, 2, 4, 1, 5)],
            {**VALID, "stride_d": 2, "stride_h": 1, "stride_w": 2, "fused_activation_function": 1},
            "valid, relu",
        ),
        Run(
            "CONV_3D",
            [x, w, b],
            [f(1, 5, 6, 4, 5)],
            {**SAME, **one, "dilation_d_factor": 2, "dilation_h_factor": 1, "dilation_w_factor": 2},
            "dilated",
        ),
        Run(
            "CONV_3D_TRANSPOSE",
            [large, turned, x, b],
            [f(1, 10, 6, 8, 5)],
            {**SAME, "stride_d": 2, "stride_h": 1, "stride_w": 2},
        ),
        Run(
            "CONV_3D_TRANSPOSE",
            [whole(1, 7, 7, 6, 5), turned, x],
            [f(1, 7, 7, 6, 5)],
            {**VALID, **one},
            "valid",
        ),
    ]


def _rare() -> list[Run]:
    i32, x = ((2, 5), "int32"), f(3, 4)
    rows = whole(2, 0, 2, 3)

    def long(*numbers: int) -> Any:
        return np.array(numbers, np.int64)

    return [
        Run("BUCKETIZE", [x], [((3, 4), "int32")], {"boundaries": [-1.5, 0.0, 0.25, 2.0]}),
        Run("BUCKETIZE", [i32], [i32], {"boundaries": [-4.0, 0.0, 3.0]}, "int32", low=-6, high=6),
        Run("UNSORTED_SEGMENT_MAX", [f(4, 3), rows, scalar(5)], [f(5, 3)]),
        Run("UNSORTED_SEGMENT_MIN", [((4,), "int32"), rows, scalar(4)], [((4,), "int32")], {}, "int32", low=-9, high=9),
        Run("UNSORTED_SEGMENT_PROD", [f(4, 3), rows, scalar(5)], [f(5, 3)]),
        Run("BITWISE_XOR", [i32, i32], [i32], low=-(2**31), high=2**31 - 1),
        Run("BITWISE_XOR", [((6,), "uint8"), ((6,), "uint8")], [((6,), "uint8")], {}, "uint8", low=0, high=256),
        Run("RIGHT_SHIFT", [i32, whole(0, 31, 3, 40, -2)], [i32], low=-(2**31), high=2**31 - 1),
        Run("RIGHT_SHIFT", [((3,), "int16"), np.array([1, 15, 9], np.int16)], [((3,), "int16")], {}, "int16",
            low=-(2**15), high=2**15),
        Run("BITCAST", [x], [((3, 4), "int32")]),
        Run("DILATE", [x, whole(2, 3), scalar(-1.5, np.float32)], [f(5, 10)]),
        Run("REDUCE_WINDOW", [x, scalar(0.5, np.float32), long(2, 2), long(1, 2), long(1, 1)], [f(2, 2)],
            {"reduce_function": 1}),
        Run("REDUCE_WINDOW", [x, scalar(-3.0, np.float32), long(1, 2), long(2, 1), long(1, 2)], [f(2, 2)],
            {"reduce_function": 4}, "largest, dilated"),
        Run("STABLEHLO_ADD", [x, x], [x]),
        Run("STABLEHLO_AND", [((7,), "bool"), ((7,), "bool")], [((7,), "bool")], low=0, high=2),
        Run("STABLEHLO_MULTIPLY", [x, x], [x]),
        Run("STABLEHLO_MAXIMUM", [x, x], [x]),
        Run("STABLEHLO_MINIMUM", [i32, i32], [i32], {}, "int32", low=-9, high=9),
        Run("STABLEHLO_PAD", [x, scalar(1.5, np.float32)], [f(7, 6)],
            {"edge_padding_low": [1, -1], "edge_padding_high": [1, 0], "interior_padding": [1, 1]}),
    ]  # fmt: skip


FLOAT_RUNS = [
    *_windows(),
    *_products(),
    *_movement(),
    *_reductions(),
    *_elementwise(),
    *_recurrent(),
    *_segments(),
    *_volumes(),
    *_rare(),
]
