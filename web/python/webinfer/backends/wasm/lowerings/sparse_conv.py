"""1x1 convolutions whose weights the model stores sparsely: zeros are skipped where that is faster."""

from __future__ import annotations

from webinfer.backends.wasm.builder import Builder
from webinfer.backends.wasm.lowerings.cast import present
from webinfer.backends.wasm.lowerings.constants import expand_constant
from webinfer.graph.ir import Node
from webinfer.plan.blocks import Argument

# Measured in V8 on an x86-64 of 2025, in units of what the dense tiles spend on one channel of one output.
ENTRY_COST = 1.45  # a weight that is not zero
OUTPUT_COST = 17.0  # an output, however few entries it has
BLOCKS = (28, 32)  # pixels that a kernel holds in registers: maps of 7, 14, 28, 56 and maps of 8, 16, 32


def _stored_values(node: Node) -> int | None:
    """How many weights the model stores, if it stores them sparsely and its values are floats."""
    constant = present(node.inputs[1]).constant
    if constant is None or constant.sparsity is None or not constant.stored.is_float:
        return None
    return len(constant.data) // constant.stored.itemsize


def skips_zeros(node: Node, builder: Builder) -> bool:
    """Whether a convolution is better run by its entries than by its dense weights."""
    w, bias, a = present(node.inputs[1]), node.inputs[2] if len(node.inputs) > 2 else None, node.attrs
    stored = _stored_values(node)
    one_tap = w.type.shape[1:3] == (1, 1) and a.stride == (1, 1) and not any(a.pads) and a.groups == 1
    if stored is None or not one_tap or (bias is not None and not builder.is_fixed(bias)):
        return False
    co, _, _, ci = w.type.shape
    return OUTPUT_COST * co + ENTRY_COST * stored < ci * co


def sparse_conv2d(node: Node, builder: Builder, tail: tuple[Argument, ...]) -> None:
    """The convolution as steps; `tail` are the arguments that end every convolution."""
    w, bias = present(node.inputs[1]), node.inputs[2] if len(node.inputs) > 2 else None
    n, oh, ow, co = node.output.type.shape
    pixels, ci, stored = n * oh * ow, w.type.shape[3], _stored_values(node) or 0
    block = min(BLOCKS, key=lambda p: -(-pixels // p) * p / p**0.1)  # little padding, then wide
    packed, is_new = builder.packed(("sparse", w, bias, block), 4 * (2 * (co + 3) + 1 + 2 * stored))
    if is_new:
        dense = builder.scratch(4 * w.type.size)
        expand_constant(builder, w, dense)
        address = builder.ref(bias) if bias is not None else 0
        builder.prepare("f32_pack_sparse_weights", dense, address, packed, co, ci, block)
    blocks = -(-pixels // block)
    scratch = builder.scratch(4 * blocks * block * (ci + 3))
    refs = (builder.ref(present(node.inputs[0])), packed, builder.ref(node.output), scratch)
    builder.step(f"f32_sparse_conv2d_nhwc_{block}x4", *refs, pixels, ci, co, *tail, units=blocks)
    builder.because(f"{100 * stored // w.type.size} % of the weights are not zero, {builder.isa} build")
