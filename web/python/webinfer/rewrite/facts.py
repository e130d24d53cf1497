"""A graph while rules rewrite it: who writes and who reads each value, and products as powers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

from webinfer.graph.ir import Graph, Node, Op, Value
from webinfer.graph.queries import scalar_constant
from webinfer.ops import elementwise as ew
from webinfer.ops.activation import Activation

POWERS: Mapping[Op, float] = {ew.SQUARE: 2.0, ew.SQRT: 0.5, ew.RSQRT: -0.5, ew.RECIPROCAL: -1.0}
Factor = tuple[Value, float]  # a value and the power that it is raised to


class Facts:
    """A graph while it is rewritten: who writes and who reads each value."""

    def __init__(self, graph: Graph) -> None:
        self.writers = graph.producers()
        self.outputs = set(graph.outputs)
        self.reads = Counter(value for node in graph.nodes for value in node.inputs if value is not None)
        self.order = {node: i for i, node in enumerate(graph.nodes)}
        self.gone = set[Node]()
        self._graph = graph
        self.fixed = graph.fixed_values()  # which backends compute when they load the graph
        self._factors = dict[Factor, tuple[float, list[Factor]] | None]()

    @cached_property
    def readers(self) -> dict[Value, list[Node]]:
        """The nodes that read each value, of a graph that stays as it is."""
        return self._graph.consumers()

    def is_known(self, value: Value | None) -> bool:
        """Whether the value is absent, a constant or computed at load."""
        return value is None or value.is_constant or value in self.fixed

    def is_inner(self, value: Value) -> bool:
        """Whether the value has one reader and is not an output: its writer may be merged into that reader."""
        writer = self.writers.get(value)
        return writer is not None and len(writer.outputs) == 1 and self.reads[value] == 1 and value not in self.outputs

    def replace(self, old: Node, new: Sequence[Node], place: int) -> None:
        """Counts `new`, at this place of the order, for `old`; writers that nobody reads any more are `gone`."""
        for node in new:
            self.reads.update(value for value in node.inputs if value is not None)
            self.writers.update((value, node) for value in node.outputs)
            self.order[node] = place
            if all(map(self.is_known, node.inputs)):
                self.fixed.update(node.outputs)
        for node in (old, *new):
            for value in node.outputs:
                for power in (1.0, -1.0):
                    self._factors.pop((value, power), None)
        self._release(old)

    def _release(self, node: Node) -> None:
        waiting = [node]
        while waiting:
            node = waiting.pop()
            self.gone.add(node)
            for value in node.inputs:
                if value is None:
                    continue
                self.reads[value] -= 1
                writer = self.writers.get(value)
                if writer is not None and not any(self.reads[v] or v in self.outputs for v in writer.outputs):
                    waiting.append(writer)

    def factors(self, value: Value, power: float) -> tuple[float, list[Factor]] | None:
        """The value to a whole power as a number times powers of what its writer multiplies; None if it does not."""
        key = value, power
        if key not in self._factors:
            node = self.writers.get(value) if power == int(power) else None
            self._factors[key] = None if node is None or not is_plain(node) else _multiplied(node, power)
        return self._factors[key]


def is_plain(node: Node) -> bool:
    """Whether the node has no activation behind what its operator says."""
    return getattr(node.attrs, "activation", Activation.NONE) is Activation.NONE


def _multiplied(node: Node, power: float) -> tuple[float, list[Factor]] | None:
    op, a = node.op, node.attrs
    if op is ew.LINEAR:
        parts = [] if a.b else [(a.a, power), (node.inputs[0], power)]
    elif op in (ew.MUL, ew.DIV):
        parts = [(node.inputs[0], power), (node.inputs[1], -power if op is ew.DIV else power)]
    elif op is ew.POW:
        exponent = scalar_constant(node.inputs[1])
        parts = [] if exponent is None else [(node.inputs[0], exponent * power)]
    else:
        parts = [(node.inputs[0], POWERS[op] * power)] if op in POWERS else []
    scale, factors = 1.0, list[Factor]()
    for part, exponent in parts:
        number = part if isinstance(part, float | int) else scalar_constant(part)
        if number is None:
            factors.append((part, exponent))
            continue
        try:
            scale *= number**exponent
        except (ArithmeticError, ValueError):
            return None
    return (scale, factors) if factors else None
