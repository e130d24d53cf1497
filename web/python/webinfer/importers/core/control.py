"""Loops and branches: unrolled where their course is known when the model is read.

A loop's counter is arithmetic on constants, which is folded as it is read; so is its condition then. Where data
decides, a run shows its value first, and the graph holds the side of a branch that is taken.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress

from webinfer.dtypes import DType
from webinfer.errors import ModelFormatError, ShapeError
from webinfer.graph.ir import Graph, Node, TensorType, Value, apply
from webinfer.importers.core.limits import MAX_LOOP_TURNS, within
from webinfer.importers.core.operation import BaseOperation
from webinfer.importers.core.partial_evaluation import DataDependentValue, DynamicLoop, NeedsUnrolling
from webinfer.importers.core.problems import Refusal
from webinfer.importers.core.tensor_list import Listed
from webinfer.importers.core.writer import unique_names
from webinfer.ops import elementwise as ew
from webinfer.ops.registry import NoAttrs

# Of both sides of a branch together: a run computes both, or skips one. To look at the condition first costs some 40
# microseconds of Python, on a GPU a millisecond, but leaves out what the other side weighs.
MAX_BOTH = 1 << 26  # operations and bytes that are read and written
MAX_BOTH_WEIGHTS = 1 << 22  # bytes of constants
ENDLESS = 2**63 - 1  # turns of a loop that only its condition ends
Subgraph = Callable[[list[Value]], list[Value]]  # converts a subgraph with these inputs and gives its outputs
Turn = Callable[[Value, list[Value]], list[Value]]
"""Converts a turn from its number and a state: whether the loop goes on, the next state, what is listed."""


def _truth(op: BaseOperation, outputs: Sequence[Value]) -> Value:
    if len(outputs) != 1 or outputs[0].type.dtype is not DType.BOOL or outputs[0].type.size != 1:
        op.fail(f"its condition gives {len(outputs)} results, needs one bool")
    return outputs[0]


def loop(op: BaseOperation, state: list[Value], condition: Subgraph, body: Subgraph) -> list[Value]:
    """The state after the last turn. The condition looks at the state before each.

    Raises:  LimitError for more than `MAX_LOOP_TURNS` turns that are unrolled
    """
    count, may_repeat = len(state), True

    def turn(_: Value, held: list[Value]) -> list[Value]:
        held = body(held)
        return [_truth(op, condition(held)), *held]

    for turns in itertools.count(1):
        goes_on = _truth(op, condition(state))
        if goes_on.constant is None:
            shown = seen(op, goes_on)
            if shown and may_repeat:
                with suppress(NeedsUnrolling):
                    return repeat(op, None, state, turn)
                may_repeat = False
        else:
            shown = bool(goes_on.numbers()[0])
        if not shown:
            break
        check_turns(op, turns)
        before, state = state, body(state)
        if len(state) != count:
            op.fail(f"its body gives {len(state)} values for a state of {count}")
        if goes_on.constant is not None and all(map(_same, before, state)):
            op.refuse("a loop that never ends")
    return state


def check_turns(op: BaseOperation, turns: int) -> None:
    """Nothing, if so many turns of a loop may be unrolled.

    Raises:  LimitError
    """
    within(f"{op.what}: turns of a loop that are unrolled", turns, MAX_LOOP_TURNS, "check what ends the loop")


def seen(op: BaseOperation, goes_on: Value) -> bool:
    """Whether a loop goes on, which a run must show."""
    found = op.writer.read(goes_on)
    if found.constant is None:
        op.refuse("a loop whose end depends on data")
    return bool(found.numbers()[0])


def _same(a: Value | None, b: Value | None) -> bool:
    """Whether what is known of two values while a model is read is the same; parts of lists too."""
    if a is b or a is None or b is None:
        return a is b
    if isinstance(a, Listed) and isinstance(b, Listed):
        return len(a.items) == len(b.items) and all(map(_same, a.items, b.items))
    if type(a) is not Value or type(b) is not Value or a.type != b.type:
        return False
    return a.constant is b.constant or (
        a.constant is not None and b.constant is not None and a.constant.data == b.constant.data
    )


def _has_lists(values: Sequence[Value]) -> bool:
    return any(isinstance(value, Listed) for value in values)


def repeat(op: BaseOperation, most: Value | None, state: list[Value], turn: Turn) -> list[Value]:
    """The last state of a loop that runs turn by turn, `most` times or until data ends it, and what its turns list.

    Raises:  NeedsUnrolling, with everything as it was, if one plan cannot serve every turn
    """
    writer, start = op.writer, op.writer.position
    inputs, (goes_on, *results) = one_turn(op, state, turn)
    if writer.known_values is None:
        op.refuse("a loop whose end depends on data")
    _truth(op, [goes_on])
    nodes = writer.take(start, inputs)
    made, ends = {value for node in nodes for value in node.outputs}, list[Value]()
    for value in (goes_on, *results):
        if value not in made or value in ends:
            nodes.append(apply(ew.IDENTITY, [value], ew.UnaryAttrs(), "turn"))
            value = nodes[-1].output
        ends.append(value)
    read = dict.fromkeys(v for node in nodes for v in node.inputs if v is not None and not v.is_constant)
    others = {v: Value(v.name, v.type) for v in read if v not in made and v not in inputs}
    for node in nodes:
        node.inputs = [value and others.get(value, value) for value in node.inputs]
    for number, value in enumerate((*inputs, *others.values(), *ends)):
        value.name = f"{number} {value.name}"
    loop = writer.number_loop()  # its position would not tell it from a loop right behind it, as neither leaves nodes
    names = unique_names([*(v.name for v in writer.graph.inputs), *(f"loop {loop}.{i}" for i in range(len(results)))])
    names = names[len(writer.graph.inputs) :]
    found = writer.known_values.known.get((loop, -1))
    if found is None:
        first = [op.scalar_of(ENDLESS, DType.INT64) if most is None else most, *state, *others]
        graph = Graph(f"{writer.graph.name}, a turn of {op.what}", [*inputs, *others.values()], ends, nodes)
        graph.keeps_inputs = True
        raise writer.unknown(first, (loop, -1), DynamicLoop(graph, len(state), tuple(names)))
    return [writer.carry(name, type) for name, type in zip(names, found, strict=True)]


def one_turn(op: BaseOperation, state: list[Value], turn: Turn) -> tuple[list[Value], list[Value]]:
    """Stand-ins for the number of a turn and for the state, and what a turn gives from them.

    Its nodes are the last ones of the graph; where this raises, they are gone.

    Raises:  NeedsUnrolling if the turn holds lists, changes the type of its state or variables, or decides on data
    """
    writer, start, variables = op.writer, op.writer.position, op.writer.variables.values()
    inputs = [Value("turn", TensorType((), DType.INT64)), *(Value(v.name, v.type) for v in state)]
    try:
        if _has_lists(state):
            raise NeedsUnrolling
        with writer.tentative():
            results = turn(inputs[0], inputs[1:])
        kinds = [v.type for v in results[1 : 1 + len(state)]]
        if _has_lists(results) or variables != writer.variables.values() or kinds != [v.type for v in state]:
            raise NeedsUnrolling
    except NeedsUnrolling:
        writer.take(start, inputs)
        writer.variables.restore(variables)
        if writer.known_values is None:
            op.refuse("a loop whose end depends on data")
        raise
    return inputs, results


def _are_large(nodes: Sequence[Node]) -> bool:
    """Whether the sides of a branch are too large for both to be in the graph."""
    costs = [node.cost() for node in nodes]
    weights = {id(v.constant): len(v.constant.data) for node in nodes for v in node.inputs if v and v.constant}
    return sum(cost.flops + cost.bytes for cost in costs) > MAX_BOTH or sum(weights.values()) > MAX_BOTH_WEIGHTS


def branch(
    op: BaseOperation, condition: Value, side: Callable[[bool], list[Value]],
    both: Callable[[], tuple[list[Value], list[Value]]],
) -> list[Value]:  # fmt: skip
    """The results of one of two subgraphs: of the one that a run takes, where it can be known.

    Small sides are both in the graph and selected from, which costs less than to look at the condition; so are all in a
    turn that stands for every turn of its loop.
    """
    condition = _truth(op, [condition])
    if condition.constant is not None:
        return side(bool(condition.numbers()[0]))
    if op.writer.known(condition):
        return side(bool(op.writer.read(condition).numbers()[0]))
    before = op.writer.position
    try:
        yes, no = both()
        if [v.type for v in yes] != [v.type for v in no]:
            op.refuse("branches whose results differ in type")
        if _has_lists([*yes, *no]):
            op.refuse("lists in data-dependent control flow")
    except (ModelFormatError, ShapeError, Refusal, DataDependentValue, NeedsUnrolling):
        op.writer.read(condition)
        raise
    if not op.writer.is_tentative and _are_large(op.writer.graph.nodes[before:]):
        op.writer.read(condition)
    choice = op.reshape(condition, ())
    return [op.emit(ew.WHERE, [choice, p, q], NoAttrs()) for p, q in zip(yes, no, strict=True)]
