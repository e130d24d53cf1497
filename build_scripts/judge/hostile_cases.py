"""Hostile operands: every operator's declared cases with extreme numbers, positions, scales, sizes and attributes.

An operator needs nothing but its cases in `ops/` to be here. A draw is a function of the seed and its number alone.
"""

import dataclasses
import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from tests.ops.case_graphs import Array

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.graph.ir import Case, Constant, Node, Op, Quantization, TensorType, Value, apply
from webinfer.ops import OPS

NAN, INFINITY = math.nan, math.inf
FLOATS = (
    NAN, INFINITY, -INFINITY, 0.0, -0.0, 1e-45, -1e-45, 1e-39, 1.1754944e-38, 3.4028235e38, -3.4028235e38, 1e30, -1e30,
    2.0**31, -(2.0**31), 2.0**32, 2.0**63, -(2.0**63), 16777217.0, 8388609.5, 0.5, -0.5, 1.5, 2.5, 65504.0, 65520.0,
    88.8, -88.8, 104.0, 1e-20, -1e20,
)  # fmt: skip
INTEGERS = (-(2**63), 2**63 - 1, -(2**31), 2**31 - 1, 2**32 - 1, -1, 0, 1, 2, -2, 7, 255, -128, 32767, 2**24 + 1)
POSITIONS = (-(2**63), 2**63 - 1, -(2**31), 2**31 - 1, 2**31, 2**32, -1, 0, 1, 2, 3, -2, -9, 9, 1, 1)
SCALES = (1e-45, 1e-38, 1e-12, 1e-3, 0.05, 1.0, 7.5, 1e4, 1e12, 1e30, 3.4e38)
NUMBERS = (NAN, INFINITY, -INFINITY, 0.0, -0.0, 1.0, -1.0, 1e-45, 1e30, -1e30, 3.4028235e38, 0.5, 6.0)
DTYPES = (
    DType.INT8, DType.UINT8, DType.INT16, DType.INT32, DType.UINT32, DType.INT64, DType.UINT64, DType.FLOAT16,
    DType.FLOAT32, DType.BOOL,
)  # fmt: skip
MOST_ELEMENTS = 1 << 16  # of a tensor of a case


@dataclasses.dataclass(frozen=True)
class Hostile:
    """One case made hostile: its words, its node, and its arrays; those of constants lie in the node too."""

    label: str
    node: Node
    arrays: list[Array | None]
    case: Case


def _some(rng: random.Random, numbers: np.random.Generator, array: Array, palette: Sequence[Any]) -> Array:
    """The array with one, some or all elements taken from the palette."""
    flat = array.reshape(-1)
    if flat.size:
        count = rng.choice((1, 2, flat.size // 3 + 1, flat.size))
        places = numbers.choice(flat.size, size=min(count, flat.size), replace=False)
        chosen = rng.sample(palette, rng.randint(1, min(6, len(palette))))
        flat[places] = [rng.choice(chosen) for _ in places]
    return array


def _is_position(op: Op, index: int, type: TensorType) -> bool:
    return index == 1 and type.dtype in (DType.INT32, DType.INT64, DType.UINT32) and type.quant is None


def _drawn(rng: random.Random, op: Op, case: Case, index: int, type: TensorType) -> Array:
    """An operand: as the case draws it, plain or in part of the palette, or one number throughout."""
    numbers = np.random.default_rng(rng.getrandbits(32))
    dtype = type.dtype
    if dtype is DType.BOOL:
        return np.asarray(numbers.integers(0, 2, type.shape).astype(bool))
    if dtype.is_float:
        array = numbers.uniform(case.low, case.high, type.shape).astype(np.float32)
        if rng.random() < 0.2:
            array = (array * 10.0 ** rng.choice((-38, -20, 6, 18, 30))).astype(np.float32)
        if rng.random() < 0.7:
            array = _some(rng, numbers, np.asarray(array), FLOATS)
        with np.errstate(all="ignore"):
            return np.asarray(array).astype(dtype.value).reshape(type.shape)
    low, high = dtype.range
    if rng.random() < 0.3:
        return np.asarray(numbers.integers(low, high, type.shape, dtype=dtype.value, endpoint=True))
    mild = np.clip(numbers.integers(int(case.low), max(int(case.high), int(case.low) + 1), type.shape), low, high)
    palette = POSITIONS if _is_position(op, index, type) else (low, high, low + 1, high - 1, *INTEGERS)
    array = np.asarray(mild.astype(dtype.value))
    return _some(rng, numbers, array, [n for n in palette if low <= n <= high]).reshape(type.shape)


def _quantization(rng: random.Random, quant: Quantization, dtype: DType) -> Quantization:
    low, high = dtype.range
    scales = tuple(rng.choice(SCALES) if rng.random() < 0.6 else s for s in quant.scales)
    zeros = tuple(rng.choice((low, high, 0)) if (rng.random() < 0.4 and low <= 0) or (dtype is DType.UINT8
                  and rng.random() < 0.4) else z for z in quant.zero_points)  # fmt: skip
    return Quantization(scales, tuple(min(max(z, low), high) for z in zeros), quant.axis)


def _scaled(rng: random.Random, case: Case) -> Case:
    """Other scales and zero points of operands and result."""
    inputs = tuple(
        t if t is None or t.quant is None or t.dtype.is_float
        else dataclasses.replace(t, quant=_quantization(rng, t.quant, t.dtype))
        for t in case.inputs
    )  # fmt: skip
    attrs = case.attrs
    for name, given in _fields(attrs):
        if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], Quantization):
            attrs = dataclasses.replace(attrs, **{name: (given[0], _quantization(rng, given[1], given[0]))})
    return dataclasses.replace(case, inputs=inputs, attrs=attrs)


def _fields(attrs: Any) -> Iterator[tuple[str, Any]]:
    for field in dataclasses.fields(attrs):
        yield field.name, getattr(attrs, field.name)


def _attributed(rng: random.Random, case: Case) -> Case:
    """One attribute another: a number from the palette, a size or an axis a little off."""
    places = [(name, given) for name, given in _fields(case.attrs) if _changed(rng, given) is not None]
    if not places:
        return case
    name, given = rng.choice(places)
    return dataclasses.replace(case, attrs=dataclasses.replace(case.attrs, **{name: _changed(rng, given)}))


def _changed(rng: random.Random, given: Any) -> Any:
    if isinstance(given, bool):
        return not given
    if isinstance(given, float):
        return rng.choice(NUMBERS)
    if type(given) is int:
        return given + rng.choice((-2, -1, 1, 2))
    if isinstance(given, tuple) and given and all(type(n) is int for n in given):
        at = rng.randrange(len(given))
        return (*given[:at], given[at] + rng.choice((-2, -1, 1, 2)), *given[at + 1 :])
    return None


def _emptied(rng: random.Random, case: Case) -> Case:
    """One size 0: the same dimension of every operand that has this size there, or of one."""
    shapes = [t.shape for t in case.inputs if t is not None and t.rank]
    if not shapes:
        return case
    shape = rng.choice(shapes)
    axis, everywhere = rng.randrange(len(shape)), rng.random() < 0.7
    size = shape[axis]
    inputs = []
    for t in case.inputs:
        if t is not None and (t.shape is shape or everywhere):
            dims = list(t.shape)
            for i in range(len(dims)):
                if dims[i] == size and (i == axis or len(dims) != len(shape)):
                    dims[i] = 0
            t = dataclasses.replace(t, shape=tuple(dims))
        inputs.append(t)
    return dataclasses.replace(case, inputs=tuple(inputs))


def _retyped(rng: random.Random, case: Case) -> Case:
    """All operands without a scale of another element type; those that index keep theirs."""
    dtype = rng.choice(DTYPES)
    first = case.inputs[0]
    assert first is not None
    inputs = tuple(
        dataclasses.replace(t, dtype=dtype) if t is not None and t.quant is None and t.dtype is first.dtype else t
        for t in case.inputs
    )
    return dataclasses.replace(case, inputs=inputs)


DEVIATIONS = (_scaled, _attributed, _emptied, _retyped)


def shaped(op: Op, rng: random.Random, label: str) -> tuple[Case, str]:
    """One of the operator's cases, half the time deviating in scales, attributes, sizes or types.

    Raises:  ShapeError if the operator refuses what came of it
    """
    case = rng.choice(op.cases)
    label = f"{label}, {case.label}"
    if rng.random() < 0.5:
        change = rng.choice(DEVIATIONS)
        case, label = change(rng, case), f"{label}, {change.__name__.strip('_')}"
    types = op.result_types(case.inputs, case.attrs)
    if any(t.size > MOST_ELEMENTS for t in types):
        raise ShapeError(f"{label}: the result is too large for this sweep")
    return case, label


def drawn(op: Op, case: Case, rng: random.Random) -> list[Array | None]:
    """Hostile operands of a case; now and then one as the case itself draws it."""
    return [
        None if t is None
        else _listed(case.values[i], t) if i in case.values and rng.random() < 0.2
        else _drawn(rng, op, case, i, t)
        for i, t in enumerate(case.inputs)
    ]  # fmt: skip


def _listed(values: Sequence[float], type: TensorType) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(np.resize(np.array(values), type.shape).astype(type.dtype.value))


def noded(op: Op, case: Case, label: str, arrays: Sequence[Array | None]) -> Node:
    """The case as a node with its constants."""
    values: list[Value | None] = []
    for i, (type, array) in enumerate(zip(case.inputs, arrays, strict=True)):
        constant = None
        if i in case.constant and array is not None and type is not None:
            constant = Constant(memoryview(array.tobytes()), type.dtype)
        values.append(None if type is None else Value(f"{label}: {i}", type, constant))
    return apply(op, values, case.attrs, label)


def operators() -> list[Op]:
    """Every operator that has a case."""
    return [op for op in OPS.values() if op.cases]
