"""The graph that an importer writes: its inputs with names and sizes, its nodes within limits, its outputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from webinfer.dtypes import DType
from webinfer.errors import LimitError, ModelFormatError, ShapeError
from webinfer.graph.dims import whole
from webinfer.graph.ir import Constant, Graph, Node, TensorType, Value
from webinfer.graph.positions import known_outside
from webinfer.graph.printer import safe_name
from webinfer.importers.core.folding import fold
from webinfer.importers.core.limits import (
    MAX_CALLS,
    MAX_CONVERTED,
    MAX_DEPTH,
    MAX_FOLDED,
    MAX_NODES,
    check_bytes,
    within,
)
from webinfer.importers.core.partial_evaluation import DataDependentValue, DynamicLoop, Key, KnownValues, NeedsUnrolling
from webinfer.importers.core.variables import Variables
from webinfer.ops.elementwise import IDENTITY, UnaryAttrs

Shapes = Mapping[str, Sequence[int]]  # sizes by input, as a user gives them


class GraphWriter:
    """One graph under construction. All subgraphs of a file are written by the same writer.

    `folding` is how many elements of constants may be computed while reading: small integers, as shapes are
    made of. 0 leaves all work to the kernels. With `floats`, small float32 constants too: some formats compute sizes
    with scales. Without `known_values`, nothing may depend on values that only runs know. `clamps_positions` is the
    graph's.
    """

    def __init__(
        self, name: str, folding: int = MAX_FOLDED, floats: bool = False, known_values: KnownValues | None = None,
        clamps_positions: bool = False,
    ) -> None:  # fmt: skip
        self.graph = Graph(name, [], [], [])
        self.graph.clamps_positions = clamps_positions
        self._floats, self.known_values = floats, known_values
        self.variables = Variables(self.graph)
        self.outer: dict[Value, DType] = {}  # the file's element type of values that are computed in another one
        self._folding_left, self._operators_left, self._depth, self._loops = folding, MAX_CONVERTED, 0, 0
        self._calls = 0
        self._tentative: int | None = None  # the first node of a turn that stands for every turn of its loop

    def input(self, name: str, shape: tuple[int, ...], dtype: DType) -> Value:
        """A new input of the graph, in the type that the file's element type is computed in."""
        value = self.typed(Value(name, TensorType(shape, dtype.inner)), dtype)
        self.graph.inputs.append(value)
        return value

    def typed(self, value: Value, dtype: DType) -> Value:
        """The value, of which the file says this element type."""
        if dtype.inner is not dtype:
            self.outer[value] = dtype
        return value

    def kind(self, value: Value) -> DType:
        """The file's element type of a value, as far as it is known."""
        return self.outer.get(value, value.type.dtype)

    @property
    def position(self) -> int:
        """How many nodes there are."""
        return len(self.graph.nodes)

    def made_since(self, position: int) -> set[Value]:
        """The results of all nodes after the first `position` ones."""
        return {value for node in self.graph.nodes[position:] for value in node.outputs}

    def add(self, node: Node, what: object) -> list[Value]:
        """The results of a node that is now part of the graph; small integer work on constants is done at once.

        A node whose results have no elements is left out: they are constants.

        Raises:  LimitError naming `what` if the graph or a result becomes too large
        """
        for value in node.outputs:
            check_bytes(value.type.shape, value.type.dtype, what, "result")
            if value.type.dtype.inner is not value.type.dtype:
                raise ModelFormatError(f"{what}: a result of type {value.type.dtype}")
        if self._folding_left > 0 and (folded := fold(node, self._floats)) is not None:
            self._folding_left -= folded.type.size + 1
            return [folded]
        if not self.graph.clamps_positions and (outside := known_outside(node)) is not None:
            number, axis = outside
            raise ModelFormatError(f"{what}: position {number} is not one of {axis.size} along the axis")
        if not any(value.type.size for value in node.outputs):
            return [_empty(value) for value in node.outputs]  # nothing to compute, whatever the operator
        if len(self.graph.nodes) >= MAX_NODES:
            raise LimitError(f"{what}: nodes of the graph", MAX_NODES + 1, MAX_NODES, "use a smaller model")
        self.graph.nodes.append(node)
        return node.outputs

    def mark(self) -> tuple[int, ...]:
        """The point that is reached, for `copied`."""
        return len(self.graph.nodes), len(self.graph.inputs), self._folding_left, self._operators_left, self._loops

    def copied(self, mark: tuple[int, ...]) -> GraphWriter:
        """A writer that goes on from a point that this one had reached, at which no subgraph was being written."""
        own = self.graph
        copy = GraphWriter(own.name, 0, self._floats, self.known_values, own.clamps_positions)
        copy.graph.inputs, copy.graph.nodes = own.inputs[: mark[1]], own.nodes[: mark[0]]
        copy.variables, copy.outer = self.variables.copied(copy.graph), dict(self.outer)
        _, _, copy._folding_left, copy._operators_left, copy._loops = mark
        return copy

    def key(self, value: Value) -> Key:
        """What tells a value that is computed or an input from all others; (-1, -1) for what is neither."""
        for place in range(len(self.graph.nodes) - 1, -1, -1):
            outputs = self.graph.nodes[place].outputs
            if value in outputs:
                return place, outputs.index(value)
        return -1, self.graph.inputs.index(value) if value in self.graph.inputs else -1

    def known(self, value: Value) -> bool:
        """Whether the value is a constant, or runs have shown it."""
        if value.is_constant or self.known_values is None:
            return value.is_constant
        key = self.key(value)
        return not self._in_turn(key) and key in self.known_values.known

    @property
    def is_tentative(self) -> bool:
        """Whether a turn is converted that is to stand for every turn of its loop."""
        return self._tentative is not None

    def _in_turn(self, key: Key) -> bool:
        return self._tentative is not None and (key[0] >= self._tentative or key == (-1, -1))

    def read(self, value: Value) -> Value:
        """The value as a constant if it is one or runs have shown it; without a known_values, the value itself.

        Raises:  DataDependentValue where a run must show it first; NeedsUnrolling where each turn of a loop has its own
        """
        if value.constant is not None or self.known_values is None:
            return value
        key = self.key(value)
        if self._in_turn(key):
            raise NeedsUnrolling
        if key == (-1, -1):
            return value  # stands in for what could not be made
        found = self.known_values.known.get(key)
        if found is not None:
            return Value(value.name, value.type, Constant(memoryview(found), value.type.dtype))
        raise self.unknown([value], key)

    @contextmanager
    def tentative(self) -> Iterator[None]:
        """While a turn is converted that is to stand for every turn of its loop.

        Raises:  NeedsUnrolling inside of another such turn
        """
        if self.is_tentative:
            raise NeedsUnrolling
        self._tentative = self.position
        try:
            yield
        finally:
            self._tentative = None

    def unknown(self, values: Sequence[Value], key: Key, turns: DynamicLoop | None = None) -> DataDependentValue:
        """What says that these values must be shown first, or that a loop must turn."""
        self._name_inputs()
        graph = Graph(self.graph.name, self.graph.inputs, values, self.graph.nodes)
        graph.outer = self._outer_inputs()
        graph.states = self.variables.states({})
        return DataDependentValue(graph, key, turns)

    def take(self, start: int, values: Sequence[Value]) -> list[Node]:
        """The nodes from `start` on that depend on these values, which leave the graph."""
        depend, taken, left = set(values), list[Node](), list[Node]()
        for node in self.graph.nodes[start:]:
            inside = not depend.isdisjoint(node.inputs)
            (taken if inside else left).append(node)
            depend |= {*node.outputs} if inside else set()
        self.graph.nodes[start:] = left
        return taken

    def carry(self, name: str, type: TensorType) -> Value:
        """What a loop gave, as an input of what follows."""
        self.graph.inputs.append(value := Value(name, type))
        return value

    def _outer_inputs(self) -> dict[str, DType]:
        return {v.name: self.outer[v] for v in self.graph.inputs if v in self.outer}

    def _name_inputs(self) -> None:
        for value, unique in zip(self.graph.inputs, unique_names([v.name for v in self.graph.inputs]), strict=True):
            value.name = unique  # of variables, which come last

    def number_loop(self) -> int:
        """The number of the next loop that runs turn by turn: the same whenever the model is read again."""
        self._loops += 1
        return self._loops - 1

    def count_operator(self) -> None:
        """Counts one more operator to convert.

        Raises:  LimitError if there are too many, each turn of a loop counted
        """
        self._operators_left -= 1
        if self._operators_left < 0:
            todo = "use a smaller model"
            raise LimitError("operators to read, loops unrolled", MAX_CONVERTED + 1, MAX_CONVERTED, todo)

    @contextmanager
    def called(self, what: str) -> Iterator[None]:
        """While a function is written in the place of its call.

        Raises:  LimitError naming `what` if calls lie too deep inside each other
        """
        within(f"{what}: depth of functions", self._calls + 1, MAX_CALLS, "use a simpler model")
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1

    @contextmanager
    def nested(self, what: str) -> Iterator[None]:
        """While a loop's or a branch's subgraph is converted.

        Raises:  LimitError naming `what` if loops and branches lie too deep inside each other
        """
        if self._depth >= MAX_DEPTH:
            todo = "use a simpler model"
            raise LimitError(f"{what}: depth of loops and branches", MAX_DEPTH + 1, MAX_DEPTH, todo)
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def finish(self, outputs: Sequence[tuple[str, str, Value]], kinds: Mapping[str, DType] | None = None) -> Graph:
        """The graph with these outputs: for each the name it gets, its name in the file, and the value.

        `kinds` are the outputs' element types by name, where the file says them.

        The next values of variables follow them. An output is a value of its own. What is an input, a constant, another
        output or has another name in the file passes through an identity.
        """
        self._name_inputs()
        graph, produced, taken = self.graph, self.made_since(0), set[Value]()
        changed = self.variables.outputs()
        names = unique_names([*(name for name, _, _ in outputs), *(f"{name} (next)" for name in changed)])[
            len(outputs) :
        ]
        nexts = [(own, "", value) for own, value in zip(names, changed.values(), strict=True)]
        graph.states = self.variables.states(dict(zip(changed, names, strict=True)))
        for name, file_name, value in [*outputs, *nexts]:
            kind = (kinds or {}).get(name, self.kind(value))
            if kind.inner is not kind and kind.inner is value.type.dtype:
                graph.outer[name] = kind
            if value not in produced or value in taken or (file_name and value.name != file_name):
                copy = Value(name, value.type)
                graph.nodes.append(Node(IDENTITY, [value], [copy], UnaryAttrs(), safe_name(name)))
                value = copy
            value.name = name
            taken.add(value)
            graph.outputs.append(value)
        graph.outer |= self._outer_inputs()
        for kind in dict.fromkeys(graph.outer.values()):
            listed = ", ".join(name for name, dtype in graph.outer.items() if dtype is kind)
            graph.notes.append(f"computed in {kind.inner}: {listed[:200]} of type {kind}")
        return graph


def _empty(value: Value) -> Value:
    return Value(value.name, value.type, Constant(memoryview(b""), value.type.dtype))


def unique_names(names: Sequence[str]) -> list[str]:
    """The names themselves where they differ, else with a number behind."""
    used: dict[str, int] = {}
    result = []
    for name in names:
        unique = name
        while unique in used:
            used[name] += 1
            unique = f"{name}_{used[name]}"
        used[unique] = 0
        result.append(unique)
    return result


def check_names(shapes: Shapes, names: Collection[str], known_values: KnownValues | None = None) -> None:
    """Nothing, if sizes are given for inputs only, or the course allows others.

    Raises:  ShapeError naming what is not an input
    """
    unknown = sorted(set(shapes) - set(names))
    if unknown and not (known_values and known_values.others):
        raise ShapeError(f"sizes are given for {unknown}; the model's inputs are {list(names)}")


def bound_shape(
    name: str, shape: tuple[int, ...], allowed: Sequence[int], wanted: Sequence[int] | None, dtype: DType | None
) -> tuple[int, ...]:
    """The shape that an input gets: the file's, or the wanted one where `allowed` holds -1, which is any size.

    Raises:  ShapeError if the wanted shape is not allowed; LimitError if it is too large
    """
    if wanted is None:
        return shape
    bound = tuple(map(whole, wanted))
    if len(bound) != len(allowed) or any(d < 0 or s not in (-1, d) for d, s in zip(bound, allowed, strict=True)):
        listed = ", ".join("any" if s == -1 else str(s) for s in allowed)
        raise ShapeError(f"input {name!r} cannot have shape {bound}; the model allows ({listed})")
    check_bytes(bound, dtype, f"input {name!r}")
    return bound
