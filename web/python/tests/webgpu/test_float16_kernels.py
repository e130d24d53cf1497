"""Every kernel that float16 sessions count on, on float16 and float32 operands in every mix that may occur."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import Array, draw, run
from tests.ops.targets import Target as RingTarget
from tests.webgpu.disguised import HOST, disguised
from tests.webgpu.extra_cases import EXTRA

from webinfer.backends import webgpu
from webinfer.backends.reference.executor import compute
from webinfer.backends.webgpu.float16 import ANY_MIX, MOVES, PRODUCTS, READERS
from webinfer.backends.webgpu.lowerings import LOWERINGS
from webinfer.dtypes import DType
from webinfer.graph.ir import Case, Constant, Graph, Node, Op, TensorType, Value, apply
from webinfer.ops import OPS

HALF, FLOAT = DType.FLOAT16, DType.FLOAT32
MIXES = {  # of lowerings: (data, results)
    **dict.fromkeys(PRODUCTS, ((HALF, HALF), (HALF, FLOAT), (FLOAT, HALF))),
    **dict.fromkeys(ANY_MIX, ((HALF, HALF), (HALF, FLOAT))),
    **dict.fromkeys(MOVES, ((HALF, HALF),)),
    **dict.fromkeys(READERS, ((HALF, FLOAT),)),
}
MANY = 8  # cases of an operator
CASES = [
    pytest.param(op, mix, host, id=f"{op.name}-{mix[0]}-{mix[1]}-{kind}")
    for op, lower in LOWERINGS.items()
    for mix in MIXES.get(lower, ())
    for kind, host in (("hardware", disguised()), ("software", HOST))
    if kind == "hardware" or lower in PRODUCTS
]


def cases_of(op: Op) -> list[Case]:
    """Those of float32 whose fill fits float16."""
    found = [*op.cases, *(case for other, case in EXTRA if other is op)]
    real = [c for c in found if c.inputs[0] is not None and _main(c) is FLOAT]
    return [c for c in real if not abs(getattr(c.attrs, "value", 0.0)) > 65504]


def _main(case: Case) -> DType:
    """The type that the case is about."""
    return next((t.dtype for t in case.inputs if t is not None and t.dtype.is_float), DType.INT32)


def posed(op: Op, case: Case, data: DType, result: DType) -> tuple[Node, list[Array | None], list[Array]]:
    """The case's node with its float32 operands and results stored so, its arrays, and the right answer."""
    with np.errstate(over="ignore"):
        arrays = [a.astype(np.float16).astype(np.float32) if _is_real(a) else a for a in draw(op, case)]
    plain = [None if a is None else Value("", t) for a, t in zip(arrays, case.inputs, strict=True) if a is None or t]
    node = apply(op, plain, case.attrs, f"{op.name}: {case.label}")
    want = compute(node, arrays)
    for i, value in enumerate(node.inputs):
        array = arrays[i]
        if value is None or array is None:
            continue
        value.name = f"{node.label}: {i}"
        constant = i in case.constant
        if value.type.dtype is FLOAT:
            stored = HALF if constant else data
            value.type = TensorType(value.type.shape, stored)
            arrays[i] = array if constant else array.astype(stored.value)
        if constant:  # float32 in the file
            value.constant = Constant(memoryview(array.tobytes()), DType(array.dtype.name))
    for value in node.outputs:
        if value.type.dtype is FLOAT:
            value.type = TensorType(value.type.shape, result)
    return node, arrays, want


def _is_real(array: Any) -> bool:
    return array is not None and array.dtype == np.float32


def wrong(got: Array, want: Array, op: Op) -> bool:
    """Beyond the operator's tolerance and the rounding of a result to float16."""
    a, b = got.astype(np.float64), want.astype(np.float64)
    rounding = 1e-3 if got.dtype == np.float16 else 0.0
    far = ~np.isclose(a, b, rtol=op.tolerance.relative + rounding, atol=op.tolerance.absolute + 1e-7, equal_nan=True)
    return bool((far & (np.isnan(b) | (np.abs(b) < 65504))).any())


@pytest.mark.parametrize(("op", "mix", "host"), CASES)
def test_float16_operands_and_results(op: Op, mix: tuple[DType, DType], host: Any) -> None:
    RingTarget("webgpu").demand()
    cases = cases_of(op)
    if mix[0] is not mix[1] and len(cases) > MANY:  # what reads and what writes them is the same whatever the mix
        cases = cases[:: len(cases) // MANY]
    problems = [posed(op, case, *mix) for case in cases]
    inputs = {
        v: a
        for node, arrays, _ in problems
        for v, a in zip(node.inputs, arrays, strict=True)
        if v and not v.is_constant
    }
    nodes = [node for node, *_ in problems]
    if not nodes:
        return
    executor = run(webgpu.build(Graph("cases", inputs, [v for n in nodes for v in n.outputs], nodes), host))
    views = {v.name: memoryview(np.ascontiguousarray(a).reshape(-1)).cast("B") for v, a in inputs.items() if a.size}
    views |= {v.name: memoryview(b"") for v, a in inputs.items() if not a.size}
    results = run(executor.run(views))
    executor.close()
    for node, _, want in problems:
        for value, right in zip(node.outputs, want, strict=True):
            got = results[value.name].numpy()
            assert got.dtype.name == value.type.dtype
            assert not wrong(got, right, op), node.label


def test_the_lists_cover_the_usual_operators() -> None:
    listed = {op.name for op, lower in LOWERINGS.items() if lower in MIXES}
    assert {"conv2d", "depthwise_conv2d", "matmul", "add", "relu", "max_pool2d", "concat", "reduce_mean"} <= listed
    assert "softmax" not in listed
    assert set(OPS) > listed
