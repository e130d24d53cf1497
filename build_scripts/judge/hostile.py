"""The sweep of hostile operands: every operator on every backend of this machine, judged by the reference.

A case must end in the reference's result, within the operator's tolerance, or in a typed error. Sixteen nodes share a
graph, and each graph runs with several draws of its inputs.
"""

import random
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from tests.importers.mutations import Tally
from tests.ops.case_graphs import Array, run
from tests.wasm import guards

from build_scripts.judge.hostile_cases import drawn, noded, operators, shaped
from build_scripts.judge.hostile_judge import difference
from webinfer.backends.reference.executor import compute
from webinfer.errors import GpuError, KernelError, UnsupportedOpError, WebinferError
from webinfer.graph.ir import Case, Graph, Node, Op
from webinfer.host.interface import Host

NODES, DRAWS = 16, 4  # of one graph
GUARDED = 16  # of so many graphs of a build of wasm, one has guarded gaps between its tensors


@dataclass(frozen=True)
class Target:
    """A backend with the options of one of its builds."""

    backend: str
    options: tuple[tuple[str, object], ...] = ()

    def __str__(self) -> str:
        return "-".join([self.backend, *(str(value) for _, value in self.options)])


WASM = tuple(Target("wasm", (("isa", isa),)) for isa in ("simd128", "relaxed", "scalar"))
WEBGPU = Target("webgpu")


@dataclass(frozen=True)
class Problem:
    """One hostile node, its case and its operands."""

    op: Op
    case: Case
    node: Node
    arrays: list[Array | None]

    def redrawn(self, rng: random.Random) -> "Problem":
        """The same node with other inputs; constants stay."""
        fresh = drawn(self.op, self.case, rng)
        kept = [
            old if i in self.case.constant else new for i, (old, new) in enumerate(zip(self.arrays, fresh, strict=True))
        ]
        return Problem(self.op, self.case, self.node, kept)


def sweep(
    host: Host, count: int, seed: int, targets: Sequence[Target] = WASM, only: Sequence[str] = (),
    progress: Callable[[Tally], None] = lambda tally: None,
) -> Tally:  # fmt: skip
    """Outcomes of `count` cases or a few more; operators take turns, and so do the targets, graph by graph."""
    tally, number = Tally(), 0
    swept = [op for op in operators() if not only or op.name in only]
    while tally.count < count:
        target = targets[number % len(targets)]
        is_guarded = target.backend == "wasm" and number // len(targets) % GUARDED == 0
        _graph(host, Target("guarded", target.options) if is_guarded else target, swept, number, seed, tally)
        number += 1
        progress(tally)
    return tally


async def targets_here(host: Host) -> list[Target]:
    """The builds of wasm, and webgpu where it has a device."""
    try:
        await host.gpu()
    except (WebinferError, ImportError):
        return [*WASM]
    return [*WASM, WEBGPU]


def _graph(host: Host, target: Target, swept: Sequence[Op], number: int, seed: int, tally: Tally) -> None:
    """One graph: its nodes are made, those that are refused are left out, and the others run with each draw."""
    rng = random.Random(f"{seed}:{number}")
    problems = []
    for i in range(NODES):
        op = swept[(number * NODES + i) % len(swept)]
        label = f"{target}, seed {seed}, graph {number}, node {i}, {op.name}"
        with tally.attempt(label):
            case, label = shaped(op, rng, label)
            arrays = drawn(op, case, rng)
            problems.append(Problem(op, case, noded(op, case, label, arrays), arrays))
    executor, problems = _built(host, target, problems, tally)
    try:
        for draw in range(DRAWS if executor is not None else 0):
            if draw:
                problems = [p.redrawn(rng) for p in problems]
            if not _compared(executor, target, problems, f"draw {draw}", tally):
                break
    finally:
        if executor is not None:
            executor.close()


def _executor(host: Host, target: Target, problems: Sequence[Problem]) -> Any:
    backend: ModuleType = (
        guards if target.backend == "guarded" else import_module(f"webinfer.backends.{target.backend}")
    )
    inputs = [v for p in problems for v in p.node.inputs if v is not None and not v.is_constant]
    graph = Graph("hostile", inputs, [v for p in problems for v in p.node.outputs], [p.node for p in problems])
    return run(backend.build(graph, host, **dict(target.options)))


def _built(host: Host, target: Target, problems: list[Problem], tally: Tally) -> tuple[Any, list[Problem]]:
    """An executor of all nodes that the backend takes, and these."""
    while problems:
        try:
            return _executor(host, target, problems), problems
        except UnsupportedOpError as error:
            refused = [p for p in problems if p.node in error.nodes]
            tally.errors[error.code] += len(refused)
            problems = [p for p in problems if p.node not in error.nodes]
        except Exception:  # whose fault it is shows when each stands alone
            problems = [p for p in problems if _stands_alone(host, target, p, tally)]
            if len(problems) > 1:
                continue
            break
    return None, []


def _stands_alone(host: Host, target: Target, problem: Problem, tally: Tally) -> bool:
    with tally.attempt(problem.node.label):
        try:
            _executor(host, target, [problem]).close()
        except (GpuError, KernelError) as error:  # a lowering that asks for what no kernel does
            raise AssertionError(f"{problem.case}: {error}") from error
        return True
    return False


def _compared(executor: Any, target: Target, problems: Sequence[Problem], words: str, tally: Tally) -> bool:
    """Whether the executor still runs. Counts each node's result, or what is wrong with it."""
    views = {
        v.name: memoryview(np.ascontiguousarray(a).tobytes())
        for p in problems
        for v, a in zip(p.node.inputs, p.arrays, strict=True)
        if v is not None and a is not None and not v.is_constant
    }
    start = time.process_time()
    try:
        found = run(executor.run(views))
    except (WebinferError, guards.GuardError) as error:
        tally.touched += isinstance(error, guards.GuardError)
        labels = "; ".join(p.node.label for p in problems)
        tally.others.append(f"{words}: one of {labels}: {traceback.format_exc(limit=-2)}")
        return False
    tally.untouched += target.backend == "guarded"
    tally.took(time.process_time() - start, f"{words}: {problems[0].node.label}")
    for p in problems:
        with tally.attempt(f"{p.node.label}, {words}"):
            wanted = compute(p.node, p.arrays)
            for i, want in enumerate(wanted):
                wrong = difference(found[p.node.outputs[i].name].numpy(), want, p.node, p.arrays, i, target.backend)
                if wrong:
                    types = ", ".join(str(t) for t in p.case.inputs)
                    tally.others.append(f"{p.node.label}, {words}: {wrong} ({types}; {p.case.attrs})")
                    tally.differences += 1
                    break
            else:
                tally.results += 1
    return True
