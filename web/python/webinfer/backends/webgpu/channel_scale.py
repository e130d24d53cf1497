"""Which 1x1 convolutions multiply each channel of what they read by a number of its own, and add another map to that:
the end of squeeze and excitation, which else reads and writes a whole map for it.

Only the schedule knows: the graph stays as it is, and the products are never stored.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from webinfer.backends.webgpu.dispatch import Joined, Target
from webinfer.backends.webgpu.joining import is_float32, single_producers
from webinfer.backends.webgpu.lowerings import lower
from webinfer.backends.webgpu.lowerings.epilogue import PrologueNode
from webinfer.backends.webgpu.lowerings.variants import GEMVS, TILES, choose, is_pointwise
from webinfer.graph.ir import Graph, Node, Value
from webinfer.ops.activation import Activation

KERNELS = frozenset({"split_k", *TILES, *GEMVS})  # that multiply what they read


def find_gates(graph: Graph, folded: set[Value], target: Target, taken: Collection[Node]) -> dict[Node, Joined]:
    """The convolutions of a graph whose dispatch multiplies what it reads; none on software adapters, where a dispatch
    costs little, and none in graphs of parts or with values that nodes change in place.
    """
    if target.software or graph.parts or graph.resident:
        return {}
    single = {v: node for v, node in single_producers(graph).items() if node not in taken and v not in folded}
    found = dict[Node, Joined]()
    for node in graph.nodes:
        if node in taken or not _takes(node) or choose(node, target) not in KERNELS:
            continue
        gate = _gate_of(node, single)
        if gate is not None:
            found[node] = Joined(gate.absorbed, gate.inputs, functools.partial(lower, gate.product(node)))
    return found


@dataclass(frozen=True, slots=True)
class _Gate:
    """What a convolution reads: x times factors of its channels, plus an addend if there is one."""

    absorbed: tuple[Node, ...]
    x: Value
    factors: Value
    addend: Value | None

    @property
    def inputs(self) -> tuple[Value, ...]:
        return (self.x, self.factors) if self.addend is None else (self.x, self.factors, self.addend)

    def product(self, node: Node) -> PrologueNode:
        return PrologueNode(node, self.x, self.factors, self.addend)


def _gate_of(node: Node, single: Mapping[Value, Node]) -> _Gate | None:
    maker = single.get(node.required_input(0))
    if maker is None:
        return None
    if (operands := _operands(maker)) is not None:
        return _Gate((maker,), *operands, None)
    if maker.op.name != "add" or not _is_plain(maker):
        return None
    for value, other in (tuple(maker.inputs), tuple(reversed(maker.inputs))):
        inner = single.get(value) if value is not None else None
        operands = None if inner is None else _operands(inner)
        if inner is not None and operands is not None and other is not None and other.type == maker.output.type:
            return _Gate((inner, maker), *operands, other)
    return None


def _takes(node: Node) -> bool:
    return node.op.name == "conv2d" and is_float32(node) and node.attrs.groups == 1 and is_pointwise(node)


def _operands(node: Node) -> tuple[Value, Value] | None:
    """An image and the factors of its channels, if it is their product and nothing else."""
    if node.op.name != "mul" or not _is_plain(node):
        return None
    shape = node.output.type.shape
    if len(shape) != 4 or shape[0] != 1 or shape[3] % 4:
        return None
    for x, gate in (tuple(node.inputs), tuple(reversed(node.inputs))):
        if x is not None and gate is not None and x.type.shape == shape and gate.type.shape == (1, 1, 1, shape[3]):
            return (x, gate) if x is not gate else None
    return None


def _is_plain(node: Node) -> bool:
    return is_float32(node) and node.attrs.activation is Activation.NONE
