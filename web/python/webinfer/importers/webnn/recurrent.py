"""WebNN's recurrent operators, unrolled into products, slices and activations."""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.errors import LimitError, ShapeError
from webinfer.graph.ir import Op, Value
from webinfer.importers.webnn.reader import Call, Handler, Reader
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul as mm
from webinfer.ops import movement

ACTIVATIONS = {"relu": ew.RELU, "sigmoid": ew.SIGMOID, "tanh": ew.TANH}
MAX_STEPS = 1024  # an unrolled step is some twenty nodes
BINARY = ew.BinaryAttrs()


def _activations(c: Call, default: Sequence[str]) -> list[Op]:
    names = c.get("activations", default)
    if len(names) != len(default) or any(name not in ACTIVATIONS for name in names):
        raise ShapeError(f"{c.name}: activations {names} must be {len(default)} of {sorted(ACTIVATIONS)}")
    return [ACTIVATIONS[name] for name in names]


def _add(r: Reader, *terms: Value | None) -> Value:
    present = [term for term in terms if term is not None]
    total = present[0]
    for term in present[1:]:
        total = r.emit(ew.ADD, [total, term], BINARY)
    return total


def _mul(r: Reader, a: Value, b: Value) -> Value:
    return r.emit(ew.MUL, [a, b], BINARY)


def _product(r: Reader, x: Value, w: Value) -> Value:
    """Shapes:  x [batch, K], w [N, K] -> [batch, N]"""
    return r.emit(mm.MATMUL, [x, w], mm.MatmulAttrs(transpose_b=True))


class Cell:
    """Weights of one direction: what both cells share.

    Shapes:  weight [gates*H, I], recurrent [gates*H, H], biases [gates*H]
    """

    def __init__(self, r: Reader, c: Call, gates: str, layout: str, pick: int | None) -> None:
        self.r, self.size = r, int(c.need("hiddenSize"))
        self.order = {gate: layout.index(gate) for gate in gates}
        self.weight, self.recurrent = (self._direction(r.value(c, n), pick) for n in ("weight", "recurrentWeight"))
        self.bias, self.recurrent_bias, self.peephole = (
            None if v is None else self._direction(v, pick)
            for v in (r.optional(c, n) for n in ("bias", "recurrentBias", "peepholeWeight"))
        )

    def _direction(self, value: Value, pick: int | None) -> Value:
        if pick is None:
            return value
        return self.r.reshape(self.r.part(value, 0, pick, 1), value.type.shape[1:])

    def gate(self, value: Value, gate: str) -> Value:
        """The gate's rows of a weight or a bias."""
        return self.r.part(value, 0, self.order[gate] * self.size, self.size)

    def inputs(self, x: Value, gate: str) -> Value:
        """x * W + b"""
        bias = None if self.bias is None else self.gate(self.bias, gate)
        return _add(self.r, _product(self.r, x, self.gate(self.weight, gate)), bias)

    def state(self, h: Value, gate: str) -> Value:
        """h * R + rb"""
        bias = None if self.recurrent_bias is None else self.gate(self.recurrent_bias, gate)
        return _add(self.r, _product(self.r, h, self.gate(self.recurrent, gate)), bias)


class GruCell(Cell):
    """update z, reset r, new n: h' = z*h + (1 - z)*n"""

    def __init__(self, r: Reader, c: Call, pick: int | None = None) -> None:
        super().__init__(r, c, "zrn", c.get("layout", "zrn"), pick)
        self.reset_after = c.get("resetAfter", True)
        self.sigma, self.phi = _activations(c, ("sigmoid", "tanh"))

    def step(self, x: Value, h: Value) -> Value:
        r = self.r
        update = r.unary(self.sigma, _add(r, self.inputs(x, "z"), self.state(h, "z")))
        reset = r.unary(self.sigma, _add(r, self.inputs(x, "r"), self.state(h, "r")))
        if self.reset_after:
            past = _mul(r, reset, self.state(h, "n"))
        else:
            past = self.state(_mul(r, reset, h), "n")
        new = r.unary(self.phi, _add(r, self.inputs(x, "n"), past))
        kept = r.emit(ew.SUB, [r.number(1.0, update), update], BINARY)
        return _add(r, _mul(r, update, h), _mul(r, kept, new))


class LstmCell(Cell):
    """input i, output o, forget f, cell g: c' = f*c + i*g, h' = o * activation(c')"""

    PEEPHOLES = "iof"

    def __init__(self, r: Reader, c: Call, pick: int | None = None) -> None:
        super().__init__(r, c, "iofg", c.get("layout", "iofg"), pick)
        self.gate_op, self.cell_op, self.out_op = _activations(c, ("sigmoid", "tanh", "tanh"))

    def _look(self, gate: str, cell: Value) -> Value | None:
        if self.peephole is None:
            return None
        weight = self.r.part(self.peephole, 0, self.PEEPHOLES.index(gate) * self.size, self.size)
        return _mul(self.r, cell, weight)

    def _gate(self, x: Value, h: Value, gate: str, cell: Value) -> Value:
        total = _add(self.r, self.inputs(x, gate), self.state(h, gate), self._look(gate, cell))
        return self.r.unary(self.gate_op, total)

    def step(self, x: Value, h: Value, cell: Value) -> tuple[Value, Value]:
        r = self.r
        new = r.unary(self.cell_op, _add(r, self.inputs(x, "g"), self.state(h, "g")))
        kept = _mul(r, self._gate(x, h, "f", cell), cell)
        after = _add(r, kept, _mul(r, self._gate(x, h, "i", cell), new))
        return _mul(r, self._gate(x, h, "o", after), r.unary(self.out_op, after)), after


def gru_cell(r: Reader, c: Call) -> Value:
    return GruCell(r, c).step(r.value(c, "input"), r.value(c, "hiddenState"))


def lstm_cell(r: Reader, c: Call) -> tuple[Value, Value]:
    return LstmCell(r, c).step(r.value(c, "input"), r.value(c, "hiddenState"), r.value(c, "cellState"))


def _steps(r: Reader, c: Call) -> tuple[list[Value], int]:
    """The input of every step, and the batch. Shapes:  x [steps, batch, I] -> [batch, I] each"""
    x, steps = r.value(c, "input"), c.need("steps")
    if x.type.rank != 3 or x.type.shape[0] != steps:
        raise ShapeError(f"{c.name}: input {x.type.shape} does not have {steps} steps")
    if steps > MAX_STEPS:
        raise LimitError(f"steps of {c.name}", steps, MAX_STEPS, "use a shorter sequence")
    return [r.reshape(r.part(x, 0, i, 1), x.type.shape[1:]) for i in range(steps)], x.type.shape[1]


def _first(r: Reader, c: Call, argument: str, pick: int, batch: int, like: Value) -> Value:
    state = r.optional(c, argument)
    if state is None:
        return r.zeros((batch, c.need("hiddenSize")), like)
    return r.reshape(r.part(state, 0, pick, 1), state.type.shape[1:])


def _recurrent(r: Reader, c: Call, kind: type[GruCell] | type[LstmCell]) -> list[Value]:
    """Last states of every direction; with returnSequence also all states, [steps, directions, batch, H]."""
    direction = c.get("direction", "forward")
    if direction not in ("forward", "backward", "both"):
        raise ShapeError(f"{c.name}: direction {direction!r} is not forward, backward or both")
    xs, batch = _steps(r, c)
    lasts: list[list[Value]] = []  # per direction: the last of each state
    sequences: list[list[Value]] = []
    for pick, backward in enumerate((direction == "backward",) if direction != "both" else (False, True)):
        cell = kind(r, c, pick)
        states = [_first(r, c, "initialHiddenState", pick, batch, xs[0])]
        if kind is LstmCell:
            states.append(_first(r, c, "initialCellState", pick, batch, xs[0]))
        outputs = []
        for x in reversed(xs) if backward else xs:
            after = cell.step(x, *states)
            states = [after] if isinstance(after, Value) else list(after)
            outputs.append(states[0])
        lasts.append(states)
        sequences.append(outputs[::-1] if backward else outputs)
    results = [_stacked(r, [states[i] for states in lasts]) for i in range(len(lasts[0]))]
    if c.get("returnSequence", False):
        steps = [_stacked(r, list(step)) for step in zip(*sequences, strict=True)]
        results.append(_stacked(r, steps))
    return results


def _stacked(r: Reader, parts: list[Value]) -> Value:
    """The parts along a new first axis."""
    rows = [r.reshape(part, (1, *part.type.shape)) for part in parts]
    return r.emit(movement.CONCAT, rows, movement.ConcatAttrs(0))


HANDLERS: dict[str, Handler] = {
    "gru": lambda r, c: _recurrent(r, c, GruCell),
    "gruCell": gru_cell,
    "lstm": lambda r, c: _recurrent(r, c, LstmCell),
    "lstmCell": lstm_cell,
}
