"""Transposes that undo each other across what does not mind the order of axes disappear: models of another layout.

A file that was made of a channels-first model has a transpose before and behind each convolution, with activations,
paddings and sums between. Those are turned to the convolutions' layout.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from webinfer.graph.ir import Graph, Node, TensorType, Value, apply
from webinfer.ops import elementwise as ew
from webinfer.ops import movement as mv
from webinfer.passes.eliminate_dead import eliminate_dead
from webinfer.passes.merge_moves import merge_moves

MAX_ORDERS = 4  # of axes that are tried
MAX_SWEEPS = 16
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
        every = list(dict.fromkeys(v for node in self.graph.nodes for v in _values(node)))
        for _ in range(MAX_SWEEPS):
            size = len(region)
            for node in (*self.graph.nodes, *reversed(self.graph.nodes)):
                if node in region:
                    values = _values(node)
                    if self._moved(values, region, node) <= self._moved(values, region):
                        region.remove(node)
            if len(region) == size:
                break
        return region if self._moved(every, region) < self._moved(every, set()) else set()

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
        wide = [v for v in node.inputs if v is None or v.type.rank != rank]
        one_scale = all(v.type.quant is None or len(v.type.quant.scales) == 1 for v in _values(node))
        return one_scale and node.output.type.rank == rank and all(v is not None and v.type.size == 1 for v in wide)

    def _moved(self, values: Iterable[Value], region: set[Node], without: Node | None = None) -> int:
        """Bytes of transposes by `perm` or back that the values need if the region, without that node, is turned."""
        total = 0
        for value in values:
            writer, readers = self.writers.get(value), self.readers.get(value, ())
            inside = [reader for reader in readers if reader in region and reader is not without]
            outside = [reader for reader in readers if reader not in region or reader is without]
            if writer is not None and (self._is(writer, self.perm) or (writer in region and writer is not without)):
                needed = value in self.outputs or any(reader.op is not mv.TRANSPOSE for reader in outside)
            elif value.type.size == 1 or _has_one_axis(value):
                needed = False
            else:
                needed = bool(inside) or any(self._is(reader, self.inverse) for reader in outside)
            total += value.type.nbytes * needed
        return total

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
