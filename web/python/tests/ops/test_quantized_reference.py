"""The reference's quantised arithmetic is ai-edge-litert's, to the last bit, on the operators' own cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import Array, Problem, problem

from webinfer.codegen.lookup import lookup_table
from webinfer.dtypes import DType
from webinfer.graph.ir import Case, TensorType
from webinfer.ops import OPS
from webinfer.ops.activation import Activation

interpreter = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")

Build = tuple[str, list[Any], dict[str, Any], int]  # TFLite's name, inputs, options, version
ACTIVATION = {Activation.NONE: 0, Activation.RELU: 1, Activation.RELU_N1_TO_1: 2, Activation.RELU6: 3}
UNARY = {
    "abs": ("ABS", 2), "exp": ("EXP", 2), "gelu": ("GELU", 2), "hard_swish": ("HARD_SWISH", 1), "relu": ("RELU", 2),
    "relu6": ("RELU6", 2), "sigmoid": ("LOGISTIC", 2), "tanh": ("TANH", 2),
}  # fmt: skip
INT8_ONLY = ("abs", "exp")  # LiteRT has no uint8 kernel for these


def _quant(type: TensorType) -> Any:
    q = type.quant
    if q is None:
        return None
    return (
        (np.array(q.scales, np.float32), list(q.zero_points), q.axis)
        if q.axis is not None
        else (q.scales[0], q.zero_points[0])
    )


def _given(p: Problem, index: int) -> Any:
    """An input as the writer takes it: (shape, dtype, quant), or (array, quant) for a constant."""
    type = p.case.inputs[index]
    assert type is not None
    if index in p.case.constant:
        return (p.arrays[index], _quant(type))
    return (type.shape, type.dtype.value, _quant(type))


def _bias(p: Problem) -> Any:
    """The bias with its scale, x's times w's; without it LiteRT's delegate leaves the operator alone."""
    x, w = p.case.inputs[0], p.case.inputs[1]
    assert x is not None
    assert w is not None
    assert x.quant is not None
    assert w.quant is not None
    scales = np.float32(x.quant.scales[0]) * np.array(w.quant.scales, np.float32)
    return (p.arrays[2], (scales, [0] * len(scales), 0) if len(scales) > 1 else (float(scales[0]), 0))


def _window(p: Problem) -> dict[str, Any]:
    """Padding as TFLite says it, if it can: SAME (0) or VALID (1)."""
    a = p.case.attrs
    (oh, ow), (ih, iw) = p.node.output.type.shape[1:3], p.node.inputs[0].type.shape[1:3]
    window = getattr(a, "window", None) or p.node.inputs[1].type.shape[1:3]
    dilation = getattr(a, "dilation", (1, 1))
    same = []
    for n, o, s, k, d in zip((ih, iw), (oh, ow), a.stride, window, dilation, strict=True):
        total = max((o - 1) * s + (k - 1) * d + 1 - n, 0)
        same += [total // 2, total - total // 2]
    if any(a.pads) and (tuple(same) != a.pads or oh != -(-ih // a.stride[0]) or ow != -(-iw // a.stride[1])):
        pytest.skip(f"TFLite cannot say pads {a.pads}")
    return {
        "padding": 0 if any(a.pads) else 1,
        "stride_h": a.stride[0],
        "stride_w": a.stride[1],
        "fused_activation_function": ACTIVATION[a.activation],
    }


def _narrow(p: Problem) -> dict[str, Any]:
    """What asks for sums of 32 bits beside 16-bit data."""
    x, bias = p.case.inputs[0], p.case.inputs[2]
    is_narrow = x is not None and bias is not None and (x.dtype, bias.dtype) == (DType.INT16, DType.INT32)
    return {"quantized_bias_type": 2} if is_narrow else {}


def _conv(p: Problem) -> Build:
    a = p.case.attrs
    options = {**_window(p), **_narrow(p), "dilation_h_factor": a.dilation[0], "dilation_w_factor": a.dilation[1]}
    depthwise = p.node.op.name == "depthwise_conv2d"
    if depthwise:
        options["depth_multiplier"] = p.node.output.type.shape[3] // p.node.inputs[0].type.shape[3]
    return "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D", [_given(p, 0), _given(p, 1), _bias(p)], options, 3


def _conv_transpose(p: Problem) -> Build:
    a, h = p.case.attrs, p.node.output.type.shape[1]
    shape = np.array(p.node.output.type.shape, np.int32)
    if any(a.pads[i] > a.pads[i + 2] for i in (0, 1)):
        pytest.skip(f"TFLite cannot say pads {a.pads}")
    same = h == p.node.inputs[0].type.shape[1] * a.stride[0]
    options = {"padding": 0 if any(a.pads) or same else 1, "stride_h": a.stride[0], "stride_w": a.stride[1]}
    options |= _narrow(p)
    return "TRANSPOSE_CONV", [shape, _given(p, 1), _given(p, 0), _bias(p)], options, 3


def _matmul(p: Problem) -> Build:
    a, w = p.case.attrs, p.case.inputs[1]
    if len(p.case.inputs) < 3:
        return "BATCH_MATMUL", [_given(p, 0), _given(p, 1)], {"adj_x": a.transpose_a, "adj_y": a.transpose_b}, 4
    if w is not None and w.rank > 2:
        pytest.skip("TFLite has no bias behind batches")
    return (
        "FULLY_CONNECTED",
        [_given(p, 0), _given(p, 1), _bias(p)],
        {"fused_activation_function": ACTIVATION[p.case.attrs.activation]},
        4,
    )


def _pool(name: str) -> Callable[[Problem], Build]:
    def build(p: Problem) -> Build:
        options = {**_window(p), "filter_height": p.case.attrs.window[0], "filter_width": p.case.attrs.window[1]}
        return name, [_given(p, 0)], options, 2

    return build


def _reduce(name: str) -> Callable[[Problem], Build]:
    return lambda p: (
        name,
        [_given(p, 0), np.array(p.case.attrs.axes, np.int32)],
        {"keep_dims": p.case.attrs.keep_dims},
        2,
    )


def _resize(p: Problem) -> Build:
    a = p.case.attrs
    options = {"align_corners": a.align_corners, "half_pixel_centers": a.half_pixel_centers}
    name = "RESIZE_BILINEAR" if p.node.op.name == "resize_bilinear" else "RESIZE_NEAREST_NEIGHBOR"
    return name, [_given(p, 0), np.array(a.size, np.int32)], options, 3


def _binary(p: Problem) -> Build:
    return (
        p.node.op.name.upper(),
        [_given(p, 0), _given(p, 1)],
        {"fused_activation_function": ACTIVATION[p.case.attrs.activation]},
        2,
    )


BUILDS: dict[str, Callable[[Problem], Build]] = {
    "add": _binary, "mul": _binary, "sub": _binary,
    "average_pool2d": _pool("AVERAGE_POOL_2D"), "max_pool2d": _pool("MAX_POOL_2D"),
    "conv2d": _conv, "depthwise_conv2d": _conv, "conv_transpose2d": _conv_transpose, "matmul": _matmul,
    "leaky_relu": lambda p: ("LEAKY_RELU", [_given(p, 0)], {"alpha": p.case.attrs.a}, 2),
    "log_softmax": lambda p: ("LOG_SOFTMAX", [_given(p, 0)], {}, 2),
    "quantize": lambda p: ("QUANTIZE", [_given(p, 0)], {}, 2),
    "reduce_mean": _reduce("MEAN"), "reduce_sum": _reduce("SUM"),
    "resize_bilinear": _resize, "resize_nearest": _resize,
    "softmax": lambda p: ("SOFTMAX", [_given(p, 0)], {"beta": p.case.attrs.beta}, 2),
    **{name: (lambda p, n=name: (UNARY[n][0], [_given(p, 0)], {}, UNARY[n][1])) for name in UNARY},
}  # fmt: skip


def _cases() -> list[Any]:
    found = []
    for name in BUILDS:
        for case in OPS[name].cases:
            quantized = any(t is not None and t.quant is not None for t in case.inputs) or name == "quantize"
            unknown = name in INT8_ONLY and case.inputs[0] is not None and case.inputs[0].dtype is DType.UINT8
            floats = name == "matmul" and case.inputs[0] is not None and case.inputs[0].quant is None
            if quantized and not unknown and not floats and getattr(case.attrs, "groups", 1) == 1:
                found.append(pytest.param(name, case, id=f"{name}-{case.label}"))
    return found


def _judged(data: bytes, arrays: list[Array]) -> Array:
    judge = interpreter.Interpreter(model_content=data, num_threads=1)
    judge.allocate_tensors()
    for detail, array in zip(judge.get_input_details(), arrays, strict=True):
        judge.set_tensor(detail["index"], array)
    judge.invoke()
    result: Array = judge.get_tensor(judge.get_output_details()[0]["index"])
    return result


@pytest.mark.parametrize(("name", "case"), _cases())
def test_quantised_results_are_litert_s(name: str, case: Case) -> None:
    from tests.importers.tflite_writer import single

    p = problem(OPS[name], case)
    op, inputs, options, version = BUILDS[name](p)
    y = p.node.output.type
    data = single(op, inputs, [(y.shape, y.dtype.value, _quant(y))], version, **options)
    feeds = [a for i, a in enumerate(p.arrays) if a is not None and i not in case.constant]
    np.testing.assert_array_equal(p.want[0], _judged(data, feeds))


@pytest.mark.parametrize("name", [op.name for op in OPS.values() if any("int8" == c.label for c in op.cases)])
def test_lookup_tables_hold_what_the_reference_computes(name: str) -> None:
    for case in OPS[name].cases:
        x = case.inputs[0]
        if case.label not in ("int8", "uint8") or x is None or len(case.values.get(0, ())) != 257:
            continue
        p = problem(OPS[name], case)
        table = np.frombuffer(lookup_table(name, case.attrs, x, p.node.output.type), x.dtype.value)
        stored = p.arrays[0]
        assert stored is not None
        np.testing.assert_array_equal(table[stored.view(np.uint8)], p.want[0])
