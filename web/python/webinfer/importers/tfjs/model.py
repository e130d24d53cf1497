"""What model.json says, checked: nodes with attributes, functions, the names of inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, NoReturn, TypeVar

from webinfer.errors import ModelFormatError
from webinfer.graph.printer import safe_name
from webinfer.importers.core.limits import MAX_OPERATORS, MAX_SUBGRAPHS, within
from webinfer.lazy_dataclass import dataclass

Kind = TypeVar("Kind")
MAX_FILES = 10_000
MAX_RESULTS = 65536  # of one node
# Results that functions name; others are the first one.
_RESULTS = {
    "FusedBatchNormV3": "y batch_mean batch_variance", "NonMaxSuppressionV4": "selected_indices valid_outputs",
    "NonMaxSuppressionV5": "selected_indices selected_scores valid_outputs", "Switch": "output_false output_true",
    "TopKV2": "values indices", "Unique": "y idx", "UniqueV2": "y idx",
}  # fmt: skip


@dataclass(slots=True)
class NodeInfo:
    """One node. Inputs and outputs are keys: the name of a node, with ":1" behind it for its second result."""

    index: int
    name: str
    op: str
    inputs: tuple[str, ...]
    controls: tuple[str, ...]  # names of nodes that must have run before
    attributes: Mapping[str, Any]
    outputs: list[str]


@dataclass(slots=True)
class GraphInfo:
    """The model's graph or a function: its nodes by name; inputs and outputs as (name, key)."""

    nodes: dict[str, NodeInfo] = field(default_factory=dict)
    inputs: list[tuple[str, str]] = field(default_factory=list)
    outputs: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class ModelInfo:
    """A whole file."""

    graph: GraphInfo
    functions: dict[str, GraphInfo]
    shapes: dict[str, Any]  # of inputs and outputs, by key: what the signature says of their sizes


def part(holder: Mapping[str, Any], key: str, kind: type[Kind], what: str) -> Kind:
    """The part of a JSON object under a key, an empty one if it is absent.

    Raises:  ModelFormatError if it is of another kind
    """
    found = holder.get(key)
    found = kind() if found is None else found
    if not isinstance(found, kind):
        damaged(f"{what}: {key!r} is a {type(found).__name__}, must be a {kind.__name__}")
    return found


def damaged(problem: str) -> NoReturn:
    """Ends the reading: the file breaks a rule."""
    raise ModelFormatError(f"model.json: {problem}")


def parts(holder: Mapping[str, Any], key: str, kind: type[Kind], what: str) -> list[Kind]:
    """A list of parts of one kind."""
    found = part(holder, key, list, what)
    if not all(isinstance(each, kind) for each in found):
        damaged(f"{what}: {key!r} must hold nothing but {kind.__name__}")
    return found


def read_model(described: Mapping[str, Any]) -> ModelInfo:
    """The graph and the functions of a graph model.

    Raises:  ModelFormatError if a rule is broken; LimitError
    """
    topology = part(described, "modelTopology", dict, "the model")
    nodes = _nodes(parts(topology, "node", dict, "modelTopology"), "the graph")
    library = part(topology, "library", dict, "modelTopology")
    listed = parts(library, "function", dict, "library")
    within("functions", len(listed), MAX_SUBGRAPHS)
    functions = dict(_function(each) for each in listed)
    graph = GraphInfo(nodes)
    shapes = _interface(graph, described)
    return ModelInfo(graph, functions, shapes)


def _nodes(described: Sequence[Mapping[str, Any]], what: str) -> dict[str, NodeInfo]:
    within(f"nodes of {what}", len(described), MAX_OPERATORS)
    nodes = dict[str, NodeInfo]()
    for index, each in enumerate(described):
        name, op = part(each, "name", str, f"node {index}"), part(each, "op", str, f"node {index}")
        if name in nodes:
            damaged(f"two nodes of {what} are called {safe_name(name)}")
        inputs = parts(each, "input", str, f"node {safe_name(name)}")
        data = tuple(key for key in inputs if not key.startswith("^"))
        controls = tuple(key[1:].partition(":")[0] for key in inputs if key.startswith("^"))
        attributes = part(each, "attr", dict, f"node {safe_name(name)}")
        nodes[name] = NodeInfo(index, name, op, data, controls, attributes, [name])
    for node in nodes.values():
        node.inputs = tuple(key_of(nodes, key) for key in node.inputs)
    return nodes


def key_of(nodes: Mapping[str, NodeInfo], reference: str) -> str:
    """The key of the value that a file's "name", "name:1" or "name:output:0" means."""
    if reference in nodes:
        return reference
    name, *rest = reference.split(":")
    number = rest[-1] if rest else "0"
    if name not in nodes or len(rest) > 2 or not number.isdecimal() or len(number) > 5:
        damaged(f"{safe_name(reference)} is not a result of any node")
    node, place = nodes[name], int(number)
    if len(rest) == 2:
        known = _RESULTS.get(node.op, "").split()
        place += known.index(rest[0]) if rest[0] in known else 0
    within(f"results of node {safe_name(name)}", place, MAX_RESULTS)
    node.outputs += [f"{name}:{i}" for i in range(len(node.outputs), place + 1)]
    return node.outputs[place]


def _function(described: Mapping[str, Any]) -> tuple[str, GraphInfo]:
    signature = part(described, "signature", dict, "a function")
    name = part(signature, "name", str, "a function")
    what = f"function {safe_name(name)}"
    inputs = [part(each, "name", str, what) for each in parts(signature, "inputArg", dict, what)]
    holders = [{"name": each, "op": "Placeholder"} for each in inputs]
    graph = GraphInfo(_nodes([*holders, *parts(described, "nodeDef", dict, what)], what))
    graph.inputs = [(each, each) for each in inputs]
    returned = part(described, "ret", dict, what)
    for each in parts(signature, "outputArg", dict, what):
        output = part(each, "name", str, what)
        graph.outputs.append((output, key_of(graph.nodes, part(returned, output, str, what))))
    return name, graph


def _interface(graph: GraphInfo, described: Mapping[str, Any]) -> dict[str, Any]:
    """Fills in the graph's inputs and outputs; the result is what the signature says of their sizes."""
    told = part(part(described, "userDefinedMetadata", dict, "the model"), "signature", dict, "userDefinedMetadata")
    told = told or part(described, "signature", dict, "the model")
    nodes, shapes = graph.nodes, dict[str, Any]()
    named = dict[str, str]()
    for name, key, tensor in _entries(nodes, told, "inputs"):
        named[key], shapes[key] = name, tensor.get("tensorShape")
    holders = [node.name for node in nodes.values() if node.op == "Placeholder"]
    keys = list(named) or holders
    graph.inputs = [(named.get(key, key), key) for key in keys]
    for name, key, tensor in _entries(nodes, told, "outputs"):
        graph.outputs.append((name, key))
        shapes.setdefault(key, tensor.get("tensorShape"))
    if not graph.outputs:
        read = {key.partition(":")[0] for node in nodes.values() for key in node.inputs}
        silent = ("NoOp", "Const", "Placeholder")
        graph.outputs = [(n, n) for n, node in nodes.items() if n not in read and node.op not in silent]
    if not graph.outputs:
        damaged("the graph has no outputs")
    return shapes


def _entries(
    nodes: Mapping[str, NodeInfo], signature: Mapping[str, Any], side: str
) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Name, key and description of each input or output of a signature whose node there is."""
    found = list[tuple[str, str, Mapping[str, Any]]]()
    for name, tensor in part(signature, side, dict, "signature").items():
        if not isinstance(tensor, dict):
            damaged(f"signature: {safe_name(name)} is not an object")
        reference = part(tensor, "name", str, "signature") or name
        if reference.partition(":")[0] in nodes:
            found.append((name.removesuffix(":0"), key_of(nodes, reference), tensor))
    return found
