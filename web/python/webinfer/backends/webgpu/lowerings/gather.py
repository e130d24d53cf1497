"""Reads and writes at positions that are tensors: gather and scatter in their forms."""

from __future__ import annotations

import enum
import math

from webinfer.backends.webgpu.dispatch import WORKGROUP, Binding, Dispatch, Target, groups_for, read, write
from webinfer.backends.webgpu.lowerings.geometry import split_at
from webinfer.codegen.elements import bits_of, place_of
from webinfer.codegen.prelude import u32, u32x8
from webinfer.codegen.templates import Variable
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, Value


class Positions(enum.StrEnum):
    """Whether positions may be negative, and so count from the end of the axis."""

    SIGNED = "signed"
    UNSIGNED = "unsigned"


def _positions(p: Value) -> Binding:
    return read("positions", p, place_of(p.type.dtype))


def _variables(positions: Value, **more: Variable) -> dict[str, Variable]:
    unsigned = positions.type.dtype in (DType.UINT32, DType.UINT64)
    return {"workgroup": WORKGROUP, "positions": Positions.UNSIGNED if unsigned else Positions.SIGNED, **more}


def gather(node: Node, target: Target) -> list[Dispatch]:
    """gather.wgsl, on the bits of the elements."""
    x, p, y, a = node.required_input(0), node.required_input(1), node.output, node.attrs
    b = a.batch_dims
    params = u32(
        count=y.type.size, outer=math.prod(x.type.shape[b : a.axis]), depth=x.type.shape[a.axis],
        inner=math.prod(x.type.shape[a.axis + 1 :]), picks=math.prod(p.type.shape[b:]),
    )  # fmt: skip
    bits = bits_of(x.type.dtype)
    bindings = (read("x", x, bits), _positions(p), write("y", y, bits))
    return [Dispatch("gather", _variables(p), bindings, params, groups_for(-(-y.type.size // 4), target))]


def gather_elements(node: Node, target: Target) -> list[Dispatch]:
    """gather_elements.wgsl, on the bits of the elements."""
    x, p, y = node.required_input(0), node.required_input(1), node.output
    _, depth, inner = split_at(x.type.shape, node.attrs.axis)
    params = u32(count=y.type.size, depth=depth, inner=inner, picks=p.type.shape[node.attrs.axis])
    bits = bits_of(x.type.dtype)
    bindings = (read("x", x, bits), _positions(p), write("y", y, bits))
    return [Dispatch("gather_elements", _variables(p), bindings, params, groups_for(-(-y.type.size // 4), target))]


def gather_nd(node: Node, target: Target) -> list[Dispatch]:
    """gather_nd.wgsl, on the bits of the elements."""
    x, p, y, b = node.required_input(0), node.required_input(1), node.output, node.attrs.batch_dims
    depth = p.type.shape[-1]
    params = (
        *u32x8(size=x.type.shape[b : b + depth]),
        *u32(count=y.type.size, inner=math.prod(x.type.shape[b + depth :]), picks=math.prod(p.type.shape[b:-1])),
    )
    bits = bits_of(x.type.dtype)
    bindings = (read("x", x, bits), _positions(p), write("y", y, bits))
    groups = groups_for(-(-y.type.size // 4), target)
    return [Dispatch("gather_nd", _variables(p, depth=depth), bindings, params, groups)]


def scatter_elements(node: Node, target: Target) -> list[Dispatch]:
    """scatter_elements.wgsl, on the bits of the elements."""
    x, p, u, y = node.required_input(0), node.required_input(1), node.required_input(2), node.output
    _, depth, inner = split_at(x.type.shape, node.attrs.axis)
    params = u32(count=y.type.size, depth=depth, inner=inner, picks=p.type.shape[node.attrs.axis])
    bits = bits_of(x.type.dtype)
    bindings = (
        read("x", x, bits),
        _positions(p),
        read("updates", u, bits),
        write("y", y, bits),
    )
    groups = groups_for(-(-y.type.size // 4), target)
    return [Dispatch("scatter_elements", _variables(p), bindings, params, groups)]


def scatter_nd(node: Node, target: Target) -> list[Dispatch]:
    """scatter_nd.wgsl: on the bits of the elements, or as numbers where updates are added."""
    x, p, u, y = node.required_input(0), node.required_input(1), node.required_input(2), node.output
    depth = p.type.shape[-1]
    inner = math.prod(x.type.shape[depth:])
    params = (
        *u32x8(size=x.type.shape[:depth]),
        *u32(count=y.type.size, inner=inner, picks=math.prod(p.type.shape[:-1])),
    )
    if node.attrs.add and x.type.dtype.itemsize == 8:
        raise UnsupportedOpError([f"sums of {x.type.dtype}; only their low 32 bits would count"])
    bits = None if node.attrs.add else bits_of(x.type.dtype)
    bindings = (
        read("x", x, bits),
        _positions(p),
        read("updates", u, bits),
        write("y", y, bits),
    )
    variables = _variables(p, depth=depth, add=node.attrs.add)
    return [Dispatch("scatter_nd", variables, bindings, params, groups_for(-(-y.type.size // 4), target))]
