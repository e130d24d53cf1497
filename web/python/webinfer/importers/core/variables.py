"""Tensors that live from run to run: inputs of the graph that hold their value, outputs that hold the next one."""

from __future__ import annotations

from dataclasses import replace

from webinfer.graph.ir import Graph, State, TensorType, Value
from webinfer.lazy_dataclass import dataclass


@dataclass(slots=True, eq=False)
class Variable:
    """One variable while the graph is written: where its value comes from, and what its value is at this point."""

    type: TensorType
    initial: memoryview | None
    start: Value | None = None  # the graph's input; None as long as nothing reads the value that a run begins with
    value: Value | None = None


class Variables:
    """The variables of one graph, by name, in the order of their first use.

    Arithmetic is in the order of the file: what reads a variable gets the value that was written last.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._found: dict[str, Variable] = {}

    def copied(self, graph: Graph) -> Variables:
        """The variables as they are at this point, for a copy of the graph."""
        copy = Variables(graph)
        copy._found = {name: replace(variable) for name, variable in self._found.items()}
        return copy

    def read(self, name: str, type: TensorType, initial: memoryview | None) -> Value:
        """The value of a variable at this point; `initial` is what it holds before the first run."""
        found = self._found.setdefault(name, Variable(type, initial))
        if found.value is None:
            found.start = found.value = Value(name, found.type)
            self._graph.inputs.append(found.start)
        return found.value

    def write(self, name: str, value: Value, initial: memoryview | None) -> None:
        """Makes a value the variable's from this point on."""
        self._found.setdefault(name, Variable(value.type, initial)).value = value

    def type(self, name: str) -> TensorType | None:
        """The type that a variable was first used with; None if it was not used yet."""
        found = self._found.get(name)
        return None if found is None else found.type

    def values(self) -> dict[str, Value]:
        """What each variable holds at this point."""
        return {name: variable.value for name, variable in self._found.items() if variable.value is not None}

    def restore(self, values: dict[str, Value]) -> None:
        """Takes variables back to what they held before, as for the other branch of a condition."""
        for name, variable in self._found.items():
            variable.value = values.get(name, variable.start)

    def initial(self, name: str) -> memoryview | None:
        """What a variable that was used holds before the first run."""
        return self._found[name].initial

    def outputs(self) -> dict[str, Value]:
        """The next value of each variable that the graph changes."""
        return {name: v.value for name, v in self._found.items() if v.value is not None and v.value is not v.start}

    def states(self, outputs: dict[str, str]) -> list[State]:
        """The state of the finished graph; `outputs` are the names of the outputs that hold next values."""
        return [
            State(name, v.type, v.initial, v.start.name if v.start is not None else "", outputs.get(name, ""))
            for name, v in self._found.items()
        ]
