"""Layer norms and RMS norms, which most formats write as means, squares and roots."""

from __future__ import annotations

from collections.abc import Mapping

from webinfer.graph.ir import Graph, Node, TensorType, Value
from webinfer.graph.queries import producer_of
from webinfer.ops import elementwise as ew
from webinfer.ops import movement as mv
from webinfer.ops import normalization as norm
from webinfer.ops import reduce as red
from webinfer.rewrite.matcher import rewrite, rule
from webinfer.rewrite.patterns import Match, Pattern, Product, Scalar, Variable, add, kind, mul

X, MEAN, SCALE, BIAS, ROW = map(Variable, ("x", "mean value", "scale", "bias", "row"))
EPSILON = Scalar("epsilon")
reduce_mean, squared_difference, layer_norm = map(kind, (red.REDUCE_MEAN, ew.SQUARED_DIFFERENCE, norm.LAYER_NORM))


def mean(x: Pattern, name: str) -> Pattern:
    """The mean of rows, which stay axes of size 1."""
    return reduce_mean(x, name=name, when=lambda node: node.attrs.keep_dims)


def root(variance: Pattern) -> Product:
    """The root of a variance that is kept from zero."""
    return (variance + EPSILON) ** 0.5


def _rows(match: Match) -> int:
    """How many axes a row has; 0 where the means are not all of the same last axes."""
    x = match.value("x").type
    means = [match.node(name).attrs.axes for name in ("mean", "variance") if name in match.bound]
    last = list(range(x.rank - len(means[0]), x.rank))
    return len(last) if all(sorted(axes) == last for axes in means) else 0


def _is_norm(match: Match) -> bool:
    y = match.root.output.type
    same = y.dtype.is_float and match.value("x").type == y and match.number("epsilon") >= 0
    return same and _rows(match) > 0


def _attrs(match: Match) -> norm.LayerNormAttrs:
    return norm.LayerNormAttrs(_rows(match), match.number("epsilon"), "mean" in match.bound)


def _with_rows(match: Match, x: Value, attrs: norm.LayerNormAttrs, *rows: Value | None) -> list[Node] | None:
    """The norm with its scale and bias, if these are rows, or become rows without a step."""
    shape = x.type.shape[x.type.rank - attrs.axes :]
    shaped = [None if row is None else _reshaped(row, shape, match.facts.writers) for row in rows]
    if any(row is not None and made is None for row, made in zip(rows, shaped, strict=True)):
        return None
    return [Node(norm.LAYER_NORM, [x, *shaped], match.root.outputs, attrs, match.root.label)]


def _reshaped(value: Value, shape: tuple[int, ...], writers: Mapping[Value, Node]) -> Value | None:
    """The value in another shape where that takes no step, and the shapes differ by leading axes of size 1 alone."""
    own = value.type.shape
    if own == shape:
        return value
    shorter, longer = sorted((own, shape), key=len)
    if longer != (1,) * (len(longer) - len(shorter)) + shorter:
        return None
    if value.is_constant:
        return Value(value.name, TensorType(shape, value.type.dtype, value.type.quant), value.constant)
    before = producer_of(value, writers, mv.RESHAPE)
    return _reshaped(before.required_input(0), shape, writers) if before is not None else None


def _from_moments(match: Match) -> list[Node] | None:
    scale = match.value("scale") if "scale" in match.bound else None
    return _with_rows(match, match.value("x"), _attrs(match), scale, match.value("bias"))


def _joined(match: Match) -> list[Node] | None:
    """The norm with one row more: its scale, or its bias."""
    before, row = match.node("norm"), match.value("row")
    x, scale = before.required_input(0), before.optional_input(1)
    if before.output.type != match.root.output.type:
        return None
    return _with_rows(match, x, before.attrs, *((row,) if match.root.op is ew.MUL else (scale, row)))


def _has_no_bias(node: Node) -> bool:
    return node.optional_input(2) is None


def _has_no_rows(node: Node) -> bool:
    return node.optional_input(1) is None and _has_no_bias(node)


CENTRED = Variable("centred", X - mean(X, "mean"))
MOMENTS = mean(squared_difference(X, Variable("mean value", mean(X, "mean"))), "variance")
FACTOR = Variable("factor", SCALE / root(MOMENTS) | root(MOMENTS) ** -1)
RULES = (
    rule("layer norm", CENTRED / root(mean(CENTRED**2, "variance")), layer_norm(X, attrs=_attrs), _is_norm),
    rule("rms norm", X / root(mean(X**2, "variance")), layer_norm(X, attrs=_attrs), _is_norm),
    rule("layer norm by moments", add(mul(X, FACTOR), BIAS - mul(MEAN, FACTOR)), _from_moments, _is_norm),
    rule("scale of a norm", mul(layer_norm(..., name="norm", once=True, when=_has_no_rows), ROW), _joined),
    rule("bias of a norm", add(layer_norm(..., name="norm", once=True, when=_has_no_bias), ROW), _joined),
)


def fuse_layer_norm(graph: Graph) -> int:
    """Number of quotients and sums that became a norm, and of scales and biases that joined one."""
    return rewrite(graph, RULES)
