"""Recurrent layers, unrolled: every time step becomes nodes of the graph.

The state starts at zero and lives from run to run, as LiteRT's does, until somebody resets it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from webinfer.dtypes import DType
from webinfer.graph.ir import Quantization, Value
from webinfer.importers.core.limits import MAX_TIME_STEPS
from webinfer.importers.tflite.operation import Operation, Row
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul

_INPUT_WEIGHTS, _RECURRENT_WEIGHTS, _PEEPHOLES, _BIASES = 1, 5, 9, 12
_PROJECTION, _PROJECTION_BIAS, _OUTPUT_STATE, _CELL_STATE, _NORMS = 16, 17, 18, 19, 20


def _product(op: Operation, x: Value, w: Value, bias: Value | None = None) -> Value:
    """x [M, K] times w [N, K] transposed."""
    return op.emit(matmul.MATMUL, [x, w, bias], matmul.MatmulAttrs(transpose_b=True))


def _float_input(op: Operation, i: int) -> Value | None:
    return None if op.optional(i) is None else op.float_weights(i)


def _steps(op: Operation, time_major: bool) -> tuple[Value, int, int]:
    """x as rows [T*B, K] in order of time, with T and B."""
    x = op.value(0)
    if x.type.dtype not in (DType.FLOAT32, DType.INT8):
        op.refuse(f"x of type {x.type.dtype}")
    if x.type.rank != 3:
        op.fail(f"x has shape {x.type.shape}, needs rank 3")
    if not time_major:
        x = op.transpose(x, (1, 0, 2))
    steps, batch, width = x.type.shape
    if not 1 <= steps <= MAX_TIME_STEPS:
        op.refuse(f"{steps} time steps; 1 to {MAX_TIME_STEPS} can be unrolled")
    return op.reshape(x, (steps * batch, width)), steps, batch


def _joined(op: Operation, outputs: list[Value], time_major: bool) -> Value:
    """[B, N] of every step as one tensor of rank 3."""
    y = op.stack(outputs)
    return y if time_major else op.transpose(y, (1, 0, 2))


@dataclass(slots=True)
class _Gates:
    """One time step's gates before their functions, [B, N] each; `given` is None with a coupled input gate."""

    given: Value | None
    forget: Value
    cell: Value
    output: Value


class _Lstm:
    """The layer's weights, and one step after another."""

    def __init__(self, op: Operation) -> None:
        self.op = op
        if any(op.optional(i) is not None for i in range(_NORMS, op.count)):
            op.refuse("layer normalisation")
        self.coupled = op.optional(_INPUT_WEIGHTS) is None
        first = 1 if self.coupled else 0
        self.weights = self._stack(_INPUT_WEIGHTS, first)
        self.recurrent = self._stack(_RECURRENT_WEIGHTS, first)
        self.bias = self._stack(_BIASES, first)
        self.size = self.weights.type.shape[0] // (4 - first)
        self.peepholes = [_float_input(op, _PEEPHOLES + i) for i in range(3)]
        self.projection = _float_input(op, _PROJECTION)
        self.projection_bias = _float_input(op, _PROJECTION_BIAS)
        self.width = self.size if self.projection is None else self.projection.type.shape[0]
        self.cell_clip, self.projection_clip = op.real("cell_clip"), op.real("proj_clip")
        self.activation = op.activation()
        self.symmetric = not op.flag("asymmetric_quantize_inputs")

    def _stack(self, start: int, first: int) -> Value:
        """The gates' constants one above the other, so that one product makes all gates."""
        parts = [self.op.float_weights(start + i) for i in range(first, 4)]
        return self.op.concat(parts, 0)

    def share(self, x: Value) -> Value:
        """x's share of all gates of all steps."""
        rounded = self.op.rounded(x, _INPUT_WEIGHTS + 1, 1, self.symmetric)
        return _product(self.op, rounded, self.weights, self.bias)

    def gates(self, rows: Value, hidden: Value | None) -> _Gates:
        """Gates from x's share of them, [B, gates * N], and the state before."""
        op = self.op
        if hidden is not None:
            rounded = op.rounded(hidden, _RECURRENT_WEIGHTS + 1, 1, self.symmetric)
            rows = op.binary(ew.ADD, rows, _product(op, rounded, self.recurrent))
        return self._cut(rows)

    def _cut(self, rows: Value) -> _Gates:
        op = self.op
        parts = [op.cut(rows, 1, i * self.size, self.size) for i in range(rows.type.shape[1] // self.size)]
        return _Gates(None if self.coupled else parts[0], *parts[-3:])

    def step(self, gates: _Gates, cell: Value | None) -> tuple[Value, Value]:
        """The next output and cell state."""
        op = self.op
        forget = self._sigmoid(self._peep(gates.forget, cell, 1))
        if gates.given is None:
            given = op.unary(ew.LINEAR, forget, -1.0, 1.0)
        else:
            given = self._sigmoid(self._peep(gates.given, cell, 0))
        fresh = op.binary(ew.MUL, given, op.activate(gates.cell, self.activation))
        if cell is not None:
            fresh = op.binary(ew.ADD, op.binary(ew.MUL, forget, cell), fresh)
        fresh = _clipped(op, fresh, self.cell_clip)
        opened = self._sigmoid(self._peep(gates.output, fresh, 2))
        hidden = op.binary(ew.MUL, opened, op.activate(fresh, self.activation))
        if self.projection is not None:
            rounded = op.rounded(hidden, _PROJECTION, 1, self.symmetric)
            hidden = _clipped(op, _product(op, rounded, self.projection, self.projection_bias), self.projection_clip)
        return hidden, fresh

    def _sigmoid(self, x: Value) -> Value:
        return self.op.unary(ew.SIGMOID, x)

    def _peep(self, gate: Value, cell: Value | None, i: int) -> Value:
        weights = self.peepholes[i]
        if weights is None or cell is None:
            return gate
        return self.op.binary(ew.ADD, gate, self.op.binary(ew.MUL, cell, weights))


def _clipped(op: Operation, x: Value, limit: float) -> Value:
    if not math.isfinite(limit) or limit < 0:
        op.fail(f"a clip of {limit} must not be negative")
    return op.unary(ew.CLAMP, x, -limit, limit) if limit else x


class _StoredLstm(_Lstm):
    """The layer in 8 bits: real arithmetic, every result rounded to the fixed-point numbers that LiteRT keeps.

    Source:  tensorflow v2.18.0, lite/kernels/lstm_eval.cc, LstmStepInteger8x8_16
    """

    def __init__(self, op: Operation) -> None:
        super().__init__(op)
        if self.projection is not None or any(peephole is not None for peephole in self.peepholes):
            op.refuse("a projection or peepholes in 8 bits")
        note = "LSTM in 8 bits: results may differ from LiteRT's by a step or two, whose sigmoid and tanh are coarser"
        if note not in op.writer.graph.notes:
            op.writer.graph.notes.append(note)

    def _snapped(self, x: Value, bits: int) -> Value:
        """x in multiples of 2^-bits that 16 bits hold."""
        kind = ew.CastAttrs(DType.INT16, Quantization((2.0**-bits,), (0,)))
        return self.op.as_float(self.op.emit(ew.QUANTIZE, [x], kind))

    def _stored(self, x: Value, like: Value) -> Value:
        return self.op.emit(ew.QUANTIZE, [x], ew.CastAttrs(like.type.dtype, like.type.quant))

    def share(self, x: Value) -> Value:
        """x's share of all gates of all steps."""
        return self._snapped(_product(self.op, self.op.as_float(x), self.weights, self.bias), 12)

    def gates(self, rows: Value, hidden: Value | None) -> _Gates:
        """Gates from x's share of them, [B, gates * N], and the state before."""
        assert hidden is not None
        own = _product(self.op, self.op.as_float(hidden), self.recurrent)
        self._hidden = hidden
        return self._cut(self._snapped(self.op.binary(ew.ADD, rows, own), 12))

    def _sigmoid(self, x: Value) -> Value:
        return self._snapped(super()._sigmoid(x), 15)

    def step(self, gates: _Gates, cell: Value | None) -> tuple[Value, Value]:
        """The next output and cell state, as they are stored."""
        op, hidden = self.op, self._hidden
        assert cell is not None
        forget = self._sigmoid(gates.forget)
        one = 32767 / 32768
        given = op.unary(ew.LINEAR, forget, -1.0, one) if gates.given is None else self._sigmoid(gates.given)
        news = self._snapped(op.activate(gates.cell, self.activation), 15)
        fresh = op.as_float(self._stored(op.binary(ew.MUL, given, news), cell))
        kept = op.as_float(self._stored(op.binary(ew.MUL, forget, op.as_float(cell)), cell))
        stored = self._stored(_clipped(op, op.binary(ew.ADD, kept, fresh), self.cell_clip), cell)
        shown = self._snapped(op.activate(op.as_float(stored), self.activation), 15)
        return self._stored(op.binary(ew.MUL, self._sigmoid(gates.output), shown), hidden), stored


def _sequence_lstm(op: Operation) -> Value:
    time_major = op.flag("time_major")
    x, steps, batch = _steps(op, time_major)
    lstm = _Lstm(op) if x.type.dtype is DType.FLOAT32 else _StoredLstm(op)
    rows = lstm.share(x)
    hidden, cell = op.state(_OUTPUT_STATE, (batch, lstm.width)), op.state(_CELL_STATE, (batch, lstm.size))
    if x.type.dtype is not DType.FLOAT32 and (hidden is None or cell is None):
        op.fail("an LSTM of stored integers needs both its states")
    outputs: list[Value] = []
    for t in range(steps):
        hidden, cell = lstm.step(lstm.gates(op.cut(rows, 0, t * batch, batch), hidden), cell)
        outputs.append(hidden)
    assert hidden is not None
    assert cell is not None
    op.keep(_OUTPUT_STATE, hidden)
    op.keep(_CELL_STATE, cell)
    return _joined(op, outputs, time_major)


def _sequence_rnn(op: Operation) -> Value:
    """h = act(x W + h R + b)."""
    time_major = op.flag("time_major")
    x, steps, batch = _steps(op, time_major)
    if x.type.dtype is not DType.FLOAT32:
        op.refuse(f"x of type {x.type.dtype}")
    recurrent, activation = op.float_weights(2), op.activation()
    symmetric = not op.flag("asymmetric_quantize_inputs")
    rows = _product(op, op.rounded(x, 1, 1, symmetric), op.float_weights(1), op.as_float(op.value(3)))
    hidden = op.state(4, (batch, recurrent.type.shape[0]))
    outputs: list[Value] = []
    for t in range(steps):
        total = op.cut(rows, 0, t * batch, batch)
        if hidden is not None:
            total = op.binary(ew.ADD, total, _product(op, op.rounded(hidden, 2, 1, symmetric), recurrent))
        hidden = op.activate(total, activation)
        outputs.append(hidden)
    assert hidden is not None
    op.keep(4, hidden)
    return _joined(op, outputs, time_major)


CONVERTERS: dict[str, Row] = {
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (_sequence_lstm, "UnidirectionalSequenceLSTMOptions"),
    "UNIDIRECTIONAL_SEQUENCE_RNN": (_sequence_rnn, "SequenceRNNOptions"),
}
