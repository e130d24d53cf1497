"""ONNX's recurrent layers: one product for the inputs of all steps, then one node; with rare functions step by step.

Source:  onnx v1.23, LSTM-22, GRU-22, RNN-22
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import replace

from webinfer.graph.ir import Value
from webinfer.importers.core.recurrent import SHOWN, Function, StepCell, product, unrolled
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops.dynamic_range import ROUND_ROWS, RoundRowsAttrs
from webinfer.ops.recurrent import RECURRENT, Cell, RecurrentAttrs

ACTIVATIONS = {
    "relu": ew.RELU,
    "sigmoid": ew.SIGMOID,
    "softplus": ew.SOFTPLUS,
    "softsign": ew.SOFTSIGN,
    "tanh": ew.TANH,
}
PARAMETRIC = {  # with the names of their numbers, and what these are where the file gives none
    "affine": (ew.LINEAR, {"alpha": 1.0, "beta": 0.0}),
    "elu": (ew.ELU, {"alpha": 1.0}),
    "hardsigmoid": (ew.HARD_SIGMOID, {"alpha": 0.2, "beta": 0.5}),
    "leakyrelu": (ew.LEAKY_RELU, {"alpha": 0.01}),
    "scaledtanh": (ew.TANH, {"alpha": 1.0, "beta": 1.0}),
}
DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


class _Cell:
    """Weights of one direction.

    Shapes:  w [gates*H, I], r [gates*H, H], b [2*gates*H] or absent
    """

    kind = Cell.RNN
    usual: tuple[str, ...] = ("Tanh",)

    def __init__(self, op: Operation, pick: int, count: int) -> None:
        self.op = op
        w, r, b = op.value(1), op.value(2), op.optional(3)
        self.gates, self.pick = self.kind.gates, pick
        self.size = op.whole("hidden_size", r.type.shape[-1])
        if w.type.rank != 3 or r.type.shape != (count, self.gates * self.size, self.size):
            op.fail(f"weights {w.type.shape} and {r.type.shape} do not fit {count} directions of {self.size} units")
        if w.type.shape[:2] != (count, self.gates * self.size):
            op.fail(f"weights {w.type.shape} do not fit {self.gates} gates of {self.size} units")
        self.w, self.r = (op.row(v, 0, pick) for v in (w, r))
        self.b = self.rb = None
        if b is not None:
            if b.type.shape != (count, 2 * self.gates * self.size):
                op.fail(f"bias {b.type.shape} does not fit {self.gates} gates of {self.size} units")
            both = op.row(b, 0, pick)
            half = self.gates * self.size
            self.b, self.rb = op.cut(both, 0, 0, half), op.cut(both, 0, half, half)
        many = len(self.usual)
        names = [name.lower() for name in op.words("activations", ()) or self.usual * count]
        self.names, self.numbers = names[pick * many :][:many], _numbers(op, names)[pick * many :][:many]
        p = op.optional(7) if self.kind is Cell.LSTM else None
        self.peephole = None if p is None else op.row(p, 0, pick)

    def attributes(self, backward: bool) -> RecurrentAttrs | None:
        """What one node for the whole sequence is told; None where it lacks the functions."""
        *gates, new, shown = self.names if self.kind is Cell.LSTM else [*self.names, self.names[-1]]
        if any(name != "sigmoid" for name in gates) or new != shown or new not in SHOWN:
            return None
        clip = self.op.real("clip", math.inf)
        if clip <= 0:
            self.op.fail(f"clip {clip} must be positive")
        after = bool(self.op.whole("linear_before_reset", 0))
        return RecurrentAttrs(self.kind, backward, after, activation=SHOWN[new], clip=clip)

    def functions(self) -> list[Function]:
        """The activations as operators."""
        if any(name not in ACTIVATIONS and name not in PARAMETRIC for name in self.names):
            self.op.refuse(f"activations {', '.join(self.names)}")
        if len(self.names) != len(self.usual):
            self.op.fail(f"{len(self.names)} activations, needs {len(self.usual)}")
        return [self._function(name, given) for name, given in zip(self.names, self.numbers, strict=True)]

    def _function(self, name: str, numbers: list[float]) -> Function:
        op = self.op
        if name in ACTIVATIONS:
            return functools.partial(op.unary, ACTIVATIONS[name])
        if name == "scaledtanh":
            return lambda x: op.unary(ew.LINEAR, op.unary(ew.TANH, op.unary(ew.LINEAR, x, numbers[1])), numbers[0])
        return lambda x: op.unary(PARAMETRIC[name][0], x, *numbers)

    def inputs(self, x: Value) -> Value:
        """What the inputs add to the gates of each step. Shapes:  x [S*B, I] -> [S*B, gates*H]"""
        return product(self.op, x, self.w, self.b)

    def unrolled(self, sums: Value, now: list[Value], backward: bool, lengths: Value | None) -> list[Value]:
        """All states [S, B, H] and the last ones, where no node for whole sequences has the functions."""
        op = self.op
        if lengths is not None or "clip" in op.attributes:
            op.refuse(f"clip or sequences of several lengths with activations {', '.join(self.names)}")
        after = bool(op.whole("linear_before_reset", 0))
        cell = StepCell(op, self.kind, self.r, self.rb, self.functions(), after, self.peephole)
        return unrolled(cell, sums, now, backward)


def _numbers(op: Operation, names: Sequence[str]) -> list[list[float]]:
    """The numbers of each activation; those that have some take the next ones of the file's lists."""
    lists = {name: iter(op.reals(f"activation_{name}") or ()) for name in ("alpha", "beta")}
    usual = [PARAMETRIC[name][1] if name in PARAMETRIC else {} for name in names]
    return [[next(lists[key], default) for key, default in row.items()] for row in usual]


class _GruCell(_Cell):
    kind = Cell.GRU
    usual = ("Sigmoid", "Tanh")


class _LstmCell(_Cell):
    kind = Cell.LSTM
    usual = ("Sigmoid", "Tanh", "Tanh")


class _RoundedLstmCell(_LstmCell):
    """One whose inputs and states are rounded to 8 bits before their products, as ONNX Runtime does."""

    def attributes(self, backward: bool) -> RecurrentAttrs | None:
        """As of other layers, with the levels of the state."""
        plain = super().attributes(backward)
        return plain and replace(plain, symmetric=False)

    def inputs(self, x: Value) -> Value:
        """As of other layers; ONNX Runtime has one scale for all steps."""
        return super().inputs(self.op.emit(ROUND_ROWS, [x], RoundRowsAttrs(0)))


def rounded_lstm(op: Operation) -> list[Value]:
    """An LSTM beside weights of 8 bits. Loading drops the roundings, unless they are asked for."""
    return _recurrent(op, _RoundedLstmCell, 2)


def _lengths(op: Operation, steps: int) -> Value | None:
    """How long each sequence is; None where all have all steps."""
    lengths = op.optional(4)
    return None if lengths is None or (op.known(4) and all(n == steps for n in op.integers(4))) else lengths


def _recurrent(op: Operation, kind: type[_Cell], states: int) -> list[Value]:
    """All states [S, directions, B, H], then the last ones [directions, B, H]; with layout 1 batches come first."""
    word = op.word("direction", "forward")
    if word not in DIRECTIONS:
        op.fail(f"direction {word!r} is not one of {sorted(DIRECTIONS)}")
    ways, batch_first = DIRECTIONS[word], bool(op.whole("layout", 0))
    x = op.value(0)
    if x.type.rank != 3:
        op.fail(f"input {x.type.shape} is not a sequence of batches")
    x = op.transpose(x, (1, 0, 2)) if batch_first else x
    steps, batch, width = x.type.shape
    if op.whole("input_forget", 0):
        op.refuse("input_forget")
    lengths, found = _lengths(op, steps), list[list[Value]]()
    for pick, backward in enumerate(ways):
        cell = kind(op, pick, len(ways))
        now = [_first(op, 5 + i, pick, (batch, cell.size), batch_first, x) for i in range(states)]
        if not steps or not batch:  # no step changes the states; ONNX Runtime 1.31 gives what lies in its memory
            found.append([op.empty((steps, batch, cell.size), x.type.dtype), *now])
            continue
        sums = op.reshape(cell.inputs(op.reshape(x, (steps * batch, width))), (steps, batch, cell.gates * cell.size))
        attrs = cell.attributes(backward)
        if attrs is None:
            found.append(cell.unrolled(sums, now, backward, lengths))
            continue
        inputs = [sums, cell.r, cell.rb, *now, *[None] * (2 - states), cell.peephole, lengths]
        found.append(op.emit_all(RECURRENT, inputs, attrs))
    every, *results = (
        op.stack(list(parts), 1 if i == 0 or batch_first else 0) for i, parts in enumerate(zip(*found, strict=True))
    )
    return [op.transpose(every, (2, 0, 1, 3)) if batch_first else every, *results]


def _first(op: Operation, key: int, pick: int, shape: tuple[int, int], batch_first: bool, like: Value) -> Value:
    state = op.optional(key)
    if state is None:
        return op.zeros(shape, like.type.dtype)
    return op.reshape(op.cut(state, 1 if batch_first else 0, pick, 1), shape)


CONVERTERS: dict[str, Convert] = {
    "GRU": lambda op: _recurrent(op, _GruCell, 1),
    "LSTM": lambda op: _recurrent(op, _LstmCell, 2),
    "RNN": lambda op: _recurrent(op, _Cell, 1),
}
