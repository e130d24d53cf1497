"""Recurrent layers: one node for a sequence. In 8 bits, or with a projection, every time step becomes nodes.

The state starts at zero and lives from run to run, as LiteRT's does, until the caller resets it.
"""

from __future__ import annotations

import math

from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Quantization, TensorType, Value
from webinfer.importers.core.limits import MAX_TIME_STEPS
from webinfer.importers.tflite import fixed_functions as fixed
from webinfer.importers.tflite.operation import Operation, Row
from webinfer.lazy_dataclass import dataclass
from webinfer.ops import elementwise as ew
from webinfer.ops import gather, matmul
from webinfer.ops.recurrent import RECURRENT, Cell, RecurrentAttrs

_INPUT_WEIGHTS, _RECURRENT_WEIGHTS, _PEEPHOLES, _BIASES, _PROJECTION, _PROJECTION_BIAS = 1, 5, 9, 12, 16, 17
_OUTPUT_STATE, _CELL_STATE, _NORMS = 18, 19, 20
MAX_CELL_BITS = 6  # before the point, as LiteRT's tanh goes up to it
_SECOND, _STATES, _AUXILIARY = 17, 35, 39  # of a layer of both directions: the second's weights are so much further on


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
    if x.type.rank == 2 and op.name in ("LSTM", "RNN"):  # one step
        x = op.reshape(x, (1, *x.type.shape))
    elif x.type.rank != 3:
        op.fail(f"x has shape {x.type.shape}, needs rank 3")
    elif not time_major:
        x = op.transpose(x, (1, 0, 2))
    steps, batch, width = x.type.shape
    return op.reshape(x, (steps * batch, width)), steps, batch


def _shown(op: Operation, y: Value, time_major: bool) -> Value:
    """All states [T, B, N] in the order of the file."""
    if op.name in ("LSTM", "RNN"):
        return op.reshape(y, y.type.shape[1:])
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

    def __init__(self, op: Operation, start: int = 0) -> None:
        self.op, self.start = op, start
        self.coupled = op.optional(start + _INPUT_WEIGHTS) is None
        self.weights, self.recurrent, self.bias = map(self._stack, (_INPUT_WEIGHTS, _RECURRENT_WEIGHTS, _BIASES))
        self.size = self.weights.type.shape[0] // 4
        self.peepholes = [_float_input(op, start + _PEEPHOLES + i) for i in range(3)]
        self.projection = _float_input(op, start + _PROJECTION)
        self.projection_bias = _float_input(op, start + _PROJECTION_BIAS)
        self.width = self.size if self.projection is None else self.projection.type.shape[0]
        self.cell_clip, self.projection_clip = op.real("cell_clip"), op.real("proj_clip")
        self.activation = op.activation()
        self.symmetric = not op.flag("asymmetric_quantize_inputs")

    def _stack(self, first: int) -> Value:
        """The constants of the gates input, output, forget, new one above the other: one product makes all gates.

        A coupled input gate has none; those of the forget gate take their place.
        """
        parts = [self.op.float_weights(self.start + first + i) for i in (int(self.coupled), 3, 1, 2)]
        return self.op.concat(parts, 0)

    def run(self, rows: Value, hidden: Value, cell: Value, backward: bool = False) -> list[Value]:
        """All states [T, B, N], the last one and the last cells, from x's share [T * B, 4 * N]."""
        op, batch = self.op, hidden.type.shape[0]
        sums = op.reshape(rows, (rows.type.shape[0] // batch, batch, rows.type.shape[1]))
        if self.projection is not None or type(self) is not _Lstm:
            return self._unrolled(sums, hidden, cell, backward)
        look = None
        if any(p is not None for p in self.peepholes):
            zeros = op.zeros((self.size,), DType.FLOAT32)
            look = op.concat([self.peepholes[i] or zeros for i in (0, 2, 1)], 0)
        attrs = RecurrentAttrs(
            Cell.LSTM, backward, coupled=self.coupled, activation=self.activation,
            cell_clip=_limit(op, self.cell_clip) or math.inf,
            symmetric=op.levels(rows, self.start + _RECURRENT_WEIGHTS + 1, self.symmetric),
        )  # fmt: skip
        return op.emit_all(RECURRENT, [sums, self.recurrent, None, hidden, cell, look], attrs)

    def _unrolled(self, sums: Value, hidden: Value, cell: Value, backward: bool) -> list[Value]:
        steps, outputs = range(sums.type.shape[0]), list[Value]()
        if len(steps) > MAX_TIME_STEPS:
            self.op.refuse(f"{len(steps)} time steps; {MAX_TIME_STEPS} can be unrolled")
        for t in reversed(steps) if backward else steps:
            rows = self.op.row(sums, 0, t)
            hidden, cell = self.step(self.gates(rows, hidden), cell)
            outputs.append(hidden)
        return [self.op.stack(outputs[::-1] if backward else outputs), hidden, cell]

    def share(self, x: Value) -> Value:
        """x's share of all gates of all steps."""
        rounded = self.op.rounded(x, self.start + _INPUT_WEIGHTS + 1, 1, self.symmetric)
        return _product(self.op, rounded, self.weights, self.bias)

    def gates(self, rows: Value, hidden: Value) -> _Gates:
        """Gates from x's share of them, [B, gates * N], and the state before."""
        rounded = self.op.rounded(hidden, self.start + _RECURRENT_WEIGHTS + 1, 1, self.symmetric)
        return self._cut(self.op.binary(ew.ADD, rows, _product(self.op, rounded, self.recurrent)))

    def _cut(self, rows: Value) -> _Gates:
        op = self.op
        given, output, forget, cell = (op.cut(rows, 1, i * self.size, self.size) for i in range(4))
        return _Gates(None if self.coupled else given, forget, cell, output)

    def step(self, gates: _Gates, cell: Value) -> tuple[Value, Value]:
        """The next output and cell state."""
        op = self.op
        forget = self._sigmoid(self._peep(gates.forget, cell, 1))
        if gates.given is None:
            given = op.unary(ew.LINEAR, forget, -1.0, 1.0)
        else:
            given = self._sigmoid(self._peep(gates.given, cell, 0))
        fresh = op.binary(ew.MUL, given, op.activate(gates.cell, self.activation))
        fresh = _clipped(op, op.binary(ew.ADD, op.binary(ew.MUL, forget, cell), fresh), self.cell_clip)
        opened = self._sigmoid(self._peep(gates.output, fresh, 2))
        hidden = op.binary(ew.MUL, opened, op.activate(fresh, self.activation))
        if self.projection is not None:
            rounded = op.rounded(hidden, self.start + _PROJECTION, 1, self.symmetric)
            hidden = _clipped(op, _product(op, rounded, self.projection, self.projection_bias), self.projection_clip)
        return hidden, fresh

    def _sigmoid(self, x: Value) -> Value:
        return self.op.unary(ew.SIGMOID, x)

    def _peep(self, gate: Value, cell: Value, i: int) -> Value:
        weights = self.peepholes[i]
        return gate if weights is None else self.op.binary(ew.ADD, gate, self.op.binary(ew.MUL, cell, weights))


def _limit(op: Operation, limit: float) -> float:
    if not math.isfinite(limit) or limit < 0:
        op.fail(f"a clip of {limit} must not be negative")
    return limit


def _clipped(op: Operation, x: Value, limit: float) -> Value:
    return op.unary(ew.CLAMP, x, -limit, limit) if _limit(op, limit) else x


class _StoredLstm(_Lstm):
    """The layer in 8 bits: real arithmetic, every result rounded to the fixed-point numbers that LiteRT keeps.

    Whatever activation the file names, it is tanh, as in LiteRT.

    Source:  tensorflow v2.18.0, lite/kernels/lstm_eval.cc, LstmStepInteger8x8_16
    """

    def __init__(self, op: Operation, start: int = 0) -> None:
        super().__init__(op, start)
        if self.projection is not None or any(peephole is not None for peephole in self.peepholes):
            op.refuse("a projection or peepholes in 8 bits")

    def _snapped(self, x: Value, bits: int) -> Value:
        """x in multiples of 2^-bits that 16 bits hold."""
        kind = ew.CastAttrs(DType.INT16, Quantization((2.0**-bits,), (0,)))
        return self.op.as_float(self.op.emit(ew.QUANTIZE, [x], kind))

    def _stored(self, x: Value, like: Value) -> Value:
        return self.op.emit(ew.QUANTIZE, [x], ew.CastAttrs(like.type.dtype, like.type.quant))

    def share(self, x: Value) -> Value:
        """x's share of all gates of all steps."""
        return self._snapped(_product(self.op, self.op.as_float(x), self.weights, self.bias), 12)

    def gates(self, rows: Value, hidden: Value) -> _Gates:
        """Gates from x's share of them, [B, gates * N], and the state before."""
        own = _product(self.op, self.op.as_float(hidden), self.recurrent)
        self._hidden = hidden
        return self._cut(self._snapped(self.op.binary(ew.ADD, rows, own), 12))

    def _looked_up(self, x: Value, integer_bits: int, table: memoryview) -> Value:
        """A function of x, whose stored numbers have so many bits before the point: LiteRT's own is coarse."""
        op, kind = self.op, TensorType((len(table) // 2,), DType.INT16, Quantization((2.0**-15,), (0,)))
        place = op.cast(op.unary(ew.LINEAR, x, 2.0 ** (15 - integer_bits), 32768.0), DType.INT32)
        values = Value("table", kind, Constant(table, DType.INT16))
        return op.as_float(op.emit(gather.GATHER, [values, place], gather.GatherAttrs(0)))

    def _sigmoid(self, x: Value) -> Value:
        return self._looked_up(x, 3, fixed.sigmoid())

    def _bits(self, cell: Value) -> int:
        """How many bits of stored cells lie before the point."""
        quant = cell.type.quant
        bits = 15 + round(math.log2(quant.scales[0])) if quant is not None else -1
        if cell.type.dtype is not DType.INT16 or not 0 <= bits <= MAX_CELL_BITS:
            self.op.refuse(f"cells of {cell.type}; 16 bits whose scale is a power of two from 2^-15 to 2^-9 are known")
        return bits

    def step(self, gates: _Gates, cell: Value) -> tuple[Value, Value]:
        """The next output and cell state, as they are stored."""
        op, hidden, bits = self.op, self._hidden, self._bits(cell)
        forget = self._sigmoid(gates.forget)
        one = fixed.ONE / 32768
        given = op.unary(ew.LINEAR, forget, -1.0, one) if gates.given is None else self._sigmoid(gates.given)
        news = self._looked_up(gates.cell, 3, fixed.tanh(3))
        fresh = op.as_float(self._stored(op.binary(ew.MUL, given, news), cell))
        kept = op.as_float(self._stored(op.binary(ew.MUL, forget, op.as_float(cell)), cell))
        stored = self._stored(_clipped(op, op.binary(ew.ADD, kept, fresh), self.cell_clip), cell)
        shown = self._looked_up(op.as_float(stored), bits, fixed.tanh(bits))
        return self._stored(op.binary(ew.MUL, self._sigmoid(gates.output), shown), hidden), stored


def _kept(op: Operation, lstm: _Lstm, rows: Value, batch: int, first: int, backward: bool = False) -> Value:
    """All states of a direction whose own state is input number `first`, and its cells the next one."""
    hidden, cell = op.state(first, (batch, lstm.width)), op.state(first + 1, (batch, lstm.size))
    if hidden is None or cell is None:
        op.fail("an LSTM needs both its states")
    y, hidden, cell = lstm.run(rows, hidden, cell, backward)
    op.keep(first, hidden)
    op.keep(first + 1, cell)
    return y


def _sequence_lstm(op: Operation) -> Value:
    time_major = op.name == "LSTM" or op.flag("time_major")
    if any(op.optional(i) is not None for i in range(_NORMS, op.count)):
        op.refuse("layer normalisation")
    x, _, batch = _steps(op, time_major)
    lstm = _Lstm(op) if x.type.dtype is DType.FLOAT32 else _StoredLstm(op)
    return _shown(op, _kept(op, lstm, lstm.share(x), batch, _OUTPUT_STATE), time_major)


def _both(op: Operation, ways: list[Value], time_major: bool) -> list[Value]:
    """The states of both directions beside each other, or one after the other."""
    return [_shown(op, y, time_major) for y in ([op.concat(ways, 2)] if op.flag("merge_outputs") else ways)]


def _both_lstms(op: Operation) -> list[Value]:
    time_major = op.flag("time_major")
    if any(op.optional(i) is not None for i in range(_AUXILIARY, op.count)):
        op.refuse("a second input")
    x, _, batch = _steps(op, time_major)
    if x.type.dtype is not DType.FLOAT32:
        op.refuse(f"x of type {x.type.dtype}")
    cells = _Lstm(op), _Lstm(op, _SECOND)
    ways = [_kept(op, lstm, lstm.share(x), batch, _STATES + 2 * i, bool(i)) for i, lstm in enumerate(cells)]
    return _both(op, ways, time_major)


def _rnn(op: Operation, x: Value, batch: int, first: int = 1, backward: bool = False) -> Value:
    """All states; h = act(x W + h R + b) with inputs W, R, b, h from `first` on."""
    if x.type.dtype is not DType.FLOAT32:
        op.refuse(f"x of type {x.type.dtype}")
    symmetric, recurrent = not op.flag("asymmetric_quantize_inputs"), op.float_weights(first + 1)
    rounded = op.rounded(x, first, 1, symmetric)
    rows = _product(op, rounded, op.float_weights(first), op.as_float(op.value(first + 2)))
    hidden = op.state(first + 3, (batch, recurrent.type.shape[0]))
    sums = op.reshape(rows, (rows.type.shape[0] // batch, batch, rows.type.shape[1]))
    levels = op.levels(x, first + 1, symmetric)
    attrs = RecurrentAttrs(Cell.RNN, backward, activation=op.activation(), symmetric=levels)
    y, last = op.emit_all(RECURRENT, [sums, recurrent, None, hidden], attrs)
    op.keep(first + 3, last)
    return y


def _sequence_rnn(op: Operation) -> Value:
    time_major = op.name == "RNN" or op.flag("time_major")
    x, _, batch = _steps(op, time_major)
    return _shown(op, _rnn(op, x, batch), time_major)


def _both_rnns(op: Operation) -> list[Value]:
    time_major = op.flag("time_major")
    if any(op.optional(i) is not None for i in range(9, op.count)):
        op.refuse("a second input")
    x, _, batch = _steps(op, time_major)
    return _both(op, [_rnn(op, x, batch), _rnn(op, x, batch, 5, True)], time_major)


CONVERTERS: dict[str, Row] = {
    "BIDIRECTIONAL_SEQUENCE_LSTM": (_both_lstms, "BidirectionalSequenceLSTMOptions"),
    "BIDIRECTIONAL_SEQUENCE_RNN": (_both_rnns, "BidirectionalSequenceRNNOptions"),
    "LSTM": (_sequence_lstm, "LSTMOptions"),
    "RNN": (_sequence_rnn, "RNNOptions"),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (_sequence_lstm, "UnidirectionalSequenceLSTMOptions"),
    "UNIDIRECTIONAL_SEQUENCE_RNN": (_sequence_rnn, "SequenceRNNOptions"),
}
