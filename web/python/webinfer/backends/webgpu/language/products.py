"""Products with weights in a file's blocks, and rows of a table of blocks."""

from __future__ import annotations

import enum

from webinfer.backends.webgpu.dispatch import (
    WORKGROUP,
    Binding,
    Dispatch,
    Source,
    Target,
    check_turns,
    groups_for,
    read,
    read_given,
    workgroup_reduction,
    workgroup_reduction_text,
    write,
)
from webinfer.codegen.elements import Element
from webinfer.codegen.prelude import Access, Slot, f32, u32
from webinfer.codegen.templates import Variable
from webinfer.graph.ir import Node, Value
from webinfer.ops.language import BlockType

_ROWS = 4  # of weights, that a workgroup multiplies with one row
_TILE = 32  # rows and columns that a workgroup computes of many rows
_MOST = 128  # invocations of a workgroup that multiplies one row


class Layout(enum.StrEnum):
    """The cases of _blocks.wgsl: how 32 weights lie."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    SMALL = "small"
    EIGHT = "eight"
    K = "k"
    SIX = "six"


_LAYOUTS = {
    BlockType.F32: Layout.FLOAT32, BlockType.F16: Layout.FLOAT16, BlockType.BF16: Layout.BFLOAT16,
    BlockType.Q8_0: Layout.EIGHT, BlockType.Q4_K: Layout.K, BlockType.Q5_K: Layout.K, BlockType.Q6_K: Layout.SIX,
}  # fmt: skip


def words(name: str, source: Source) -> Binding:
    """A binding that the shader reads one 32-bit word at a time."""
    element = Element.F32 if isinstance(source, Value) and source.type.dtype.is_float else Element.U32
    return Binding(Slot(name, element, Access.READ, single=True), source)


def block_variables(type: BlockType, paired: bool = False) -> dict[str, Variable]:
    """The variables of _blocks.wgsl."""
    return {
        "layout": _LAYOUTS.get(type, Layout.SMALL), "block_bytes": type.nbytes, "floats": type.is_float,
        "minimum": int(type.name.endswith("_1")), "fifth": int(type.name.startswith("Q5")),
        "aligned": type.is_float or type.nbytes % 4 == 0, "paired": paired,
    }  # fmt: skip


def block_matmul(node: Node, target: Target) -> list[Dispatch]:
    """block_product_row.wgsl for one row, else block_product.wgsl."""
    if node.required_input(0).type.shape[0] == 1:
        return [row_product(node, target)]
    x, w, y = node.required_input(0), node.required_input(1), node.output
    bias, residual, place = map(node.optional_input, (2, 3, 4))
    (rows, k), n, type = x.type.shape, w.type.shape[0], node.attrs.type
    check_turns(k * 3, target, f"a sum of {k} products in loops")
    variables: dict[str, Variable] = {
        **block_variables(type), "normed": False, "has_bias": bias is not None, "has_residual": residual is not None,
        "has_place": place is not None,
    }  # fmt: skip
    bindings = (
        read("x", x), words("w", w), *read_given(bias=bias, residual=residual, place=place), write("y", y, single=True)
    )  # fmt: skip
    params = u32(rows=rows, n=n, k=k, row_bytes=w.type.shape[1])
    groups = groups_for(-(-rows // _TILE) * -(-n // _TILE), target, 1)
    why = f"blocks of {type.name}, {_TILE} rows by {_TILE} columns"
    return [Dispatch("block_product", variables, bindings, params, groups, why)]


def row_product(
    node: Node, target: Target, norm: Node | None = None, up: Node | None = None, y: Value | None = None
) -> Dispatch:
    """block_product_row.wgsl: of the RMS norm's result that `norm` computes, and times what `up` makes of it.

    With `up` the result `y` is that of the SwiGLU behind both.
    """
    x, w, type = (norm or node).required_input(0), node.required_input(1), node.attrs.type
    bias, residual, place = map(node.optional_input, (2, 3, 4))
    n, row_bytes = w.type.shape
    k, rows = x.type.shape[1], _ROWS // 2 if up else _ROWS
    workgroup = min(_MOST, max(32, 1 << (k // 32 - 1).bit_length()))
    check_turns(-(-k // 32 // workgroup) * 80 + k // 4 // workgroup, target, f"a sum of {k} products in loops")
    variables: dict[str, Variable] = {
        **block_variables(type, up is not None), **workgroup_reduction(target), "workgroup": workgroup, "rows": rows,
        "normed": norm is not None, "has_bias": bias is not None, "has_residual": residual is not None,
        "has_place": place is not None,
    }  # fmt: skip
    bindings = (
        read("x", x), words("w", w), *([words("up", up.required_input(1))] if up else ()),
        *read_given(scale=norm.optional_input(1) if norm else None, bias=bias, residual=residual, place=place),
        write("y", y or node.output, single=True),
    )  # fmt: skip
    params = (*u32(n=n, k=k, row_bytes=row_bytes), *(f32(epsilon=norm.attrs.epsilon) if norm else ()))
    parts = [f"blocks of {type.name}", workgroup_reduction_text(target)]
    parts += ["of what is normed on the way"] * (norm is not None) + ["SwiGLU"] * (up is not None)
    return Dispatch(
        "block_product_row", variables, bindings, params, groups_for(-(-n // rows), target, 1), ", ".join(parts)
    )


def block_rows(node: Node, target: Target) -> list[Dispatch]:
    """block_rows.wgsl: an invocation a block."""
    table, ids, y = node.required_input(0), node.required_input(1), node.output
    count, k = y.type.size, y.type.shape[1]
    variables: dict[str, Variable] = {**block_variables(node.attrs.type), "workgroup": WORKGROUP}
    params = u32(count=count, k=k, words=table.type.shape[0], row_bytes=table.type.shape[1])
    bindings = (words("w", table), read("ids", ids), write("y", y))
    why = f"blocks of {node.attrs.type.name}"
    return [Dispatch("block_rows", variables, bindings, params, groups_for(count // 32, target), why)]
