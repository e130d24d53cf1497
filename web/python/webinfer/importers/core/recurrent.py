"""Recurrent layers step by step, for functions and masks that no node for a whole sequence has."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from webinfer.graph.ir import Value
from webinfer.importers.core.limits import MAX_TIME_STEPS, within
from webinfer.importers.core.steps import Steps
from webinfer.lazy_dataclass import dataclass
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul as mm
from webinfer.ops.activation import Activation
from webinfer.ops.recurrent import Cell
from webinfer.ops.registry import NoAttrs

SHOWN = {"relu": Activation.RELU, "sigmoid": Activation.SIGMOID, "tanh": Activation.TANH}  # of new values, in one node
Function = Callable[[Value], Value]


def product(op: Steps, x: Value, w: Value, bias: Value | None) -> Value:
    """x times the transposed weights, plus the bias. Shapes:  x [B, K], w [N, K], bias [N] -> [B, N]"""
    return op.emit(mm.MATMUL, [x, w] if bias is None else [x, w, bias], mm.MatmulAttrs(transpose_b=True))


@dataclass(slots=True)
class StepCell:
    """One direction of a layer. `functions` are those of gates, of new values and of the cells that an LSTM shows.

    Shapes:  r [gates*H, H]; bias [gates*H] of the states' product, or absent; peephole [3*H] or absent
    """

    op: Steps
    kind: Cell
    r: Value
    bias: Value | None
    functions: Sequence[Function]
    reset_after: bool = False
    peephole: Value | None = None

    @property
    def size(self) -> int:
        """Units."""
        return self.r.type.shape[1]

    def step(self, sums: Value, states: Sequence[Value]) -> list[Value]:
        """The next states. Shapes:  sums [B, gates*H], states [B, H] each"""
        if self.kind is Cell.LSTM:
            return self._lstm(sums, *states)
        return [self._gru(sums, *states) if self.kind is Cell.GRU else self.functions[0](self._total(sums, states[0]))]

    def _gate(self, x: Value, i: int) -> Value:
        return self.op.cut(x, 1, i * self.size, self.size)

    def _add(self, *terms: Value) -> Value:
        return functools.reduce(lambda a, b: self.op.binary(ew.ADD, a, b), terms)

    def _mul(self, a: Value, b: Value) -> Value:
        return self.op.binary(ew.MUL, a, b)

    def _total(self, sums: Value, h: Value) -> Value:
        return self._add(sums, product(self.op, h, self.r, self.bias))

    def _gru(self, sums: Value, h: Value) -> Value:
        """update z, reset r, new n: h' = (1 - z)*n + z*h"""
        op, (f, g), two = self.op, self.functions, 2 * self.size
        if self.reset_after:
            past = product(op, h, self.r, self.bias)
            z, r = (f(self._add(self._gate(sums, i), self._gate(past, i))) for i in (0, 1))
            new = g(self._add(self._gate(sums, 2), self._mul(r, self._gate(past, 2))))
        else:
            gates, last = op.pieces(self.r, 0, [two, self.size])
            biases = (None, None) if self.bias is None else op.pieces(self.bias, 0, [two, self.size])
            past = product(op, h, gates, biases[0])
            z, r = (f(self._add(self._gate(sums, i), self._gate(past, i))) for i in (0, 1))
            new = g(self._add(self._gate(sums, 2), product(op, self._mul(r, h), last, biases[1])))
        kept = op.binary(ew.SUB, op.scalar_of(1.0, z.type.dtype), z)
        return self._add(self._mul(kept, new), self._mul(z, h))

    def _look(self, total: Value, i: int, cell: Value) -> Value:
        if self.peephole is None:
            return total
        return self._add(total, self._mul(cell, self.op.cut(self.peephole, 0, i * self.size, self.size)))

    def _lstm(self, sums: Value, h: Value, cell: Value) -> list[Value]:
        """input i, output o, forget f, cell c: c' = f*c + i*c~, h' = o * activation(c')"""
        (f, g, last), total = self.functions, self._total(sums, h)
        enter = f(self._look(self._gate(total, 0), 0, cell))
        keep = f(self._look(self._gate(total, 2), 2, cell))
        after = self._add(self._mul(keep, cell), self._mul(enter, g(self._gate(total, 3))))
        leave = f(self._look(self._gate(total, 1), 1, after))
        return [self._mul(leave, last(after)), after]


def unrolled(
    cell: StepCell, sums: Value, states: list[Value], backward: bool, mask: Value | None = None
) -> list[Value]:
    """All states [S, B, H] and the last ones. Where the mask [S, B] is false, a step leaves its states as they are."""
    op, steps = cell.op, sums.type.shape[0]
    within("steps of a sequence", steps, MAX_TIME_STEPS, "use a shorter sequence")
    outputs = []
    for i in reversed(range(steps)) if backward else range(steps):
        now = cell.step(op.row(sums, 0, i), states)
        if mask is not None:
            held = op.reshape(op.cut(mask, 0, i, 1), (mask.type.shape[1], 1))
            now = [op.emit(ew.WHERE, [held, new, old], NoAttrs()) for new, old in zip(now, states, strict=True)]
        states = now
        outputs.append(states[0])
    return [op.stack(outputs[::-1] if backward else outputs), *states]
