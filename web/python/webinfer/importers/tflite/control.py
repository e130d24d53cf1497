"""Loops and branches: unrolled where their course is known when the model is read.

A loop's counter is arithmetic on constants, which is folded as it is read; so is its condition then. A
branch on data computes both sides and selects.
"""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Value
from webinfer.importers.tflite.operation import Operation, Row
from webinfer.ops import elementwise as ew
from webinfer.ops.registry import NoAttrs

_MOST_TURNS = 2_000


def _condition(op: Operation, outputs: list[Value]) -> Value:
    if len(outputs) != 1 or outputs[0].type.dtype is not DType.BOOL or outputs[0].type.size != 1:
        raise ModelFormatError(f"{op.info}: its condition gives {len(outputs)} results, needs one bool")
    return outputs[0]


def _while(op: Operation) -> list[Value]:
    state = op.values()
    for _ in range(_MOST_TURNS):
        condition = _condition(op, op.run("cond_subgraph_index", state))
        if condition.constant is None:
            op.refuse("a loop whose end depends on data")
        if not condition.numbers()[0]:
            return state
        state = op.run("body_subgraph_index", state)
        if len(state) != op.count:
            raise ModelFormatError(f"{op.info}: its body gives {len(state)} values for a state of {op.count}")
    op.refuse(f"a loop of more than {_MOST_TURNS} turns")


def _if(op: Operation) -> list[Value]:
    condition = _condition(op, [op.value(0)])
    inputs = op.values()[1:]
    if condition.constant is not None:
        return op.run("then_subgraph_index" if condition.numbers()[0] else "else_subgraph_index", inputs)
    yes, no = op.run("then_subgraph_index", inputs), op.run("else_subgraph_index", inputs)
    if [v.type for v in yes] != [v.type for v in no]:
        op.refuse("branches whose results differ in type")
    choice = op.reshape(condition, ())
    return [op.emit(ew.WHERE, [choice, p, q], NoAttrs()) for p, q in zip(yes, no, strict=True)]


CONVERTERS: dict[str, Row] = {
    "IF": (_if, "IfOptions"),
    "WHILE": (_while, "WhileOptions"),
}
