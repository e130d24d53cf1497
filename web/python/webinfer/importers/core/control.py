"""Loops and branches: unrolled where their course is known when the model is read.

A loop's counter is arithmetic on constants, which is folded as it is read; so is its condition then. Where data
decides, a run shows its value first, and the graph holds the side of a branch that is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from webinfer.dtypes import DType
from webinfer.errors import ModelFormatError, ShapeError
from webinfer.graph.ir import Value
from webinfer.importers.core.course import Unknown
from webinfer.importers.core.limits import MAX_LOOP_TURNS
from webinfer.importers.core.operation import BaseOperation
from webinfer.importers.core.problems import Refusal
from webinfer.ops import elementwise as ew
from webinfer.ops.registry import NoAttrs

MAX_BOTH = 4096  # elements that both sides of a branch compute together where neither is known to be taken
Subgraph = Callable[[list[Value]], list[Value]]  # converts a subgraph with these inputs and gives its outputs


def _truth(op: BaseOperation, outputs: Sequence[Value]) -> Value:
    if len(outputs) != 1 or outputs[0].type.dtype is not DType.BOOL or outputs[0].type.size != 1:
        op.fail(f"its condition gives {len(outputs)} results, needs one bool")
    return outputs[0]


def loop(op: BaseOperation, state: list[Value], condition: Subgraph, body: Subgraph) -> list[Value]:
    """The state after the last turn. The condition looks at the state before each."""
    count = len(state)
    for _ in range(MAX_LOOP_TURNS):
        goes_on = _truth(op, condition(state))
        if goes_on.constant is None:
            op.refuse("a loop whose end depends on data")
        if not goes_on.numbers()[0]:
            return state
        state = body(state)
        if len(state) != count:
            op.fail(f"its body gives {len(state)} values for a state of {count}")
    op.refuse(f"a loop of more than {MAX_LOOP_TURNS} turns")


def branch(
    op: BaseOperation, condition: Value, side: Callable[[bool], list[Value]],
    both: Callable[[], tuple[list[Value], list[Value]]],
) -> list[Value]:  # fmt: skip
    """The results of one of two subgraphs: of the one that a run takes, where it can be known.

    Small sides are both computed and selected from, which costs less than to look at the condition.
    """
    if condition.constant is not None:
        return side(bool(condition.numbers()[0]))
    condition = _truth(op, [condition])
    if op.writer.known(condition):
        return side(bool(op.writer.read(condition).numbers()[0]))
    before = op.writer.position
    try:
        yes, no = both()
        if [v.type for v in yes] != [v.type for v in no]:
            op.refuse("branches whose results differ in type")
    except (ModelFormatError, ShapeError, Refusal, Unknown):
        op.writer.read(condition)
        raise
    if sum(value.type.size + 1 for value in op.writer.made_since(before)) > MAX_BOTH:
        op.writer.read(condition)
    choice = op.reshape(condition, ())
    return [op.emit(ew.WHERE, [choice, p, q], NoAttrs()) for p, q in zip(yes, no, strict=True)]
