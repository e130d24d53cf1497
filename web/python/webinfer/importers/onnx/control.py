"""Branches and loops of ONNX: chosen and unrolled where their course is known while the model is read."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from webinfer.dtypes import DType
from webinfer.errors import ModelFormatError, ShapeError
from webinfer.graph.ir import Value
from webinfer.importers.core.control import ENDLESS, Turn, branch, check_turns, one_turn, repeat, seen
from webinfer.importers.core.limits import MAX_LOOP_TURNS
from webinfer.importers.core.partial_evaluation import NeedsUnrolling
from webinfer.importers.onnx.model import GraphInfo
from webinfer.importers.onnx.operation import Convert, LoopProgress, Operation
from webinfer.importers.onnx.tensors import DTYPES
from webinfer.ops import elementwise as ew
from webinfer.ops import gather
from webinfer.ops import movement as mv


def _if(op: Operation) -> list[Value]:
    """The results of one branch, or of both and a choice between them."""

    def side(taken: bool) -> list[Value]:
        return op.run(op.graph("then_branch" if taken else "else_branch"), [])

    def both() -> tuple[list[Value], list[Value]]:
        yes, no = ([op.dense(value) for value in side(taken)] for taken in (True, False))
        return yes, no

    if op.known(0):
        return side(bool(op.scalar(0)))
    try:
        return branch(op, op.value(0), side, both)
    except (ModelFormatError, ShapeError) as error:
        op.refuse(f"a branch on data, one side of which does not fit these sizes: {error}")


def _loop(op: Operation) -> list[Value]:
    """All turns one after the other: state first, then what each turn adds to a list."""
    body = op.graph("body")
    goes_on = op.optional(1) is None or bool(op.scalar(1))
    progress, count = op.context.loops.pop(op.index, None) if op.context.is_whole else None, len(op.inputs) - 2
    first = [op.dense(op.passed(i) or op.value(i)) for i in range(2, len(op.inputs))] if progress is None else []

    def run(number: Value, held: list[Value]) -> list[Value]:
        results = op.run(body, [number, op.scalar_of(1, DType.BOOL), *held])
        if len(results) != len(body.outputs) or len(results) <= count:
            op.fail(f"its body gives {len(results)} values for a state of {count}")
        return [op.dense(value) for value in results]

    most, may_repeat = op.optional(0), op.writer.known_values is not None
    if (
        goes_on
        and most is not None
        and progress is None
        and (not op.known(0) or (may_repeat and op.integer(0) > MAX_LOOP_TURNS))
    ):
        with suppress(NeedsUnrolling):
            return repeat(op, most, first, run)
        may_repeat = False
    limit = ENDLESS if most is None else op.integer(0)
    lists: list[list[Value]] = [[] for _ in body.outputs[1 + count :]]
    state, turn = first, 0
    if progress is not None:
        turn, state, lists, may_repeat = progress.turn, progress.state, list(map(list, progress.lists)), False
    while goes_on and turn < limit:
        check_turns(op, turn + 1)
        if op.context.is_whole:
            op.context.loops[op.index] = LoopProgress(op.writer.mark(), turn, state, list(map(list, lists)))
        answer, *results = run(op.scalar_of(turn, DType.INT64), state)
        if answer.constant is None and may_repeat:
            with suppress(NeedsUnrolling):
                return repeat(op, most, first, run)
            may_repeat = False
        goes_on, state = seen(op, answer), results[:count]
        for listed, value in zip(lists, results[count:], strict=True):
            listed.append(value)
        turn += 1
    if op.context.is_whole:
        op.context.loops.pop(op.index, None)
    return state + (list(map(op.stack, lists)) if turn else _empty_lists(op, body, first, run))


def _empty_lists(op: Operation, body: GraphInfo, state: list[Value], run: Turn) -> list[Value]:
    """What a loop without turns lists: nothing, in the types that a turn would have; else in the declared ones."""
    listed, start = body.outputs[1 + len(state) :], op.writer.position
    if not listed:
        return []
    if op.writer.is_tentative:
        raise NeedsUnrolling
    try:
        inputs, results = one_turn(op, state, run)
    except NeedsUnrolling:
        if any(info.container or info.kind not in DTYPES for info in listed):
            op.refuse("a loop without turns that lists results of unknown types")
        shapes = [[d if isinstance(d, int) else 0 for d in info.shape or ()] for info in listed]
        return [op.zeros((0, *s), DTYPES[i.kind].inner) for s, i in zip(shapes, listed, strict=True)]
    op.writer.take(start, inputs)
    return [op.zeros((0, *value.type.shape), value.type.dtype) for value in results[1 + len(state) :]]


def _scan(op: Operation) -> list[Value]:
    """The body for each element of the lists, one after the other."""
    body, scanned = op.graph("body"), op.whole("num_scan_inputs", 0)
    if op.opset < 9:
        op.refuse(f"opset {op.opset}, which scans batches")
    count = len(op.inputs) - scanned
    if not 0 < scanned <= len(op.inputs):
        op.fail(f"{scanned} lists among {len(op.inputs)} inputs")
    state = [op.value(i) for i in range(count)]
    lists = [op.value(count + i) for i in range(scanned)]
    given = len(body.outputs) - count
    axes, backwards = (op.wholes(f"scan_input_{name}", (0,) * scanned) or () for name in ("axes", "directions"))
    out_axes, reversed_ = (op.wholes(f"scan_output_{name}", (0,) * given) or () for name in ("axes", "directions"))
    axes = tuple(op.axis(a, x.type.rank) for a, x in zip(axes, lists, strict=True))
    turns = lists[0].type.shape[axes[0]]
    if any(x.type.shape[a] != turns for x, a in zip(lists, axes, strict=True)):
        op.fail(f"lists of {[x.type.shape for x in lists]} along axes {axes}")

    def run(number: Value | int, held: list[Value]) -> list[Value]:
        parts = [_element(op, x, axis, number, turns if backward else 0) for x, axis, backward in
                 zip(lists, axes, backwards, strict=True)]  # fmt: skip
        return [op.dense(value) for value in op.run(body, [*held, *parts])]

    state, stacks = _scanned(op, turns, state, run)
    placed = []
    for y, axis, backward in zip(stacks, out_axes, reversed_, strict=True):
        y = op.emit(mv.REVERSE, [y], mv.ReverseAttrs((0,))) if backward else y
        place = op.axis(axis, y.type.rank)
        placed.append(op.transpose(y, [*range(1, place + 1), 0, *range(place + 1, y.type.rank)]))
    return state + placed


def _element(op: Operation, x: Value, axis: int, number: Value | int, last: int) -> Value:
    """An element of a list, of `last` counted from its end; one by a number that only runs know is looked up."""
    if isinstance(number, int):
        return op.row(x, axis, last - 1 - number if last else number)
    if last:
        number = op.binary(ew.SUB, op.scalar_of(last - 1, DType.INT64), number)
    return op.emit(gather.GATHER, [x, op.cast(number, DType.INT32)], gather.GatherAttrs(axis))


def _scanned(
    op: Operation, turns: int, state: list[Value], run: Callable[[Value | int, list[Value]], list[Value]]
) -> tuple[list[Value], list[Value]]:
    """The last state, and what the turns list, one behind the other along the first axis."""
    count, first = len(state), state
    if turns > MAX_LOOP_TURNS and op.writer.known_values is not None:
        goes_on = op.scalar_of(1, DType.BOOL)
        with suppress(NeedsUnrolling):
            found = repeat(op, op.scalar_of(turns, DType.INT64), first, lambda n, held: [goes_on, *run(n, held)])
            return found[:count], found[count:]
    check_turns(op, turns)
    lists: list[list[Value]] = []
    for turn in range(turns):
        results = run(turn, state)
        state = results[:count]
        lists = lists or [[] for _ in results[count:]]
        for listed, value in zip(lists, results[count:], strict=True):
            listed.append(value)
    if not turns:
        op.refuse("a scan of empty lists")
    return state, list(map(op.stack, lists))


CONVERTERS: dict[str, Convert] = {
    "If": _if,
    "Loop": _loop,
    "Scan": _scan,
}
