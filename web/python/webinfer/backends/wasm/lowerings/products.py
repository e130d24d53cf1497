"""What all float32 products share: packed weights, and what ends a product."""

from __future__ import annotations

import math

from webinfer.backends.wasm.builder import Builder
from webinfer.backends.wasm.lowerings.constants import expand_constant
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, Value
from webinfer.kernel_constants import (
    ACTIVATION_CLAMP,
    ACTIVATION_HARD_SWISH,
    ACTIVATION_PRELU,
    ACTIVATION_SIGMOID,
    ACTIVATION_SILU,
    ACTIVATION_TANH,
    VECTOR_LANES,
)
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.activation import Activation
from webinfer.plan.blocks import Arguments, Ref

ACTIVATIONS = {
    Activation.PRELU: ACTIVATION_PRELU,
    Activation.HARD_SWISH: ACTIVATION_HARD_SWISH,
    Activation.SIGMOID: ACTIVATION_SIGMOID,
    Activation.TANH: ACTIVATION_TANH,
    Activation.SILU: ACTIVATION_SILU,
}  # every other one is a clamp


@dataclass(frozen=True, slots=True)
class DenseWeights:
    """How a weight tensor is read by f32_pack_conv_weights. Strides in elements, sizes of one group."""

    groups: int
    co: int
    taps: int
    ci: int
    group_stride: int
    out_stride: int
    tap_stride: int
    inner: int = 1  # neighbouring outputs that are inner_stride apart
    inner_stride: int = 0
    ci_stride: int = 1


def require_float(node: Node) -> None:
    """Raises UnsupportedOpError unless data and weights are floats."""
    for value in node.inputs[:3]:
        if value is not None and not value.type.dtype.is_float:
            raise UnsupportedOpError([f"no kernel for {value.type} ({value.name!r}); only float32 and float16"])


def activation_args(activation: Activation) -> Arguments:
    """The arguments that apply an activation to sums: which one, and the bounds of a clamp."""
    lo, hi = activation.bounds or (-math.inf, math.inf)
    return {"act": ACTIVATIONS.get(activation, ACTIVATION_CLAMP), "lo": lo, "hi": hi}


def activation(node: Node, builder: Builder) -> Arguments:
    """The arguments that apply a node's activation, or what stands in its place."""
    return activation_args(node.attrs.activation) | builder.ends.get(node.output, {})


def epilogue(node: Node, builder: Builder) -> Arguments:
    """The arguments that end every convolution: residual, its channels, slope, activation, bounds."""
    residual, slope = node.optional_input(3), node.optional_input(4)
    return {
        "residual": builder.optional_ref(residual),
        "residual_c": residual.type.shape[3] if residual is not None else 0,
        "slope": builder.optional_ref(slope),
        **activation(node, builder),
    }


def pack_dense(
    node: Node, builder: Builder, weights: DenseWeights, columns: int, biases: int = 0, source: Value | None = None
) -> Ref:
    """Column panels of the node's weights; its bias has as many elements as its result has channels, or `biases`.

    `source`: what the weights are read from, if that is not the node's own input.
    """
    args, size, panels = column_panels(weights, columns, biases or node.output.type.shape[-1])
    return _pack(node, builder, "f32_pack_conv_weights", args, size, panels, source)


def column_panels(weights: DenseWeights, columns: int, biases: int) -> tuple[Arguments, int, int]:
    """What f32_pack_conv_weights needs besides tensors, the floats that it writes, and how many panels they are."""
    panels = weights.groups * -(-weights.co // columns)
    args: Arguments = {
        "co": weights.co, "taps": weights.taps, "ci": weights.ci, "nr": columns, "group_stride": weights.group_stride,
        "out_stride": weights.out_stride, "inner": weights.inner, "inner_stride": weights.inner_stride,
        "tap_stride": weights.tap_stride, "ci_stride": weights.ci_stride, "bias_count": biases,
    }  # fmt: skip
    return args, panels * columns * (1 + weights.taps * weights.ci), panels


def pack_depthwise(node: Node, builder: Builder, taps: int, tap_stride: int, channel_stride: int) -> Ref:
    """Blocks of channels of the node's weights, one filter a channel."""
    c = node.output.type.shape[3]
    blocks = -(-c // VECTOR_LANES)
    args: Arguments = {"c": c, "taps": taps, "tap_stride": tap_stride, "channel_stride": channel_stride}
    return _pack(node, builder, "f32_pack_depthwise_weights", args, blocks * VECTOR_LANES * (1 + taps), blocks)


def _pack(
    node: Node, builder: Builder, kernel: str, args: Arguments, size: int, units: int, source: Value | None = None
) -> Ref:
    """The node's weights and bias in a kernel's layout: packed at load, or every time if they can change."""
    w, bias = source or node.required_input(1), node.optional_input(2)
    fixed = builder.is_fixed(w) and (bias is None or builder.is_fixed(bias))
    key = (kernel, w, bias, *args.values())
    target, is_new = builder.packed(key, 4 * size) if fixed else (builder.scratch(4 * size), True)
    if is_new:
        place, stored_f16 = _stored(builder, w, fixed)
        put = builder.prepare if fixed else builder.step
        put(kernel, args, w=place, bias=builder.optional_ref(bias), y=target, stored_f16=stored_f16, units=units)
    return target


def _stored(builder: Builder, value: Value, fixed: bool) -> tuple[Ref, int]:
    """Where a pack kernel reads weights, and whether they lie there as float16."""
    constant = value.constant
    if constant is None or not fixed:
        return builder.ref(value), 0
    if constant.sparsity is None:
        return builder.weights(value), int(constant.stored is DType.FLOAT16)
    dense = builder.scratch(4 * value.type.size)
    expand_constant(builder, value, dense)
    return dense, 0
