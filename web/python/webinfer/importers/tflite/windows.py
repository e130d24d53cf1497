"""TFLite's windows over any axes, what is put between elements, and the operators of StableHLO that it runs."""

from __future__ import annotations

import math

from webinfer.dtypes import DType
from webinfer.graph.ir import Op, Value
from webinfer.importers.core import shifts, windows
from webinfer.importers.core.limits import check_index
from webinfer.importers.tflite.operation import Convert, Operation, Row
from webinfer.ops import elementwise as ew

# By number of ReduceWindowFunction; what of two elements is one.
_REDUCTIONS: tuple[Op | None, ...] = (
    None, ew.ADD, ew.MUL, ew.MINIMUM, ew.MAXIMUM, ew.LOGICAL_AND, ew.LOGICAL_OR,
)  # fmt: skip
_BODIES = {
    "STABLEHLO_ADD": ew.ADD, "STABLEHLO_MULTIPLY": ew.MUL, "STABLEHLO_MINIMUM": ew.MINIMUM,
    "STABLEHLO_MAXIMUM": ew.MAXIMUM,
}  # fmt: skip


def _number(op: Operation, key: int, x: Value) -> float:
    """The only number of an input, which is put between or around elements of x and has their type."""
    if op.value(key).type.dtype is not x.type.dtype:
        op.fail(f"input {key} is {op.value(key).type.dtype}, x is {x.type.dtype}")
    number = float(op.scalar(key))
    if math.isnan(number):
        op.fail("the padding is not a number")
    return number


def _plain(op: Operation, x: Value) -> Value:
    if op.quantized(x) and x.type.quant is not None:
        op.refuse(f"x of type {x.type.dtype} with a scale")
    return x


def _dilate(op: Operation) -> Value:
    x, steps = op.value(0), op.integers(1)
    if len(steps) != x.type.rank or min(steps, default=1) < 1:
        op.fail(f"dilations {steps} do not fit {x.type}")
    return windows.spread(op, x, [step - 1 for step in steps], _number(op, 2, x))


def _reduce_window(op: Operation) -> Value:
    x, first, code = _plain(op, op.value(0)), op.value(1), op.number("reduce_function")
    target = _REDUCTIONS[code] if 0 <= code < len(_REDUCTIONS) else None
    if target is None:
        op.refuse(f"reduce_function {code}")
    y = windows.reduced(op, target, x, *(op.integers(i) for i in (2, 3, 4)))
    return op.binary(target, y, op.reshape(first, ()))


def _numbers(op: Operation, name: str, default: int, count: int) -> tuple[int, ...]:
    found = op.vector(name) or (default,) * count
    if len(found) != count:
        op.fail(f"{name} {found} does not fit {count} axes")
    return tuple(int(n) for n in found)


def _stablehlo_window(op: Operation) -> Value:
    """The subgraph of a window must be one operator of two operands."""
    x, first = _plain(op, op.value(0)), op.value(1)
    if len(op.inputs) != 2 or op.output_count != 1:
        op.refuse("windows over several tensors")
    number = op.number("body_subgraph_index")
    check_index(number, len(op.model.subgraphs), f"{op.what}: body_subgraph_index")
    steps = op.model.subgraphs[number].operators
    target = _BODIES.get(steps[0].name) if len(steps) == 1 else None
    if target is None:
        op.refuse("a window whose subgraph is not one sum, product or extreme")
    rank, start = x.type.rank, _number(op, 1, x)
    between = _numbers(op, "base_dilations", 1, rank)
    edges = _numbers(op, "padding", 0, 2 * rank)
    x = windows.spread(op, x, [n - 1 for n in between], start)
    x = windows.padded(op, x, edges[0::2], edges[1::2], start)
    sizes = [_numbers(op, name, 1, rank) for name in ("window_dimensions", "window_strides", "window_dilations")]
    y = windows.reduced(op, target, x, *sizes)
    return op.binary(target, y, op.reshape(first, ()))


def _stablehlo_pad(op: Operation) -> Value:
    x = op.value(0)
    low, high, between = (
        _numbers(op, name, 0, x.type.rank) for name in ("edge_padding_low", "edge_padding_high", "interior_padding")
    )
    value = _number(op, 1, x)
    return windows.padded(op, windows.spread(op, x, between, value), low, high, value)


def _binary(target: Op) -> Convert:
    def convert(op: Operation) -> Value:
        a, b = (op.value(i) for i in (0, 1))
        out = op.out_type() if op.quantized(a) and op.quantized(b) else None
        return op.emit(target, [a, b], ew.BinaryAttrs(out_type=out))

    return convert


def _and(op: Operation) -> Value:
    a, b = op.value(0), op.value(1)
    if a.type.dtype is DType.BOOL:
        return op.binary(ew.LOGICAL_AND, a, b)
    return shifts.pattern(op, ew.BIT_AND, a, b)


def _bitcast(op: Operation) -> Value:
    x, out = op.value(0), op.declared()
    if x.type.dtype.itemsize != out.dtype.itemsize:
        op.refuse(f"bits of {x.type.dtype} as {out.dtype}")
    return op.emit(ew.BITCAST, [x], ew.CastAttrs(out.dtype))


CONVERTERS: dict[str, Row] = {
    "BITCAST": (_bitcast, ""),
    "BITWISE_XOR": (lambda op: shifts.pattern(op, ew.BIT_XOR, op.value(0), op.value(1)), ""),
    "DILATE": (_dilate, ""),
    "REDUCE_WINDOW": (_reduce_window, "ReduceWindowOptions"),
    "RIGHT_SHIFT": (lambda op: shifts.shifted_right(op, op.value(0), op.value(1)), ""),
    "STABLEHLO_ADD": (_binary(ew.ADD), ""),
    "STABLEHLO_AND": (_and, ""),
    "STABLEHLO_MAXIMUM": (_binary(ew.MAXIMUM), ""),
    "STABLEHLO_MINIMUM": (_binary(ew.MINIMUM), ""),
    "STABLEHLO_MULTIPLY": (_binary(ew.MUL), ""),
    "STABLEHLO_PAD": (_stablehlo_pad, "StablehloPadOptions"),
    "STABLEHLO_REDUCE_WINDOW": (_stablehlo_window, "StablehloReduceWindowOptions"),
}
