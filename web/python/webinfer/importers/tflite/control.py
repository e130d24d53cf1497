"""TFLite's loops and branches: their subgraphs are named by number."""

from __future__ import annotations

from functools import partial

from webinfer.graph.ir import Value
from webinfer.importers.core.control import branch, loop
from webinfer.importers.tflite.operation import Operation, Row


def _while(op: Operation) -> list[Value]:
    return loop(op, op.values(), partial(op.run, "cond_subgraph_index"), partial(op.run, "body_subgraph_index"))


def _if(op: Operation) -> list[Value]:
    """One branch, or both and a choice between their results and between what they leave in variables."""
    inputs, names, variables = op.values()[1:], list[str](), op.writer.variables

    def side(taken: bool) -> list[Value]:
        return op.run("then_subgraph_index" if taken else "else_subgraph_index", inputs)

    def both() -> tuple[list[Value], list[Value]]:
        before = variables.values()
        yes, changed = side(True), variables.values()
        variables.restore(before)
        no, other = side(False), variables.values()
        names.extend(name for name in {**changed, **other} if changed.get(name) is not other.get(name))
        if any(name not in changed or name not in other for name in names):
            op.refuse("a variable that only one branch sets, and that nothing read before")
        return [*yes, *(changed[n] for n in names)], [*no, *(other[n] for n in names)]

    results = branch(op, op.value(0), side, both)
    count = len(results) - len(names)
    for name, value in zip(names, results[count:], strict=True):
        variables.write(name, value, variables.initial(name))
    return results[:count]


def _composite(op: Operation) -> list[Value]:
    """A named operator of another dialect, by the decomposition that the file holds."""
    return op.run("decomposition_subgraph_index", op.values())


CONVERTERS: dict[str, Row] = {
    "IF": (_if, "IfOptions"),
    "STABLEHLO_COMPOSITE": (_composite, "StableHLOCompositeOptions"),
    "WHILE": (_while, "WhileOptions"),
}
