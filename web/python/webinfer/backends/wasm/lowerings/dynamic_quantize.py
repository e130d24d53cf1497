"""Bytes by a scale that a run computes, and sums of their products as real numbers: one step each, where formats write
four to six nodes over whole tensors (DynamicQuantizeLinear, and what follows MatMulInteger).
"""

from __future__ import annotations

from webinfer.backends.wasm.builder import Builder
from webinfer.dtypes import DType
from webinfer.graph.ir import Graph, Node, Value
from webinfer.lazy_dataclass import dataclass
from webinfer.ops import elementwise as ew
from webinfer.rewrite.facts import Facts
from webinfer.rewrite.matcher import places
from webinfer.rewrite.patterns import Match, Variable, add, kind, mul

KERNELS = {DType.INT8: "i8_quantize_by", DType.UINT8: "u8_quantize_by"}


@dataclass(frozen=True, slots=True)
class Quantized:
    """clamp(round(x / scale) + zero) as bytes; `instead` are the nodes that have no step of their own."""

    x: Value
    scale: Value
    zero: Value | None
    instead: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ScaledSums:
    """float32(x - offset) * factor + bias by columns; x holds whole numbers, as int32 or as float32."""

    x: Value
    offset: Value | None
    factor: Value
    bias: Value | None
    instead: tuple[Node, ...]


def find_dynamic(graph: Graph, facts: Facts, taken: set[Node]) -> dict[Node, Quantized | ScaledSums]:
    """The last nodes of both, with what their steps read.

    None in graphs of parts or with values that nodes change in place: the steps would read their operands late.
    """
    if graph.parts or graph.resident:
        return {}
    found: dict[Node, Quantized | ScaledSums] = {}
    found |= places(facts, QUANTIZED, _quantized, taken)
    found |= places(facts, BIASED, _sums, taken)
    return found | places(facts, SCALED, _sums, taken)


def _is_one(value: Value | None) -> bool:
    return value is None or (value.type.size == 1 and value.type.dtype is DType.FLOAT32)


def _quantized(match: Match) -> Quantized | None:
    y, x, scale = match.root.output.type, match.value("x"), match.value("scale")
    zero: Value | None = match.bound.get("zero")
    low, high = (match.node("clamp").attrs.a, match.node("clamp").attrs.b)
    fits = y.dtype in KERNELS and (low, high) == y.dtype.range and y.quant is None and x.type.shape == y.shape
    real = x.type.dtype is DType.FLOAT32 and _is_one(scale) and _is_one(zero)
    return Quantized(x, scale, zero, match.inner) if fits and real else None


def _is_row(value: Value | None, n: int) -> bool:
    return value is None or (value.type.size == n == value.type.shape[-1])


def _sums(match: Match) -> ScaledSums | None:
    y, x, factor = match.root.output.type, match.value("sums"), match.value("factor")
    offset, bias = match.bound.get("offset"), match.bound.get("bias")
    kept = DType.FLOAT32 if "whole" in match.bound else DType.INT32
    if not y.shape or x.type.shape != y.shape or x.type.quant is not None or x.type.dtype is not kept:
        return None
    n = y.shape[-1]
    reals = all(v is None or v.type.dtype is DType.FLOAT32 for v in (factor, bias)) and y.dtype is DType.FLOAT32
    rows = _is_row(offset, n) and _is_row(bias, n) and (factor.type.size == 1 or _is_row(factor, n))
    return ScaledSums(x, offset, factor, bias, match.inner) if reals and rows else None


def _is_whole(node: Node) -> bool:
    return node.output.type.dtype is DType.INT32 and node.required_input(0).type.dtype is DType.FLOAT32


def _is_real(node: Node) -> bool:
    return node.output.type.dtype is DType.FLOAT32 and node.required_input(0).type.dtype is DType.INT32


cast, clamp, divide, round_even, subtract = map(kind, (ew.CAST, ew.CLAMP, ew.DIV, ew.ROUND_EVEN, ew.SUB))
DIVIDED = divide(Variable("x"), Variable("scale"), name="divided", once=True)
ROUNDED = round_even(DIVIDED, name="rounded", once=True)
SHIFTED = ROUNDED | add(ROUNDED, Variable("zero"), name="shifted", once=True)
QUANTIZED = cast(clamp(SHIFTED, name="clamp", once=True))

SUMS = cast(Variable("sums"), name="whole", once=True, when=_is_whole) | Variable("sums")
LESS = subtract(SUMS, Variable("offset"), name="less", once=True) | SUMS
REAL = cast(LESS, name="real", once=True, when=_is_real)
SCALED = mul(REAL, Variable("factor"))
BIASED = add(mul(REAL, Variable("factor"), name="scaled", once=True), Variable("bias"))


def dynamic_step(node: Node, builder: Builder, parts: Quantized | ScaledSums) -> None:
    """The one step."""
    y = node.output
    if isinstance(parts, Quantized):
        builder.step(
            KERNELS[y.type.dtype],
            x=builder.ref(parts.x), scale=builder.ref(parts.scale), zero=builder.optional_ref(parts.zero),
            y=builder.ref(y), units=y.type.size,
        )  # fmt: skip
        return
    n = y.type.shape[-1]
    builder.step(
        "f32_scale_sums",
        x=builder.ref(parts.x), offset=builder.optional_ref(parts.offset), factor=builder.ref(parts.factor),
        bias=builder.optional_ref(parts.bias), y=builder.ref(y), n=n, whole=int(parts.x.type.dtype is DType.INT32),
        factor_step=int(parts.factor.type.size > 1), units=y.type.size // n,
    )  # fmt: skip
