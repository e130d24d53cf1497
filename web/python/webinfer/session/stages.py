"""A model whose course is decided by data: read and run part by part, each as far as a value that decides.

A run shows that value, and reading goes on with it: one side of a branch is left, sizes are numbers. What an
earlier part computed crosses to a later one through host memory. Parts are kept by the values that led to them.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from webinfer.backends.base import Executor, MemoryReport, PlanRow, TurnExecutor
from webinfer.dtypes import COMPUTED
from webinfer.errors import InputError, LimitError, ModelFormatError, ShapeError
from webinfer.graph.ir import Constant, Graph, Node, TensorType, Value
from webinfer.importers.core.limits import MAX_TURNS
from webinfer.importers.core.partial_evaluation import DataDependentValue, DynamicLoop, Key
from webinfer.session.lru_cache import LruCache
from webinfer.session.state import Variables, open_inputs
from webinfer.session.turns import LoopTurns
from webinfer.tensor import Tensor

MAX_PARTS = 256  # of one model that are kept as they were read: a mask for each of ten objects makes 106
MAX_FOLDED = 16  # nodes on small numbers that are computed without a plan
Path = tuple[tuple[Key, Any], ...]  # the values that decided so far, in order
NO_PATH: Path = ()


class Part:
    """What runs between two values that decide, or from the last one to the end.

    `key` is the value that the part ends with, None for the last part. `needs` are values of earlier parts.
    """

    def __init__(self, read: Graph, stop: DataDependentValue | None, before: Sequence[Part], mark: str) -> None:
        self.read, self._mark = read, mark
        self._resume = None if stop is None else stop.resume  # not `stop`: its traceback would keep executors
        self.key: Key | None = None if stop is None else stop.key
        self.turns: DynamicLoop | None = None if stop is None else stop.turns
        self.places, self.inputs, self.needs = set[int](), dict[Value, str](), dict[Value, Key]()
        done = {place for part in before for place in part.places}
        self._made = {v: (i, j) for i, node in enumerate(read.nodes) for j, v in enumerate(node.outputs)}
        left = list(read.outputs)
        while left:
            value = left.pop()
            place = self._made.get(value, (-1, 0))[0]
            if value.is_constant or place in self.places:
                continue
            if place < 0:
                self.inputs[value] = value.name
            elif place in done:
                self.needs[value] = self._made[value]
            else:
                self.places.add(place)
                left += [v for v in read.nodes[place].inputs if v is not None]
        self.nodes = [node for place, node in enumerate(read.nodes) if place in self.places]
        self.given = dict[Key, None]()  # what later parts need
        self.graph: Graph | None = None
        if stop is not None and stop.resume is not None:
            self._give(stop.live, done)
        wanted = {*self.needs, *read.outputs}  # of a graph of thousands of nodes each part would list all values
        self._made = {v: key for v, key in self._made.items() if key[0] in self.places or v in wanted}

    def _give(self, live: Sequence[Value], done: set[int]) -> None:
        """Gives what later parts may read: what is known of it, and what nodes read that are in no part yet."""
        ran = done | self.places
        later = [node for place, node in enumerate(self.read.nodes) if place not in ran]
        for value in (*live, *(v for node in later for v in node.inputs if v is not None)):
            key = self._made.get(value, (-1, 0))
            if key[0] in self.places:
                self.given[key] = None

    def followed_by(self, read: Callable[[Mapping[Key, Any]], Graph], known: Mapping[Key, Any]) -> Graph:
        """The graph that follows when these values are known; `read` reads the whole model again, where it must."""
        return read(known) if self._resume is None else self._resume(known)

    def name_of(self, key: Key) -> str:
        """The name of a value that crosses between parts."""
        return f"{self._mark}{key[0]}.{key[1]}"

    def look(self, value: Value, fed: Mapping[str, Any], results: Mapping[str, Tensor]) -> Any:
        """The bytes of a value that the part ends with."""
        if value.constant is not None:
            return value.constant.data
        if value in self.inputs:
            return fed[self.inputs[value]]
        return results[self.name_of(self._made[value])].flat().cast("B")

    def alone(self) -> Graph:
        """A copy of the part's nodes as a graph by itself."""
        names = {v: self.name_of(key) for v, key in self._made.items() if key in self.given}
        ends = [v for v in self.read.outputs if self._made.get(v, (-1, 0))[0] in self.places]
        names |= {v: v.name if self.key is None else self.name_of(self._made[v]) for v in ends}
        copies = {v: Value(name, v.type) for v, name in self.inputs.items()}
        copies |= {v: Value(self.name_of(key), v.type) for v, key in self.needs.items()}

        def duplicate(value: Value | None) -> Any:
            if value is None or value.is_constant:
                return value
            return copies.get(value) or copies.setdefault(value, Value(names.get(value, value.name), value.type))

        inputs = list(copies.values())
        nodes = [Node(n.op, map(duplicate, n.inputs), map(duplicate, n.outputs), n.attrs, n.label) for n in self.nodes]
        graph = Graph(self.read.name, inputs, [copies[v] for v in names], nodes)
        graph.notes += self.read.notes
        return graph


class StagedGraph(Graph):
    """Stands for a model that is read part by part. Its outputs are what the file says of them.

    `read` gives the graph for values that are known, `finish` rewrites the graph of a part for its backend.
    """

    __slots__ = ("_finish", "_mark", "_parts", "_read", "variables")

    def __init__(
        self, first: DataDependentValue, read: Callable[[Mapping[Key, Any]], Graph], finish: Callable[[Graph], Graph],
        variables: Variables,
    ) -> None:  # fmt: skip
        super().__init__(first.graph.name, open_inputs(first.graph), first.outputs, ())
        self.outer = first.graph.outer | {v.name: v.type.dtype for v in first.outputs if v.type.dtype not in COMPUTED}
        self._read, self._finish, self.variables = read, finish, variables
        self._mark = "#"
        while any(value.name.startswith(self._mark) for value in self.inputs):
            self._mark += "#"
        self._parts: OrderedDict[Path, Part] = OrderedDict()
        self._keep(NO_PATH, first.graph, first, ())

    def part(self, path: Path) -> Part:
        """The part that follows these values.

        Raises:  InputError if the values do not fit the model; what reading a model may raise
        """
        if path not in self._parts:
            before = [self.part(path[:i]) for i in range(len(path))]
            stop = None
            try:
                graph = before[-1].followed_by(self._read, dict(path)) if before else self._read({})
            except DataDependentValue as unknown:
                graph, stop = unknown.graph, unknown
            except (ModelFormatError, ShapeError) as error:
                raise InputError(f"{self.name!r} cannot run on values computed from these inputs; {error}") from error
            self._keep(path, graph, stop, before)
        self._parts.move_to_end(path)
        return self._parts[path]

    def _keep(self, path: Path, graph: Graph, stop: DataDependentValue | None, before: Sequence[Part]) -> None:
        self.variables.add(graph.states)
        if stop is not None and stop.turns is not None:
            self._finish(stop.turns.graph)
        self._parts[path] = Part(graph, stop, before, self._mark)
        while len(self._parts) > max(MAX_PARTS, len(path) + 1):
            self._parts.popitem(last=False)

    def graph_of(self, part: Part | DynamicLoop) -> Graph:
        """The part, or a loop's turn, as backends take it."""
        if part.graph is None:
            assert isinstance(part, Part)
            part.graph = self._finish(part.alone())
        return part.graph


class StagedExecutor(Executor):
    """Runs the parts of a staged graph, each on the backend that was chosen for it. Has none of their interfaces."""

    def __init__(self, graph: StagedGraph, build: Callable[[Graph], Awaitable[Executor]], backend: str) -> None:
        self.graph, self._build, self._asked = graph, build, backend
        self._kept: LruCache[Part | DynamicLoop, tuple[Graph, Executor]] = LruCache(lambda found: found[1], MAX_PARTS)
        self._last, self._ran = graph.part(()), list[Part | DynamicLoop]()

    # ----- parts

    async def open(self) -> None:
        """Compiles the first part: what keeps a backend from running it is known at once."""
        if self._last.nodes:
            await self._executor(self._last)
            self._ran = [self._last]

    async def _executor(self, part: Part | DynamicLoop) -> Executor:
        graph, found = self.graph.graph_of(part), self._kept.get(part)
        if found is None or found[0] is not graph:
            self._kept.drop(part)
            found = self._kept.add(part, (graph, await self._build(graph)))
        return found[1]

    async def _walk(
        self, inputs: Mapping[str, Any], results: dict[str, Tensor]
    ) -> AsyncIterator[tuple[Executor, dict[str, Any]]]:
        """The executors of a run in turn with their inputs; each is run after it was given, into `results`."""
        path, ran, fed = NO_PATH, dict[Part | DynamicLoop, None](), dict(inputs)
        loop_turns = LoopTurns()
        while True:
            await loop_turns.turn()
            self._last = part = self.graph.part(path)
            await self._complete(path, part, fed, results)
            fed |= self.graph.variables.feed(part.read.states, self.graph.name)
            own = own_inputs(part, fed, results)
            shown: Any = None if part.given else computed(part, own)
            if shown is None and part.nodes:
                ran[part] = None
                executor = await self._executor(part)
                yield executor, own
                results |= await executor.run(own)
            if part.key is None:
                break
            if shown is None:
                first = [part.look(value, fed, results) for value in part.read.outputs]
                shown = bytes(first[0])
            if part.turns is not None:
                found = list[Tensor]()
                async for pair in self._turns(part.turns, first, found):
                    ran[part.turns] = None
                    yield pair
                fed |= {name: t.flat().cast("B") for name, t in zip(part.turns.names, found, strict=True)}
                shown = tuple(TensorType(t.shape, t.dtype, t.quant) for t in found)
            path = (*path, (part.key, shown))
        self._ran = list(ran)
        results |= {v.name: results[part.name_of(key)] for v, key in part.needs.items() if v in part.read.outputs}

    async def _complete(self, path: Path, part: Part, fed: Mapping[str, Any], results: dict[str, Tensor]) -> None:
        """Runs earlier parts again that did not give what this one needs; from now on they do."""
        missing = [key for key in part.needs.values() if part.name_of(key) not in results]
        for earlier in (self.graph.part(path[:i]) for i in range(len(path) if missing else 0)):
            if fresh := dict.fromkeys(key for key in missing if key[0] in earlier.places):
                earlier.given |= fresh
                earlier.graph = None
                executor = await self._executor(earlier)
                results |= await executor.run(own_inputs(earlier, fed, results))

    async def _turns(
        self, turns: DynamicLoop, first: Sequence[Any], results: list[Tensor]
    ) -> AsyncIterator[tuple[Executor, dict[str, Any]]]:
        """Runs a loop until its data ends it; the executor of its turn comes once, with what the first one is given."""
        ends, names = turns.graph.outputs, [v.name for v in turns.graph.inputs]
        most, turn, goes_on = int.from_bytes(bytes(first[0])[:8], "little", signed=True), 0, True
        state, others = list(first[1 : 1 + turns.state]), first[1 + turns.state :]
        lists: list[list[memoryview]] = [[] for _ in turns.names[turns.state :]]
        loop_turns, carrying = LoopTurns(), None
        while goes_on and turn < most:
            if turn == MAX_TURNS:
                raise LimitError(f"turns of {turns.graph.name}", turn + 1, MAX_TURNS, "check what ends the loop")
            await loop_turns.turn()
            if carrying is not None:
                count, goes_on, parts = await carrying.turns(min(most, MAX_TURNS) - turn)
                turn += count
                for listed, part in zip(lists, parts, strict=True):
                    listed += part
                continue
            own = dict(zip(names, (memoryview(turn.to_bytes(8, "little")), *state, *others), strict=True))
            executor = await self._executor(turns)
            if not turn:
                yield executor, own
                carrying = await carried(executor, turns, own)
                if carrying is not None:
                    continue
            found = await executor.run(own)
            answer, *made = (found[end.name].flat().cast("B") for end in ends)
            goes_on, state = any(answer), made[: turns.state]
            for listed, data in zip(lists, made[turns.state :], strict=True):
                listed.append(data)
            turn += 1
        if carrying is not None:
            state = [await carrying.held(name) for name in names[1 : 1 + turns.state]]
        for i, (end, data) in enumerate(zip(ends[1:], (*state, *map(b"".join, lists)), strict=True)):
            kind, listed_axis = end.type, (turn,) * (i >= turns.state)
            results.append(Tensor(data, listed_axis + kind.shape, kind.dtype, kind.quant))

    # ----- what an executor can do

    @property
    def backend(self) -> str:  # type: ignore[override]
        """The backends of the parts that ran."""
        found = self._executors()
        return "+".join(dict.fromkeys(executor.backend for executor in found)) or self._asked

    @property
    def lost(self) -> str:
        """Why the device of a part is gone."""
        return next((executor.lost for _, executor in self._kept.values() if executor.lost), "")

    def kept(self) -> list[Executor]:
        """The executors of all parts that are kept."""
        return [executor for _, executor in self._kept.values()]

    def _executors(self) -> list[Executor]:
        """The executors of the last run; before it, that of the first part."""
        return [found[1] for part in self._ran if (found := self._kept.get(part)) is not None]

    def graphs(self) -> list[Graph]:
        """The parts of the last run; before it, the first part."""
        return [self.graph.graph_of(part) for part in self._ran]

    async def run(self, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        """The outputs by name; the model's variables are changed."""
        results: dict[str, Tensor] = {}
        async for _ in self._walk(inputs, results):
            pass
        last = self._last.read
        return self.graph.variables.take(last.states, {v.name: results[v.name] for v in last.outputs})

    def rows(self) -> Sequence[PlanRow]:
        """The plan of the parts of the last run, step by step."""
        rows = [row for executor in self._executors() for row in executor.rows()]
        return [dataclasses.replace(row, index=i) for i, row in enumerate(rows)]

    def memory(self) -> MemoryReport:
        """The sums over the parts of the last run."""
        return MemoryReport.total(self._executors())

    async def probe(self, inputs: Mapping[str, memoryview]) -> AsyncIterator[tuple[Node, Value, Tensor]]:
        """Runs part by part, node by node, and yields every result."""
        await self._settle(inputs)
        async for executor, own in self._walk(inputs, {}):
            async for found in executor.probe(own):
                yield found

    async def profile(self, inputs: Mapping[str, memoryview], rounds: int) -> list[float]:
        """Median milliseconds of each row."""
        await self._settle(inputs)
        return [ms async for executor, own in self._walk(inputs, {}) for ms in await executor.profile(own, rounds)]

    async def pass_ms(self, inputs: Mapping[str, memoryview], repeats: int) -> float:
        """Milliseconds of all parts' steps, once; the average of `repeats` passes."""
        await self._settle(inputs)
        return sum([await executor.pass_ms(own, repeats) async for executor, own in self._walk(inputs, {})])

    async def _settle(self, inputs: Mapping[str, Any]) -> None:
        """A first walk, after which every part gives what later ones need."""
        async for _ in self._walk(inputs, {}):
            pass

    def close(self) -> None:
        """Frees every part."""
        self._kept.clear()


def own_inputs(part: Part, fed: Mapping[str, Any], results: Mapping[str, Tensor]) -> dict[str, Any]:
    """What a part reads: inputs of the model, and what earlier parts gave."""
    own = {name: fed[name] for name in part.inputs.values()}
    return own | {name: results[name].flat().cast("B") for name in map(part.name_of, part.needs.values())}


async def carried(executor: Executor, turns: DynamicLoop, own: Mapping[str, Any]) -> Any:
    """What `TurnExecutor.turns` gives for a loop whose first turn has these inputs; None where it cannot."""
    (goes_on, *ends), names = [v.name for v in turns.graph.outputs], [v.name for v in turns.graph.inputs]
    states = dict(zip(ends[: turns.state], names[1:], strict=False))
    if not isinstance(executor, TurnExecutor) or len(states) != turns.state:
        return None
    return await executor.turns(own, states, [goes_on, *ends[turns.state :]])


def computed(part: Part, own: Mapping[str, memoryview]) -> bytes | None:
    """The value that a part ends with, if it is small arithmetic on small inputs."""
    if part.key is None or part.turns is not None or not 0 < len(part.nodes) <= MAX_FOLDED:
        return None
    from webinfer.importers.core.folding import fold  # which brings all operators: only such a model needs them here

    known: dict[Value, Value] = {}
    for value, name in [*part.inputs.items(), *((v, part.name_of(key)) for v, key in part.needs.items())]:
        known[value] = Value(name, value.type, Constant(memoryview(own[name]), value.type.dtype))
    for node in part.nodes:
        inputs = [value if value is None else known.get(value, value) for value in node.inputs]
        folded = fold(Node(node.op, inputs, node.outputs, node.attrs, node.label), True)
        if folded is None or folded.constant is None:
            return None
        known[node.outputs[0]] = folded
    constant = known[part.read.outputs[0]].constant
    return None if constant is None else bytes(constant.data)
