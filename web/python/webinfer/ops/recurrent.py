"""Recurrent layers: a whole sequence is one operator. The inputs' share of all gates is a matrix product before it."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import replace

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.graph.ir import Case, Cost, Op, TensorType, Tolerance
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.activation import Activation
from webinfer.ops.registry import declare, moved_bytes, need

Inputs = Sequence[TensorType | None]


class Cell(enum.StrEnum):
    """What computes the next state from the sums of its gates, and which gates there are."""

    RNN = "rnn"  # new
    GRU = "gru"  # update, reset, new
    LSTM = "lstm"  # input, output, forget, new

    @property
    def gates(self) -> int:
        """Rows of weights for each unit."""
        return {"rnn": 1, "gru": 3, "lstm": 4}[self]


@dataclass(frozen=True, slots=True)
class RecurrentAttrs:
    """`reset_after` resets a GRU's product, not its state; `coupled` makes an LSTM's input gate one minus forget."""

    cell: Cell
    backward: bool = False  # the last step comes first
    reset_after: bool = False
    coupled: bool = False
    activation: Activation = Activation.TANH  # of new values, and of what an LSTM shows of its cells; or a clamp
    clip: float = math.inf  # the largest magnitude of a gate before its function
    cell_clip: float = math.inf  # of an LSTM's cells
    symmetric: bool | None = None  # levels of 8 bits that the state before each product is rounded to; None for none


def infer(inputs: Inputs, a: RecurrentAttrs) -> tuple[TensorType, ...]:
    """Types of all states, the last one and, of an LSTM, the last cells.

    With p = h R^T + bias, the gates are sigmoid(sums + p) and the new values n = act(sums + p), but of a GRU
    act(sums + reset * p) with `reset_after`, else act(sums + (reset * h) R^T + bias). The next state is n; of a GRU
    update * h + (1 - update) * n; of an LSTM output * act(c) with cells c = forget * c + input * n.
    `round_rows` says how h is rounded in p, which a GRU never does.
    Peepholes add c times their weights: the old cells to the gates input and forget, the new ones to output.
    A sequence of a shorter length ends with it: its later states are zeros.

    Shapes:  sums [S, B, G*H], r [G*H, H], bias [G*H] or absent, h, c [B, H] or absent (zeros), peepholes [3*H]
             (input, output, forget) or absent, lengths [B] int32 or absent -> y [S, B, H], h, c [B, H]
    Raises:  ShapeError
    Source:  onnx v1.23, LSTM-22, GRU-22, RNN-22
    """
    sums, r = need("recurrent", "sums", inputs[0], 3), need("recurrent", "r", inputs[1], 2)
    steps, batch, width = sums.shape
    size, gates = r.shape[1], a.cell.gates
    lstm = a.cell is Cell.LSTM
    wanted = [sums.shape, (gates * size, size), (width,), (batch, size), (batch, size), (3 * size,), (batch,)]
    given = [*inputs, *[None] * 7][:7]
    rounded = a.symmetric is not None and a.cell is Cell.GRU
    if width != gates * size or min(steps, batch, size) < 1 or (not lstm and (given[4] or given[5])) or rounded:
        raise ShapeError(f"recurrent: sums {sums.shape} and r {r.shape} do not fit an {a.cell} and its inputs")
    if a.activation in (Activation.PRELU, Activation.HARD_SWISH, Activation.SILU):
        raise ShapeError(f"recurrent: new values have no activation {a.activation}")
    if min(a.clip, a.cell_clip) <= 0 or math.isnan(a.clip + a.cell_clip):
        raise ShapeError(f"recurrent: clips {a.clip} and {a.cell_clip} must be positive")
    for i, (t, shape) in enumerate(zip(given, wanted, strict=True)):
        if t is not None and (t.shape != shape or (t.dtype is not DType.INT32 if i == 6 else t.dtype != sums.dtype)):
            raise ShapeError(
                f"recurrent: input {i} is {t}, needs shape {shape} and the type of sums; lengths are int32"
            )
    last = TensorType((batch, size), sums.dtype)
    return TensorType((steps, batch, size), sums.dtype), last, *([last] if lstm else [])


def cost(inputs: Inputs, outputs: Sequence[TensorType], a: RecurrentAttrs) -> Cost:
    """Two operations for each weight in each step, about ten for each gate."""
    sums = need("recurrent", "sums", inputs[0])
    return Cost(sums.size * (2 * outputs[0].shape[2] + 10), moved_bytes(inputs, outputs))


def _real(inputs: Inputs, outputs: Sequence[TensorType]) -> str:
    return "" if outputs[0].dtype.is_float else f"sums are {outputs[0].dtype}, need floats"


def _case(
    label: str, attrs: RecurrentAttrs, sizes: tuple[int, int, int], *others: int, constant: bool = True,
    lengths: tuple[int, ...] = (),
) -> Case:  # fmt: skip
    """A case of so many steps, sequences and units, with the optional inputs of these numbers, and with lengths."""
    (steps, batch, h), g = sizes, attrs.cell.gates
    shapes = [(steps, batch, g * h), (g * h, h), (g * h,), (batch, h), (batch, h), (3 * h,)]
    types: list[TensorType | None] = [TensorType(s) if i < 2 or i in others else None for i, s in enumerate(shapes)]
    if lengths:
        types.append(TensorType((batch,), DType.INT32))
    weights = tuple(i for i in (1, 2, 5) if i < 2 or i in others) if constant else ()
    return Case(label, tuple(types), attrs, -1.0, 1.0, weights, {6: lengths} if lengths else {})


_LSTM, _GRU, _RNN = (RecurrentAttrs(cell) for cell in (Cell.LSTM, Cell.GRU, Cell.RNN))
_AFTER = replace(_GRU, reset_after=True)
RECURRENT = declare(
    Op(
        "recurrent", RecurrentAttrs, infer, cost,
        Tolerance(2e-5, 2e-5, "sums of float32 in any order, whose errors go from step to step"),
        (
            _case("lstm", _LSTM, (5, 1, 8), 2),
            _case("lstm, odd sizes, states given", _LSTM, (4, 3, 7), 2, 3, 4),
            _case("lstm, weights given at run time", _LSTM, (3, 2, 6), 2, 3, 4, constant=False),
            _case("lstm, peepholes, clips, backward", replace(_LSTM, backward=True, clip=0.5, cell_clip=0.3),
                (6, 2, 5), 2, 3, 4, 5),
            _case("lstm, coupled, relu", replace(_LSTM, coupled=True, activation=Activation.RELU), (4, 2, 4), 2, 4),
            _case("lstm, lengths", _LSTM, (5, 4, 6), 2, 3, 4, lengths=(5, 2, 0, 3)),
            _case("lstm, lengths, backward", replace(_LSTM, backward=True), (5, 3, 6), 3, lengths=(2, 5, 1)),
            _case("lstm, wide", _LSTM, (3, 1, 150), 2, 3, 4),
            _case("gru", _GRU, (5, 1, 8), 2),
            _case("gru, odd sizes, state given", _GRU, (4, 3, 11), 2, 3),
            _case("gru, one unit", _GRU, (3, 2, 1), 2, 3),
            _case("gru, reset after", _AFTER, (5, 2, 9), 2, 3),
            _case("gru, reset after, lengths, clip", replace(_AFTER, backward=True, clip=0.4), (4, 2, 5), 2, 3,
                lengths=(4, 1)),
            _case("lstm, rounded", replace(_LSTM, symmetric=False), (4, 2, 9), 2, 3, 4),
            _case("lstm, rounded to symmetric levels", replace(_LSTM, symmetric=True), (4, 1, 12), 2, 3, lengths=(3,)),
            _case("rnn, rounded", replace(_RNN, symmetric=False), (4, 2, 7), 2, 3),
            _case("rnn", _RNN, (6, 2, 5), 2, 3),
            _case("rnn, relu, no bias", replace(_RNN, activation=Activation.RELU), (3, 1, 4)),
            _case("rnn, one step, sigmoid", replace(_RNN, activation=Activation.SIGMOID), (1, 2, 3), 2, 3),
        ),
        types=(_real,),
    )
)  # fmt: skip
