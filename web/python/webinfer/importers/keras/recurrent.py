"""Recurrent layers, and layers around others: a layer for each step, a layer in both directions.

Source:  keras v2.15, layers/rnn; what the gates are called and in which order they lie
"""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.graph.printer import safe_name
from webinfer.importers.core.recurrent import SHOWN, StepCell, product, unrolled
from webinfer.importers.keras.elementwise import activated, function_name
from webinfer.importers.keras.operation import Convert, Operation
from webinfer.importers.tfjs.model import part, parts
from webinfer.ops import elementwise as ew
from webinfer.ops import movement as mv
from webinfer.ops.recurrent import RECURRENT, Cell, RecurrentAttrs

KINDS = {"GRU": Cell.GRU, "LSTM": Cell.LSTM, "SimpleRNN": Cell.RNN}
_LSTM = (0, 3, 1, 2)  # where the gates input, output, forget, new lie in the file: input, forget, new, output
BOTH = {"ave": ew.ADD, "mul": ew.MUL, "sum": ew.ADD}


def _rows(op: Operation, v: Value, cell: Cell) -> Value:
    """Rows of gates in the order that the engine has."""
    if cell is not Cell.LSTM:
        return v
    parts = op.pieces(v, 0, [v.type.shape[0] // 4] * 4)
    return op.concat([parts[i] for i in _LSTM], 0)


def _weights(op: Operation, cell: Cell) -> tuple[Value, Value, Value | None, Value | None]:
    """Weights of x and of states [gates*H, .], the bias of all sums, and that of the states' product alone."""
    w, r = (op.weight(name, 2) for name in ("kernel", "recurrent_kernel"))
    size = r.type.shape[0]
    if size < 1 or r.type.shape[1] != cell.gates * size or w.type.shape[1] != r.type.shape[1]:
        op.fail(f"its weights {w.type.shape} and {r.type.shape} do not fit {cell.gates} gates")
    bias, past = None, None
    if op.flag("use_bias", True):
        if cell is Cell.GRU and op.flag("reset_after"):
            both = op.weight("bias", 2)
            bias, past = op.row(both, 0, 0), op.row(both, 0, 1)
        else:
            bias = _rows(op, op.weight("bias"), cell)
    return _rows(op, op.transpose(w, (1, 0)), cell), _rows(op, op.transpose(r, (1, 0)), cell), bias, past


def _states(op: Operation, count: int, shape: tuple[int, int]) -> list[Value]:
    """The states before the first step: given, kept from the last run, or zeros."""
    if len(op.inputs) > 1:
        if len(op.inputs) != count + 1:
            op.fail(f"{len(op.inputs) - 1} states are given, it has {count}")
        return [op.reshape(op.real(i + 1), shape) for i in range(count)]
    return kept(op, count, shape)


def kept(op: Operation, count: int, shape: tuple[int, ...]) -> list[Value]:
    """The states that the last run left, or zeros."""
    zeros = op.zeros(shape, DType.FLOAT32)
    if op.flag("stateful"):
        first = memoryview(bytes(zeros.type.nbytes))
        return [op.writer.variables.read(f"{'/'.join(op.path)}/{i}", zeros.type, first) for i in range(count)]
    return [zeros] * count


def last_states(op: Operation, states: Sequence[Value]) -> None:
    """Keeps the states for the next run, if the layer says so."""
    if op.flag("stateful"):
        for i, state in enumerate(states):
            op.writer.variables.write(f"{'/'.join(op.path)}/{i}", state, None)


def _recurrent(op: Operation) -> list[Value]:
    """The last state, or all [N, T, H]; then the last states, if they are wanted."""
    cell, x = KINDS[op.name], op.real()
    if x.type.rank != 3:
        op.fail(f"it reads {x.type}, needs rank 3")
    if op.flag("time_major"):
        op.refuse("time_major")
    backward, mask, sequences = op.flag("go_backwards"), op.mask(), op.flag("return_sequences")
    w, r, bias, past = _weights(op, cell)
    batch, steps, width = x.type.shape
    rows = op.reshape(op.transpose(x, (1, 0, 2)), (steps * batch, width))
    sums = op.reshape(product(op, rows, w, bias), (steps, batch, w.type.shape[0]))
    states = _states(op, 2 if cell is Cell.LSTM else 1, (batch, r.type.shape[1]))
    words = [op.config.get("recurrent_activation", "hard_sigmoid"), op.config.get("activation", "tanh")]
    gate, new = (function_name(word) for word in words)
    after = cell is Cell.GRU and op.flag("reset_after")
    if mask is None and (gate == "sigmoid" or cell is Cell.RNN) and new in SHOWN:
        given = [sums, r, past, *states, *[None] * (2 - len(states)), None, None]
        found = op.emit_all(RECURRENT, given, RecurrentAttrs(cell, backward, after, activation=SHOWN[new]))
    else:
        turned = None if mask is None else op.transpose(mask, (1, 0))
        f, g = ((lambda v, word=word: activated(op, v, word or "linear")) for word in words)
        functions = [g] if cell is Cell.RNN else [f, g, g][: 3 if cell is Cell.LSTM else 2]
        found = unrolled(StepCell(op, cell, r, past, functions, after), sums, states, backward, turned)
    every, *last = found
    last_states(op, last)
    every = op.transpose(every, (1, 0, 2))
    if sequences and backward and "positions" not in op.config:  # as the steps were taken
        every = op.emit(mv.REVERSE, [every], mv.ReverseAttrs((1,)))
    if sequences and mask is not None:
        op.context.masks[every] = mask
    return [every if sequences else last[0], *(last if op.flag("return_state") else ())]


def _cells(op: Operation) -> list[Value]:
    """A cell, or several that read each other, at each step: as many layers in a row compute the same."""
    cell = part(op.config, "cell", dict, op.what)
    settings = part(cell, "config", dict, op.what)
    stacked = cell.get("class_name") == "StackedRNNCells"
    cells = parts(settings, "cells", dict, op.what) if stacked else [cell]
    if len(cells) > 1 and (len(op.inputs) > 1 or op.flag("return_state")):
        op.refuse("states of several cells that are given or returned")
    values, results = op.values(), list[Value]()
    for i, each in enumerate(cells):
        kind, own = str(each.get("class_name")), part(each, "config", dict, op.what)
        if not kind.endswith("Cell"):
            op.refuse(f"{safe_name(kind)} as a cell")
        numbered = f"RNNCell_{i}"  # as TensorFlow.js names what the weights of several belong to
        name = numbered if op.context.weights.holds(numbered, "kernel") else str(own.get("name") or kind)
        rest = {} if i == len(cells) - 1 else {"return_sequences": True, "return_state": False}
        changed = {key: op.flag(key) for key in ("return_sequences", "return_state", "stateful", "time_major")}
        layer = {"class_name": kind.removesuffix("Cell"), "config": own}
        backward = op.flag("go_backwards") and i == 0  # the others read what it has turned
        results = op.inner(layer, name, values, go_backwards=backward, **{**changed, **rest})
        values = results[:1]
    if not results:
        op.fail("it has no cells")
    return results


def _bidirectional(op: Operation) -> list[Value]:
    layer = part(op.config, "layer", dict, op.what)
    settings = part(layer, "config", dict, op.what)
    if layer.get("class_name") not in KINDS or settings.get("go_backwards"):
        op.refuse("other layers than GRU, LSTM and SimpleRNN, or turned ones")
    values, name = op.values(), str(settings.get("name"))
    half = len(values) // 2
    ways = []
    for i, word in enumerate(("forward", "backward")):
        given = [values[0], *values[1 + i * half : 1 + i * half + half]]
        ways.append(op.inner(layer, f"{word}_{name}", given, go_backwards=bool(i), positions=True))
    (a, *first), (b, *second) = ways
    mode = op.config.get("merge_mode", "concat")
    if mode is None:
        return [a, b, *first, *second]
    if mode == "concat":
        return [op.concat([a, b], a.type.rank - 1), *first, *second]
    op.chosen("merge_mode", BOTH, "concat")
    y = op.binary(BOTH[mode], a, b)
    return [op.unary(ew.LINEAR, y, 0.5) if mode == "ave" else y, *first, *second]


def _distributed(op: Operation) -> Value:
    """The layer on all steps at once, as one batch."""
    x = op.value(0)
    if x.type.rank < 3:
        op.fail(f"it reads {x.type}, needs rank 3")
    n, steps, *rest = x.type.shape
    y = op.inner(op.config.get("layer"), None, [op.reshape(x, (n * steps, *rest))])[0]
    return op.reshape(y, (n, steps, *y.type.shape[1:]))


CONVERTERS: dict[str, Convert] = {
    **dict.fromkeys(KINDS, _recurrent),
    "Bidirectional": _bidirectional,
    "RNN": _cells,
    "TimeDistributed": _distributed,
}
