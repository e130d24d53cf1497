"""What this engine makes of random graphs: many in one plan, some through a session as users run them."""

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np

from build_scripts.judge.fuzz.graphs import Array, FuzzGraph
from build_scripts.judge.together import Outcome, Problem, outcomes
from webinfer.errors import UnsupportedOpError, WebinferError
from webinfer.graph.ir import Graph, Value
from webinfer.host.native import NativeHost
from webinfer.importers import read_model
from webinfer.session.loading import load

_DEPENDS = ("depends on data", "is computed at run time")


class Ours:
    """The engine in this process."""

    def __init__(self) -> None:
        self._host = NativeHost()
        self._loop = asyncio.new_event_loop()

    def together(self, format: Any, graphs: Sequence[FuzzGraph], backend: str) -> list[Outcome]:
        """Each graph's outputs by name, or the error that it ended in; all in one plan where that is possible."""
        found: list[Outcome | None] = [None] * len(graphs)
        ready: dict[int, Problem] = {}
        for i, graph in enumerate(graphs):
            reader = _Reader(format.model(graph))
            try:
                reader.read()
            except Exception as error:  # untyped ones are findings
                live = isinstance(error, UnsupportedOpError) and any(word in str(error) for word in _DEPENDS)
                found[i] = self.session(format, graph, backend) if live else error
                continue
            ready[i] = Problem(reader.graph, _feeder(reader, graph), graph.outputs)
            if reader.stateful:
                found[i] = self.session(format, graph, backend)
        todo = [i for i in ready if found[i] is None]
        for i, outcome in zip(
            todo, self._loop.run_until_complete(outcomes(self._host, backend, [ready[i] for i in todo])), strict=True
        ):
            found[i] = outcome
        return [outcome for outcome in found if outcome is not None]

    def session(self, format: Any, graph: FuzzGraph, backend: str) -> Outcome:
        """As `together`, of one graph, as users run it."""
        try:
            return self._loop.run_until_complete(self._session(format.model(graph), graph, backend))
        except Exception as error:  # untyped ones are findings
            return error

    async def _session(self, model: bytes, graph: FuzzGraph, backend: str) -> dict[str, Array]:
        session = await load(model, backend=backend, strict=True, host=self._host, threads=1, tuning_ms=0)
        try:
            names = {info.name for info in session.inputs}
            results = await session.run({name: a for name, a in graph.inputs.items() if name in names})
            return {name: results[name].numpy().copy() for name in graph.outputs}
        finally:
            session.close()


class _Reader:
    """Reads a model; what the first reading gave is used once, because passes rewrite graphs in place."""

    def __init__(self, model: bytes) -> None:
        self._model, self._first = model, None
        self.kinds: dict[str, Any] = {}
        self.stateful = False

    def read(self) -> None:
        graph = read_model(self._model, "fuzz", {})
        self.stateful, self.kinds, self._first = bool(graph.states), dict(graph.outer), graph  # type: ignore[assignment]

    def graph(self) -> Graph:
        if self._first is None:
            self.read()
        graph, self._first = self._first, None
        assert graph is not None
        return graph


def _feeder(reader: _Reader, graph: FuzzGraph) -> Any:
    def array(value: Value) -> Array:
        given = np.asarray(graph.inputs[value.name], order="C")
        if given.dtype.name != reader.kinds.get(value.name, value.type.dtype).value or given.shape != value.type.shape:
            raise WebinferError(f"input {value.name} is {value.type}, the graph has {given.dtype}{given.shape}")
        return given

    return array
