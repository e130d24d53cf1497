"""Inference refuses what does not fit, and says what was found and what is needed."""

from __future__ import annotations

import math
from typing import Any

import pytest

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.graph.ir import Quantization, TensorType
from webinfer.ops import OPS
from webinfer.ops.activation import Activation
from webinfer.ops.conv import Conv2dAttrs, ConvTranspose2dAttrs
from webinfer.ops.elementwise import BinaryAttrs, CastAttrs, UnaryAttrs
from webinfer.ops.gather import ElementsAttrs, GatherAttrs, GatherNdAttrs, ScatterNdAttrs
from webinfer.ops.landmarks import LandmarksToTransformMatrixAttrs, TransformLandmarksAttrs, TransformTensorAttrs
from webinfer.ops.matmul import MatmulAttrs
from webinfer.ops.movement import (
    BlockAttrs,
    ConcatAttrs,
    ExpandAttrs,
    PadAttrs,
    ReshapeAttrs,
    ReverseAttrs,
    SliceAttrs,
    TileAttrs,
    TransposeAttrs,
)
from webinfer.ops.pattern import OneHotAttrs, TriangularAttrs
from webinfer.ops.pool import MaxUnpool2dAttrs, Pool2dAttrs
from webinfer.ops.pose import PosenetDecoderAttrs
from webinfer.ops.reduce import ArgAttrs, ReduceAttrs
from webinfer.ops.registry import NoAttrs
from webinfer.ops.resize import ResizeAttrs
from webinfer.ops.scan import CumulativeSumAttrs, TopKAttrs
from webinfer.ops.softmax import SoftmaxAttrs


def t(*shape: int) -> TensorType:
    return TensorType(shape)


def i(*shape: int) -> TensorType:
    return TensorType(shape, DType.INT32)


def q(*shape: int, dtype: DType = DType.INT8) -> TensorType:
    return TensorType(shape, dtype, Quantization((0.1,), (0,)))


def b(*shape: int) -> TensorType:
    return TensorType(shape, DType.BOOL)


STORED, BARE, REAL = (DType.INT8, Quantization((0.1,), (0,))), (DType.INT8, None), (DType.FLOAT32, None)
MIXED: tuple[tuple[str, tuple[TensorType | None, ...], Any, str], ...] = (
    ("conv2d", (t(1, 4, 4, 4), t(8, 1, 1, 4)), Conv2dAttrs(out_type=STORED), "the result is int8.*needs float32"),
    ("conv2d", (q(1, 4, 4, 4), q(8, 1, 1, 4)), Conv2dAttrs(out_type=REAL), "the result is float32.*with a scale"),
    ("conv2d", (q(1, 4, 4, 4), q(8, 1, 1, 4)), Conv2dAttrs(out_type=BARE), "the result is int8.*with a scale"),
    ("conv2d", (t(1, 4, 4, 4), i(8, 1, 1, 4)), Conv2dAttrs(), "weights are int32.*need floats"),
    ("conv2d", (q(1, 4, 4, 4), t(8, 1, 1, 4)), Conv2dAttrs(), "weights are float32.*with a scale"),
    ("conv2d", (t(1, 4, 4, 4), t(8, 1, 1, 4), i(8)), Conv2dAttrs(), "int32.*needs floats"),
    ("conv2d", (q(1, 4, 4, 4), q(8, 1, 1, 4), t(8)), Conv2dAttrs(), "bias is float32.*needs int32 or int64"),
    ("conv2d", (i(1, 4, 4, 4), i(8, 1, 1, 4)), Conv2dAttrs(), "x is int32.*needs floats"),
    ("depthwise_conv2d", (t(1, 4, 4, 4), t(1, 1, 1, 4)), Conv2dAttrs(out_type=STORED), "the result is int8"),
    ("conv_transpose2d", (t(1, 2, 2, 4), t(3, 2, 2, 4)), ConvTranspose2dAttrs(out_type=STORED), "the result is int8"),
    ("matmul", (t(2, 4), t(4, 3)), MatmulAttrs(out_type=STORED), "the result is int8.*needs float32"),
    ("matmul", (q(2, 4), q(4, 3)), MatmulAttrs(), "the result is int8.*with a scale"),
    ("add", (t(4), t(4)), BinaryAttrs(out_type=STORED), "the result is int8.*needs float32"),
    ("add", (q(4), TensorType((4,), DType.INT8)), BinaryAttrs(out_type=STORED), "one operand is int8"),
    ("mul", (q(4), q(4)), BinaryAttrs(), "the result is int8.*with a scale"),
    ("less", (q(4), TensorType((4,), DType.INT8)), BinaryAttrs(), "one operand is int8"),
    ("prelu", (t(4), t(4)), BinaryAttrs(out_type=STORED), "the result is int8"),
    ("tanh", (t(4),), UnaryAttrs(out_type=STORED), "the result is int8.*needs float32"),
    ("tanh", (q(4),), UnaryAttrs(out_type=REAL), "the result is float32.*with a scale"),
    ("softmax", (t(2, 4),), SoftmaxAttrs(1, out_type=STORED), "the result is int8.*needs float32"),
    ("softmax", (i(2, 4),), SoftmaxAttrs(1), "x is int32"),
    ("reduce_mean", (t(2, 4),), ReduceAttrs((1,), out_type=STORED), "the result is int8.*needs float32"),
    (
        "reduce_max",
        (q(2, 4, dtype=DType.INT16),),
        ReduceAttrs((1,), out_type=STORED),
        "the result is int8.*needs int16",
    ),
    ("sub", (b(4), b(4)), BinaryAttrs(), "an operand is bool.*needs numbers"),
    ("neg", (b(4),), UnaryAttrs(), "an operand is bool"),
    ("cumulative_sum", (b(4),), CumulativeSumAttrs(0), "an operand is bool"),
    ("quantize", (t(4),), CastAttrs(DType.FLOAT32, STORED[1]), "the result is float32.*with a scale"),
    ("dequantize", (q(4),), CastAttrs(DType.INT32), "the result is int32.*needs floats"),
    ("transform_landmarks", (i(1, 7, 2), t(1, 4, 4)), TransformLandmarksAttrs(), "int32.*needs floats"),
)

BAD: tuple[tuple[str, tuple[TensorType | None, ...], Any, str], ...] = (
    ("conv2d", (t(1, 4, 4, 3), t(8, 3, 3, 4)), Conv2dAttrs(), "do not fit input"),
    ("conv2d", (t(1, 4, 4), t(8, 3, 3, 4)), Conv2dAttrs(), "needs rank 4"),
    ("conv2d", (t(1, 2, 2, 4), t(8, 3, 3, 4)), Conv2dAttrs(), "does not fit input 2"),
    ("conv2d", (t(1, 4, 4, 4), t(8, 3, 3, 4)), Conv2dAttrs(stride=(0, 1)), "must be positive"),
    ("conv2d", (t(1, 4, 4, 4), t(8, 1, 1, 4), t(7)), Conv2dAttrs(), "needs 8 elements"),
    ("conv2d", (t(1, 4, 4, 4), t(8, 1, 1, 4), t(8), None, None), Conv2dAttrs(activation=Activation.PRELU),
        "must be used together"),
    ("conv2d", (t(1, 4, 4, 4), t(8, 1, 1, 4), None, t(1, 4, 4, 9)), Conv2dAttrs(), "does not fit result"),
    ("conv2d", (t(1, 4, 4, 4), None), Conv2dAttrs(), "input w is missing"),
    ("depthwise_conv2d", (t(1, 4, 4, 3), t(1, 3, 3, 4)), Conv2dAttrs(), "do not fit input"),
    ("conv_transpose2d", (t(1, 2, 2, 4), t(3, 2, 2, 4)), ConvTranspose2dAttrs(pads=(2, 2, 0, 0)), "cut everything off"),
    ("max_pool2d", (t(1, 4, 4, 4),), Pool2dAttrs((2, 2), pads=(2, 0, 0, 0)), "only padding"),
    ("max_pool_with_argmax2d", (t(1, 4, 4, 4),), Pool2dAttrs((2, 2), dilation=(2, 1)), "must be (1, 1)"),
    ("max_unpool2d", (t(1, 2, 2, 4), t(1, 2, 2, 3)), MaxUnpool2dAttrs((2, 2), (2, 2), (0, 0), (4, 4)), "do not fit"),
    ("resize_bilinear", (t(1, 4, 4, 4),), ResizeAttrs((0, 3)), "cannot resize"),
    ("resize_bilinear", (t(1, 4, 4, 4),), ResizeAttrs((3, 3), True, True), "exclude each other"),
    ("add", (t(2, 3), t(2, 4)), BinaryAttrs(), "do not broadcast"),
    ("add", (t(2, 3), i(2, 3)), BinaryAttrs(), "the same type"),
    ("where", (t(2), t(2), t(2)), NoAttrs(), "needs bool"),
    ("dequantize", (TensorType((2,), DType.INT8),), CastAttrs(DType.FLOAT32), "without a scale"),
    ("quantize", (t(2),), CastAttrs(DType.INT8), "needs a scale"),
    ("reshape", (t(2, 3),), ReshapeAttrs((7,)), "6 elements"),
    ("reshape", (t(2, 3),), ReshapeAttrs((-2, -3)), "6 elements"),
    ("transpose", (t(2, 3),), TransposeAttrs((0, 0)), "not a permutation"),
    ("slice", (t(4,),), SliceAttrs((2,), (3,), (1,)), "leaves an axis"),
    ("slice", (t(4,),), SliceAttrs((0,), (2,), (0,)), "leaves an axis"),
    ("expand", (t(3),), ExpandAttrs((4,)), "does not broadcast"),
    ("tile", (t(3),), TileAttrs((-1,)), "do not fit"),
    ("concat", (), ConcatAttrs(0), "at least one"),
    ("concat", (t(2, 3), t(2, 4)), ConcatAttrs(0), "do not fit"),
    ("concat", (t(2, 3),), ConcatAttrs(2), "not an axis"),
    ("pad", (t(3),), PadAttrs((-1,), (0,)), "do not fit"),
    ("pad", (t(3),), PadAttrs((3,), (0,), mode="reflect"), "larger than"),
    ("reverse", (t(3),), ReverseAttrs((0, 0)), "not distinct"),
    ("depth_to_space", (t(1, 2, 2, 6),), BlockAttrs(2), "do not split"),
    ("space_to_depth", (t(1, 3, 2, 6),), BlockAttrs(2), ""),
    ("reduce_sum", (t(2, 3),), ReduceAttrs((2,)), "not distinct axes"),
    ("reduce_max", (t(0, 3),), ReduceAttrs((0,)), "no minimum"),
    ("reduce_all", (t(2),), ReduceAttrs((0,)), "needs bool"),
    ("arg_max", (t(2, 0),), ArgAttrs(1), "is empty"),
    ("softmax", (t(2, 3),), SoftmaxAttrs(2), "not an axis"),
    ("matmul", (t(2, 3), t(4, 5)), MatmulAttrs(), "inner sizes 3"),
    ("matmul", (t(3), t(3, 5)), MatmulAttrs(), "two axes"),
    ("matmul", (t(2, 3), t(3, 5), t(4)), MatmulAttrs(), "needs shape (5,)"),
    ("matmul", (t(2, 3), t(3, 5)), MatmulAttrs(activation=Activation.PRELU), "slope"),
    ("gather", (t(2, 3), t(2)), GatherAttrs(0), "positions are float32"),
    ("gather", (t(2, 3), i(2)), GatherAttrs(2), "does not fit"),
    ("gather", (t(0, 3), i(2)), GatherAttrs(0), "is empty"),
    ("gather_elements", (t(2, 3), i(3, 3)), ElementsAttrs(1), "differ beside axis"),
    ("gather_nd", (t(2, 3), i(2, 3)), GatherNdAttrs(), "name 3 axes"),
    ("scatter_elements", (t(2, 3), i(2, 2), t(2, 3)), ElementsAttrs(1), "do not fit"),
    ("scatter_nd", (t(2, 3), i(2, 1), t(2, 2)), ScatterNdAttrs(), "do not fit"),
    ("cumulative_sum", (t(2, 3),), CumulativeSumAttrs(2), "not an axis"),
    ("top_k", (t(2, 3),), TopKAttrs(4), "cannot be taken"),
    ("one_hot", (t(2),), OneHotAttrs(3, 1), "needs int32"),
    ("triangular", (t(2),), TriangularAttrs(), "two axes"),
    ("landmarks_to_transform_matrix", (t(1, 5, 3),), LandmarksToTransformMatrixAttrs(0, 5, (1,), (2, 2)),
        "is not one of 5"),
    ("transform_tensor_bilinear", (t(1, 4, 4, 2), t(1, 3, 3)), TransformTensorAttrs((2, 2)), "needs (1, 4, 4)"),
    ("transform_landmarks", (t(1, 4, 4), t(1, 4, 4)), TransformLandmarksAttrs(), "2 or 3 numbers"),
    ("posenet_decoder", (t(1, 4, 4, 17), t(1, 4, 4, 34), t(1, 4, 4, 34)), PosenetDecoderAttrs(3, 0.5, 16,
        10.0), "middle offsets"),
)  # fmt: skip


@pytest.mark.parametrize(("name", "inputs", "attrs", "says"), BAD, ids=[f"{row[0]}-{n}" for n, row in enumerate(BAD)])
def test_what_does_not_fit_is_refused_in_words(
    name: str, inputs: tuple[TensorType | None, ...], attrs: Any, says: str
) -> None:
    with pytest.raises(ShapeError) as raised:
        OPS[name].result_types(inputs, attrs)
    assert str(raised.value).startswith(name)
    assert says in str(raised.value)


def test_every_case_infers_and_costs_something() -> None:
    for op in OPS.values():
        for case in op.cases:
            outputs = op.result_types(case.inputs, case.attrs)
            cost = op.cost(case.inputs, outputs, case.attrs)
            assert cost.bytes >= sum(y.nbytes for y in outputs), f"{op.name}: {case.label}"
            assert cost.flops >= 0


def test_every_case_draws_inputs_inside_the_type() -> None:
    for op in OPS.values():
        for case in op.cases:
            assert case.low <= case.high
            for index, numbers in case.values.items():
                type = case.inputs[index]
                assert type is not None
                assert len(numbers) == math.prod(type.shape), f"{op.name}: {case.label}"


def test_a_quantised_result_carries_its_scale() -> None:
    x, w = (
        TensorType((1, 2, 2, 4), DType.INT8, Quantization((0.5,), (0,))),
        TensorType((3, 1, 1, 4), DType.INT8, Quantization((0.1,), (0,))),
    )
    out = (DType.INT8, Quantization((0.25,), (7,)))
    (y,) = OPS["conv2d"].infer((x, w), Conv2dAttrs(out_type=out))
    assert (y.dtype, y.quant) == out


@pytest.mark.parametrize(
    ("name", "inputs", "attrs", "says"), MIXED, ids=[f"{row[0]}-{n}" for n, row in enumerate(MIXED)]
)
def test_element_types_that_break_a_rule_are_refused_in_words(
    name: str, inputs: tuple[TensorType | None, ...], attrs: Any, says: str
) -> None:
    with pytest.raises(ShapeError, match=f"^{name}: .*{says}"):
        OPS[name].result_types(inputs, attrs)
