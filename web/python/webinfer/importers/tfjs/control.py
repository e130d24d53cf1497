"""TensorFlow's control flow of both generations, and lists of tensors: unrolled while the model is read."""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.graph.ir import TensorType, Value
from webinfer.graph.printer import safe_name
from webinfer.importers.core.control import branch, loop
from webinfer.importers.core.limits import MAX_READ, within
from webinfer.importers.core.spectral import Complex
from webinfer.importers.core.tensor_list import Listed
from webinfer.importers.tfjs.movement import rows
from webinfer.importers.tfjs.operation import Convert, Dead, Operation


def _passed(op: Operation) -> list[Value]:
    return [op.passed(i) for i in range(op.count)]


# ---- the first generation: nodes that pass values on, or not


def _switch(op: Operation) -> list[Value]:
    """The value on one of two ways; on both where the condition is data."""
    x, condition = op.passed(0), op.value(1)
    if condition.constant is None or op.walk.op_of(op.inputs[1]) == "LoopCond":
        return [x, x]
    op.context.branches = True
    return [Dead(), x] if op.scalar(1) else [x, Dead()]


def _merge(op: Operation) -> list[Value]:
    """What arrived; where both ways did, a choice by the condition between them."""
    found = [(key, op.scope[key]) for key in op.inputs if not isinstance(op.scope.get(key, Dead()), Dead)]
    if len(found) == 1:
        place = op.inputs.index(found[0][0])
        return [found[0][1], op.scalar_of(place, DType.INT32)]
    if len(found) != 2:
        op.refuse(f"{len(found)} values that meet")
    (first, a), (second, b) = found
    ways = op.walk.order.sides
    sides = sorted((c, way) for c, way in ways.get(first, ()) if (c, not way) in ways.get(second, frozenset()))
    alone = sorted(ways.get(first, frozenset()) ^ ways.get(second, frozenset()))
    if not sides and len(alone) == 1:  # the other way is a constant that nothing ties to it
        condition, way = alone[0]
        sides = [(condition, way if alone[0] in ways.get(first, ()) else not way)]
    if len(sides) != 1:
        op.refuse("values that meet from branches that do not belong together")
    condition, way = sides[0]
    yes, no = (a, b) if way else (b, a)
    if any(isinstance(value, (Listed, Complex)) for value in (a, b)):
        op.refuse("lists that depend on data")
    places = [op.scalar_of(i, DType.INT32) for i in ((0, 1) if way else (1, 0))]
    sides_of = ([yes, places[0]], [no, places[1]])
    return branch(op, op.scope[condition], lambda taken: sides_of[0 if taken else 1], lambda: sides_of)


def _exit(op: Operation) -> Value:
    """The value that leaves a loop, which turns when its first Exit is reached."""
    key = op.inputs[0] if op.inputs else ""
    if key not in op.scope:
        _turn(op)
    return op.passed(0)


def _turn(op: Operation) -> None:
    frame = op.walk.order.frames[op.walk.order.exits[op.info.name]]
    starts, nexts = [], []
    for merge in frame.merges:
        back = [key for key in merge.inputs if op.walk.op_of(key) == "NextIteration"]
        start = [key for key in merge.inputs if key not in back]
        if len(back) != 1 or start[0] not in op.scope:
            op.fail(f"node {safe_name(merge.name)} does not begin and go on")
        starts.append(op.scope[start[0]])
        nexts.append(back[0])
    if not frame.condition:
        op.fail("its loop has no LoopCond")
    switches = [node for node in frame.nodes if node.op == "Switch" and op.walk.op_of(node.inputs[-1]) == "LoopCond"]
    if any(isinstance(value, Dead) for value in starts):
        op.scope.update((node.name, Dead()) for node in switches)
        return
    scope, names = op.scope.new_child(), [merge.name for merge in frame.merges]

    def condition(state: list[Value]) -> list[Value]:
        scope.maps[0].clear()
        scope.update(zip(names, state, strict=True))
        op.walk.convert(frame.condition, scope)
        return [scope[node.name] for node in frame.condition if node.op == "LoopCond"]

    def body(state: list[Value]) -> list[Value]:
        if any(scope.get(name) is not value for name, value in zip(names, state, strict=True)):
            condition(state)
        op.walk.convert(frame.nodes, scope)
        return [scope[key] for key in nexts]

    with op.writer.nested(op.what):
        ends = dict(zip(names, loop(op, starts, condition, body), strict=True))
    for node in switches:
        if node.inputs[0] not in ends:
            op.fail(f"node {safe_name(node.name)} does not belong to its loop")
        op.scope[node.name] = ends[node.inputs[0]]


# ---- the second generation: functions


def _if(op: Operation) -> list[Value]:
    """The results of one function, or of both and a choice between them."""
    inputs = _passed(op)[1:]

    def side(taken: bool) -> list[Value]:
        return op.run("then_branch" if taken else "else_branch", inputs)

    return branch(op, op.cast(op.value(0), DType.BOOL), side, lambda: (side(True), side(False)))


def _while(op: Operation) -> list[Value]:
    starts = _passed(op)
    return loop(op, starts, lambda v: op.run("cond", v), lambda v: op.run("body", v))


def _call(op: Operation) -> list[Value]:
    return op.run("f", _passed(op))


# ---- lists of tensors


def _is_array(op: Operation) -> bool:
    return op.name.startswith("TensorArray")


def _listed(op: Operation) -> Listed:
    """The list: the first input, of arrays the last, which tells the order of reading and writing."""
    key = op.count - 1 if _is_array(op) else 0
    found = op.passed(key)
    if not isinstance(found, Listed):
        op.fail(f"input {key} is not a list of tensors")
    return found


def _fitting(op: Operation, items: Sequence[Value | None], listed: Listed) -> list[Value]:
    """All elements; one that was not written is zeros of the type that the others have."""
    known = next((x.type for x in (*items, *listed.items) if x is not None), listed.element)
    found = list[Value]()
    for item in items:
        if item is None and known is None:
            op.refuse("elements that nothing was written to")
        found.append(item if item is not None else op.zeros(known.shape, known.dtype))  # type: ignore[union-attr]
    return found


def _room(op: Operation, count: int) -> int:
    within(f"{op.what}: elements of a list", count, MAX_READ, "use shorter lists")
    return max(count, 0)


def _new(op: Operation) -> list[Value]:
    """A list without elements, or with room for as many as the node says."""
    count = 0 if op.name == "EmptyTensorList" else op.integer(0 if _is_array(op) else 1)
    sizes = op.shape("element_shape") if _is_array(op) else op.integers(0)
    dtype = op.dtype("dtype" if _is_array(op) else "element_dtype")
    scalar = not _is_array(op) and op.value(0).type.rank == 0  # -1 alone: a shape of any rank
    known = sizes is not None and not scalar and min(sizes, default=0) >= 0
    listed = Listed([None] * _room(op, count), TensorType(tuple(sizes or ()), dtype) if known else None)
    return [listed, listed]


def _from_tensor(op: Operation) -> Value:
    x = op.value(0)
    return Listed(rows(op, x), TensorType(x.type.shape[1:], x.type.dtype))


def _set(op: Operation) -> Value:
    listed, place, x = _listed(op), op.integer(1), op.value(2)
    if place < 0:
        op.fail(f"element {place} of a list")
    items = listed.items + [None] * (_room(op, place + 1) - len(listed.items))
    items[place] = x
    return Listed(items, x.type)


def _picked(op: Operation, listed: Listed, places: Sequence[int]) -> list[Value]:
    if any(not 0 <= place < len(listed.items) for place in places):
        op.fail(f"elements {tuple(places)} of a list of {len(listed.items)}")
    return _fitting(op, [listed.items[place] for place in places], listed)


def _get(op: Operation) -> Value:
    return _picked(op, _listed(op), [op.integer(1)])[0]


def _push(op: Operation) -> Value:
    listed, x = _listed(op), op.value(1)
    _room(op, len(listed.items) + 1)
    return Listed([*listed.items, x], x.type)


def _pop(op: Operation) -> list[Value]:
    listed = _listed(op)
    return [Listed(listed.items[:-1], listed.element), *_picked(op, listed, [len(listed.items) - 1])]


def _joined(op: Operation, listed: Listed, items: Sequence[Value]) -> Value:
    if items:
        return op.stack(op.alike(items))
    if listed.element is None:
        op.refuse("a stack of no tensors")
    return op.zeros((0, *listed.element.shape), listed.element.dtype)


def _stack(op: Operation) -> Value:
    listed = _listed(op)
    return _joined(op, listed, _fitting(op, listed.items, listed))


def _gathered(op: Operation) -> Value:
    listed = _listed(op)
    return _joined(op, listed, _picked(op, listed, op.integers(1)))


def _scattered(op: Operation) -> Value:
    """A tensor's rows at places of a list: of a new one, or of an array."""
    x, places = op.value(2 if _is_array(op) else 0), op.integers(1)
    found = rows(op, x)
    if len(places) != len(found) or min(places, default=0) < 0:
        op.fail(f"{len(found)} rows for places {places}")
    size = op.integer(3) if op.name == "TensorListScatterV2" else 0
    items: list[Value | None] = list(_listed(op).items) if _is_array(op) else []
    items += [None] * (_room(op, max((*places, size - 1, -1)) + 1) - len(items))
    for place, row in zip(places, found, strict=True):
        items[place] = row
    return Listed(items, TensorType(x.type.shape[1:], x.type.dtype))


def _concatenated(op: Operation) -> list[Value]:
    listed = _listed(op)
    items = _fitting(op, listed.items, listed)
    if not items or any(not x.type.rank for x in items):
        op.refuse("a list of no rows")
    lengths = op.constant([x.type.shape[0] for x in items], DType.INT32)
    return [op.concat(op.alike(items), 0) if len(items) > 1 else items[0], lengths]


def _parted(op: Operation) -> Value:
    """A tensor cut into rows of several lengths."""
    x, lengths = op.value(1 if _is_array(op) else 0), op.integers(2)
    return Listed(op.pieces(x, op.axis(0, x.type.rank), lengths), None)


def _length(op: Operation) -> Value:
    return op.scalar_of(len(_listed(op).items), DType.INT32)


def _resized(op: Operation) -> Value:
    listed, size = _listed(op), _room(op, op.integer(1))
    return Listed([*listed.items[:size], *[None] * (size - len(listed.items))], listed.element)


CONVERTERS: dict[str, Convert] = {
    "EmptyTensorList": _new,
    "Enter": lambda op: op.passed(0),
    "Exit": _exit,
    "If": _if,
    "LoopCond": lambda op: op.value(0),
    "Merge": _merge,
    "NextIteration": lambda op: op.passed(0),
    "PartitionedCall": _call,
    "StatefulPartitionedCall": _call,
    "StatelessIf": _if,
    "StatelessWhile": _while,
    "Switch": _switch,
    "TensorArrayCloseV3": lambda op: op.passed(0),
    "TensorArrayConcatV3": _concatenated,
    "TensorArrayGatherV3": _gathered,
    "TensorArrayReadV3": _get,
    "TensorArrayScatterV3": _scattered,
    "TensorArraySizeV3": _length,
    "TensorArraySplitV3": _parted,
    "TensorArrayV3": _new,
    "TensorArrayWriteV3": _set,
    "TensorListConcat": _concatenated,
    "TensorListConcatV2": _concatenated,
    "TensorListFromTensor": _from_tensor,
    "TensorListGather": _gathered,
    "TensorListGetItem": _get,
    "TensorListLength": _length,
    "TensorListPopBack": _pop,
    "TensorListPushBack": _push,
    "TensorListReserve": _new,
    "TensorListResize": _resized,
    "TensorListScatter": _scattered,
    "TensorListScatterV2": _scattered,
    "TensorListSetItem": _set,
    "TensorListSplit": _parted,
    "TensorListStack": _stack,
    "While": _while,
}
