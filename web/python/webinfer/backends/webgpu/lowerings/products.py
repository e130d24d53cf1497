"""What convolutions and matrix products share: epilogues, packed weights, where results are stored."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field

from webinfer.backends.webgpu.dispatch import (
    WORKGROUP,
    Binding,
    Derived,
    Dispatch,
    Source,
    Stored,
    Target,
    groups_for,
    joining,
    joining_text,
    operand,
    present,
    read,
    source_dtype,
    write,
)
from webinfer.backends.webgpu.lowerings.conversion import WIDE, cast_dispatch, is_quantized, plain_cast, zero_of
from webinfer.backends.webgpu.lowerings.movement import copy_dispatch
from webinfer.backends.webgpu.lowerings.quantized import centered, product_epilogue
from webinfer.backends.webgpu.lowerings.variants import gemvs, is_gemv, splits_sum
from webinfer.codegen.elements import Element
from webinfer.codegen.prelude import Param, i32, u32
from webinfer.codegen.templates import Variable
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, TensorType, Value
from webinfer.ops.strides import StridedCopy


class Residual(enum.StrEnum):
    """How the epilogue reads its residual."""

    NONE = "none"
    QUADS = "quads"
    ELEMENTS = "elements"
    POOLED = "pooled"  # the largest of a window, by `_pooled_residual`


@dataclass(slots=True)
class Product:
    """A sum of products on its way: shader variables, extra bindings, parameters, dispatches around it.

    `w` are the weights as the kernel computes with them: their own, as the file stores them, or centred int32 ones.
    """

    w: Source
    variables: dict[str, Variable]
    bindings: list[Binding]
    params: tuple[Param, ...]
    before: list[Dispatch] = field(default_factory=list)


def product(node: Node, target: Target, *, halves: bool = False) -> Product:
    """The epilogue of a node with inputs x, w, bias, residual, slope, and its weights.

    With `halves` the kernel uses a weight so often that it may well be widened from float16 when it is read.

    Raises:  UnsupportedOpError for mixtures of real and quantised operands
    """
    x, w, y = operand(node, 0), operand(node, 1), node.output
    kinds = {is_quantized(v) for v in (x, w, y)}
    if len(kinds) > 1 or x.type.dtype.is_float is is_quantized(x):
        raise UnsupportedOpError([f"{node.op.name} of {x.type} and {w.type} into {y.type}"])
    has_bias = present(node, 2) is not None
    variables: dict[str, Variable] = {
        "has_bias": has_bias, "residual": Residual.NONE, "activation": node.attrs.activation,
        "quantized": is_quantized(x),
    }  # fmt: skip
    if is_quantized(x):
        extras, numbers = product_epilogue(node)
        wide, dispatch = centered(w, target)
        return Product(wide, variables, extras, numbers, [dispatch])
    values = (("bias", present(node, 2)), ("residual", present(node, 3)), ("slope", present(node, 4)))
    bindings = [read(name, value) for name, value in values if value is not None]
    residual = present(node, 3)
    params: tuple[Param, ...] = ()
    if residual is not None:
        channels = residual.type.shape[-1]
        variables["residual"] = Residual.ELEMENTS if channels % 4 else Residual.QUADS
        params = u32(residual_c=channels)
    return Product(float_weights(w, target) if halves else w, variables, bindings, params)


def float_weights(w: Value, target: Target) -> Source:
    """Weights that the file stores as float16 stay so: half the memory, the same results.

    Not on software adapters, whose memory is no bottleneck.
    """
    constant = w.constant
    if target.software or constant is None or (constant.stored, w.type.dtype) != (DType.FLOAT16, DType.FLOAT32):
        return w
    if constant.sparsity is None:
        return Stored(w)

    def make(derived: Derived) -> Sequence[Dispatch]:
        return [plain_cast(w, derived, w.type.size, target)]

    return Derived(("float16", w), w.type.shape, make, DType.FLOAT16)


def destination(y: Value, target: Target, *, single: bool) -> tuple[Binding, list[Dispatch]]:
    """Where a kernel stores y, one by one if `single`, and what is left to do then.

    Types that share words are stored as 32-bit values first.
    """
    dtype = y.type.dtype
    if not single or dtype not in WIDE:
        return write("y", y, single=single), []
    wide = Value(y.name, TensorType(y.type.shape, WIDE[dtype]))
    return write("y", wide, single=True), [cast_dispatch(wide, y, target)]


def packed_columns(w: Source, copy: StridedCopy, shape: tuple[int, ...], key: object, target: Target) -> Derived:
    """Weights with output channels innermost, four by four, zeros behind the last; once per source and key."""

    def make(derived: Derived) -> Sequence[Dispatch]:
        return [copy_dispatch(w, derived, copy, target, fill=0)]

    source = w.key if isinstance(w, Derived) else w
    return Derived(("columns", source, key), shape, make, source_dtype(w))


PACKED_DOT = "packed_4x8_integer_dot_product"


def packed_product(node: Node, shape: tuple[int, int, int], target: Target) -> Dispatch | None:
    """An 8-bit product x [rows, CI] by w [CO, CI] in words of four channels, or None where that does not fit.

    `shape` is (rows, CI, CO).
    """
    x, w, y = operand(node, 0), operand(node, 1), node.output
    rows, ci, co = shape
    zeros = set(w.type.quant.zero_points or (0,)) if w.type.quant is not None else set()
    bytes_only = all(v.type.dtype.itemsize == 1 and is_quantized(v) for v in (x, w, y))
    if not bytes_only or len(zeros) != 1 or ci % 4 or co % 4 or PACKED_DOT not in target.features:
        return None
    extras, numbers = product_epilogue(node)
    x_turn, w_turn = (128 if v.type.dtype is DType.UINT8 else 0 for v in (x, w))
    w_zero = zeros.pop() - w_turn
    rest = tuple(p for p in numbers if p.name != "x_zero")
    params = (*u32(pixels=rows, ci4=ci // 4, co4=co // 4), *i32(w_zero=w_zero, x_zero=zero_of(x) - x_turn), *rest)
    variables: dict[str, Variable] = {
        "workgroup": WORKGROUP, "has_bias": present(node, 2) is not None, "shifted": w_zero != 0,
        "flip_x": 0x80808080 if x_turn else 0, "flip_w": 0x80808080 if w_turn else 0,
    }  # fmt: skip
    split = splits_sum(rows, co // 4, ci // 4, target)
    if split and rows == 1 and is_gemv(rows, ci // 4, co):
        bindings = (read("x", x, Element.U32), read("w", w, Element.U32), *extras, write("y", y))
        gemv = gemvs(rows, ci // 4, target)[0]
        variables |= joining(target) | {"workgroup": gemv.workgroup}
        why = f"{gemv.workgroup} share each sum, {joining_text(target)}"
        groups = groups_for(rows * (co // 4), target, 1)
        return Dispatch("conv2d_1x1_packed_gemv", variables, bindings, params, groups, why)
    copy = StridedCopy(0, (ci // 4, co), 0, (1, ci // 4), 0, (co, 1))

    def make(derived: Derived) -> Sequence[Dispatch]:
        return [copy_dispatch(w, derived, copy, target, fill=0, bits=Element.BITS32)]

    weights = Derived(("words", w), (ci // 4, co), make, DType.UINT32)
    bindings = (read("x", x, Element.U32), read("w", weights), *extras, write("y", y))
    if split:
        del variables["workgroup"]
        groups = groups_for(-(-rows // 4) * -(-co // 32), target, 1)
        return Dispatch("conv2d_1x1_packed_split_k", variables, bindings, params, groups, "eight share a sum")
    groups = groups_for(-(-rows // 4) * (co // 4), target)
    return Dispatch("conv2d_1x1_packed_4x4", variables, bindings, params, groups, "four channels a word")
