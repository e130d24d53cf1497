"""Operators that move elements: strided copies, concatenation."""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.backends.webgpu.dispatch import (
    WORKGROUP,
    Binding,
    Dispatch,
    Source,
    Target,
    groups_for,
    read,
    source_dtype,
    update,
    write,
)
from webinfer.codegen.elements import Element, bits_of
from webinfer.codegen.prelude import DIMS, Param, i32, i32x8, u32, u32x8
from webinfer.codegen.templates import Variable
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, Value
from webinfer.ops.movement import strided_copies
from webinfer.ops.strides import StridedCopy, row_major

# Of a concatenation in one dispatch, by whether the GPU is software. WebGPU promises eight storage buffers, one is the
# result; with 4 parts a dispatch six take an H100 1.5 times as long, and Mesa on a processor 0.7 (2026-11-28).
MOST_PARTS = {False: 7, True: 4}


def _source_size(source: Source) -> int:
    shape = source.type.shape if hasattr(source, "type") else source.shape  # type: ignore[union-attr]
    size = 1
    for n in shape:
        size *= n
    return size


def _by_target(copy: StridedCopy) -> list[tuple[int, int, int]]:
    """(size, source stride, target stride), outermost of the target first."""
    dims = zip(copy.shape, copy.source_strides, copy.target_strides, strict=True)
    return sorted(dims, key=lambda dim: -dim[2]) or [(1, 1, 1)]


def _in_quads(copy: StridedCopy, dims: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int]] | None:
    """The dimensions counted in quads, or None if quads would be torn."""
    *outer, (size, source, target) = dims
    aligned = all(s % 4 == 0 and t % 4 == 0 for _, s, t in outer)
    if (source, target) != (1, 1) or size % 4 or copy.source_offset % 4 or copy.target_offset % 4 or not aligned:
        return None
    return [*((n, s // 4, t // 4) for n, s, t in outer), (size // 4, 1, 1)]


def copy_dispatch(
    x: Source, y: Source, copy: StridedCopy, target: Target, zeros: bool = False, bits: Element | None = None
) -> Dispatch:
    """One strided copy: strided_copy_vec4.wgsl where whole quads move, else strided_copy.wgsl.

    `zeros` says that the rest of y holds zeros; else it stays as it is. `bits` moves other elements than those
    of x's type (words of four bytes).

    Raises:  UnsupportedOpError for a copy over more than 8 dimensions
    """
    dims = _by_target(copy)
    if len(dims) > DIMS:
        raise UnsupportedOpError([f"a copy over {len(dims)} dimensions; webgpu copies have at most {DIMS}"])
    bits = bits or bits_of(source_dtype(x))
    quads = _in_quads(copy, dims)
    size = _source_size(y)
    if quads is not None and (not zeros or _box(dims) == size):
        return _quad_copy(read("x", x, bits), write("y", y, bits), quads, copy, target)
    last = copy.target_offset + sum((n - 1) * t for n, _, t in dims)
    first_quad, end_quad = (copy.target_offset // 4, last // 4 + 1) if not zeros else (0, -(-size // 4))
    params = (
        *_dims(dims),
        *u32(quads=end_quad - first_quad, first_quad=first_quad, target_offset=copy.target_offset),
        *i32(source_offset=copy.source_offset),
    )
    y_binding = write("y", y, bits) if zeros else update("y", y, bits)
    variables = {"workgroup": WORKGROUP, "rank": len(dims), "update": not zeros}
    groups = groups_for(end_quad - first_quad, target)
    return Dispatch("strided_copy", variables, (read("x", x, bits), y_binding), params, groups, "element by element")


def _quad_copy(
    x: Binding, y: Binding, quads: Sequence[tuple[int, int, int]], copy: StridedCopy, target: Target
) -> Dispatch:
    count = _box(quads)
    params = (
        *_dims(quads),
        *u32(quads=count, target_offset=copy.target_offset // 4),
        *i32(source_offset=copy.source_offset // 4),
    )
    variables = {"workgroup": WORKGROUP, "rank": len(quads)}
    return Dispatch("strided_copy_vec4", variables, (x, y), params, groups_for(count, target), "four at a time")


def _box(dims: Sequence[tuple[int, int, int]]) -> int:
    count = 1
    for n, _, _ in dims:
        count *= n
    return count


def _dims(dims: Sequence[tuple[int, int, int]]) -> tuple[Param, ...]:
    size, source, target = zip(*dims, strict=True)
    return (*u32x8(size=size, target_stride=target), *i32x8(source_stride=source))


def strided(node: Node, target: Target) -> list[Dispatch]:
    """transpose, slice, expand, tile, depth_to_space and their kin: one strided copy that fills y."""
    x, y = node.required_input(0), node.output
    copies = strided_copies(node.op, [x.type], y.type, node.attrs)
    if copies is None:
        raise UnsupportedOpError([f"{node.op.name} is not a strided copy"])
    return [copy_dispatch(x, y, copy, target, True) for copy in copies]


def concat(node: Node, target: Target) -> list[Dispatch]:
    """A strided copy for each input that does not already lie in the result."""
    sources = [node.required_input(i) for i in range(len(node.inputs))]
    copies = strided_copies(node.op, [v.type for v in sources], node.output.type, node.attrs) or []
    return [copy_dispatch(sources[copy.source], node.output, copy, target) for copy in copies]


def append(node: Node, place: Value, target: Target) -> list[Dispatch]:
    """The copies of two inputs, the second one behind the first, to a place that has room behind both.

    Raises:  AskedAboutSpareError where rows are not made of quads
    """
    sources, axis, found, first = [node.required_input(i) for i in range(2)], node.attrs.axis, list[Dispatch](), 0
    strides = row_major(place.type.shape)
    for source in sources:
        shape = source.type.shape
        copy = StridedCopy(0, shape, 0, row_major(shape), first * strides[axis], strides)
        found.append(copy_dispatch(source, place, copy, target))
        first += shape[axis]
    return found


def concat_parts(node: Node, inputs: Sequence[int], target: Target) -> list[Dispatch]:
    """The named inputs of a concatenation moved together, MOST_PARTS a dispatch; none where each needs its own copy."""
    y, axis, starts, bits = node.output, node.attrs.axis, [0], bits_of(node.output.type.dtype)
    inner = math.prod(y.type.shape[axis + 1 :])
    for i in range(len(node.inputs)):
        starts.append(starts[-1] + node.required_input(i).type.shape[axis] * inner)
    quads = all(start % 4 == 0 for start in starts)
    if len(inputs) < 2 or not (quads or bits is Element.BITS32):
        return []
    unit, rows, found = 4 if quads else 1, math.prod(y.type.shape[:axis]), []
    most = MOST_PARTS[target.software]
    for chunk in (inputs[at : at + most] for at in range(0, len(inputs), most)):
        sizes = [(starts[i + 1] - starts[i]) // unit for i in chunk]
        numbers = {f"size{n}": size for n, size in enumerate(sizes)}
        numbers |= {f"at{n}": starts[i] // unit for n, i in enumerate(chunk)}
        units = rows * sum(sizes)
        params = u32(units=units, width=sum(sizes), row=starts[-1] // unit, count=y.type.size, **numbers)
        variables: dict[str, Variable] = {"workgroup": WORKGROUP, "quads": quads, "parts": len(chunk)}
        parts = [read(f"x{n}", node.required_input(i), bits) for n, i in enumerate(chunk)]
        bindings = (*parts, write("y", y, bits, single=not quads))
        why = f"{len(chunk)} parts, {'four elements' if quads else 'one'} at a time"
        found.append(Dispatch("concat_parts", variables, bindings, params, groups_for(units, target), why))
    return found


def reshape(node: Node, target: Target) -> list[Dispatch]:
    """A plain copy, which the schedule drops where the result shares its input's bytes."""
    size = node.output.type.size
    return [copy_dispatch(node.required_input(0), node.output, StridedCopy(0, (size,), 0, (1,), 0, (1,)), target, True)]
