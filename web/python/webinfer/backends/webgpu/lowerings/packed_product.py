"""8-bit products whose operands are read as 32-bit words of four channels."""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.backends.webgpu.dispatch import (
    WORKGROUP,
    Derived,
    Dispatch,
    Target,
    groups_for,
    read,
    workgroup_reduction,
    workgroup_reduction_text,
    write,
)
from webinfer.backends.webgpu.lowerings.conversion import is_quantized
from webinfer.backends.webgpu.lowerings.movement import copy_dispatch
from webinfer.backends.webgpu.lowerings.quantized import product_epilogue
from webinfer.backends.webgpu.lowerings.variants import gemvs, is_gemv, splits_sum
from webinfer.codegen.elements import Element
from webinfer.codegen.prelude import i32, u32
from webinfer.codegen.templates import Variable
from webinfer.dtypes import DType
from webinfer.graph.ir import Node
from webinfer.lowering.affine import zero_of
from webinfer.ops.strides import StridedCopy

PACKED_DOT = "packed_4x8_integer_dot_product"


def packed_product(node: Node, shape: tuple[int, int, int], target: Target) -> Dispatch | None:
    """conv2d_1x1_packed_gemv, _split_k or _4x4: an 8-bit product by packed dot products; None where that does not fit.

    It fits 8-bit operands whose channels come in fours, one zero point for all weights, and a device that has the dot
    product. The first is for one row with a long sum, the second for few results, the third for the rest.

    Shapes:  x [rows, CI], w [CO, CI] -> y [rows, CO]; `shape` is (rows, CI, CO)
    """
    x, w, y = node.required_input(0), node.required_input(1), node.output
    rows, ci, co = shape
    zeros = set(w.type.quant.zero_points or (0,)) if w.type.quant is not None else set()
    bytes_only = all(v.type.dtype.itemsize == 1 and is_quantized(v) for v in (x, w, y))
    if not bytes_only or len(zeros) != 1 or ci % 4 or co % 4 or PACKED_DOT not in target.features:
        return None
    extras, numbers = product_epilogue(node)
    x_turn, w_turn = (128 if v.type.dtype is DType.UINT8 else 0 for v in (x, w))
    w_zero = zeros.pop() - w_turn
    rest = tuple(p for p in numbers if p.name != "x_zero")
    params = (*u32(pixels=rows, ci4=ci // 4, co4=co // 4), *i32(w_zero=w_zero, x_zero=zero_of(x.type) - x_turn), *rest)
    variables: dict[str, Variable] = {
        "workgroup": WORKGROUP, "has_bias": node.optional_input(2) is not None, "shifted": w_zero != 0,
        "flip_x": 0x80808080 if x_turn else 0, "flip_w": 0x80808080 if w_turn else 0,
    }  # fmt: skip
    split = splits_sum(rows, co // 4, ci // 4, target)
    if split and rows == 1 and is_gemv(rows, ci // 4, co):
        bindings = (read("x", x, Element.U32), read("w", w, Element.U32), *extras, write("y", y))
        gemv = gemvs(rows, ci // 4, target)[0]
        variables |= workgroup_reduction(target) | {"workgroup": gemv.workgroup}
        why = f"{gemv.workgroup} share each sum, {workgroup_reduction_text(target)}"
        groups = groups_for(rows * (co // 4), target, 1)
        return Dispatch("conv2d_1x1_packed_gemv", variables, bindings, params, groups, why)
    copy = StridedCopy(0, (ci // 4, co), 0, (1, ci // 4), 0, (co, 1))

    def make(derived: Derived) -> Sequence[Dispatch]:
        return [copy_dispatch(w, derived, copy, target, zeros=True, bits=Element.BITS32)]

    weights = Derived(("words", w), (ci // 4, co), make, DType.UINT32)
    bindings = (read("x", x, Element.U32), read("w", weights), *extras, write("y", y))
    if split:
        del variables["workgroup"]
        groups = groups_for(-(-rows // 4) * -(-co // 32), target, 1)
        return Dispatch("conv2d_1x1_packed_split_k", variables, bindings, params, groups, "eight share a sum")
    groups = groups_for(-(-rows // 4) * (co // 4), target)
    return Dispatch("conv2d_1x1_packed_4x4", variables, bindings, params, groups, "four channels a word")
