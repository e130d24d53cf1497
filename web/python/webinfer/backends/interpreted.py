"""What executors share that run a graph node by node in Python."""

from __future__ import annotations

import statistics
from abc import abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Generic, TypeVar

from webinfer.backends.base import Executor
from webinfer.errors import ClosedError
from webinfer.graph.ir import Graph, Node, Value
from webinfer.host.interface import Host
from webinfer.tensor import Tensor

T = TypeVar("T")  # of values between nodes


class InterpretedExecutor(Executor, Generic[T]):
    """A graph whose nodes run one after the other."""

    def __init__(self, graph: Graph, host: Host) -> None:
        self.graph: Graph | None = graph
        self._host = host

    @abstractmethod
    def _steps(self, inputs: Mapping[str, memoryview], values: dict[Value, T]) -> Iterator[Node]:
        """Each node once it has run and its results are in `values`."""

    @abstractmethod
    def _result(self, value: Value, values: Mapping[Value, T]) -> Tensor:
        """A value that was computed, or a constant."""

    def _graph(self) -> Graph:
        if self.graph is None:
            raise ClosedError("this session was closed; load the model again")
        return self.graph

    async def run(self, inputs: Mapping[str, memoryview]) -> dict[str, Tensor]:
        """The outputs by name."""
        values: dict[Value, T] = {}
        for _ in self._steps(inputs, values):
            pass
        return {value.name: self._result(value, values) for value in self._graph().outputs}

    async def probe(self, inputs: Mapping[str, memoryview]) -> AsyncIterator[tuple[Node, Value, Tensor]]:
        """Runs node by node and yields every result as it is computed."""
        values: dict[Value, T] = {}
        for node in self._steps(inputs, values):
            for value in node.outputs:
                yield node, value, self._result(value, values)

    async def profile(self, inputs: Mapping[str, memoryview], rounds: int) -> list[float]:
        """Median milliseconds of each node."""
        times: list[list[float]] = [[] for _ in self._graph().nodes]
        for _ in range(rounds):
            start = self._host.now_ms()
            for i, _node in enumerate(self._steps(inputs, {})):
                now = self._host.now_ms()
                times[i].append(now - start)
                start = now
            await self._host.pause()
        return [statistics.median(t) for t in times]

    async def pass_ms(self, inputs: Mapping[str, memoryview], repeats: int) -> float:
        """Milliseconds of all nodes, once."""
        return sum(await self.profile(inputs, repeats))

    def close(self) -> None:
        """Lets the graph go."""
        self.graph = None
