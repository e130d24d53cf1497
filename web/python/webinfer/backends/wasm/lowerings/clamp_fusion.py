"""Clamp fusion: a MAXIMUM with a constant behind a PReLU becomes the lower bound of the convolution's epilogue."""

from __future__ import annotations

from webinfer.backends.wasm.lowerings.conv import IMAGE_CHANNELS, is_direct
from webinfer.dtypes import DType
from webinfer.graph.ir import Node, Value
from webinfer.ops import conv
from webinfer.ops import elementwise as ew
from webinfer.ops.activation import Activation
from webinfer.rewrite.facts import Facts
from webinfer.rewrite.matcher import places
from webinfer.rewrite.patterns import Match, Scalar, kind


def find_floors(facts: Facts) -> dict[Node, tuple[Value, float]]:
    """For each MAXIMUM that a convolution can do: the convolution's result, which nobody else reads, and the bound."""
    return places(facts, BOUNDED, _floor, set())


def _ends_with_slopes(node: Node) -> bool:
    """Whether a node is a dense convolution with PReLU whose tiles know bounds: other ones have no time for them."""
    w = node.required_input(1)
    dense = w.constant is None or w.constant.sparsity is None
    wide = w.type.shape[3] > 1 or node.attrs.groups == 1
    tiled = dense and wide and w.type.shape[3] != IMAGE_CHANNELS and not is_direct(node)
    return tiled and node.attrs.activation is Activation.PRELU and node.output.type.dtype is DType.FLOAT32


def _floor(match: Match) -> tuple[Value, float] | None:
    y, bound = match.node("product").output, match.number("bound")
    return (y, bound) if y.type == match.root.output.type and bound == bound else None


SLOPED = kind(conv.CONV2D)(..., name="product", once=True, curved=True, when=_ends_with_slopes)
BOUNDED = kind(ew.MAXIMUM)(SLOPED, Scalar("bound"))
