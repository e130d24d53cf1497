"""Conformance cases run many in one graph: one build of a backend instead of hundreds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from webinfer.backends import registry
from webinfer.backends.base import BuildOptions
from webinfer.errors import LimitError, UnsupportedOpError
from webinfer.graph.ir import Graph, Value
from webinfer.packing import to_inner
from webinfer.passes.pipeline import optimize
from webinfer.session.inputs import to_api_types

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Problem:
    """A case to be run: its graph, what goes into it, and the names of what comes out.

    `graph` makes the graph anew each time, because passes rewrite graphs in place. `array` is what an input of it gets.
    """

    graph: Callable[[], Graph]
    array: Callable[[Value], Array]
    outputs: Sequence[str]


Outcome = dict[str, Array] | Exception


async def outcomes(host: Any, backend: str, problems: Sequence[Problem]) -> list[Outcome]:
    """What the backend makes of each problem; all in one graph, split in two while that fails."""
    if not problems:
        return []
    try:
        return list(await _run(host, backend, problems))
    except Exception as error:  # a failure of one must not hide the others
        if len(problems) == 1:
            return [error]
    middle = len(problems) // 2
    return await outcomes(host, backend, problems[:middle]) + await outcomes(host, backend, problems[middle:])


def verdict_of(error: Exception) -> tuple[str, str]:
    """Verdict and reason of a case that came to no numbers: unsupported if the error says so, else wrong."""
    if isinstance(error, UnsupportedOpError):
        return "unsupported", error.problems[0]
    if isinstance(error, LimitError):
        return "unsupported", str(error)
    return "wrong", f"{type(error).__name__}: {error}"


async def _run(host: Any, backend: str, problems: Sequence[Problem]) -> list[dict[str, Array]]:
    graphs, inputs = [problem.graph() for problem in problems], dict[str, memoryview]()
    for i, (problem, graph) in enumerate(zip(problems, graphs, strict=True)):
        for value in graph.inputs:
            given = memoryview(problem.array(value).tobytes())
            given = to_inner(given, graph.outer.get(value.name, value.type.dtype))
            value.name = f"{i}:{value.name}"
            inputs[value.name] = given
        for value in graph.outputs:
            value.name = f"{i}:{value.name}"
        graph.outer = {f"{i}:{name}": dtype for name, dtype in graph.outer.items()}
    outer = {name: dtype for graph in graphs for name, dtype in graph.outer.items()}
    whole = Graph(
        "cases",
        [v for g in graphs for v in g.inputs],
        [v for g in graphs for v in g.outputs],
        [n for g in graphs for n in g.nodes],
    )
    if backend != registry.definition():
        optimize(whole)
    executor = await registry.open_backend(backend).build(whole, host, BuildOptions())
    try:
        results = to_api_types(await executor.run(inputs), outer)
    finally:
        executor.close()
    return [
        {name: results[f"{i}:{name}"].numpy().copy() for name in problem.outputs} for i, problem in enumerate(problems)
    ]
