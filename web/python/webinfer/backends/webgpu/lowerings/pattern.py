"""Patterns of positions: one-hot marks and triangles of matrices."""

from __future__ import annotations

from webinfer.backends.webgpu.dispatch import WORKGROUP, Dispatch, Target, groups_for, read, write
from webinfer.backends.webgpu.lowerings.geometry import split_at
from webinfer.backends.webgpu.lowerings.movement import element_bits
from webinfer.codegen.elements import Element, bits_of, place_of
from webinfer.codegen.prelude import i32, u32
from webinfer.codegen.templates import Variable
from webinfer.graph.ir import Node


def one_hot(node: Node, target: Target) -> list[Dispatch]:
    """one_hot.wgsl, on the bits of the two values."""
    x, y, a = node.required_input(0), node.output, node.attrs
    _, depth, inner = split_at(y.type.shape, a.axis)
    bits = bits_of(y.type.dtype)
    on, off = element_bits(a.on, y.type.dtype), element_bits(a.off, y.type.dtype)
    low = 0xFFFFFFFF
    params = (
        *u32(count=y.type.size, depth=depth, inner=inner, on=on & low, on_high=on >> 32),
        *u32(off=off & low, off_high=off >> 32),
    )
    variables: dict[str, Variable] = {"workgroup": WORKGROUP, "wide": bits is Element.BITS64}
    bindings = (read("x", x, place_of(x.type.dtype)), write("y", y, bits))
    return [Dispatch("one_hot", variables, bindings, params, groups_for(-(-y.type.size // 4), target))]


def triangular(node: Node, target: Target) -> list[Dispatch]:
    """triangular.wgsl, on the bits of the elements."""
    x, y, a = node.required_input(0), node.output, node.attrs
    bits = bits_of(x.type.dtype)
    params = (
        *u32(count=y.type.size, rows=x.type.shape[-2], columns=x.type.shape[-1]),
        *i32(diagonal=a.diagonal),
    )
    variables: dict[str, Variable] = {"workgroup": WORKGROUP, "upper": a.upper}
    bindings = (read("x", x, bits), write("y", y, bits))
    return [Dispatch("triangular", variables, bindings, params, groups_for(-(-y.type.size // 4), target))]
