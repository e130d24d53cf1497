"""WebNN's recurrent operators, unrolled into products, slices and activations."""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.graph.ir import Op, Value
from webinfer.importers.core.limits import MAX_TIME_STEPS, within
from webinfer.importers.webnn.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul as mm

ACTIVATIONS = {"relu": ew.RELU, "sigmoid": ew.SIGMOID, "tanh": ew.TANH}


def _activations(op: Operation, default: Sequence[str]) -> list[Op]:
    names = op.get("activations", default)
    if len(names) != len(default) or any(name not in ACTIVATIONS for name in names):
        op.fail(f"{op.name}: activations {names} must be {len(default)} of {sorted(ACTIVATIONS)}")
    return [ACTIVATIONS[name] for name in names]


def _add(op: Operation, *terms: Value | None) -> Value:
    present = [term for term in terms if term is not None]
    total = present[0]
    for term in present[1:]:
        total = op.binary(ew.ADD, total, term)
    return total


def _product(op: Operation, x: Value, w: Value) -> Value:
    """Shapes:  x [batch, K], w [N, K] -> [batch, N]"""
    return op.emit(mm.MATMUL, [x, w], mm.MatmulAttrs(transpose_b=True))


class _Cell:
    """Weights of one direction: what both cells share.

    Shapes:  weight [gates*H, I], recurrent [gates*H, H], biases [gates*H]
    """

    def __init__(self, op: Operation, gates: str, layout: str, pick: int | None) -> None:
        self.op, self.size = op, int(op.need("hiddenSize"))
        self.order = {gate: layout.index(gate) for gate in gates}
        self.weight, self.recurrent = (self._direction(op.value(n), pick) for n in ("weight", "recurrentWeight"))
        self.bias, self.recurrent_bias, self.peephole = (
            None if v is None else self._direction(v, pick)
            for v in (op.optional(n) for n in ("bias", "recurrentBias", "peepholeWeight"))
        )

    def _direction(self, value: Value, pick: int | None) -> Value:
        if pick is None:
            return value
        return self.op.reshape(self.op.cut(value, 0, pick, 1), value.type.shape[1:])

    def gate(self, value: Value, gate: str) -> Value:
        """The gate's rows of a weight or a bias."""
        return self.op.cut(value, 0, self.order[gate] * self.size, self.size)

    def inputs(self, x: Value, gate: str) -> Value:
        """x * W + b"""
        bias = None if self.bias is None else self.gate(self.bias, gate)
        return _add(self.op, _product(self.op, x, self.gate(self.weight, gate)), bias)

    def state(self, h: Value, gate: str) -> Value:
        """h * R + rb"""
        bias = None if self.recurrent_bias is None else self.gate(self.recurrent_bias, gate)
        return _add(self.op, _product(self.op, h, self.gate(self.recurrent, gate)), bias)


class _GruCell(_Cell):
    """update z, reset r, new n: h' = z*h + (1 - z)*n"""

    def __init__(self, op: Operation, pick: int | None = None) -> None:
        super().__init__(op, "zrn", op.get("layout", "zrn"), pick)
        self.reset_after = op.get("resetAfter", True)
        self.sigma, self.phi = _activations(op, ("sigmoid", "tanh"))

    def step(self, x: Value, h: Value) -> Value:
        """The next state."""
        op = self.op
        update = op.unary(self.sigma, _add(op, self.inputs(x, "z"), self.state(h, "z")))
        reset = op.unary(self.sigma, _add(op, self.inputs(x, "r"), self.state(h, "r")))
        if self.reset_after:
            past = op.binary(ew.MUL, reset, self.state(h, "n"))
        else:
            past = self.state(op.binary(ew.MUL, reset, h), "n")
        new = op.unary(self.phi, _add(op, self.inputs(x, "n"), past))
        kept = op.binary(ew.SUB, op.scalar_of(1.0, update.type.dtype), update)
        return _add(op, op.binary(ew.MUL, update, h), op.binary(ew.MUL, kept, new))


class _LstmCell(_Cell):
    """input i, output o, forget f, cell g: c' = f*c + i*g, h' = o * activation(c')"""

    PEEPHOLES = "iof"

    def __init__(self, op: Operation, pick: int | None = None) -> None:
        super().__init__(op, "iofg", op.get("layout", "iofg"), pick)
        self.gate_op, self.cell_op, self.out_op = _activations(op, ("sigmoid", "tanh", "tanh"))

    def _look(self, gate: str, cell: Value) -> Value | None:
        if self.peephole is None:
            return None
        weight = self.op.cut(self.peephole, 0, self.PEEPHOLES.index(gate) * self.size, self.size)
        return self.op.binary(ew.MUL, cell, weight)

    def _gate(self, x: Value, h: Value, gate: str, cell: Value) -> Value:
        total = _add(self.op, self.inputs(x, gate), self.state(h, gate), self._look(gate, cell))
        return self.op.unary(self.gate_op, total)

    def step(self, x: Value, h: Value, cell: Value) -> tuple[Value, Value]:
        """The next state and the next cell state."""
        op = self.op
        new = op.unary(self.cell_op, _add(op, self.inputs(x, "g"), self.state(h, "g")))
        kept = op.binary(ew.MUL, self._gate(x, h, "f", cell), cell)
        after = _add(op, kept, op.binary(ew.MUL, self._gate(x, h, "i", cell), new))
        return op.binary(ew.MUL, self._gate(x, h, "o", after), op.unary(self.out_op, after)), after


def _gru_cell(op: Operation) -> Value:
    return _GruCell(op).step(op.value("input"), op.value("hiddenState"))


def _lstm_cell(op: Operation) -> tuple[Value, Value]:
    return _LstmCell(op).step(op.value("input"), op.value("hiddenState"), op.value("cellState"))


def _steps(op: Operation) -> tuple[list[Value], int]:
    """The input of every step, and the batch. Shapes:  x [steps, batch, I] -> [batch, I] each"""
    x, steps = op.value("input"), op.need("steps")
    if x.type.rank != 3 or x.type.shape[0] != steps:
        op.fail(f"{op.name}: input {x.type.shape} does not have {steps} steps")
    within(f"steps of {op.name}", steps, MAX_TIME_STEPS, "use a shorter sequence")
    return [op.row(x, 0, i) for i in range(steps)], x.type.shape[1]


def _first(op: Operation, argument: str, pick: int, batch: int, like: Value) -> Value:
    state = op.optional(argument)
    if state is None:
        return op.zeros((batch, op.need("hiddenSize")), like.type.dtype)
    return op.row(state, 0, pick)


def _recurrent(op: Operation, kind: type[_GruCell] | type[_LstmCell]) -> list[Value]:
    """Last states of every direction; with returnSequence also all states, [steps, directions, batch, H]."""
    direction = op.get("direction", "forward")
    if direction not in ("forward", "backward", "both"):
        op.fail(f"{op.name}: direction {direction!r} is not forward, backward or both")
    xs, batch = _steps(op)
    lasts: list[list[Value]] = []  # per direction: the last of each state
    sequences: list[list[Value]] = []
    for pick, backward in enumerate((direction == "backward",) if direction != "both" else (False, True)):
        cell = kind(op, pick)
        states = [_first(op, "initialHiddenState", pick, batch, xs[0])]
        if kind is _LstmCell:
            states.append(_first(op, "initialCellState", pick, batch, xs[0]))
        outputs = []
        for x in reversed(xs) if backward else xs:
            after = cell.step(x, *states)
            states = [after] if isinstance(after, Value) else list(after)
            outputs.append(states[0])
        lasts.append(states)
        sequences.append(outputs[::-1] if backward else outputs)
    results = [op.stack([states[i] for states in lasts]) for i in range(len(lasts[0]))]
    if op.get("returnSequence", False):
        steps = [op.stack(list(step)) for step in zip(*sequences, strict=True)]
        results.append(op.stack(steps))
    return results


CONVERTERS: dict[str, Convert] = {
    "gru": lambda op: _recurrent(op, _GruCell),
    "gruCell": _gru_cell,
    "lstm": lambda op: _recurrent(op, _LstmCell),
    "lstmCell": _lstm_cell,
}
