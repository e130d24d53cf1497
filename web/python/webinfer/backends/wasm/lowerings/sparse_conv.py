"""1x1 convolutions whose weights the model stores sparsely: zeros are skipped where that is faster."""

from __future__ import annotations

from webinfer.backends.wasm.builder import Builder
from webinfer.backends.wasm.lowerings.constants import expand_constant
from webinfer.graph.ir import Node
from webinfer.plan.blocks import Arguments

# Measured in V8 on an x86-64 of 2025, in units of what the dense tiles spend on one channel of one output.
OUTPUT_COST = 7.0  # an output, however few entries it has
ENTRY_COST = 1.25  # a weight that is not zero
BLOCK = 28  # pixels that the kernel holds in registers: 32 or 48 take 1.1 times as long (EPYC, 2026-11-28)
# Channels up to which a block stays in the first cache: all at once took 1.05 times as long (EPYC, 2026-11-28).
NEAR_CHANNELS = 256


def _stored_values(node: Node) -> int | None:
    """How many weights the model stores, if it stores them sparsely and its values are floats."""
    constant = node.required_input(1).constant
    if constant is None or constant.sparsity is None or not constant.stored.is_float:
        return None
    return len(constant.data) // constant.stored.itemsize


def skips_zeros(node: Node, builder: Builder) -> bool:
    """Whether a convolution is better run by its entries than by its dense weights."""
    w, bias, a = node.required_input(1), node.optional_input(2), node.attrs
    stored = _stored_values(node)
    one_tap = w.type.shape[1:3] == (1, 1) and a.stride == (1, 1) and not any(a.pads) and a.groups == 1
    if stored is None or not one_tap or (bias is not None and not builder.is_fixed(bias)):
        return False
    co, _, _, ci = w.type.shape
    return OUTPUT_COST * co + ENTRY_COST * stored < ci * co


def near_channels(channels: int) -> int:
    """How many channels the kernel brings together at a time, in rounds of as many."""
    rounds = -(-channels // NEAR_CHANNELS)
    return -(-channels // (4 * rounds)) * 4


def sparse_conv2d(node: Node, builder: Builder, epilogue: Arguments) -> None:
    """The convolution as steps; `epilogue` are the arguments that end every convolution."""
    w, bias = node.required_input(1), node.optional_input(2)
    n, oh, ow, co = node.output.type.shape
    pixels, ci, stored = n * oh * ow, w.type.shape[3], _stored_values(node) or 0
    near = near_channels(ci)
    rounds, padded = -(-ci // near), (co + 3) // 4 * 4
    packed, is_new = builder.packed(("sparse", w, bias), 4 * ((rounds + 1) * padded + 1 + 2 * stored))
    if is_new:
        dense = builder.scratch(4 * w.type.size)
        expand_constant(builder, w, dense)
        address = builder.optional_ref(bias)
        builder.prepare(
            "f32_pack_sparse_weights",
            w=dense, bias=address, y=packed, co=co, ci=ci, near=near, pixels=BLOCK, entries=stored,
        )  # fmt: skip
    blocks = -(-pixels // BLOCK)
    sums = padded if rounds > 1 else 4
    scratch = builder.scratch(4 * blocks * BLOCK * (near + sums))
    builder.step(
        "f32_sparse_conv2d_nhwc_28x4", epilogue,
        x=builder.ref(node.required_input(0)), w=packed, y=builder.ref(node.output), scratch=scratch,
        pixels=pixels, ci=ci, co=co, near=near, sums=sums, units=blocks,
    )  # fmt: skip
    builder.because(f"{100 * stored // w.type.size} % of the weights are not zero, {builder.isa} build")
