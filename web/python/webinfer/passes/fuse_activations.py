"""A product of x with a function of x that is a known curve (gelu, silu, hard swish) becomes one node."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping

from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Graph, Node, Op, TensorType, Value, apply
from webinfer.ops import elementwise as ew
from webinfer.ops.activation import Activation
from webinfer.passes.readers import MAX_WALK, producer_of, scalar_constant

Writers = Mapping[Value, Node]
MAX_FACTORS = 6
HALF_ROUNDING = 2.0**-11  # of a number that becomes a float16
CUBE = 0.044715  # of gelu's approximation by tanh


def fuse_activations(graph: Graph) -> int:
    """Number of products that became a curve; what they no longer read stays."""
    writers, made = graph.producers(), list[Node]()
    count = 0
    for node in graph.nodes:
        product = node.op in (ew.MUL, ew.DIV) and node.output.type.dtype.is_float
        found = _curve(node, writers) if product else None
        if found is not None and found[0].type == node.output.type:
            x, op, attrs, times = found
            if times == 1.0:
                node.op, node.attrs, node.inputs = op, attrs, [x]
            else:
                made.append(apply(op, [x], attrs, node.label, name=f"{node.output.name}:curve"))
                number = Constant(memoryview(struct.pack("<f", times)), DType.FLOAT32)
                factor = Value(f"{node.output.name}:factor", TensorType(()), number)
                node.op, node.attrs, node.inputs = ew.MUL, ew.BinaryAttrs(), [made[-1].output, factor]
            count += 1
        made.append(node)
    graph.nodes = made
    return count


def _curve(node: Node, writers: Writers) -> tuple[Value, Op, ew.UnaryAttrs, float] | None:
    """(x, operator, attributes, factor) of the curve that a product is."""
    factors, scale = _factors(node.output, writers)
    if len(factors) != 2:
        return None
    for x, other in (factors, factors[::-1]):
        one = _plus_one(other, writers)
        if one is not None and _near(scale * one[1], 0.5):
            inner = one[0].inputs[0]
            if one[0].op is ew.ERF and _is_multiple(inner, x, math.sqrt(0.5), writers):
                return x, ew.GELU, ew.UnaryAttrs(), 1.0
            if one[0].op is ew.TANH and _is_cubic(inner, x, writers):
                return x, ew.GELU_TANH, ew.UnaryAttrs(), 1.0
        gate = producer_of(other, writers, ew.SIGMOID, ew.HARD_SIGMOID, ew.RELU6, ew.CLAMP)
        if gate is None:
            continue
        if gate.op is ew.SIGMOID and _near(scale, 1.0):
            sources, slope = _factors(gate.required_input(0), writers)
            if len(sources) == 1 and sources[0] is x:
                return x, ew.SILU, ew.UnaryAttrs(slope), 1.0
        elif (times := _hard_factor(gate, x, scale, writers)) is not None:
            return x, ew.HARD_SWISH, ew.UnaryAttrs(), times
    return None


def _factors(value: Value | None, writers: Writers) -> tuple[list[Value], float]:
    """The tensors that a value is the product of, and the product of all numbers among its factors."""
    tensors: list[Value] = []
    scale, todo = 1.0, [value]
    for _ in range(MAX_WALK):
        if not todo or len(tensors) + len(todo) > MAX_FACTORS:
            break
        value = todo.pop()
        node = producer_of(value, writers, ew.MUL, ew.DIV, ew.LINEAR, ew.SQUARE)
        number = scalar_constant(value)
        divisor = scalar_constant(node.inputs[1]) if node is not None and node.op is ew.DIV else None
        if number is not None:
            scale *= number
        elif node is not None and node.op is ew.MUL and node.attrs.activation is Activation.NONE:
            todo += node.inputs
        elif node is not None and node.op is ew.SQUARE:
            todo += [node.inputs[0]] * 2
        elif node is not None and divisor and node.attrs.activation is Activation.NONE:
            todo.append(node.inputs[0])
            scale /= divisor
        elif node is not None and node.op is ew.LINEAR and node.attrs.b == 0:
            todo.append(node.inputs[0])
            scale *= node.attrs.a
        elif value is not None:
            tensors.append(value)
    return (tensors, scale) if not todo else ([], scale)


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-4 * abs(b)


def _is_multiple(value: Value | None, x: Value, times: float, writers: Writers) -> bool:
    factors, scale = _factors(value, writers)
    return len(factors) == 1 and factors[0] is x and _near(scale, times)


def _sum(value: Value | None, writers: Writers) -> list[tuple[Value | None, float]]:
    """(what, number) of each order of a sum whose second part is a number."""
    linear = producer_of(value, writers, ew.LINEAR)
    if linear is not None and linear.attrs.a == 1:
        return [(linear.inputs[0], linear.attrs.b)]
    total = producer_of(value, writers, ew.ADD)
    if total is None or total.attrs.activation is not Activation.NONE:
        return []
    pairs = ((a, scalar_constant(b)) for a, b in (total.inputs, total.inputs[::-1]))
    return [(a, b) for a, b in pairs if b is not None]


def _plus_one(value: Value, writers: Writers) -> tuple[Node, float] | None:
    """(function, c) if the value is c * (1 + function) with an erf or a tanh."""
    linear = producer_of(value, writers, ew.LINEAR)
    if linear is not None and linear.attrs.a == linear.attrs.b:
        function = producer_of(linear.inputs[0], writers, ew.ERF, ew.TANH)
        return (function, linear.attrs.a) if function is not None else None
    for part, number in _sum(value, writers):
        function = producer_of(part, writers, ew.ERF, ew.TANH)
        if function is not None and number == 1.0:
            return function, 1.0
    return None


def _is_cubic(value: Value | None, x: Value, writers: Writers) -> bool:
    """Whether the value is sqrt(2 / pi) * (x + CUBE * x^3), in one of the ways to write that."""
    factors, scale = _factors(value, writers)
    if not _near(scale, math.sqrt(2 / math.pi)) or not 1 <= len(factors) <= 2:
        return False
    if len(factors) == 1:  # x + CUBE * x^3
        total = producer_of(factors[0], writers, ew.ADD)
        pairs = () if total is None else (total.inputs, total.inputs[::-1])
        return any(a is x and _is_power(b, x, 3, writers) for a, b in pairs)
    others = [v for v in factors if v is not x]  # x * (1 + CUBE * x^2)
    return len(others) == 1 and any(b == 1.0 and _is_power(a, x, 2, writers) for a, b in _sum(others[0], writers))


def _is_power(value: Value | None, x: Value, power: int, writers: Writers) -> bool:
    """Whether the value is CUBE * x^power."""
    factors, scale = _factors(value, writers)
    if not _near(scale, CUBE):
        return False
    if len(factors) == 1:
        node = producer_of(factors[0], writers, ew.POW)
        return node is not None and node.inputs[0] is x and scalar_constant(node.inputs[1]) == power
    return len(factors) == power and all(v is x for v in factors)


def _hard_factor(gate: Node, x: Value, scale: float, writers: Writers) -> float | None:
    """What scale * gate is of clamp(x + 3, 0, 6) / 6: 1 or, where the sixth was stored in 16 bits, next to it."""
    a = gate.attrs
    if gate.op is ew.HARD_SIGMOID:
        return 1.0 if gate.inputs[0] is x and _near(a.a, 1 / 6) and a.b == 0.5 and _near(scale, 1.0) else None
    if gate.op is ew.CLAMP and (a.a != 0.0 or a.b != 6.0):
        return None
    shifted = gate.op in (ew.RELU6, ew.CLAMP) and abs(6 * scale - 1) <= HALF_ROUNDING
    if not shifted or not any(part is x and number == 3.0 for part, number in _sum(gate.inputs[0], writers)):
        return None
    return 1.0 if _near(scale, 1 / 6) else 6 * scale
