"""Curves that formats have no operator for and write as formulas: gelu, silu, hard swish."""

from __future__ import annotations

import math

from webinfer.graph.ir import Graph, Node
from webinfer.ops import elementwise as ew
from webinfer.rewrite.matcher import rewrite, rule
from webinfer.rewrite.patterns import Match, Scalar, Variable, kind

HALF_ROUNDING = 2.0**-11  # of a number that becomes a float16
CUBE = 0.044715  # of gelu's approximation by tanh, as its authors write it
SQRT_HALF, SQRT_2_PI = math.sqrt(0.5), math.sqrt(2 / math.pi)

X, SLOPE, FACTOR = Variable("x"), Scalar("slope"), Scalar("factor")
erf, tanh, sigmoid, hard_sigmoid, relu6 = (
    kind(*ops) for ops in ((ew.ERF,), (ew.TANH,), (ew.SIGMOID,), (ew.HARD_SIGMOID,), (ew.RELU6, ew.CLAMP))
)
gelu, gelu_tanh, silu, hard_swish = map(kind, (ew.GELU, ew.GELU_TANH, ew.SILU, ew.HARD_SWISH))


def _is_six(node: Node) -> bool:
    """Whether a clamp is that of RELU6."""
    return node.op is ew.RELU6 or (node.attrs.a, node.attrs.b) == (0.0, 6.0)


def _is_sixth(node: Node) -> bool:
    """Whether a hard sigmoid is that of hard swish: x / 6 + 0.5."""
    return math.isclose(node.attrs.a, 1 / 6, rel_tol=1e-4) and node.attrs.b == 0.5


def _is_real(match: Match) -> bool:
    """Whether x is a float tensor of the result's shape, which no constant of another rank has widened."""
    y = match.root.output.type
    return y.dtype.is_float and match.value("x").type == y


def _is_rounded(match: Match) -> bool:
    """Whether the factor is what is left of a sixth that was stored in 16 bits."""
    return _is_real(match) and abs(match.number("factor") - 1) <= HALF_ROUNDING


NONE = ew.UnaryAttrs()
CUBIC = (X + X**3 * CUBE) * SQRT_2_PI | X * (X**2 * CUBE + 1) * SQRT_2_PI
GATED = X * relu6(X + 3, when=_is_six) * (1 / 6)
RULES = (
    rule("gelu", X * 0.5 * (erf(X * SQRT_HALF) + 1), gelu(X, attrs=NONE), _is_real),
    rule("gelu by tanh", X * 0.5 * (tanh(CUBIC) + 1), gelu_tanh(X, attrs=NONE), _is_real),
    rule("silu", X * sigmoid(X * SLOPE), silu(X, attrs=lambda m: ew.UnaryAttrs(m.number("slope"))), _is_real),
    rule("hard swish", X * hard_sigmoid(X, when=_is_sixth), hard_swish(X, attrs=NONE), _is_real),
    rule("hard swish, clamped", GATED, hard_swish(X, attrs=NONE), _is_real),
    rule("hard swish, rounded", GATED * FACTOR, hard_swish(X, attrs=NONE) * FACTOR, _is_rounded),
)


def fuse_activations(graph: Graph) -> int:
    """Number of products that became a curve."""
    return rewrite(graph, RULES)
