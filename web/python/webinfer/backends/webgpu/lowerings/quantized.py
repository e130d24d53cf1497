"""Integer arithmetic on quantised tensors, rounded as ai-edge-litert's default delegate rounds."""

from __future__ import annotations

from webinfer.backends.webgpu.dispatch import Binding, Dispatch, Target, read
from webinfer.backends.webgpu.lowerings.conversion import channel_reads, floats, ints, scale_literals
from webinfer.backends.webgpu.lowerings.described import dispatch
from webinfer.codegen.prelude import Param, i32
from webinfer.dtypes import DType, all_to_f32, round_to_f32
from webinfer.errors import UnsupportedOpError
from webinfer.expr import formula as f
from webinfer.expr.broadcast import broadcast_reads
from webinfer.expr.formula import Formula
from webinfer.expr.kernel import Axis, Kernel, Kind, Read, real, reals, shift_right, sizes, whole
from webinfer.graph.ir import Node, TensorType, Value
from webinfer.lowering.affine import scale_of, stored_bounds, sum_factors, zero_of
from webinfer.ops.activation import Activation


def centered(w: Value, target: Target) -> tuple[Value, Dispatch]:
    """Weights minus their zero points as int32, and the dispatch that makes them."""
    assert w.type.quant is not None
    _, zeros, inner = scale_literals(w.type.quant, w.type.shape)
    wide = Value(w.name, TensorType(w.type.shape, DType.INT32))
    x, (zero,), space = channel_reads(w.type, len(zeros), inner, "zero_points")
    kernel = Kernel("center_weights", (x.tensor, zero.tensor), space, whole(x) - zero, Kind.NUMBER)
    return wide, dispatch(kernel, (w, ints(zeros)), wide, target, "zero points off")


def product_epilogue(node: Node) -> tuple[list[Binding], tuple[Param, ...]]:
    """Bindings and parameters of _requantize.wgsl for an integer product of inputs 0 and 1 with bias 2.

    Raises:  UnsupportedOpError with residual or slope
    """
    x, w, y = node.required_input(0), node.required_input(1), node.output
    if any(v is not None for v in node.inputs[3:]):
        raise UnsupportedOpError([f"{node.op.name}: residual and slope on quantised tensors"])
    assert w.type.quant is not None
    sx, sy, channels = scale_of(x.type), scale_of(y.type), y.type.shape[-1]
    products = all_to_f32([sx * s for s in all_to_f32(w.type.quant.scales)])
    scales = all_to_f32([product / sy for product in products])
    if len(scales) == 1:
        scales *= channels
    low, high = stored_bounds(y.type, node.attrs.activation)
    bindings = [read("scale", floats(scales))]
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        bindings.append(read("bias", node.inputs[2]))
    return bindings, i32(x_zero=zero_of(x.type), y_zero=zero_of(y.type), low=low, high=high)


def _operands(a: Value, b: Value, y: Value) -> tuple[tuple[Axis, ...], tuple[Read, Read], tuple[Formula, Formula]]:
    """The space of y, both operands, and these without their zero points."""
    space, (p, q) = broadcast_reads(y.type.shape, {n: (v.type.shape, Kind.NUMBER) for n, v in (("a", a), ("b", b))})
    a_zero, b_zero = sizes(a_zero=zero_of(a.type), b_zero=zero_of(b.type))
    return space, (p, q), (p - a_zero, q - b_zero)


def _stored(value: Formula, y: Value, activation: Activation) -> Formula:
    """The stored integer of a value in y's units."""
    low, high = stored_bounds(y.type, activation)
    y_zero, least, most = sizes(y_zero=zero_of(y.type), low=low, high=high)
    return f.clamp(value + y_zero, least, most)


def quantized_sum(node: Node, target: Target) -> Dispatch:
    """a + b or a - b in fixed point with factors of 21 bits: (p*(a - a_zero) + q*(b - b_zero) + half) >> shift.

    Raises:  UnsupportedOpError for scales that are too far apart
    Source:  ai-edge-litert's default delegate
    """
    a, b, y = node.required_input(0), node.required_input(1), node.output
    factors = sum_factors(a.type, b.type, y.type)
    if factors is None:
        ratios = [round_to_f32(scale_of(v.type) / scale_of(y.type)) for v in (a, b)]
        raise UnsupportedOpError([f"{node.op.name}: scales {ratios} of the inputs over the result's are out of range"])
    p, q, bits = factors
    signed = q if node.op.name == "add" else -q
    a_factor, b_factor, half, shift = sizes(a_factor=p, b_factor=signed, half=1 << (bits - 1), shift=bits)
    space, reads, (x, z) = _operands(a, b, y)
    value = _stored(shift_right(a_factor * x + b_factor * z + half, shift), y, node.attrs.activation)
    kernel = Kernel("quantized_sum", (reads[0].tensor, reads[1].tensor), space, value, Kind.NUMBER)
    return dispatch(kernel, (a, b), y, target, "fixed point")


def quantized_product(node: Node, target: Target) -> Dispatch:
    """a * b in integers, rounded once: saturate(round_even((a - a_zero)*(b - b_zero)*scale) + y_zero)."""
    a, b, y = node.required_input(0), node.required_input(1), node.output
    (scale,) = reals(scale=round_to_f32(round_to_f32(scale_of(a.type) * scale_of(b.type)) / scale_of(y.type)))
    space, reads, (x, z) = _operands(a, b, y)
    value = _stored(whole(f.round_even(real(x * z) * scale)), y, node.attrs.activation)
    kernel = Kernel("quantized_product", (reads[0].tensor, reads[1].tensor), space, value, Kind.NUMBER)
    return dispatch(kernel, (a, b), y, target, "integers")
