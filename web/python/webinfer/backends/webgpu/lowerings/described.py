"""Operators that are described as kernels of expr/kernel.py: one lowering for all of them."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from webinfer.backends.webgpu.dispatch import (
    WORKGROUP,
    Dispatch,
    Lower,
    Source,
    Target,
    check_turns,
    groups_for,
    read,
    source_dtype,
    write,
)
from webinfer.codegen.elements import Element as Bits
from webinfer.codegen.elements import bits_of, element_of, place_of
from webinfer.codegen.kernels import ShaderForm, described
from webinfer.codegen.prelude import Param, f32, i32, i32x8, u32
from webinfer.codegen.templates import Variable
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.expr.formula import Formula
from webinfer.expr.kernel import Element, Kernel, Kind, Read, Real, Reduction, Size
from webinfer.graph.dims import whole
from webinfer.graph.ir import Node, Value
from webinfer.lowering.described import kernel_of
from webinfer.ops import OPS

MAX_FLOAT16 = 65504.0  # the largest finite float16
_ELEMENT = {Kind.BITS: bits_of, Kind.INDEX: place_of, Kind.NUMBER: element_of}


def element_bits(value: float, dtype: DType) -> int:
    """The bits of one element of this type as an unsigned number; the type holds the value."""
    number = float(value) if dtype.is_float else int(value)
    return int.from_bytes(struct.pack(f"<{dtype.letter}", number), "little")


def is_move(node: Node) -> bool:
    """Whether a node of a described operator moves bits of its inputs; own values are no larger than float16 holds."""
    if node.op.kernel is None:
        return False
    kernel = kernel_of(node)
    own = [abs(part.number) for part in kernel.parameters() if isinstance(part, Element)]
    return kernel.gives is Kind.BITS and all(number <= MAX_FLOAT16 or math.isinf(number) for number in own)


def lower(node: Node, target: Target) -> list[Dispatch]:
    """One dispatch of described.wgsl: by quads where whole ones lie together, else element by element.

    Raises:  UnsupportedOpError for sums of 64-bit numbers, of which only the low 32 bits would count
    """
    kernel, y = kernel_of(node), node.output
    if kernel.gives is Kind.NUMBER and y.type.dtype.itemsize == 8:
        raise UnsupportedOpError([f"{kernel.name} of {y.type.dtype}; only their low 32 bits would count"])
    return [dispatch(kernel, [v for v in node.inputs if v is not None], y, target)]


def dispatch(kernel: Kernel, inputs: Sequence[Source], y: Value, target: Target, why: str = "") -> Dispatch:
    """described.wgsl for a kernel, on the sources that its inputs are; `why` tells people more than how it goes.

    Raises:  UnsupportedOpError for loops that an adapter on the processor would not end
    """
    element = _ELEMENT[kernel.gives](y.type.dtype)
    quads, turns = _in_quads(kernel, element), _turns(kernel.value)
    check_turns(turns if quads else 4 * (turns + 1), target, f"{kernel.name} in loops")
    unsigned = {t.name for t, v in zip(kernel.inputs, inputs, strict=True) if source_dtype(v) in _UNSIGNED}
    form = ShaderForm(quads, element is Bits.BITS64, frozenset(unsigned))
    bindings = [read(t.name, v, _ELEMENT[t.kind](source_dtype(v))) for t, v in zip(kernel.inputs, inputs, strict=True)]
    variables: dict[str, Variable] = {"workgroup": WORKGROUP, "op": described(kernel, form), "quads": quads}
    params = (*u32(count=y.type.size), *_params(kernel, y.type.dtype, quads))
    groups, how = groups_for(-(-y.type.size // 4), target), "four at a time" if quads else "element by element"
    bindings.append(write("y", y, element))
    return Dispatch("described", variables, tuple(bindings), params, groups, why or how, label=kernel.name)


def _turns(value: Formula) -> int:
    """How often the loops of one element turn, inner ones each time. What is used twice is computed once."""
    known = dict[int, int]()

    def of(part: Formula) -> int:
        if id(part) not in known:
            known[id(part)] = sum(map(of, part.parts))
            if isinstance(part, Reduction) and part.axis is not None:
                known[id(part)] = whole(part.axis.extent.value) * (1 + known[id(part)])
        return known[id(part)]

    return of(value)


_UNSIGNED = (DType.UINT32, DType.UINT64)


def _in_quads(kernel: Kernel, element: Bits) -> bool:
    """Whether rows can be taken four elements at a time; pairs of words can only be moved so.

    A single row ends in a whole quad, too: buffers have room for it.
    """
    plain = element is not Bits.BITS64 or isinstance(kernel.value, Read)
    one_row = all(axis.extent.value == 1 for axis in kernel.space[:-1]) and kernel.walks_as_it_lies()
    return plain and (one_row or kernel.space[-1].extent.value % 4 == 0) and kernel.moves_rows()


def _params(kernel: Kernel, dtype: DType, quads: bool) -> list[Param]:
    found: list[Param] = []
    for part in kernel.parameters():
        if isinstance(part, Element):
            bits = element_bits(part.number, dtype)
            found += u32(**{part.name: bits & 0xFFFFFFFF, f"{part.name}_high": bits >> 32})
        elif isinstance(part, Real):
            found += f32(**{part.name: part.value})
        elif not (isinstance(part, Size) and part.fixed):
            grouped = quads and part is kernel.space[-1].extent
            found += i32(**{part.name: -(-whole(part.value) // (4 if grouped else 1))})
    for table in kernel.tables:
        found += i32x8(**{table.name: table.values})
    return found


LOWERINGS: dict[str, Lower] = {name: lower for name, op in OPS.items() if op.kernel is not None}
