"""Small integer arithmetic on constants, done while importing.

Models with dynamic sizes compute shapes: SHAPE → STRIDED_SLICE → PACK → RESHAPE. The graph's shapes are
static, so these must be known before the next operator's shape can be inferred. Weights are never folded.
"""

from __future__ import annotations

import itertools
import math
import operator
import struct
from collections.abc import Callable, Sequence
from typing import Any

from webinfer.dtypes import DType, round_to_f32
from webinfer.graph.dims import has_size, whole
from webinfer.graph.ir import Constant, Node, SizeConstant, TensorType, Value
from webinfer.ops.movement import RESHAPE, TRANSPOSE, strided_copies

_MAX_ELEMENTS = 1024
_MAX_REAL = 64  # of float32: scales of sizes, never weights
_FOLDED = (DType.INT32, DType.INT64, DType.BOOL)
_Number = Callable[..., Any]


def _floor_div(a: int, b: int) -> int | None:
    return None if b == 0 else a // b


def _divide(a: int, b: int) -> int | None:
    if b == 0:
        return None
    size = abs(a) // abs(b)  # in whole numbers: a float holds 53 bits
    return size if (a < 0) is (b < 0) else -size


_ELEMENTWISE: dict[str, _Number] = {
    "abs": abs, "add": operator.add, "div": _divide, "equal": operator.eq, "floor_div": _floor_div,
    "floor_mod": lambda a, b: None if b == 0 else a % b, "greater": operator.gt, "greater_equal": operator.ge,
    "less": operator.lt, "less_equal": operator.le, "logical_and": lambda a, b: bool(a and b),
    "logical_not": operator.not_, "logical_or": lambda a, b: bool(a or b),
    "logical_xor": lambda a, b: bool(a) != bool(b), "maximum": max, "minimum": min, "mul": operator.mul,
    "neg": operator.neg, "not_equal": operator.ne, "sign": lambda a: (a > 0) - (a < 0),
    "square": lambda a: a * a, "sub": operator.sub,
    "where": lambda c, a, b: a if c else b,
}  # fmt: skip
_REAL: dict[str, _Number] = {
    "add": operator.add, "ceil": math.ceil, "div": operator.truediv, "floor": math.floor, "maximum": max,
    "minimum": min, "mul": operator.mul, "neg": operator.neg, "round_even": round, "sqrt": math.sqrt,
    "sub": operator.sub,
}  # fmt: skip
_REDUCTIONS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "reduce_all": all, "reduce_any": any, "reduce_max": max, "reduce_min": min, "reduce_product": math.prod,
    "reduce_sum": sum,
}  # fmt: skip


def fold(node: Node, floats: bool = False) -> Value | None:
    """The node's result as a constant, or None if it is not small work on constants (`floats`: of float32 too)."""
    y = node.outputs[0].type
    if len(node.outputs) != 1 or has_size(y.shape) or not _is_small(y, floats):
        return _reshaped(node) if node.op is RESHAPE and y.dtype is DType.FLOAT16 else None
    inputs = _small_constants(node, floats)
    if inputs is None:
        return None
    if any(isinstance(value.constant, SizeConstant) for value in inputs) or has_size(node.attrs):
        return _fold_sizes(node, inputs, y)
    if node.op is RESHAPE or (node.op is TRANSPOSE and sum(size != 1 for size in y.shape) <= 1):
        return _with_same_bytes(node, inputs[0], y)
    real = any(t.dtype is DType.FLOAT32 for t in (y, *(value.type for value in inputs)))
    try:
        numbers = _compute_real(node, inputs, y) if real else _compute(node, inputs, y)
        if numbers is None or any(n is None for n in numbers):
            return None
        reals = struct.pack(f"<{len(numbers)}f", *numbers) if y.dtype is DType.FLOAT32 else None
    except (ArithmeticError, ValueError):
        return None  # infinities and numbers beyond the type are the kernels' to make
    if reals is not None:
        return Value(node.outputs[0].name, y, Constant(memoryview(reals), y.dtype))
    low, high = y.dtype.range
    if any(not low <= int(n) <= high for n in numbers):
        return None  # overflow is left to the kernels, which wrap as TFLite's do
    data = struct.pack(f"<{len(numbers)}{y.dtype.letter}", *numbers)
    return Value(node.outputs[0].name, y, Constant(memoryview(data), y.dtype))


def _small_constants(node: Node, floats: bool) -> list[Value] | None:
    """The inputs, if all of them are small dense constants stored in their own type."""
    inputs: list[Value] = []
    for value in node.inputs:
        if value is None or value.constant is None or value.constant.sparsity is not None:
            return None
        if (
            has_size(value.type.shape)
            or not _is_small(value.type, floats)
            or value.constant.stored is not value.type.dtype
        ):
            return None
        inputs.append(value)
    return inputs


def _with_same_bytes(node: Node, x: Value, y: TensorType) -> Value:
    """What is no arithmetic: the numbers of a constant in another shape, or as many axes in another order."""
    assert x.constant is not None
    return Value(node.outputs[0].name, y, Constant(x.constant.data, y.dtype))


def _reshaped(node: Node) -> Value | None:
    """A few float16 numbers in another shape: what is no arithmetic needs no type to compute in."""
    constant, y = node.required_input(0).constant, node.output
    if constant is None or constant.sparsity is not None or constant.stored is not y.type.dtype:
        return None
    small = not has_size(y.type.shape) and y.type.size <= _MAX_REAL
    return Value(y.name, y.type, Constant(constant.data, y.type.dtype)) if small else None


def _fold_sizes(node: Node, inputs: list[Value], y: TensorType) -> Value | None:
    """As `fold`, of numbers that follow the sizes of inputs: the result follows them too.

    Whether int32 holds them is asked for each; int64 holds what sizes make.
    """
    real = any(t.dtype is DType.FLOAT32 for t in (y, *(value.type for value in inputs)))
    try:
        numbers = _compute_real(node, inputs, y) if real else _compute(node, inputs, y)
    except (ArithmeticError, ValueError):
        return None
    if y.dtype is DType.FLOAT32:  # whole numbers, which float32 must hold; others are none that follow sizes
        low, high = -(2**24), 2**24
        numbers = numbers and [n if has_size(n) else round_to_f32(n) for n in numbers]
    else:
        low, high = y.dtype.range
    if numbers is None or any(n is None or not low <= n <= high for n in numbers):
        return None
    if has_size(numbers):
        return Value(node.outputs[0].name, y, SizeConstant(numbers, y.dtype))
    return Value(
        node.outputs[0].name, y, Constant(memoryview(struct.pack(f"<{y.size}{y.dtype.letter}", *numbers)), y.dtype)
    )


def _is_small(type: TensorType, floats: bool) -> bool:
    if type.dtype is DType.FLOAT32:
        return floats and type.size <= _MAX_REAL
    return type.dtype in _FOLDED and type.size <= _MAX_ELEMENTS


def _compute_real(node: Node, inputs: list[Value], y: TensorType) -> list[Any] | None:
    """Float32 arithmetic: each result is exact in Python's numbers, but for its one rounding."""
    name = node.op.name
    if name == "cast":
        if y.dtype is DType.FLOAT32 or y.dtype is DType.BOOL:
            return [n != 0 if y.dtype is DType.BOOL else _as_float(n) for n in inputs[0].numbers()]
        return [whole(n) for n in inputs[0].numbers()]
    if any(n != n for value in inputs for n in value.numbers()):
        return None  # what a NaN becomes is the kernels' matter
    if name in _REAL and getattr(node.attrs, "activation", "none") == "none":
        spread = [_spread(value, y.shape) for value in inputs]
        return [_REAL[name](*operands) for operands in zip(*spread, strict=True)]
    if name in ("reshape", "identity"):
        return list(inputs[0].numbers())
    if name == "gather" and node.attrs.batch_dims == 0 and inputs[1].type.dtype is not DType.FLOAT32:
        return _gather(inputs[0], inputs[1], node.attrs.axis)
    return _copy(node, inputs, y, float) if name in ("concat", "slice", "transpose", "expand") else None


def _as_float(number: Any) -> Any:
    """`float(number)` that lets a size be one."""
    return number if has_size(number) else float(number)


def _compute(node: Node, inputs: list[Value], y: TensorType) -> list[Any] | None:
    name = node.op.name
    if name in ("reshape", "identity", "cast"):
        convert = bool if y.dtype is DType.BOOL else whole
        return [convert(n) for n in inputs[0].numbers()]
    if name in _ELEMENTWISE:
        if getattr(node.attrs, "activation", "none") != "none":
            return None
        spread = [_spread(value, y.shape) for value in inputs]
        return [_ELEMENTWISE[name](*operands) for operands in zip(*spread, strict=True)]
    if name == "clamp":
        low, high = int(node.attrs.a), int(node.attrs.b)
        return [min(max(n, low), high) for n in inputs[0].numbers()]
    if name in _REDUCTIONS:
        return _reduce(_REDUCTIONS[name], inputs[0], node.attrs.axes, y)
    if name == "gather":
        return _gather(inputs[0], inputs[1], node.attrs.axis) if node.attrs.batch_dims == 0 else None
    return _copy(node, inputs, y)


def _copy(node: Node, inputs: list[Value], y: TensorType, convert: Callable[[Any], Any] = whole) -> list[Any] | None:
    copies = strided_copies(node.op, [value.type for value in inputs], y, node.attrs)
    if copies is None:
        return None
    result: list[Any] = [getattr(node.attrs, "value", 0)] * y.size
    sources = [value.numbers() for value in inputs]
    for copy in copies:
        for index in itertools.product(*map(range, copy.shape)):
            source = copy.source_offset + sum(map(operator.mul, index, copy.source_strides))
            target = copy.target_offset + sum(map(operator.mul, index, copy.target_strides))
            result[target] = sources[copy.source][source]
    return [convert(n) for n in result]


def _spread(value: Value, shape: tuple[int, ...]) -> list[Any]:
    """The numbers broadcast to a shape."""
    numbers, own = value.numbers(), (1,) * (len(shape) - value.type.rank) + value.type.shape
    strides, step = [], 1
    for size in reversed(own):
        strides.append(0 if size == 1 else step)
        step *= size
    strides.reverse()
    return [numbers[sum(map(operator.mul, index, strides))] for index in itertools.product(*map(range, shape))]


def _reduce(combine: Callable[[Sequence[Any]], Any], x: Value, axes: tuple[int, ...], y: TensorType) -> list[Any]:
    groups: dict[tuple[int, ...], list[Any]] = {}
    for index, number in zip(itertools.product(*map(range, x.type.shape)), x.numbers(), strict=True):
        groups.setdefault(tuple(0 if i in axes else n for i, n in enumerate(index)), []).append(number)
    return [combine(groups[key]) for key in sorted(groups)] if groups else [combine([])] * y.size


def _gather(x: Value, positions: Value, axis: int) -> list[Any] | None:
    size = x.type.shape[axis]
    wanted = [p + size if p < 0 else p for p in positions.numbers()]
    if any(not 0 <= p < size for p in wanted):
        return None
    inner = math.prod(x.type.shape[axis + 1 :])
    outer = math.prod(x.type.shape[:axis])
    numbers = x.numbers()
    return [numbers[(o * size + p) * inner + i] for o in range(outer) for p in wanted for i in range(inner)]
