"""TFLite's loops and branches: their subgraphs are named by number."""

from __future__ import annotations

from functools import partial

from webinfer.graph.ir import Value
from webinfer.importers.core.control import branch, loop
from webinfer.importers.tflite.operation import Operation, Row


def _while(op: Operation) -> list[Value]:
    return loop(op, op.values(), partial(op.run, "cond_subgraph_index"), partial(op.run, "body_subgraph_index"))


def _if(op: Operation) -> list[Value]:
    condition, *inputs = op.value(0), *op.values()[1:]
    then, otherwise = partial(op.run, "then_subgraph_index"), partial(op.run, "else_subgraph_index")
    return branch(op, condition, inputs, then, otherwise)


CONVERTERS: dict[str, Row] = {
    "IF": (_if, "IfOptions"),
    "WHILE": (_while, "WhileOptions"),
}
