"""Threads share a step by its units: the parts together must give what one thread gives, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import Problem, problem, run
from tests.ops.targets import Target
from tests.wasm.memory import BUILDS

from webinfer.backends import wasm
from webinfer.backends.wasm.lowerings import LOWERINGS
from webinfer.graph.ir import Graph, Op
from webinfer.host.native import NativeHost

THREADS = 3


def _views(problems: list[Problem]) -> dict[str, memoryview]:
    return {
        v.name: memoryview(np.ascontiguousarray(a).reshape(-1)).cast("B") if a.size else memoryview(b"")
        for p in problems
        for v, a in zip(p.node.inputs, p.arrays, strict=True)
        if v is not None and a is not None and not v.is_constant
    }


def _run_in_parts(executor: Any, views: dict[str, memoryview]) -> dict[str, bytes]:
    """The outputs when every step is done in parts, the last part first."""
    kernels = executor._write_inputs(views)
    for step in range(len(executor._steps)):
        for thread in reversed(range(THREADS)):
            kernels.call("run", executor.layout.program, step, 1, thread, THREADS)
    return {p.name: bytes(executor._tensor(kernels, p.address, p.type).tobytes()) for p in executor.layout.outputs}


@pytest.mark.parametrize("target", BUILDS[1:], ids=str)
@pytest.mark.parametrize("op", LOWERINGS, ids=lambda op: op.name)
def test_parts_of_a_step_make_the_whole(op: Op, target: Target) -> None:
    target.demand()
    problems = [problem(op, case) for case in op.cases]
    inputs = [v for p in problems for v in p.node.inputs if v is not None and not v.is_constant]
    graph = Graph("parts", inputs, [v for p in problems for v in p.node.outputs], [p.node for p in problems])
    executor = run(wasm.build(graph, NativeHost(), **dict(target.options)))
    try:
        views = _views(problems)
        whole = {name: tensor.tobytes() for name, tensor in run(executor.run(views)).items()}
        parts = _run_in_parts(executor, views)
    finally:
        executor.close()
    assert [name for name in whole if whole[name] != parts[name]] == []
