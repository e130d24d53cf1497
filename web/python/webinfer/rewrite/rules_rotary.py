"""Rotary positions as PyTorch's models write them: x * cos + (the halves of x, swapped, the first negated) * sin."""

from __future__ import annotations

import functools

from webinfer.graph.ir import Graph, Node, Value, apply
from webinfer.ops import elementwise as ew
from webinfer.ops import movement as mv
from webinfer.ops import rotary
from webinfer.rewrite.facts import Facts
from webinfer.rewrite.matcher import rewrite, rule
from webinfer.rewrite.patterns import MAX_WALK, Match, Variable, add, kind, mul

X, COS, SIN = map(Variable, ("x", "cos", "sin"))
cut, neg, concat = map(kind, (mv.SLICE, ew.NEG, mv.CONCAT))
SWAPPED = concat(
    neg(cut(X, name="high", once=True), once=True), cut(X, name="low", once=True), name="swapped", once=True
)
# What treats all elements alike, so that equal halves of a row stay equal.
ALIKE = frozenset({ew.COS, ew.SIN, ew.LINEAR, ew.CAST, ew.MUL, mv.RESHAPE, mv.TRANSPOSE, mv.EXPAND})


def _rotated(match: Match, halves: dict[Value, Value]) -> list[Node] | None:
    x, cos, sin, root = match.value("x"), match.value("cos"), match.value("sin"), match.root
    shape = x.type.shape
    if len(shape) != 4 or root.output.type != x.type or not isinstance(shape[3], int) or shape[3] % 2:
        return None

    def half(x: Value, at: int = 0) -> mv.SliceAttrs:
        return mv.SliceAttrs((0, 0, 0, at), (*x.type.shape[:3], shape[3] // 2), (1,) * 4)

    fits = match.node("low").attrs == half(x) and match.node("high").attrs == half(x, shape[3] // 2)
    if not fits or match.node("swapped").attrs.axis != 3 or cos.type != sin.type or cos.type.shape[3:] != shape[3:]:
        return None
    batches, outer, inner, _ = cos.type.shape
    is_inner = (outer, inner) != (1, shape[2])
    if is_inner and (outer, inner) != (shape[1], 1):
        return None
    if batches not in (1, shape[0]) or not all(_has_equal_halves(wave, match.facts) for wave in (cos, sin)):
        return None
    made = list[Node]()
    for wave in (cos, sin):
        if wave not in halves:  # all layers have the same angles
            made.append(apply(mv.SLICE, [wave], half(wave), f"{root.label}/half"))
            halves[wave] = made[-1].output
    inputs = [x, halves[cos], halves[sin]]
    return [*made, Node(rotary.ROTATE, inputs, root.outputs, rotary.RotateAttrs(inner=is_inner), root.label)]


def _has_equal_halves(value: Value, facts: Facts) -> bool:
    """Whether rows of the last axis are one half twice, as far as what makes them says so."""
    for _ in range(MAX_WALK):
        node, size = facts.writers.get(value), value.type.shape[-1]
        if node is None:
            return False
        if node.op is mv.CONCAT:
            return node.attrs.axis == value.type.rank - 1 and len(node.inputs) == 2 and node.inputs[0] is node.inputs[1]
        wide = [one for one in node.inputs if one is not None and one.type.size != 1]
        if node.op not in ALIKE or len(wide) != 1 or wide[0].type.shape[-1] != size:
            return False
        if node.op is mv.TRANSPOSE and node.attrs.perm[-1] != value.type.rank - 1:
            return False
        value = wide[0]
    return False


def fuse_rotary(graph: Graph) -> int:
    """Number of rotations that became one node."""
    made = functools.partial(_rotated, halves={})
    return rewrite(graph, (rule("rotary positions", add(mul(X, COS, once=True), mul(SWAPPED, SIN, once=True)), made),))
