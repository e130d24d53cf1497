"""Random nodes with graphs of their own, and those on sequences: If, Loop, Scan."""

import numpy as np

from build_scripts.judge.fuzz.draw import ANY, FLOATS, Draw
from build_scripts.judge.fuzz.graphs import FuzzGraph, FuzzNode
from build_scripts.judge.fuzz.onnx.elementwise import Row

_STEPS = ("Relu", "Tanh", "Neg", "Abs", "Identity", "Sigmoid")
_SUMS = ("Add", "Mul", "Sub", "Max")


def _branch(d: Draw, x: str, count: int) -> FuzzGraph:
    """A graph that reads an outer value and gives one of the same form."""
    nodes, last = [], x
    for _ in range(count):
        node = d.node(d.pick(_STEPS), [last]) if d.chance(0.6) else d.node(d.pick(_SUMS), [last, x])
        nodes.append(node)
        last = node.outputs[0]
    return FuzzGraph(d.version, tuple(nodes), outputs=(last,))


def _if(d: Draw) -> FuzzNode:
    x = d.value(FLOATS)
    found = d.fitting(("bool",), lambda a: a.size == 1)
    condition = d.pick(found) if found and d.chance(0.5) else d.new(d.array("bool", d.pick(((), (1,)))))
    return d.node(
        "If", [condition, x][:1], then_branch=_branch(d, x, d.integer(1, 3)), else_branch=_branch(d, x, d.integer(1, 3))
    )


def _loop(d: Draw) -> FuzzNode:
    x = d.value(("float32",), 0, 3, lambda a: bool(np.isfinite(a).all()) and a.size < 500)
    body = _branch(d, x, d.integer(0, 2))
    turn, go, state = d.name(), d.name(), d.name()
    step = d.node(d.pick(_SUMS[:1] + _SUMS[2:]), [state, body.outputs[0]])
    same = d.node("Identity", [go])
    outs = [same.outputs[0], step.outputs[0]]
    nodes = [*body.nodes, step, same]
    listed = d.chance(0.4)
    if listed:
        row = d.node("Tanh", [step.outputs[0]])
        nodes.append(row)
        outs.append(row.outputs[0])
    inner = FuzzGraph(
        d.version,
        tuple(nodes),
        {turn: np.asarray(0, "int64"), go: np.asarray(True), state: d.known(x)},
        {},
        tuple(outs),
    )
    count = d.new(np.asarray(d.integer(0 if d.chance(0.1) else 1, 4), "int64"))
    return d.node("Loop", [count, "" if d.chance(0.5) else d.constant(True, "bool"), x], outputs=1 + listed, body=inner)


def _scan(d: Draw) -> FuzzNode:
    rows = d.value(("float32",), 2, 3, lambda a: 0 < a.size < 500 and a.shape[0] < 8)
    a = d.known(rows)
    first = d.like(rows, a.shape[1:])
    state, row = d.name(), d.name()
    step = d.node(d.pick(("Add", "Max", "Min")), [state, row])
    shown = d.node(d.pick(_STEPS), [step.outputs[0]])
    inner = FuzzGraph(d.version, (step, shown), {state: a[0], row: a[0]}, {}, (step.outputs[0], shown.outputs[0]))
    return d.node(
        "Scan",
        [first, rows],
        outputs=2,
        body=inner,
        num_scan_inputs=1,
        scan_input_directions=d.maybe([d.integer(0, 1)], 0.4),
    )


def _sequence(d: Draw) -> list[FuzzNode]:
    x = d.value(ANY, 1, 3)
    names = [x, *(d.like(x, d.known(x).shape) for _ in range(d.integer(0, 2)))]
    made = d.node("SequenceConstruct", names)
    nodes = [made]
    if d.chance(0.3):
        nodes.append(d.node("SequenceInsert", [made.outputs[0], x, *([d.constant(0)] if d.chance(0.5) else [])]))
    elif d.chance(0.3) and len(names) > 1:
        nodes.append(d.node("SequenceErase", [made.outputs[0], *([d.constant(0)] if d.chance(0.5) else [])]))
    listed = nodes[-1].outputs[0]
    end = d.pick(("at", "length", "join"))
    if end == "at":
        nodes.append(d.node("SequenceAt", [listed, d.constant(d.pick((0, -1)))]))
    elif end == "length":
        nodes.append(d.node("SequenceLength", [listed]))
    else:
        nodes.append(d.node("ConcatFromSequence", [listed], axis=d.pick((0, -1)), new_axis=d.maybe(1, 0.3)))
    return nodes


def _split_to_sequence(d: Draw) -> list[FuzzNode]:
    x = d.value(("float32", "int64", "int32"), 1, 3, lambda a: min(a.shape) > 0)
    axis = d.axis(d.known(x).ndim)
    split = d.node("SplitToSequence", [x], axis=axis, keepdims=d.maybe(d.integer(0, 1)))
    return [split, d.node("SequenceAt", [split.outputs[0], d.constant(d.pick((0, -1)))])]


SEQUENCES = ("SequenceConstruct", "SequenceInsert", "SequenceErase", "SplitToSequence")  # whose results are no tensors


def hidden(nodes: list[FuzzNode]) -> set[str]:
    """Which results are sequences."""
    return {name for node in nodes if node.op in SEQUENCES for name in node.outputs}


ROWS: dict[str, Row] = {
    "If": _if,
    "Loop": _loop,
    "Scan": _scan,
    "SequenceConstruct": _sequence,
    "SplitToSequence": _split_to_sequence,
}
