"""Transposes that undo each other across what does not mind the order of axes disappear: models of another layout.

A file that was made of a channels-first model has a transpose before and behind each convolution, with activations,
paddings and sums between. Those are turned to the convolutions' layout.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from webinfer.graph.ir import Graph, Node, TensorType, Value, apply
from webinfer.lazy_dataclass import dataclass
from webinfer.ops import elementwise as ew
from webinfer.ops import movement as mv
from webinfer.passes.eliminate_dead import eliminate_dead
from webinfer.passes.merge_moves import merge_moves

MAX_ORDERS = 4  # of axes that are tried: half and double changed none of 146 graphs
MAX_SWEEPS = 16  # over the graph: 8 and 32 changed none of 146 graphs
Perm = tuple[int, ...]


def eliminate_transposes(graph: Graph) -> int:
    """Number of nodes that compute in another order of axes now."""
    found = {node.attrs.perm: None for node in graph.nodes if node.op is mv.TRANSPOSE and len(node.attrs.perm) > 2}
    perms = [perm for perm in found if perm != tuple(range(len(perm))) and _inverse(perm) in found]
    return 0 if graph.parts else sum(_turn(graph, perm) for perm in perms[:MAX_ORDERS])


def _turn(graph: Graph, perm: Perm) -> int:
    """The same for what lies behind transposes by `perm`, or before those that undo it."""
    layouts = _Layouts(graph, perm)
    region = layouts.best()
    if region:
        graph.nodes = layouts.turned(region)
        merge_moves(graph)
        eliminate_dead(graph)  # transposes that nobody reads would count as readers
    return len(region)


def _inverse(perm: Perm) -> Perm:
    return tuple(perm.index(axis) for axis in range(len(perm)))


def _has_one_axis(value: Value) -> bool:
    """Whether it is a dense constant whose bytes are the same in every order of axes."""
    dense = value.constant is not None and value.constant.sparsity is None
    return dense and sum(size != 1 for size in value.type.shape) <= 1


def _values(node: Node) -> list[Value]:
    return list(dict.fromkeys(v for v in (*node.inputs, *node.outputs) if v is not None))


@dataclass(slots=True)
class _Use:
    """A value: what a transpose of it moves, and who reads and writes it."""

    nbytes: int
    is_free: bool  # its bytes are the same in every order of axes
    plain: int  # reads by others than transposes; the graph's own outputs count as one
    undone: bool  # whether a transpose that undoes `perm` reads it
    turned: bool  # whether a transpose by `perm` writes it, or the region
    inside: int = 0  # reads by the region

    def moved(self, turned: bool, inside: int) -> int:
        """Bytes of the transpose by `perm` or back that it needs if it is written and read by the region like this."""
        needed = self.plain > inside if turned else not self.is_free and (inside > 0 or self.undone)
        return self.nbytes * needed


class _Layouts:
    """Which values are wanted as the file has them, and which as they are before a transpose by `perm`."""

    def __init__(self, graph: Graph, perm: Perm) -> None:
        self.graph, self.perm, self.inverse = graph, perm, _inverse(perm)
        self.writers, self.readers, self.outputs = graph.producers(), graph.consumers(), set(graph.outputs)

    def best(self) -> set[Node]:
        """The nodes that had better be turned; none where that saves no bytes.

        All that can be turned is; then nodes that cost no more as they are leave, until nothing changes.
        """
        region = {node for node in self.graph.nodes if self._can_turn(node)}
        if not region:
            return region
        uses = {value: self._use(value) for node in region for value in _values(node)}
        unturned = sum(use.moved(use.turned, 0) for use in uses.values())
        reads = dict[Node, dict[Value, int]]()  # how often each node of the region reads what
        for node in region:
            uses[node.output].turned = True
            counts = reads[node] = dict[Value, int]()
            for value in node.inputs:
                if value is not None:
                    uses[value].inside += 1
                    counts[value] = counts.get(value, 0) + 1
        unsure = set(region)  # nodes next to which something has changed since they were asked
        for _ in range(MAX_SWEEPS):
            size = len(region)
            for node in (*self.graph.nodes, *reversed(self.graph.nodes)):
                if node in unsure:
                    unsure.remove(node)
                    if _leaves(uses[node.output], [(uses[value], count) for value, count in reads[node].items()]):
                        region.remove(node)
                        unsure |= region.intersection(self._neighbours(node))
            if len(region) == size:
                break
        return region if sum(use.moved(use.turned, use.inside) for use in uses.values()) < unturned else set()

    def _neighbours(self, node: Node) -> Iterator[Node]:
        """The nodes that read or write what this one does."""
        for value in _values(node):
            yield from self.readers.get(value, ())
            if value in self.writers:
                yield self.writers[value]

    def _use(self, value: Value) -> _Use:
        """The value while nothing is turned."""
        plain, undone, writer = int(value in self.outputs), False, self.writers.get(value)
        for reader in self.readers.get(value, ()):
            if reader.op is not mv.TRANSPOSE:
                plain += 1
            elif reader.attrs.perm == self.inverse:
                undone = True
        is_free = value.type.size == 1 or _has_one_axis(value)
        return _Use(value.type.nbytes, is_free, plain, undone, writer is not None and self._is(writer, self.perm))

    def turned(self, region: set[Node]) -> list[Node]:
        """The graph's nodes with the region in the other order of axes, and transposes at its border."""
        made: list[Node] = []
        known: dict[Value, Value] = {}  # as the file has it → turned
        for node in self.graph.nodes:
            if node not in region:
                made.append(node)
                continue
            inputs = [self._turned_value(v, known, made) for v in node.inputs]
            own = node.output
            new = known[own] = Value(own.name, self._turned_type(own.type))
            made.append(Node(node.op, inputs, [new], self._turned_attrs(node), node.label))
            if own in self.outputs or any(reader not in region for reader in self.readers.get(own, ())):
                made.append(Node(mv.TRANSPOSE, [new], [own], mv.TransposeAttrs(self.perm), f"{node.label}:turned"))
        return made

    def _can_turn(self, node: Node) -> bool:
        rank, attrs = len(self.perm), node.attrs
        elementwise = isinstance(node.op, ew.ElementwiseOp) or node.op in (ew.CAST, ew.DEQUANTIZE, ew.QUANTIZE)
        if not (elementwise or (node.op is mv.PAD and attrs.mode == "constant") or node.op is mv.CONCAT):
            return False
        if node.output.type.rank != rank:
            return False
        for value in (*node.inputs, node.output):
            if value is not None and value.type.quant is not None and len(value.type.quant.scales) != 1:
                return False
        wide = [v for v in node.inputs if v is None or v.type.rank != rank]
        return all(v is not None and v.type.size == 1 for v in wide)

    @staticmethod
    def _is(node: Node, perm: Perm) -> bool:
        return node.op is mv.TRANSPOSE and node.attrs.perm == perm

    def _turned_value(self, value: Value | None, known: dict[Value, Value], made: list[Node]) -> Value | None:
        if value is None or (value not in known and value.type.size == 1):
            return value
        if value not in known and _has_one_axis(value):
            known[value] = Value(value.name, self._turned_type(value.type), value.constant)
        elif value not in known:
            made.append(apply(mv.TRANSPOSE, [value], mv.TransposeAttrs(self.inverse), name=f"{value.name}:turned"))
            known[value] = made[-1].output
        return known[value]

    def _turned_type(self, type: TensorType) -> TensorType:
        return dataclasses.replace(type, shape=tuple(type.shape[axis] for axis in self.inverse))

    def _turned_attrs(self, node: Node) -> object:
        a = node.attrs
        if node.op is mv.PAD:
            before, after = (tuple(side[axis] for axis in self.inverse) for side in (a.before, a.after))
            return dataclasses.replace(a, before=before, after=after)
        return mv.ConcatAttrs(self.perm[a.axis]) if node.op is mv.CONCAT else a


def _leaves(own: _Use, reads: Sequence[tuple[_Use, int]]) -> bool:
    """Takes a node out of the region if as few bytes are moved without it; it writes `own` and reads these so often."""
    now, then = own.moved(True, own.inside), own.moved(False, own.inside)
    for use, count in reads:
        now += use.moved(use.turned, use.inside)
        then += use.moved(use.turned, use.inside - count)
    if then > now:
        return False
    own.turned = False
    for use, count in reads:
        use.inside -= count
    return True
