"""ONNX's sequences and optionals between operators: lists of values while a model is read, of which nothing is left."""

from __future__ import annotations

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.core.limits import MAX_READ, within
from webinfer.importers.core.tensor_list import Listed
from webinfer.importers.onnx.operation import Convert, Operation


def _sequence(op: Operation, key: int = 0) -> list[Value]:
    found = op.passed(key)
    if not isinstance(found, Listed):
        op.fail(f"input {key} is not a sequence")
    return [value for value in found.items if value is not None]


def _place(op: Operation, key: int, size: int) -> int:
    """A position from 0, as -1 is the last."""
    place = op.integer(key)
    if not -size <= place < size:
        op.fail(f"position {place} is not one of {size}")
    return place % size


def _made(op: Operation) -> Value:
    """A sequence of all inputs, or an empty one."""
    values = [op.passed(i) for i in range(len(op.inputs))]
    if any(value is None or isinstance(value, Listed) for value in values):
        op.fail("a sequence holds tensors")
    return Listed(values)


def _at(op: Operation) -> Value:
    values = _sequence(op)
    return values[_place(op, 1, len(values))]


def _inserted(op: Operation) -> Value:
    values, more = _sequence(op), op.passed(1)
    if more is None or isinstance(more, Listed):
        op.fail("a sequence holds tensors")
    within(f"{op.what}: values", len(values), MAX_READ, "use shorter sequences")
    end = len(values) if op.optional(2) is None else op.integer(2)
    if not -len(values) <= end <= len(values):
        op.fail(f"position {end} is not one of {len(values) + 1}")
    return Listed([*values[:end], more, *values[end:]])


def _erased(op: Operation) -> Value:
    values = _sequence(op)
    place = len(values) - 1 if op.optional(1) is None else _place(op, 1, len(values))
    return Listed(value for i, value in enumerate(values) if i != place)


def _length(op: Operation) -> Value:
    return op.scalar_of(len(_sequence(op)), DType.INT64)


def _split(op: Operation) -> Value:
    """Parts of a tensor along an axis: of one each, of one size, or of the sizes that are listed."""
    x = op.value(0)
    axis = op.axis(op.whole("axis", 0), x.type.rank)
    size, sizes = x.type.shape[axis], [1]
    given = op.optional(1)
    if given is not None:
        sizes = list(op.integers(1))
    if given is None or given.type.rank == 0:
        if sizes[0] < 1:
            op.fail(f"parts of {sizes[0]} elements")
        within(f"{op.what}: parts", -(-size // sizes[0]), MAX_READ, "use fewer")
        sizes = [min(sizes[0], size - start) for start in range(0, size, sizes[0])]
    parts = op.pieces(x, axis, sizes)
    if given is None and not op.whole("keepdims", 1):
        parts = [op.reshape(part, (*x.type.shape[:axis], *x.type.shape[axis + 1 :])) for part in parts]
    return Listed(parts)


def _mapped(op: Operation) -> list[Value]:
    """What a graph makes of each element of sequences, one after the other; tensors beside them stay as they are."""
    body, given = op.graph("body"), [op.passed(i) for i in range(len(op.inputs))]
    count = len(_sequence(op))
    found: list[list[Value]] = [[] for _ in body.outputs]
    for i in range(count):
        parts = []
        for key, value in enumerate(given):
            if value is None or (isinstance(value, Listed) and len(value.items) != count):
                op.fail(f"input {key} is neither a tensor nor a sequence of {count}")
            parts.append(_sequence(op, key)[i] if isinstance(value, Listed) else value)
        for listed, result in zip(found, op.run(body, parts), strict=True):
            listed.append(op.dense(result))
    return [Listed(values) for values in found]


def _joined(op: Operation) -> Value:
    values = [op.dense(value) for value in _sequence(op)]
    if not values:
        op.fail("the sequence is empty")
    rank = values[0].type.rank
    if op.whole("new_axis", 0):
        return op.stack(values, op.axis(op.whole("axis", 0), rank + 1))
    axis = op.axis(op.whole("axis", 0), rank)
    values = [value for value in values if value.type.rank != rank or value.type.shape[axis]] or values[:1]
    return op.concat(values, axis) if len(values) > 1 else values[0]


def _optional(op: Operation) -> Value:
    """What is there stands for itself."""
    found = op.passed(0)
    if found is None:
        op.refuse("an optional without a value")
    return found


def _present(op: Operation) -> Value:
    return op.scalar_of(op.passed(0) is not None, DType.BOOL)


CONVERTERS: dict[str, Convert] = {
    "ConcatFromSequence": _joined,
    "Optional": _optional,
    "OptionalGetElement": _optional,
    "OptionalHasElement": _present,
    "SequenceAt": _at,
    "SequenceConstruct": _made,
    "SequenceEmpty": _made,
    "SequenceErase": _erased,
    "SequenceInsert": _inserted,
    "SequenceLength": _length,
    "SequenceMap": _mapped,
    "SplitToSequence": _split,
}
