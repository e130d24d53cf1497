"""8-bit arithmetic at sizes that the models at hand do not have, against the reference to the bit."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.ops.case_graphs import outcomes, problem, run
from tests.ops.targets import BUILDS, Target
from tests.wasm.test_moves import EDGES, check

from webinfer.backends import wasm
from webinfer.backends.wasm.stored_plan import requirements
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Case, Op, Quantization, TensorType
from webinfer.host.native import NativeHost
from webinfer.ops import conv, matmul, movement
from webinfer.ops import elementwise as ew
from webinfer.ops import reduce as red
from webinfer.ops.activation import Activation
from webinfer.ops.conv import Conv2dAttrs, ConvTranspose2dAttrs, quantized_conv_case, short_conv_case
from webinfer.ops.matmul import MatmulAttrs

U8, I8 = DType.UINT8, DType.INT8


def _type(shape: tuple[int, ...], dtype: DType, scale: float, zero: int) -> TensorType:
    return TensorType(shape, dtype, Quantization((scale,), (zero,)))


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_dense_convolutions_of_any_size(target: Target) -> None:
    rng = np.random.default_rng(7)
    cases = [
        quantized_conv_case("longer than one block", (1, 4, 5, 260), (11, 3, 3, 260), U8, None, 11, pads=(1, 1, 1, 1)),
        quantized_conv_case("longer, odd, one pixel", (1, 1, 1, 4099), (9, 1, 1, 4099), I8, 0, 9),
        quantized_conv_case("one channel each", (1, 3, 3, 1), (1, 2, 2, 1), U8, None, 1),
        quantized_conv_case("wide window, one row", (2, 1, 30, 3), (17, 1, 9, 3), I8, 0, 17, pads=(0, 0, 4, 4)),
    ]
    for i in range(24):
        ci, co, kh, kw, ih, iw = (int(n) for n in rng.integers(1, (20, 20, 4, 4, 9, 9)))
        pads = tuple(int(n) for n in rng.integers(0, (kh, kh, kw, kw)))
        if ih + pads[0] + pads[1] < kh or iw + pads[2] + pads[3] < kw:
            continue
        stride, dtype = (int(rng.integers(1, 4)), int(rng.integers(1, 4))), (U8, I8)[i % 2]
        label = f"{i}: {(ih, iw, ci)} {(co, kh, kw)} {pads} {stride}"
        shapes = ((1, ih, iw, ci), (co, kh, kw, ci))
        cases.append(
            quantized_conv_case(label, *shapes, dtype, 0 if i % 4 == 3 else None, co, pads=pads, stride=stride)
        )
    check(conv.CONV2D, cases, target)


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_depthwise_convolutions_of_any_size(target: Target) -> None:
    cases = [
        quantized_conv_case(
            f"{c} {k} {s}",
            (2, 7, 6, c),
            (1, *k, c),
            (U8, I8)[c % 2],
            None,
            c,
            pads=(k[0] // 2,) * 2 + (k[1] // 2,) * 2,
            stride=s,
        )
        for c in (1, 7, 8, 9, 33)
        for k in ((1, 1), (2, 3), (5, 5))
        for s in ((1, 1), (2, 3))
    ]
    check(conv.DEPTHWISE_CONV2D, cases, target)


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_depthwise_windows_of_3x3_of_any_size(target: Target) -> None:
    rng = np.random.default_rng(11)
    cases = []
    for i, c in enumerate((1, 2, 7, 8, 9, 16, 17, 24, 31, 40) * 6):
        stride = (1 + i // 2 % 3, 1 + i % 3)
        dilation = (1 + i // 4 % 2, 1 + i // 3 % 3)
        spans = [2 * d + 1 for d in dilation]
        pads = tuple(int(n) for n in rng.integers(0, (spans[0], spans[0], spans[1], spans[1])))
        ih = max(int(rng.integers(1, 9)), spans[0] - pads[0] - pads[1])
        iw = max(int(rng.integers(1, 14)), spans[1] - pads[2] - pads[3])
        attrs = {"pads": pads, "stride": stride, "dilation": dilation}
        label = f"{i}: {(ih, iw, c)} {attrs}"
        dtype, axis = (U8, I8)[i // 2 % 2], 3 if i % 4 == 3 else None
        cases.append(quantized_conv_case(label, (1 + i % 2, ih, iw, c), (1, 3, 3, c), dtype, axis, c, **attrs))
    check(conv.DEPTHWISE_CONV2D, cases, target)


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_pointwise_convolutions_of_any_size(target: Target) -> None:
    cases = [
        quantized_conv_case(f"{n}x{h}x{w}x{ci} to {co}", (n, h, w, ci), (co, 1, 1, ci), (U8, I8)[ci % 2], None, co)
        for n, h, w in ((1, 1, 1), (1, 1, 2), (2, 3, 1), (1, 5, 5), (1, 40, 33))
        for ci, co in ((1, 1), (3, 9), (8, 8), (11, 16), (24, 7), (2047, 3), (2049, 2))
        if h * w * ci < 50_000
    ]
    check(conv.CONV2D, cases, target)


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_transposed_convolutions_cut_and_pad(target: Target) -> None:
    def case(label: str, dtype: DType, **attrs: object) -> Case:
        return quantized_conv_case(label, (2, 3, 4, 5), (7, 3, 2, 5), dtype, None, 7, ConvTranspose2dAttrs, **attrs)

    cases = [
        case("plain", U8), case("stride 2 by 3", I8, stride=(2, 3)), case("cut", U8, stride=(2, 2), pads=(2, 1, 1, 0)),
        case("cut deeper than the window", I8, stride=(3, 3), pads=(4, 3, 3, 2)),
        case("output padding, dilated", U8, stride=(2, 2), dilation=(2, 3), output_padding=(1, 1)),
    ]  # fmt: skip
    check(conv.CONV_TRANSPOSE2D, cases, target)


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_products_of_two_variables_and_of_transposed_operands(target: Target) -> None:
    def case(label: str, a: tuple[int, ...], b: tuple[int, ...], dtype: DType, **attrs: object) -> Case:
        out = MatmulAttrs(out_type=(dtype, Quantization((0.9,), (4,))), **attrs)  # type: ignore[arg-type]
        low, high = dtype.range
        return Case(label, (_type(a, dtype, 0.05, 3), _type(b, dtype, 0.11, -2)), out, low=low, high=high)

    cases = [
        case("plain", (5, 7), (7, 9), U8),
        case("both transposed", (7, 5), (9, 7), I8, transpose_a=True, transpose_b=True),
        case("batches", (3, 1, 4, 6), (2, 6, 5), I8), case("one matrix for all", (4, 3, 8), (8, 8), U8),
        case("relu", (6, 8), (8, 3), I8, activation=Activation.RELU),
    ]  # fmt: skip
    check(matmul.MATMUL, cases, target)


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_sums_of_shorts_are_exact_at_both_ends(target: Target) -> None:
    def case(label: str, x: tuple[int, ...], w: tuple[int, ...], ends: tuple[int, int], **extra: object) -> Case:
        drawn = short_conv_case(label, x, w, 0, w[0], **extra)
        filled = [[end] * shape.size for end, shape in zip(ends, drawn.inputs, strict=False) if shape is not None]
        return replace(drawn, values=dict(enumerate(filled)) if any(ends) else {})

    low, high, drawn = (-32768, -128), (32767, -128), (0, 0)
    cases = [
        case("lowest, several parts", (1, 1, 5, 613), (3, 1, 1, 613), low),
        case("highest, one row of a part", (2, 1, 3, 256), (2, 1, 1, 256), high),
        case("one pixel at a time", (1, 2, 3, 2100), (2, 1, 1, 2100), low),
        case("longer than any room", (1, 1, 2, 8200), (2, 1, 1, 8200), high),
        case("few pixels of odd windows", (1, 7, 6, 3), (5, 3, 2, 3), drawn, pads=(1, 1, 0, 1), stride=(2, 1)),
        case("groups of odd depth", (1, 5, 4, 10), (6, 2, 3, 5), drawn, groups=2, dilation=(2, 1)),
    ]
    check(conv.CONV2D, cases, target)
    depthwise = [
        short_conv_case("odd channels", (2, 6, 5, 13), (1, 3, 3, 13), 3, 13, pads=(1, 1, 1, 1)),
        short_conv_case("large windows", (1, 20, 19, 3), (1, 17, 16, 3), 3, 3, pads=(4, 4, 4, 4)),
    ]
    check(conv.DEPTHWISE_CONV2D, depthwise, target)


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_sums_and_products_of_stretched_operands(target: Target) -> None:
    shapes = (
        ((3, 5, 7), (3, 5, 7)),
        ((3, 5, 7), (7,)),
        ((3, 1, 7), (5, 1)),
        ((9,), ()),
        ((2, 3, 1), (1, 4)),
        ((17, 3), (17, 1)),
    )
    for op in (ew.ADD, ew.SUB, ew.MUL):
        cases = [
            Case(
                f"{a} {b} {dtype} {activation}", (_type(a, dtype, 0.031, 2), _type(b, dtype, 0.2, -9)),
                ew.BinaryAttrs(activation, (dtype, Quantization((0.17,), (1,)))),
                low=dtype.range[0], high=dtype.range[1],
            )
            for a, b in shapes
            for dtype in (U8, I8)
            for activation in (Activation.NONE, Activation.RELU6)
        ]  # fmt: skip
        check(op, cases, target)


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_means_over_any_axes(target: Target) -> None:
    out = (I8, Quantization((0.02,), (-5,)))
    cases = [
        Case(f"{axes}", (_type((3, 4, 5, 6), I8, 0.03, 7),), red.ReduceAttrs(axes, True, out), low=-128, high=127)
        for axes in ((0,), (1,), (3,), (1, 2), (0, 3), (0, 1, 2, 3), (1, 3))
    ]
    check(red.REDUCE_MEAN, cases, target)


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_float_convolutions_take_stored_weights(target: Target) -> None:
    x, bias = TensorType((1, 6, 5, 8)), TensorType((8,))
    each = Quantization(tuple(0.01 + 0.002 * i for i in range(8)), (0,) * 8, 0)
    last = Quantization(each.scales, each.zero_points, 3)
    for op, w in (
        (conv.CONV2D, TensorType((8, 3, 3, 8), I8, each)),
        (conv.CONV2D, _type((8, 1, 1, 8), U8, 0.02, 120)),
        (conv.DEPTHWISE_CONV2D, TensorType((1, 3, 3, 8), I8, last)),
    ):
        check(op, [Case(f"{w}", (x, w, bias), Conv2dAttrs(), low=-3, high=3, constant=(1, 2))], target)


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_padding_holds_the_zero_point(target: Target) -> None:
    x = _type((1, 3, 2, 3), I8, 0.05, -7)
    attrs = movement.PadAttrs((0, 1, 1, 0), (0, 2, 0, 1), -7.0)
    p = problem(movement.PAD, Case("zero point", (x,), attrs, low=-128, high=127))
    assert p.want[0][0, 0, 0, 0] == -7
    check(movement.PAD, [p.case], target)


def test_the_cases_reach_both_ends_of_the_result() -> None:
    case = quantized_conv_case("reach", (1, 6, 6, 8), (8, 3, 3, 8), U8, None, 8)
    assert isinstance(case.attrs, Conv2dAttrs)
    want = problem(conv.CONV2D, case).want[0]
    assert (want.min(), want.max()) == (0, 255)


BIAS64 = TensorType((4,), DType.INT64, Quantization((0.0002,), (0,)))
REAL = TensorType((1, 5, 5, 4))
STORED = {  # weights of each product
    conv.CONV2D: _type((4, 3, 3, 4), I8, 0.01, 0),
    conv.DEPTHWISE_CONV2D: _type((1, 3, 3, 4), I8, 0.01, 0),
    conv.CONV_TRANSPOSE2D: _type((4, 3, 3, 4), I8, 0.01, 0),
}


@pytest.mark.parametrize("op", STORED, ids=lambda op: op.name)
def test_products_of_types_that_no_kernel_reads_are_refused(op: Op) -> None:
    target, weights = BUILDS[1], STORED[op]
    target.demand()
    result = (I8, Quantization((0.05,), (2,)))
    attrs = ConvTranspose2dAttrs if op is conv.CONV_TRANSPOSE2D else Conv2dAttrs
    x = _type((1, 5, 5, 4), I8, 0.02, 3)
    cases = [
        Case("floats, stored weights of each run", (REAL, weights), attrs()),
        Case("bytes, weights of 16 bits", (x, replace(weights, dtype=DType.INT16)), attrs(out_type=result)),
        Case("bytes, bias of 64 bits", (x, weights, BIAS64), attrs(out_type=result), constant=(1, 2)),
    ]
    problems = [problem(op, case) for case in cases]
    found = run(outcomes(wasm, NativeHost(), problems, dict(target.options)))
    assert [type(outcome) for outcome in found] == [UnsupportedOpError] * 3


@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_floats_become_the_nearest_bytes(target: Target) -> None:
    values = (*EDGES["float"], 0.15, 0.25, -0.35, 0.05, -0.05)
    cases = [
        Case(f"{dtype}, {zero}", (TensorType((len(values),)),), ew.CastAttrs(dtype, Quantization((0.1,), (zero,))),
             values={0: values})
        for dtype, zeros in ((I8, (-128, -3, 127)), (U8, (0, 128, 255)))
        for zero in zeros
    ]  # fmt: skip
    check(ew.QUANTIZE, cases, target)


@dataclass
class _Kernels:
    """A kernel instance of an engine with these dot products of bytes."""

    form: int
    isa: str = "relaxed"
    threads: int = 1
    heap_base: int = 1024

    def call(self, name: str) -> int:
        return {"dots_of_bytes": self.form}[name]


def test_a_stored_plan_belongs_to_the_form_of_its_packed_weights() -> None:
    fits = [requirements(NativeHost(), _Kernels(form), True) for form in (0, 1, 1)]  # type: ignore[arg-type]
    assert fits[0] != fits[1] == fits[2]


@pytest.mark.parametrize("isa", ["scalar", "simd128", "relaxed"])
def test_a_build_says_what_its_dot_products_of_bytes_are(isa: str) -> None:
    kernels = run(NativeHost().kernels(isa))
    assert kernels.call("dots_of_bytes") in {"scalar": (1,), "simd128": (0,), "relaxed": (0, 1, 2, 3)}[isa]
    kernels.close()
