"""What convolutions and matrix products share: epilogues, packed weights, where results are stored."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import field, fields
from typing import Any

from webinfer.backends.webgpu.dispatch import (
    Binding,
    Derived,
    Dispatch,
    Source,
    Stored,
    Target,
    read,
    read_given,
    source_dtype,
    write,
)
from webinfer.backends.webgpu.lowerings.conversion import WIDE, cast_dispatch, floats, is_quantized, plain_cast
from webinfer.backends.webgpu.lowerings.movement import copy_dispatch
from webinfer.backends.webgpu.lowerings.quantized import centered, product_epilogue
from webinfer.codegen.elements import Element
from webinfer.codegen.prelude import Param, f32, u32
from webinfer.codegen.templates import Variable
from webinfer.dtypes import DType, all_to_f32
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, TensorType, Value
from webinfer.lazy_dataclass import dataclass
from webinfer.lowering.affine import is_scaled_by_column
from webinfer.ops.conv import Conv2dAttrs
from webinfer.ops.matmul import MatmulAttrs
from webinfer.ops.strides import StridedCopy


class Residual(enum.StrEnum):
    """How _epilogue.wgsl reads the residual: not at all, four channels at a time, one by one, or pooled."""

    NONE = "none"
    QUADS = "quads"
    ELEMENTS = "elements"
    POOLED = "pooled"  # the largest of a window, by `_pooled_residual`


class Late(enum.StrEnum):
    """What happens behind the activation."""

    NO = "no"
    SUM = "sum"  # the residual is added there
    LARGER = "larger"  # of the result and a number
    SMALLER = "smaller"


class Clamp(enum.StrEnum):
    """How _activation.wgsl clamps: to bounds that are numbers of the dispatch, so that all clamps share a shader."""

    BOUNDS = "bounds"


class Curve(enum.StrEnum):
    """Activations that _activation.wgsl has besides those of operators."""

    NO = "no"
    GELU = "gelu"
    GELU_TANH = "gelu_tanh"


@dataclass(frozen=True, slots=True)
class FusedAttrs(Conv2dAttrs):
    """A convolution that does more behind its activation, with its residual or a `bound`, or that is `gated`: it reads
    an image times its input 5, a factor of each channel [1, 1, 1, C], plus its input 6, an image of that size, if any.
    A `curve` takes the place of its activation.
    """

    late: Late = Late.NO
    bound: float = 0.0
    gated: bool = False
    curve: Curve = Curve.NO


@dataclass(frozen=True, slots=True)
class FusedMatmulAttrs(MatmulAttrs):
    """The same of a matrix product, which may have a residual too, as its input 3."""

    late: Late = Late.NO
    bound: float = 0.0
    gated: bool = False
    curve: Curve = Curve.NO


_FUSED = {"matmul": (FusedMatmulAttrs, MatmulAttrs)}


def with_epilogue(of: Node, inputs: Sequence[Value | None], last: Node, **extras: Any) -> Node:
    """A convolution or matrix product, and the node behind it, as one; `extras` are of FusedAttrs."""
    fused, plain = _FUSED.get(of.op.name, (FusedAttrs, Conv2dAttrs))
    attrs = fused(**{field.name: getattr(of.attrs, field.name) for field in fields(plain)}, **extras)
    return Node(of.op, inputs, last.outputs, attrs, last.label)


def with_prologue(of: Node, x: Value, gate: Value, addend: Value | None) -> Node:
    """A convolution, and the product or the product and sum before it, as one."""
    inputs = [x, *[*of.inputs[1:], None, None, None][:4], gate, *([] if addend is None else [addend])]
    return with_epilogue(of, inputs, of, gated=True)


@dataclass(slots=True)
class Product:
    """What a kernel of a product needs besides its own: shader variables, bindings and parameters of the epilogue.

    `w` are the weights as the kernel computes with them: those of the node, as the file stores them, or int32 without
    zero points. `before` are the dispatches that make them. `element` is what a shader reads them as, if not as their
    type says.
    """

    w: Source
    variables: dict[str, Variable]
    bindings: list[Binding]
    params: tuple[Param, ...]
    before: list[Dispatch] = field(default_factory=list)
    element: Element | None = None


def product(node: Node, target: Target, *, float16_weights: bool = False) -> Product:
    """The epilogue of a node with inputs x, w, bias, residual, slope, and its weights.

    With `float16_weights` the kernel uses each weight that it reads so often that it widens float16 itself.

    Raises:  UnsupportedOpError for mixtures of real and quantised operands
    """
    x, w, y = node.required_input(0), node.required_input(1), node.output
    scaled = stays_bytes(node)
    kinds = {is_quantized(v) for v in ((x, y) if scaled else (x, w, y))}
    if len(kinds) > 1 or x.type.dtype.is_float is is_quantized(x):
        raise UnsupportedOpError([f"{node.op.name} of {x.type} and {w.type} into {y.type}"])
    has_bias = node.optional_input(2) is not None
    extra = node.attrs if isinstance(node.attrs, FusedAttrs | FusedMatmulAttrs) else FusedMatmulAttrs()
    variables: dict[str, Variable] = {
        "has_bias": has_bias, "residual": Residual.NONE, "activation": node.attrs.activation,
        "quantized": is_quantized(x), "scaled": scaled,
        "late": extra.late, "gated": extra.gated, "lifted": node.optional_input(6) is not None,
    }  # fmt: skip
    if is_quantized(x):
        extras, numbers = product_epilogue(node)
        wide, dispatch = centered(w, target)
        return Product(wide, variables, extras, numbers, [dispatch])
    residual = node.optional_input(3)
    names = ("bias", "residual", "slope", "gate", "addend")
    bindings = read_given(**{name: node.optional_input(2 + i) for i, name in enumerate(names)})
    params: tuple[Param, ...] = ()
    if residual is not None:
        channels = residual.type.shape[-1]
        variables["residual"] = Residual.ELEMENTS if channels % 4 else Residual.QUADS
        params = u32(residual_c=channels)
    if extra.curve is not Curve.NO:
        variables["activation"] = extra.curve
    else:
        params += _clamp(extra, node.attrs.activation.bounds, variables)
    if scaled:
        assert w.type.quant is not None
        scales = all_to_f32(w.type.quant.scales)
        bindings.append(read("scales", floats(scales if len(scales) > 1 else scales * y.type.shape[-1])))
        return Product(w, variables, bindings, params, element=Element.REAL_I8)
    return Product(float_weights(w, target) if float16_weights else w, variables, bindings, params)


def _clamp(
    a: FusedAttrs | FusedMatmulAttrs, bounds: tuple[float, float] | None, variables: dict[str, Variable]
) -> tuple[Param, ...]:
    """The numbers of an activation that is a clamp or is nothing, and of the bound behind it."""
    bound = () if a.late in (Late.NO, Late.SUM) else f32(late_bound=a.bound)
    if bounds is None:
        return bound
    variables["activation"] = Clamp.BOUNDS
    if bound:
        variables["late"] = Late.NO
        compare = max if a.late is Late.LARGER else min
        bounds = (compare(bounds[0], a.bound), compare(bounds[1], a.bound))
    return f32(low=bounds[0], high=bounds[1])


def stays_bytes(node: Node) -> bool:
    """Whether a matrix product reads its 8-bit weights as they are: one matrix, one scale or one for each column."""
    x, w = node.required_input(0), node.required_input(1)
    if node.op.name != "matmul" or is_quantized(x) or w.type.quant is None or w.type.dtype is not DType.INT8:
        return False
    return w.is_constant and not any(w.type.quant.zero_points) and is_scaled_by_column(w.type, node.attrs)


def float_weights(w: Value, target: Target) -> Source:
    """Weights that the file stores as float16, as they are stored: half the memory, the same results.

    Other weights are returned as they are; so are all on software adapters, whose memory is not a bottleneck.
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
    """The binding `y` of a kernel that stores y, one by one if `single`, and the dispatches that have to follow.

    Types that share 32-bit words are stored as 32-bit values first and cast after.
    """
    dtype = y.type.dtype
    if not single or dtype not in WIDE:
        return write("y", y, single=single), []
    wide = Value(y.name, TensorType(y.type.shape, WIDE[dtype]))
    return write("y", wide, single=True), [cast_dispatch(wide, y, target)]


def packed_columns(w: Source, copy: StridedCopy, shape: tuple[int, ...], key: object, target: Target) -> Derived:
    """Weights rearranged at load by a strided copy: output channels innermost, in quads, zeros behind the last.

    `shape` is the result's; equal sources with equal keys are rearranged once.
    """

    def make(derived: Derived) -> Sequence[Dispatch]:
        return [copy_dispatch(w, derived, copy, target, zeros=True)]

    source = w.key if isinstance(w, Derived) else w
    return Derived(("columns", source, key), shape, make, source_dtype(w))
