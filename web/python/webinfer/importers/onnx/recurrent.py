"""ONNX's recurrent layers: one product for the inputs of all steps, then one node; with rare functions step by step.

Source:  onnx v1.23, LSTM-22, GRU-22, RNN-22
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from webinfer.graph.ir import Op, Value
from webinfer.importers.core.limits import MAX_TIME_STEPS, within
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul as mm
from webinfer.ops.activation import Activation
from webinfer.ops.recurrent import RECURRENT, Cell, RecurrentAttrs

ACTIVATIONS = {
    "relu": ew.RELU,
    "sigmoid": ew.SIGMOID,
    "softplus": ew.SOFTPLUS,
    "softsign": ew.SOFTSIGN,
    "tanh": ew.TANH,
}
SHOWN = {"relu": Activation.RELU, "sigmoid": Activation.SIGMOID, "tanh": Activation.TANH}  # of new values
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
        names = op.words("activations", ())[pick * many : (pick + 1) * many] or self.usual
        self.names = [name.lower() for name in names]
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

    def functions(self) -> list[Op]:
        """The activations as operators."""
        found = [ACTIVATIONS.get(name) for name in self.names]
        if None in found or len(found) != len(self.usual):
            self.op.refuse(f"activations {', '.join(self.names)}")
        return [f for f in found if f is not None]

    def product(self, x: Value, w: Value, bias: Value | None) -> Value:
        """x times the transposed weights, plus the bias. Shapes:  x [B, K], w [N, K], bias [N] -> [B, N]"""
        return self.op.emit(mm.MATMUL, [x, w] if bias is None else [x, w, bias], mm.MatmulAttrs(transpose_b=True))

    def inputs(self, x: Value) -> Value:
        """What the inputs add to the gates of each step. Shapes:  x [S*B, I] -> [S*B, gates*H]"""
        return self.product(x, self.w, self.b)

    def gate(self, sums: Value, i: int) -> Value:
        """One gate of the sums."""
        return self.op.cut(sums, 1, i * self.size, self.size)

    def add(self, *terms: Value) -> Value:
        """The sum of all."""
        return functools.reduce(lambda a, b: self.op.binary(ew.ADD, a, b), terms)

    def mul(self, a: Value, b: Value) -> Value:
        """The product of two."""
        return self.op.binary(ew.MUL, a, b)

    def step(self, sums: Value, states: Sequence[Value]) -> list[Value]:
        """The next states; h' = f(sums + h R)"""
        total = self.add(sums, self.product(states[0], self.r, self.rb))
        return [self.op.unary(self.functions()[0], total)]


class _GruCell(_Cell):
    """update z, reset r, new n: h' = (1 - z)*n + z*h"""

    kind = Cell.GRU
    usual = ("Sigmoid", "Tanh")

    def step(self, sums: Value, states: Sequence[Value]) -> list[Value]:
        """The next state."""
        op, (f, g), (h,) = self.op, self.functions(), states
        if op.whole("linear_before_reset", 0):
            past = self.product(h, self.r, self.rb)
            z, r = (op.unary(f, self.add(self.gate(sums, i), self.gate(past, i))) for i in (0, 1))
            new = op.unary(g, self.add(self.gate(sums, 2), self.mul(r, self.gate(past, 2))))
        else:
            two = op.cut(self.r, 0, 0, 2 * self.size)
            one = op.cut(self.r, 0, 2 * self.size, self.size)
            bias = None if self.rb is None else op.cut(self.rb, 0, 0, 2 * self.size)
            last = None if self.rb is None else op.cut(self.rb, 0, 2 * self.size, self.size)
            past = self.product(h, two, bias)
            z, r = (op.unary(f, self.add(self.gate(sums, i), self.gate(past, i))) for i in (0, 1))
            new = op.unary(g, self.add(self.gate(sums, 2), self.product(self.mul(r, h), one, last)))
        kept = op.binary(ew.SUB, op.scalar_of(1.0, z.type.dtype), z)
        return [self.add(self.mul(kept, new), self.mul(z, h))]


class _LstmCell(_Cell):
    """input i, output o, forget f, cell c: c' = f*c + i*c~, h' = o * activation(c')"""

    kind = Cell.LSTM
    usual = ("Sigmoid", "Tanh", "Tanh")

    def _look(self, total: Value, i: int, cell: Value) -> Value:
        if self.peephole is None:
            return total
        return self.add(total, self.mul(cell, self.op.cut(self.peephole, 0, i * self.size, self.size)))

    def step(self, sums: Value, states: Sequence[Value]) -> list[Value]:
        """The next state and the next cell state."""
        op, (f, g, last), (h, cell) = self.op, self.functions(), states
        total = self.add(sums, self.product(h, self.r, self.rb))
        enter = op.unary(f, self._look(self.gate(total, 0), 0, cell))
        keep = op.unary(f, self._look(self.gate(total, 2), 2, cell))
        after = self.add(self.mul(keep, cell), self.mul(enter, op.unary(g, self.gate(total, 3))))
        leave = op.unary(f, self._look(self.gate(total, 1), 1, after))
        return [self.mul(leave, op.unary(last, after)), after]


def _unrolled(cell: _Cell, sums: Value, now: list[Value], backward: bool, lengths: Value | None) -> list[Value]:
    """All states [S, B, H] and the last ones, of a layer whose functions no node for whole sequences has."""
    op, steps = cell.op, sums.type.shape[0]
    within("steps of a sequence", steps, MAX_TIME_STEPS, "use a shorter sequence")
    if lengths is not None or "clip" in op.attributes:
        op.refuse(f"clip or sequences of several lengths with activations {', '.join(cell.names)}")
    outputs = []
    for i in reversed(range(steps)) if backward else range(steps):
        now = cell.step(op.row(sums, 0, i), now)
        outputs.append(now[0])
    return [op.stack(outputs[::-1] if backward else outputs), *now]


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
        op.fail(f"input {x.type.shape} is no sequence of batches")
    x = op.transpose(x, (1, 0, 2)) if batch_first else x
    steps, batch, width = x.type.shape
    if op.whole("input_forget", 0) or "activation_alpha" in op.attributes or "activation_beta" in op.attributes:
        op.refuse("input_forget or activations with parameters")
    lengths, found = _lengths(op, steps), list[list[Value]]()
    for pick, backward in enumerate(ways):
        cell = kind(op, pick, len(ways))
        sums = op.reshape(cell.inputs(op.reshape(x, (steps * batch, width))), (steps, batch, cell.gates * cell.size))
        now = [_first(op, 5 + i, pick, (batch, cell.size), batch_first, x) for i in range(states)]
        attrs = cell.attributes(backward)
        if attrs is None:
            found.append(_unrolled(cell, sums, now, backward, lengths))
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
