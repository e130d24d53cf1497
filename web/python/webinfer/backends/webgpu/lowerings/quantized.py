"""Integer arithmetic on quantised tensors, rounded as ai-edge-litert's default delegate rounds."""

from __future__ import annotations

from webinfer.backends.webgpu.dispatch import WORKGROUP, Binding, Dispatch, Target, groups_for, read, write
from webinfer.backends.webgpu.lowerings.conversion import floats, ints, scale_literals
from webinfer.backends.webgpu.lowerings.geometry import merged
from webinfer.codegen.prelude import Param, f32, i32, u32, u32x8
from webinfer.dtypes import DType, round_to_f32
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, TensorType, Value
from webinfer.lowering.affine import scale_of, stored_bounds, sum_factors, zero_of


def centered(w: Value, target: Target) -> tuple[Value, Dispatch]:
    """Weights minus their zero points as int32, and the dispatch of center_weights.wgsl that makes them."""
    assert w.type.quant is not None
    _, zeros, inner = scale_literals(w.type.quant, w.type.shape)
    wide = Value(w.name, TensorType(w.type.shape, DType.INT32))
    bindings = (read("x", w), read("zero_points", ints(zeros)), write("y", wide))
    params = u32(count=w.type.size, channels=len(zeros), inner=inner)
    groups = groups_for(-(-w.type.size // 4), target)
    return wide, Dispatch("center_weights", {"workgroup": WORKGROUP}, bindings, params, groups, "zero points off")


def product_epilogue(node: Node) -> tuple[list[Binding], tuple[Param, ...]]:
    """Bindings and parameters of _requantize.wgsl for an integer product of inputs 0 and 1 with bias 2.

    Raises:  UnsupportedOpError with residual or slope
    """
    x, w, y = node.required_input(0), node.required_input(1), node.output
    if any(v is not None for v in node.inputs[3:]):
        raise UnsupportedOpError([f"{node.op.name}: residual and slope on quantised tensors"])
    assert w.type.quant is not None
    sx, sy, channels = scale_of(x.type), scale_of(y.type), y.type.shape[-1]
    scales = [round_to_f32(round_to_f32(sx * round_to_f32(s)) / sy) for s in w.type.quant.scales]
    if len(scales) == 1:
        scales *= channels
    low, high = stored_bounds(y.type, node.attrs.activation)
    bindings = [read("scale", floats(scales))]
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        bindings.append(read("bias", node.inputs[2]))
    return bindings, i32(x_zero=zero_of(x.type), y_zero=zero_of(y.type), low=low, high=high)


def quantized_sum(node: Node, target: Target) -> Dispatch:
    """quantized_sum.wgsl: a + b or a - b in fixed point with factors of 21 bits.

    Raises:  UnsupportedOpError for scales that are too far apart
    """
    a, b, y = node.required_input(0), node.required_input(1), node.output
    factors = sum_factors(a.type, b.type, y.type)
    if factors is None:
        ratios = [round_to_f32(scale_of(v.type) / scale_of(y.type)) for v in (a, b)]
        raise UnsupportedOpError([f"{node.op.name}: scales {ratios} of the inputs over the result's are out of range"])
    p, q, shift = factors
    low, high = stored_bounds(y.type, node.attrs.activation)
    sizes, (a_stride, b_stride) = merged(y.type.shape, a.type.shape, b.type.shape)
    params = (
        *u32x8(size=sizes, a_stride=a_stride, b_stride=b_stride),
        *u32(count=y.type.size, shift=shift),
        *i32(a_factor=p, b_factor=q if node.op.name == "add" else -q, half=1 << (shift - 1)),
        *i32(a_zero=zero_of(a.type), b_zero=zero_of(b.type), y_zero=zero_of(y.type), low=low, high=high),
    )
    bindings = (read("a", a), read("b", b), write("y", y))
    groups = groups_for(-(-y.type.size // 4), target)
    return Dispatch(
        "quantized_sum", {"workgroup": WORKGROUP, "rank": len(sizes)}, bindings, params, groups, "fixed point"
    )


def quantized_product(node: Node, target: Target) -> Dispatch:
    """quantized_product.wgsl: a * b in integers, rounded once."""
    a, b, y = node.required_input(0), node.required_input(1), node.output
    low, high = stored_bounds(y.type, node.attrs.activation)
    sizes, (a_stride, b_stride) = merged(y.type.shape, a.type.shape, b.type.shape)
    params = (
        *u32x8(size=sizes, a_stride=a_stride, b_stride=b_stride),
        *u32(count=y.type.size),
        *f32(scale=round_to_f32(round_to_f32(scale_of(a.type) * scale_of(b.type)) / scale_of(y.type))),
        *i32(a_zero=zero_of(a.type), b_zero=zero_of(b.type), y_zero=zero_of(y.type), low=low, high=high),
    )
    bindings = (read("a", a), read("b", b), write("y", y))
    groups = groups_for(-(-y.type.size // 4), target)
    return Dispatch(
        "quantized_product", {"workgroup": WORKGROUP, "rank": len(sizes)}, bindings, params, groups, "integers"
    )
