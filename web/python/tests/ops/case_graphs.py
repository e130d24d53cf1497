"""Operators' cases as graphs: inputs drawn, one node a case, run on any backend."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from webinfer.backends.reference.executor import compute
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Case, Constant, Graph, Node, Op, TensorType, Value, apply

Array = np.ndarray[Any, np.dtype[Any]]
_LOOP = asyncio.new_event_loop()


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """What the coroutine returns. One loop for all tests: devices and their futures belong to it."""
    return _LOOP.run_until_complete(work)


def draw(op: Op, case: Case) -> list[Array | None]:
    """The case's inputs, the same in every process."""
    rng = np.random.default_rng(zlib.crc32(f"{op.name} {case.label}".encode()))
    return [None if t is None else _draw_one(rng, case, i, t) for i, t in enumerate(case.inputs)]


def _draw_one(rng: np.random.Generator, case: Case, index: int, type: TensorType) -> Array:
    if index in case.values:
        return np.array(case.values[index]).astype(type.dtype.value).reshape(type.shape)
    if type.dtype is DType.BOOL:
        return rng.integers(0, 2, type.shape).astype(bool)
    if type.dtype.is_float:
        return np.asarray(rng.uniform(case.low, case.high, type.shape).astype(type.dtype.value))
    low, high = type.dtype.range
    numbers = rng.integers(int(case.low), int(case.high), type.shape, endpoint=True)
    return np.asarray(np.clip(numbers, low, high).astype(type.dtype.value))


@dataclass(frozen=True)
class Problem:
    """One case, ready: its node, its arrays, and what the reference makes of them."""

    case: Case
    node: Node
    arrays: list[Array | None]
    want: list[Array]


Store = Callable[[Array, TensorType], Constant]


def dense(array: Array, type: TensorType) -> Constant:
    """The array as most files store it."""
    return Constant(memoryview(array.tobytes()), type.dtype)


def case_node(op: Op, case: Case, arrays: Sequence[Array | None], store: Store = dense) -> Node:
    """The case as a node; inputs that the case calls constant are constants, stored by `store`."""
    values: list[Value | None] = []
    for i, (type, array) in enumerate(zip(case.inputs, arrays, strict=True)):
        constant = store(array, type) if i in case.constant and array is not None and type is not None else None
        values.append(None if type is None else Value(f"{op.name}: {case.label}: {i}", type, constant))
    return apply(op, values, case.attrs, label=f"{op.name}: {case.label}")


def problem(op: Op, case: Case) -> Problem:
    """The case as a node, with its arrays and what the reference makes of them."""
    arrays = draw(op, case)
    node = case_node(op, case, arrays)
    return Problem(case, node, arrays, compute(node, arrays))


Outcome = list[Array] | UnsupportedOpError


async def outcomes(
    backend: ModuleType, host: Any, problems: Sequence[Problem], options: Mapping[str, Any]
) -> list[Outcome]:
    """What the backend makes of each case. All in one graph; one by one if some are unsupported."""
    try:
        return list(await _run_together(backend, host, problems, options))
    except UnsupportedOpError as error:
        if len(problems) == 1:
            return [error]
    return [outcome for p in problems for outcome in await outcomes(backend, host, [p], options)]


async def _run_together(
    backend: ModuleType, host: Any, problems: Sequence[Problem], options: Mapping[str, Any]
) -> list[list[Array]]:
    inputs = {
        v: a
        for p in problems
        for v, a in zip(p.node.inputs, p.arrays, strict=True)
        if v is not None and not v.is_constant
    }
    outputs = [v for p in problems for v in p.node.outputs]
    graph = Graph("cases", inputs, outputs, [p.node for p in problems])
    executor = await backend.build(graph, host, **options)
    try:
        views = {v.name: memoryview(a.tobytes()) for v, a in inputs.items() if a is not None}
        results = await executor.run(views)
        return [[results[v.name].numpy().copy() for v in p.node.outputs] for p in problems]
    finally:
        executor.close()


def difference(got: Array, want: Array, p: Problem) -> str:
    """What is wrong with a result, or an empty text."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"is {got.dtype}{got.shape}, must be {want.dtype}{want.shape}"
    tolerance = p.node.op.tolerance
    absolute, relative = tolerance.absolute, tolerance.relative
    if got.dtype == np.float16 and tolerance.absolute:
        absolute, relative = absolute + 2e-3, relative + 2e-3  # inputs and sums of 11 bits
    a, b = got.astype(np.float64), want.astype(np.float64)
    wrong = ~(np.isclose(a, b, rtol=relative, atol=absolute, equal_nan=True))
    if not wrong.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {got.size} wrong, first at {at}: {got[at]!r}, must be {want[at]!r}"
