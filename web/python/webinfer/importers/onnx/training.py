"""Steps of optimisers: the next weights and what is remembered of the gradients.

Source:  onnx v1.23, ai.onnx.preview.training: Adagrad-1, Adam-1, Momentum-1
"""

from __future__ import annotations

from collections.abc import Callable

from webinfer.dtypes import DType
from webinfer.graph.ir import Value
from webinfer.importers.onnx.operation import Convert, Operation
from webinfer.ops import elementwise as ew
from webinfer.ops.registry import NoAttrs

Step = Callable[[Operation, Value, Value, list[Value]], list[Value]]  # rate, time, [weights, gradient, state ...]


def _of_all(step: Step, parts: int) -> Convert:
    """The step for each of several tensors: inputs are rate, time, then all weights, all gradients, all states."""

    def convert(op: Operation) -> list[Value]:
        tensors = op.values()[2:]
        count = len(tensors) // parts
        if count < 1 or count * parts != len(tensors):
            op.fail(f"{len(tensors)} tensors, needs {parts} for each that is trained")
        rate, time = op.reshape(op.value(0), ()), op.cast(op.reshape(op.value(1), ()), DType.FLOAT32)
        found = [step(op, rate, time, tensors[i::count]) for i in range(count)]
        return [value for values in zip(*found, strict=True) for value in values]

    return convert


def _regular(op: Operation, x: Value, g: Value) -> Value:
    """The gradient with that of the weights' norm."""
    factor = op.real("norm_coefficient", 0.0)
    return op.binary(ew.ADD, op.unary(ew.LINEAR, x, factor), g) if factor else g


def _mixed(op: Operation, a: Value, factor: float, b: Value) -> Value:
    return op.binary(ew.ADD, op.unary(ew.LINEAR, a, factor), op.unary(ew.LINEAR, b, 1 - factor))


def _later(op: Operation, time: Value, value: Value, first: Value) -> Value:
    """A number behind the first step, where the time is not 0."""
    return op.emit(ew.WHERE, [op.binary(ew.GREATER, time, op.scalar_of(0.0, DType.FLOAT32)), value, first], NoAttrs())


def _adagrad(op: Operation, rate: Value, time: Value, tensors: list[Value]) -> list[Value]:
    x, g, h = tensors
    rate = op.binary(ew.DIV, rate, op.unary(ew.LINEAR, time, op.real("decay_factor", 0.0), 1.0))
    g = _regular(op, x, g)
    h = op.binary(ew.ADD, h, op.unary(ew.SQUARE, g))
    root = op.unary(ew.LINEAR, op.unary(ew.SQRT, h), 1.0, op.real("epsilon", 1e-6))
    return [op.binary(ew.SUB, x, op.binary(ew.DIV, op.binary(ew.MUL, rate, g), root)), h]


def _adam(op: Operation, rate: Value, time: Value, tensors: list[Value]) -> list[Value]:
    x, g, v, h = tensors
    alpha, beta = op.real("alpha", 0.9), op.real("beta", 0.999)
    g = _regular(op, x, g)
    v, h = _mixed(op, v, alpha, g), _mixed(op, h, beta, op.unary(ew.SQUARE, g))
    root = op.unary(ew.LINEAR, op.unary(ew.SQRT, h), 1.0, op.real("epsilon", 1e-6))
    rests = []
    for factor in (beta, alpha):
        power = op.binary(ew.POW, op.scalar_of(factor, DType.FLOAT32), time)
        rests.append(op.unary(ew.LINEAR, power, -1.0, 1.0))
    scaled = op.binary(ew.DIV, op.binary(ew.MUL, rate, op.unary(ew.SQRT, rests[0])), rests[1])
    rate = _later(op, time, scaled, rate)
    x = op.binary(ew.SUB, x, op.binary(ew.MUL, rate, op.binary(ew.DIV, v, root)))
    return [op.unary(ew.LINEAR, x, 1 - op.real("norm_coefficient_post", 0.0)), v, h]


def _momentum(op: Operation, rate: Value, time: Value, tensors: list[Value]) -> list[Value]:
    x, g, v = tensors
    alpha, g = op.real("alpha", 0.0), _regular(op, x, g)
    part = _later(op, time, op.unary(ew.LINEAR, g, op.real("beta", 1.0)), g)
    v = op.binary(ew.ADD, op.unary(ew.LINEAR, v, alpha), part)
    nesterov = op.chosen("mode", ("standard", "nesterov"), "standard") == "nesterov"
    step = op.binary(ew.ADD, g, op.unary(ew.LINEAR, v, alpha)) if nesterov else v
    return [op.binary(ew.SUB, x, op.binary(ew.MUL, rate, step)), v]


CONVERTERS: dict[str, Convert] = {
    "ai.onnx.preview.training.Adagrad": _of_all(_adagrad, 3),
    "ai.onnx.preview.training.Adam": _of_all(_adam, 4),
    "ai.onnx.preview.training.Momentum": _of_all(_momentum, 3),
}
