"""Sums that are not a step of their own, as residual blocks end: with a product with one number, or with one of each
channel, one walk over both, with what a depthwise convolution makes the end of its step.
"""

from __future__ import annotations

import functools
import math

from webinfer.backends.wasm.builder import Builder
from webinfer.backends.wasm.lowerings.conv import After, depthwise_conv2d, fixed_window
from webinfer.dtypes import DType, round_to_f32
from webinfer.graph.ir import Node, Value
from webinfer.kernel_constants import VECTOR_LANES
from webinfer.lazy_dataclass import dataclass
from webinfer.ops import conv
from webinfer.ops.activation import Activation
from webinfer.rewrite.facts import Facts, is_plain
from webinfer.rewrite.matcher import places
from webinfer.rewrite.patterns import Match, Scalar, Variable, add, kind, mul


@dataclass(frozen=True, slots=True)
class ScaledSum:
    """What an ADD takes: `plain` as it is, and `scaled` times the factor; both stand in for the nodes of `instead`.

    `depthwise` makes what is scaled, where the sum ends its step. `factors` are the numbers of channels, where each has
    its own.
    """

    plain: Value
    scaled: Value
    factor: float
    instead: tuple[Node, ...]
    depthwise: Node | None = None
    factors: Value | None = None


def find_scaled_sums(facts: Facts, isa: str) -> dict[Node, ScaledSum]:
    """The sums of two float32 tensors of one shape, of which nobody else reads the side that is a product or comes of a
    depthwise convolution.
    """
    return places(facts, SUM, functools.partial(_scaled, scalar=isa.startswith("scalar")), set())


def _scaled(match: Match, *, scalar: bool) -> ScaledSum | None:
    plain, y = match.value("plain"), match.root.output
    deep: Node | None = match.bound.get("depthwise")
    if plain.type != y.type or (deep is not None and (scalar or not is_plain(match.root))):
        return None
    scaled = match.value("scaled")
    if scaled.type != y.type and "product" in match.bound:
        return None
    if "channels" not in match.bound:
        return ScaledSum(plain, scaled, float(match.bound.get("factor", 1.0)), match.inner, deep)
    channels, c = match.value("channels"), y.type.shape[-1:]
    fits = channels.type.dtype is DType.FLOAT32 and c == channels.type.shape[-1:] == (channels.type.size,)
    return ScaledSum(plain, scaled, 1.0, match.inner, None, channels) if fits and not c[0] % VECTOR_LANES else None


def _is_clamped_sum(node: Node) -> bool:
    return node.attrs.activation.bounds is not None and node.output.type.dtype is DType.FLOAT32


def _takes_sums(node: Node) -> bool:
    """Whether a depthwise convolution of float32 has a kernel that can end with a sum."""
    _, kh, kw, co = node.required_input(1).type.shape
    ends = node.attrs.activation.bounds is not None or node.attrs.activation is Activation.PRELU
    floats = all(value is None or value.type.dtype is DType.FLOAT32 for value in (node.output, *node.inputs[:4]))
    return ends and floats and co == node.required_input(0).type.shape[3] and fixed_window(node, (kh, kw)) is not None


SCALED, FACTOR = Variable("scaled"), Scalar("factor")
DEEP = Variable("scaled", kind(conv.DEPTHWISE_CONV2D)(..., name="depthwise", once=True, curved=True, when=_takes_sums))
times = functools.partial(mul, name="product", once=True)
SIDE = times(DEEP, FACTOR) | times(SCALED, FACTOR) | times(SCALED, Variable("channels")) | DEEP
SUM = add(Variable("plain"), SIDE, curved=True, when=_is_clamped_sum)


def scaled_sum(node: Node, builder: Builder, parts: ScaledSum) -> None:
    """One step for the sum and its product, or for the sum and its depthwise convolution."""
    if parts.depthwise is not None:
        depthwise_conv2d(parts.depthwise, builder, After(node.output, parts.plain, round_to_f32(parts.factor)))
        return
    lo, hi = map(round_to_f32, node.attrs.activation.bounds or (-math.inf, math.inf))  # which the search has asked for
    if parts.factors is not None:
        c = node.output.type.shape[-1]
        builder.step(
            "f32_scaled_add_channels",
            a=builder.ref(parts.plain), b=builder.ref(parts.scaled), factors=builder.ref(parts.factors),
            y=builder.ref(node.output), c=c, lo=lo, hi=hi, units=node.output.type.size // c,
        )  # fmt: skip
        return
    builder.step(
        "f32_scaled_add",
        a=builder.ref(parts.plain), b=builder.ref(parts.scaled), y=builder.ref(node.output), factor=parts.factor,
        lo=lo, hi=hi, units=node.output.type.size,
    )  # fmt: skip
