"""Random ONNX graphs whose sizes are open: a plan that is bound to sizes gives what a plan made for them gives.

Each graph is drawn as the fuzzer draws it. Every axis of its inputs then becomes open. One session runs it at its own
sizes and at others, each size that occurs replaced by one of 1 to 9 wherever it occurs; a session made for those sizes
alone runs it too. Both give the same bits, or both refuse. Where an open size has led to another kernel, which rounds
otherwise, a plan with symbols that is made for those sizes is the measure.
"""

import argparse
import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from build_scripts.judge.backends import use_engine

SETS = 4  # of sizes beside the graph's own
LARGEST = 9
OWN_ODDS = 0.3  # that a size stays as it is


@dataclass
class Findings:
    """What came of the graphs."""

    same: int = 0
    refused: int = 0
    bound: int = 0  # of `same`, those of a plan that was bound
    regimes: int = 0
    otherwise: int = 0  # of `bound`, those that equal what a plan with symbols made for the sizes gives
    wrong: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [
            f"{self.same} results equal, {self.bound} of them of plans that were bound ({self.regimes} regimes; "
            f"{self.otherwise} with other kernels than a plan of numbers); "
            f"{self.refused} sizes refused by both; {len(self.wrong)} differences"
        ]
        return "\n".join([*lines, *self.wrong])


def opened(model: bytes) -> bytes:
    """The model with a name for every axis of its inputs."""
    import onnx

    found = onnx.load_from_string(model)
    for number, info in enumerate(found.graph.input):
        for axis, dimension in enumerate(info.type.tensor_type.shape.dim):
            dimension.ClearField("dim_value")
            dimension.dim_param = f"d{number}_{axis}"
    for info in found.graph.output:
        info.type.tensor_type.ClearField("shape")
    return bytes(found.SerializeToString())


def drawn_sizes(shapes: dict[str, tuple[int, ...]], draw: np.random.Generator) -> dict[str, tuple[int, ...]]:
    """Other shapes: equal sizes stay equal, so that operands still fit."""
    own = sorted({size for shape in shapes.values() for size in shape})
    other = {size: size if draw.random() < OWN_ODDS else int(draw.integers(1, LARGEST + 1)) for size in own}
    return {name: tuple(other[size] for size in shape) for name, shape in shapes.items()}


def inputs_of(shapes: dict[str, tuple[int, ...]], like: dict[str, Any], draw: np.random.Generator) -> dict[str, Any]:
    """Numbers of the same kind as those that the graph was drawn with, in other shapes."""
    made = {}
    for name, shape in shapes.items():
        own = like[name]
        made[name] = draw.choice(own.reshape(-1), size=shape) if own.size else np.zeros(shape, own.dtype)
    return {name: array.astype(like[name].dtype) for name, array in made.items()}


def _different(got: Any, want: Any) -> list[str]:
    """The outputs that differ, or what one of both ended in."""
    if isinstance(got, Exception) or isinstance(want, Exception):
        return [f"{got!r:.300} where a new plan gives {want!r:.300}"]
    return [n for n in want if not np.array_equal(got[n], want[n], equal_nan=want[n].dtype.kind == "f")]


@dataclass(frozen=True)
class _Case:
    """A model with open sizes on a backend."""

    model: bytes
    backend: str

    async def load(self, **options: Any) -> Any:
        """A session on the backend alone."""
        from webinfer.session.loading import load

        return await load(self.model, backend=self.backend, strict=True, threads=1, tuning_ms=0, **options)

    async def run(self, session: Any, fed: dict[str, Any]) -> Any:
        """The outputs, or the typed error."""
        from webinfer.errors import WebinferError

        names = {info.name for info in session.inputs}
        try:
            results = await session.run({name: a for name, a in fed.items() if name in names})
        except WebinferError as error:
            return error
        return {name: tensor.numpy().copy() for name, tensor in results.items()}

    async def fresh(self, shapes: dict[str, tuple[int, ...]], fed: dict[str, Any]) -> Any:
        """As `run`, of a session for these shapes alone."""
        from webinfer.errors import WebinferError

        try:
            session = await self.load(shapes=shapes)
        except WebinferError as error:
            return error
        with session:
            return await self.run(session, fed)

    async def traced(self, first: dict[str, Any], fed: dict[str, Any]) -> Any:
        """As `run`, of a plan with symbols that is made for these sizes."""
        with await self.load() as session:
            await self.run(session, first)
            return await self.run(session, fed)


async def judge_graph(model: bytes, inputs: dict[str, Any], seed: list[int], backend: str, found: Findings) -> None:
    """Adds what came of one graph."""
    from webinfer.backends.base import BindableExecutor
    from webinfer.errors import WebinferError

    draw, case = np.random.default_rng([*seed, 77]), _Case(opened(model), backend)
    own = {name: array.shape for name, array in inputs.items()}
    sets = [own, *(drawn_sizes(own, draw) for _ in range(SETS))]
    sets = [s for s in sets if all(0 not in shape for shape in s.values())]
    executors = set()
    try:
        session = await case.load()
    except WebinferError:
        return
    with session:
        for shapes in sets:
            fed = inputs_of(shapes, inputs, draw)
            got, want = await case.run(session, fed), await case.fresh(shapes, fed)
            if isinstance(got, Exception) and isinstance(want, Exception):
                found.refused += 1
                continue
            bad, executor = _different(got, want), session.executor
            is_bound = isinstance(executor, BindableExecutor)
            if is_bound:
                executors.add(id(executor))
            if bad and is_bound:  # kernels may be chosen otherwise where sizes are open, and round otherwise
                bad = _different(got, await case.traced(inputs_of(sets[0], inputs, draw), fed))
                found.otherwise += not bad
            found.same, found.bound = found.same + (not bad), found.bound + (is_bound and not bad)
            found.wrong += tuple(f"graph {seed} at {shapes}, bound {is_bound}: {text}" for text in bad)
    found.regimes += len(executors)


async def judge_graphs(start: int, count: int, seed: int, backend: str) -> tuple[Findings, Counter[str]]:
    """What came of so many graphs, and how often each operator was drawn."""
    from build_scripts.judge.fuzz.drawing import drawn
    from build_scripts.judge.fuzz.worker import format_of

    found, operators, format = Findings(), Counter[str](), format_of("onnx")
    for number in range(start, start + count):
        case = drawn(format, (seed, number))
        if not case.graph.outputs or not case.graph.inputs:
            continue
        operators.update(node.op for node in case.graph.nodes)
        model, inputs = format.model(case.graph), dict(case.graph.inputs)
        await judge_graph(model, inputs, [seed, number], backend, found)
    return found, operators


def run(argv: list[str]) -> int:
    """1 if a bound plan gave other bits than a new one."""
    parser = argparse.ArgumentParser(prog="build_scripts judge open-sizes", description=__doc__)
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--backend", default="wasm")
    options = parser.parse_args(argv)
    use_engine()
    with np.errstate(all="ignore"):
        found, operators = asyncio.run(judge_graphs(options.start, options.graphs, options.seed, options.backend))
    print(f"{operators.total()} nodes of {len(operators)} operators; {found}")
    return int(bool(found.wrong))
