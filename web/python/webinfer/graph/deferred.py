"""A graph whose inputs and outputs are known, and whose nodes are read on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from webinfer.graph.ir import Graph, Node, Value


class DeferredGraph(Graph):
    """Stands for the graph that `read` returns, which has inputs and outputs of these types in this order."""

    __slots__ = ("_nodes", "_read")

    def __init__(self, name: str, inputs: Iterable[Value], outputs: Iterable[Value], read: Callable[[], Graph]) -> None:
        self._read = read
        super().__init__(name, inputs, outputs, ())
        self._nodes: list[Node] | None = None

    @property
    def nodes(self) -> list[Node]:
        """The nodes of the graph; the first time they are read."""
        if self._nodes is None:
            whole = self._read()
            known = dict(zip([*whole.inputs, *whole.outputs], [*self.inputs, *self.outputs], strict=True))
            for node in whole.nodes:
                node.inputs = [value and known.get(value, value) for value in node.inputs]
                node.outputs = [known.get(value, value) for value in node.outputs]
            self._nodes = whole.nodes
        return self._nodes

    @nodes.setter
    def nodes(self, nodes: list[Node]) -> None:
        self._nodes = nodes
