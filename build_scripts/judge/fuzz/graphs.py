"""A random graph of any format: nodes, what is fed, what is constant; and how it is made smaller."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
LISTED = 8  # elements of an array that a description shows


@dataclass(frozen=True)
class FuzzNode:
    """One operator as its format names it. An absent input is an empty name.

    `types` are the results' element types, where a file must say them.
    """

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    types: tuple[str, ...] = ()

    def __str__(self) -> str:
        attrs = ", ".join(f"{key}={_short(value)}" for key, value in self.attrs.items())
        named = ", ".join(name or "-" for name in self.inputs)
        return f"{self.op}({named}{'; ' if attrs else ''}{attrs}) -> {', '.join(self.outputs)}"


@dataclass(frozen=True)
class Quant:
    """What integers of a value stand for: scale × (number - zero point), along `axis` where there are several."""

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int = 0

    def __str__(self) -> str:
        along = f"/{self.axis}" if len(self.scales) > 1 else ""
        return f"{'|'.join(f'{s:.6g}' for s in self.scales)}@{'|'.join(map(str, self.zero_points))}{along}"


@dataclass(frozen=True)
class FuzzGraph:
    """A graph with the numbers that it is fed. `version` is the format's own (ONNX: the opset).

    `values` has every value that the runtime computed node by node, `quants` what quantised ones stand for, `hidden`
    are values that are no tensors.
    """

    version: int
    nodes: tuple[FuzzNode, ...] = ()
    inputs: Mapping[str, Array] = field(default_factory=dict)
    constants: Mapping[str, Array] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    values: Mapping[str, Array] = field(default_factory=dict)
    quants: Mapping[str, Quant] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()
    open_sizes: bool = False  # whether the file names the inputs' axes and says no sizes

    def described(self) -> str:
        """The graph in one line: operators with attributes, types and shapes of what goes in, constants."""
        fed = ", ".join(f"{name} {_kind(a)}" for name, a in self.inputs.items())
        stored = ", ".join(f"{name}={_short(a)}" for name, a in self.constants.items())
        nodes = "; ".join(map(str, self.nodes))
        quants = ", ".join(f"{name}~{q}" for name, q in self.quants.items() if self._mentions(name))
        stored = f"{stored} quantised {quants}" if quants else stored
        return f"v{self.version} [{fed}] {nodes} => {', '.join(self.outputs)}{' where ' if stored else ''}{stored}"

    def _mentions(self, name: str) -> bool:
        return name in self.inputs or name in self.constants or any(name in node.outputs for node in self.nodes)


def _kind(array: Array) -> str:
    return f"{array.dtype}{list(array.shape)}"


def _short(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return f"[{value.described()}]" if isinstance(value, FuzzGraph) else repr(value)
    listed = np.array2string(value.reshape(-1)[:LISTED], separator=",", max_line_width=200).replace("\n", "")
    return f"{_kind(value)} {listed}{'…' if value.size > LISTED else ''}"


def read_names(node: FuzzNode) -> set[str]:
    """What a node reads, its subgraphs included."""
    names = {name for name in node.inputs if name}
    for value in node.attrs.values():
        if isinstance(value, FuzzGraph):
            made = {name for inner in value.nodes for name in inner.outputs} | set(value.inputs) | set(value.constants)
            names |= {name for inner in value.nodes for name in read_names(inner)} - made
            names |= set(value.outputs) - made
    return names


def trimmed(graph: FuzzGraph) -> FuzzGraph:
    """The graph without nodes, inputs and constants that no output needs."""
    needed, kept = set(graph.outputs), list[FuzzNode]()
    for node in reversed(graph.nodes):
        if needed & set(node.outputs):
            kept.append(node)
            needed |= read_names(node)
    return replace(
        graph,
        nodes=tuple(reversed(kept)),
        inputs={name: a for name, a in graph.inputs.items() if name in needed},
        constants={name: a for name, a in graph.constants.items() if name in needed},
    )


def smaller(graph: FuzzGraph) -> Iterable[FuzzGraph]:
    """Graphs with something less: an output, a node (what it made is fed instead), an attribute, a constant's place."""
    if len(graph.outputs) > 1:
        for name in graph.outputs:
            yield trimmed(replace(graph, outputs=(name,)))
        for name in graph.outputs:
            yield trimmed(replace(graph, outputs=tuple(n for n in graph.outputs if n != name)))
    for node in graph.nodes:
        if cut := _without(graph, node):
            yield cut
    for node in graph.nodes:
        for key in node.attrs:
            attrs = {k: v for k, v in node.attrs.items() if k != key}
            nodes = tuple(replace(node, attrs=attrs) if other is node else other for other in graph.nodes)
            yield replace(graph, nodes=nodes)


def _without(graph: FuzzGraph, node: FuzzNode) -> FuzzGraph | None:
    """The graph without one node: later ones are fed what it made, or the outputs are what it read."""
    if any(name in graph.hidden or name not in graph.values for name in node.outputs if name):
        return None
    others = tuple(other for other in graph.nodes if other is not node)
    fed = {name: graph.values[name] for name in node.outputs if name}
    outputs = tuple(name for name in graph.outputs if name not in node.outputs)
    if not outputs:
        made = {name for other in others for name in other.outputs} - graph.hidden
        outputs = tuple(dict.fromkeys(name for name in node.inputs if name in made))
    if not outputs:
        return None
    return trimmed(replace(graph, nodes=others, outputs=outputs, inputs={**graph.inputs, **fed}))
