"""Elementwise operators: one shader for each number of operands, around the formula of the operator's row."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence

from webinfer.backends.webgpu.dispatch import (
    WORKGROUP,
    Binding,
    Dispatch,
    Literal,
    Lower,
    Target,
    groups_for,
    read,
    write,
)
from webinfer.backends.webgpu.lowerings.conversion import (
    bits_dispatch,
    cast_dispatch,
    channel_reads,
    dequantize_dispatch,
    is_quantized,
    on_reals,
    quantize_dispatch,
    rescale_dispatch,
)
from webinfer.backends.webgpu.lowerings.described import dispatch
from webinfer.backends.webgpu.lowerings.geometry import merged
from webinfer.backends.webgpu.lowerings.quantized import quantized_product, quantized_sum
from webinfer.codegen.elements import Element, bits_of
from webinfer.codegen.formulas import FormulaName
from webinfer.codegen.lookup import lookup_table
from webinfer.codegen.prelude import Param, f32, i32, u32, u32x8
from webinfer.codegen.templates import Variable
from webinfer.dtypes import DType
from webinfer.errors import ShapeError, UnsupportedOpError
from webinfer.expr import formula as f
from webinfer.expr.kernel import Kernel, Kind, Tensor, sizes
from webinfer.graph.ir import Node, Value
from webinfer.ops.activation import Activation, integer_bounds
from webinfer.ops.elementwise import ROWS, BinaryAttrs, ElementwiseOp, UnaryAttrs
from webinfer.ops.registry import LARGEST

WORD = 2**32 - 1  # the largest word
WORD_RANGE = {False: (-(2.0**31), 2.0**31 - 1), True: (0.0, 2.0**32 - 1)}
UNSIGNED_WORDS = (DType.UINT32, DType.UINT64)


class ClassTest(enum.StrEnum):
    """What class_test.wgsl finds by the bits of a float."""

    IS_INFINITE = "is_infinite"
    IS_NAN = "is_nan"


class Access(enum.StrEnum):
    """How a binary step reads its inputs."""

    FLAT = "flat"
    ROW = "row"
    EACH = "each"


def _unsigned_as_signed(value: Value, op: str) -> Element | None:
    """neg and abs of uint32 in two's complement: WGSL has them only for i32."""
    return Element.I32 if op == "neg" and value.type.dtype is DType.UINT32 else None


def clamp_formula(bounds: tuple[float, float], dtype: DType) -> tuple[str, tuple[Param, ...]]:
    """Name and bounds of a clamp; bounds that cut nothing are left out: WGSL assumes finite numbers.

    Raises:  UnsupportedOpError if every float becomes an infinity
    """
    low, high = min(bounds), bounds[1]
    if dtype.is_float and math.inf in (low, -high):
        raise UnsupportedOpError([f"a clamp to {bounds[0]}..{high}, which leaves only an infinity"])
    smallest, largest = (-LARGEST, LARGEST) if dtype.is_float else WORD_RANGE[dtype in UNSIGNED_WORDS]
    has_low, has_high = low > smallest, high < largest
    if has_low and has_high:
        name = "clamp"
    else:
        name = "clamp_low" if has_low else "clamp_high" if has_high else "identity"
    low, high = max(min(low, largest), smallest), max(min(high, largest), smallest)
    if dtype.is_float:
        return name, f32(a=low, b=high)
    whole = {"a": math.ceil(low), "b": math.floor(high)}
    return name, u32(**whole) if dtype in UNSIGNED_WORDS else i32(**whole)


def _is_wide(*values: Value) -> bool:
    """Whether these are integers of two words."""
    return all(v.type.dtype.itemsize == 8 for v in values)


def _wide(node: Node, target: Target, *bindings: Binding, rank: int = 0, **strides: Sequence[int]) -> Dispatch:
    """Arithmetic on 64-bit integers in both their words."""
    x, y, row = node.required_input(0), node.output, ROWS[node.op.name]
    variables: dict[str, Variable] = {
        "workgroup": WORKGROUP, "op": FormulaName(row.name), "integer": True, "wide": True, "rank": rank,
        "binary": len(bindings) > 1, "signed": x.type.dtype is DType.INT64,
    }  # fmt: skip
    params = (*u32(count=y.type.size), *u32x8(**strides))
    result = write("y", y) if row.gives_truth else write("y", y, Element.BITS64)
    groups = groups_for(-(-y.type.size // 4), target)
    return Dispatch("elementwise_wide", variables, (*bindings, result), params, groups, "64 bits")


def _wide_clamp(node: Node, target: Target, bounds: tuple[float, float]) -> Dispatch:
    """A clamp of 64-bit integers in both their words."""
    x, y = node.required_input(0), node.output
    low, high = integer_bounds(min(bounds), bounds[1], *x.type.dtype.range)
    words = {
        "low": low & WORD, "low_high": (low >> 32) & WORD, "high": high & WORD, "high_high": (high >> 32) & WORD,
    }  # fmt: skip
    bindings = (read("x", x, Element.BITS64), write("y", y, Element.BITS64))
    variables: dict[str, Variable] = {"workgroup": WORKGROUP, "signed": x.type.dtype is DType.INT64}
    params = u32(count=y.type.size, **words)
    return Dispatch("clamp_wide", variables, bindings, params, groups_for(-(-y.type.size // 4), target), "64 bits")


def unary(node: Node, target: Target) -> list[Dispatch]:
    """One dispatch: the operator's formula, or its table of 256 results for 8-bit values."""
    x, y, a = node.required_input(0), node.output, node.attrs
    row, is_float = ROWS[node.op.name], x.type.dtype.is_float
    is_copy = row.leaves_integers and not is_float and (row.name == "identity" or not is_quantized(x))
    name = "identity" if is_copy else row.name
    if is_quantized(x) and is_quantized(y) and name != "identity":
        return [_lookup(node, target)]
    if not is_float and not (row.takes_integers or row.leaves_integers):
        raise UnsupportedOpError([f"{name} of {x.type.dtype}; it is defined for floats"])
    if _is_wide(x):
        bounds = (a.a, a.b) if name == "clamp" else (-math.inf, math.inf) if name == "identity" else row.bounds
        if bounds is not None:
            return [_wide_clamp(node, target, bounds)]
        return [_wide(node, target, read("x", x, Element.BITS64))]
    numbers = f32(a=a.a, b=a.b)
    element = _unsigned_as_signed(x, name)
    if name == "clamp" or (row.bounds is not None and x.type.dtype in UNSIGNED_WORDS):
        name, numbers = clamp_formula(row.bounds or (a.a, a.b), x.type.dtype)
    variables: dict[str, Variable] = {"workgroup": WORKGROUP, "op": FormulaName(name), "integer": not is_float}
    params = (*u32(count=y.type.size), *numbers)
    bindings = (read("x", x, element), write("y", y, element))
    return [Dispatch("elementwise_unary", variables, bindings, params, groups_for(-(-y.type.size // 4), target))]


def _lookup(node: Node, target: Target) -> Dispatch:
    """Any formula of 8-bit stored values: a table of 256 results."""
    x, y = node.required_input(0), node.output
    try:
        attrs = node.attrs if isinstance(node.attrs, UnaryAttrs) else UnaryAttrs()
        table = Literal(lookup_table(node.op.name, attrs, x.type, y.type), y.type.dtype)
    except ShapeError as error:
        raise UnsupportedOpError([str(error)]) from error
    stored, _, space = channel_reads(x.type, 1, 1)
    results = Tensor("results", sizes(bytes=256), Kind.NUMBER)
    kernel = Kernel("lookup", (stored.tensor, results), space, results[f.bit_and(stored, 255)], Kind.NUMBER)
    return dispatch(kernel, (x, table), y, target, "256 results")


def _access(sizes: Sequence[int], a: Sequence[int], b: Sequence[int]) -> Access:
    if len(sizes) == 1 and a[0] == b[0] == 1:
        return Access.FLAT
    aligned = sizes[-1] % 4 == 0 and all(s % 4 == 0 for s in (*a[:-1], *b[:-1]))
    return Access.ROW if aligned else Access.EACH


def binary(node: Node, target: Target) -> Sequence[Dispatch]:
    """Integer arithmetic for sums and products of quantised tensors, else the operator's formula on real numbers."""
    if all(is_quantized(v) for v in (*node.inputs[:2], node.output)):
        is_narrow = all(v.type.dtype.itemsize == 1 for v in node.inputs if v is not None)  # sums of 32 bits hold bytes
        if node.op.name in ("add", "sub") and is_narrow:
            return [quantized_sum(node, target)]
        if node.op.name == "mul":
            return [quantized_product(node, target)]
    return on_reals(_binary)(node, target)


def _binary(node: Node, target: Target) -> list[Dispatch]:
    a, b, y = node.required_input(0), node.required_input(1), node.output
    name, dtype = node.op.name, a.type.dtype
    if not dtype.is_float and not ROWS[name].takes_integers:
        raise UnsupportedOpError([f"{name} of {dtype}; it is defined for floats"])
    activation = node.attrs.activation
    if activation is not Activation.NONE and not dtype.is_float:
        raise UnsupportedOpError([f"{name} of {dtype} with activation {activation}"])
    sizes, (a_stride, b_stride) = merged(y.type.shape, a.type.shape, b.type.shape)
    if _is_wide(a, b):
        pair = (read("a", a, Element.BITS64), read("b", b, Element.BITS64))
        return [_wide(node, target, *pair, rank=len(sizes), size=sizes, a_stride=a_stride, b_stride=b_stride)]
    access = _access(sizes, a_stride, b_stride)
    variables: dict[str, Variable] = {
        "workgroup": WORKGROUP, "op": FormulaName(name), "rank": len(sizes), "access": access, "a_step": a_stride[-1],
        "b_step": b_stride[-1],
        "integer": not dtype.is_float, "activation": activation, "has_activation": activation is not Activation.NONE,
    }  # fmt: skip
    params = (*u32(count=y.type.size), *u32x8(size=sizes, a_stride=a_stride, b_stride=b_stride))
    groups = groups_for(-(-y.type.size // 4), target)
    return [
        Dispatch("elementwise_binary", variables, (read("a", a), read("b", b), write("y", y)), params, groups, access)
    ]


def cast(node: Node, target: Target) -> list[Dispatch]:
    """One dispatch: the conversion of NumPy, floats to integers by truncation and saturation."""
    return [cast_dispatch(node.required_input(0), node.output, target)]


def bitcast(node: Node, target: Target) -> list[Dispatch]:
    """One dispatch: the bits as another type."""
    return [bits_dispatch(node.required_input(0), node.output, target)]


def dequantize(node: Node, target: Target) -> list[Dispatch]:
    """One dispatch: real numbers of stored ones."""
    x, y = node.required_input(0), node.output
    if not is_quantized(x):
        return [cast_dispatch(x, y, target)]
    return [dequantize_dispatch(x, y, target)]


def quantize(node: Node, target: Target) -> list[Dispatch]:
    """One dispatch: stored numbers of real ones, or of stored ones with another scale."""
    x, y = node.required_input(0), node.output
    if not is_quantized(x):
        return [quantize_dispatch(x, y, target)]
    narrow = max(x.type.dtype.itemsize, y.type.dtype.itemsize) == 1
    one_scale = y.type.quant is not None and len(y.type.quant.scales) == 1
    return [_lookup(node, target) if narrow and one_scale else rescale_dispatch(x, y, target)]


def class_test(node: Node, target: Target) -> list[Dispatch]:
    """is_nan and is_infinite, by bits."""
    x, y = node.required_input(0), node.output
    if not x.type.dtype.is_float:
        raise UnsupportedOpError([f"{node.op.name} of {x.type.dtype}; it is defined for floats"])
    half = x.type.dtype is DType.FLOAT16
    variables: dict[str, Variable] = {
        "workgroup": WORKGROUP, "kind": ClassTest(node.op.name), "magnitude": 0x7FFF if half else 0x7FFFFFFF,
        "infinite": 0x7C00 if half else 0x7F800000,
    }  # fmt: skip
    bindings = (read("x", x, bits_of(x.type.dtype)), write("y", y))
    return [
        Dispatch("class_test", variables, bindings, u32(count=y.type.size), groups_for(-(-y.type.size // 4), target))
    ]


def _lowering(row: ElementwiseOp) -> Lower:
    if row.formula is None:
        return class_test
    return binary if row.attrs is BinaryAttrs else unary


LOWERINGS: dict[str, Lower] = {name: _lowering(row) for name, row in ROWS.items()} | {
    "bitcast": bitcast, "cast": cast, "dequantize": dequantize, "quantize": quantize,
}  # fmt: skip
