"""An ONNX file as plain records: nodes, attributes, tensors, inputs, outputs. Read once, checked while it is read.

The classes compare by identity and have no text of their own: to make those would be a tenth of the importer's import
in a page.

Source:  onnx v1.23, onnx/onnx.proto
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import field
from typing import Any

from webinfer.errors import ModelFormatError
from webinfer.graph.printer import safe_name
from webinfer.importers.core.limits import MAX_DEPTH, MAX_OPERATORS, MAX_TENSORS, within
from webinfer.importers.core.other_files import protobuf_kind
from webinfer.importers.readers.protobuf import BYTES, FIXED32, fields, real, signed, text, varints
from webinfer.lazy_dataclass import dataclass

MAX_DIMS = 64  # sizes that one tensor lists; more than MAX_RANK is refused when it is used
MAX_FUNCTIONS = 10_000


@dataclass(slots=True, eq=False, repr=False)
class Tensor:
    """A tensor of the file: its bytes as they lie there, or its numbers in one of the typed lists."""

    name: str = ""
    dims: list[int] = field(default_factory=list)
    kind: int = 0
    raw: memoryview | None = None
    floats: list[memoryview] = field(default_factory=list)  # packed float32, or float64
    is_double: bool = False
    varints: list[memoryview] = field(default_factory=list)  # packed int32, int64 or uint64
    loose: list[int] = field(default_factory=list)  # the same, not packed
    external: dict[str, str] = field(default_factory=dict)
    is_external: bool = False


@dataclass(slots=True, eq=False, repr=False)
class Attribute:
    """One attribute: whichever of its values the file gives."""

    name: str = ""
    kind: int = 0
    value: Any = None
    refers: str = ""  # an attribute of the function that is called, instead of a value


@dataclass(slots=True, eq=False, repr=False)
class NodeInfo:
    """One operator as the file lists it."""

    index: int
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    name: str = ""
    op: str = ""
    domain: str = ""
    attributes: dict[str, Attribute] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        """The operator with its domain, unless that is ONNX itself."""
        domain = plain_domain(self.domain)
        return f"{domain}.{self.op}" if domain else self.op

    def reads(self) -> Iterator[str]:
        """The names of values that the operator reads, graphs inside of it included."""
        yield from self.inputs
        for attribute in self.attributes.values():
            for value in attribute.value if isinstance(attribute.value, list) else [attribute.value]:
                if isinstance(value, GraphInfo):
                    yield from value.outer()


@dataclass(slots=True, eq=False, repr=False)
class ValueInfo:
    """What the file says of a value; a size is a number, a name, or "" where nothing is said."""

    name: str = ""
    kind: int = 0
    shape: list[int | str] | None = None
    container: str = ""  # sequence, optional, map: not a tensor


@dataclass(slots=True, eq=False, repr=False)
class GraphInfo:
    """A graph of the file: the model's own, or the body of a branch, a loop or a function."""

    name: str = ""
    nodes: list[NodeInfo] = field(default_factory=list)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    inputs: list[ValueInfo] = field(default_factory=list)
    outputs: list[ValueInfo] = field(default_factory=list)
    declared: list[memoryview] = field(default_factory=list)  # what is said of values inside: `value_info` reads it
    defaults: dict[str, Attribute] = field(default_factory=dict)  # of a function's attributes
    opsets: dict[str, int] = field(default_factory=dict)
    sparse: int = 0

    def outer(self) -> set[str]:
        """The names of values that the graph reads and does not make."""
        own = {*self.tensors, *(info.name for info in self.inputs)}
        own |= {name for node in self.nodes for name in node.outputs}
        return {*(name for node in self.nodes for name in node.reads()), *(info.name for info in self.outputs)} - own


@dataclass(slots=True, eq=False, repr=False)
class ModelInfo:
    """The whole file."""

    name: str
    graph: GraphInfo
    opsets: dict[str, int]
    functions: dict[tuple[str, str], GraphInfo]
    last_reads: dict[str, int] = field(default_factory=dict)  # by name, the graph's last node that reads it, once asked


_SINGLES = {1: 0.0, 2: 0, 3: ""}


def _elements(t: Tensor, number: int, wire: int, value: int, part: memoryview) -> None:
    """Notes where elements of a tensor lie."""
    if number == 4:
        t.floats.append(part if wire == BYTES else memoryview(struct.pack("<I", value & 0xFFFFFFFF)))
    elif number == 10:
        t.is_double = True
        t.floats.append(part if wire == BYTES else memoryview(struct.pack("<Q", value)))
    elif number in (5, 7, 11) and wire == BYTES:
        t.varints.append(part)
    elif number in (5, 7, 11):
        t.loose.append(value)
    elif number == 9:
        t.raw = part


class _Parser:
    def __init__(self, name: str) -> None:
        self.name, self.count, self.tensors = name, 0, 0

    def fail(self, problem: str) -> ModelFormatError:
        return ModelFormatError(f"{self.name}: {problem}; the file is damaged; download it again")

    def walk(self, data: memoryview, what: str) -> Iterator[tuple[int, int, int, memoryview]]:
        return fields(data, f"{self.name}: {what}")

    # ---- tensors

    def tensor(self, data: memoryview) -> Tensor:
        self.tensors += 1
        within("tensors", self.tensors, MAX_TENSORS)
        t = Tensor()
        for number, wire, value, part in self.walk(data, "tensor"):
            if number == 1:
                t.dims += [signed(n) for n in (varints(part, self.name) if wire == BYTES else (value,))]
                within("sizes of a tensor", len(t.dims), MAX_DIMS)
            elif number == 2:
                t.kind = value
            elif number == 8:
                t.name = text(part)
            elif number == 13:
                key, word = self._pair(part)
                t.external[key] = word
            elif number == 14:
                t.is_external = value == 1
            else:
                _elements(t, number, wire, value, part)
        return t

    def _pair(self, data: memoryview) -> tuple[str, str]:
        pair = {number: text(part) for number, _, _, part in self.walk(data, "external data") if number in (1, 2)}
        return pair.get(1, ""), pair.get(2, "")

    # ---- types of values

    def value_info(self, data: memoryview) -> ValueInfo:
        info = ValueInfo()
        for number, _, _, part in self.walk(data, "value"):
            if number == 1:
                info.name = text(part)
            elif number == 2:
                self._type(part, info)
        return info

    def _type(self, data: memoryview, info: ValueInfo) -> None:
        for number, _, _, part in self.walk(data, "type"):
            if number == 1:
                for inner, _, value, shape in self.walk(part, "tensor type"):
                    if inner == 1:
                        info.kind = value
                    elif inner == 2:
                        info.shape = [self._dimension(d) for n, _, _, d in self.walk(shape, "shape") if n == 1]
            elif number in (4, 5, 8, 9):
                info.container = {4: "sequence", 5: "map", 8: "sparse tensor", 9: "optional"}[number]

    def _dimension(self, data: memoryview) -> int | str:
        size: int | str = ""
        for number, _, value, part in self.walk(data, "size"):
            if number == 1:
                size = signed(value)
            elif number == 2:
                size = text(part)
        if isinstance(size, str):  # "?" and "None" of old converters name nothing: each such size is one of its own
            return size if any(map(str.isalpha, size)) and size != "None" else ""
        return size if size >= 0 else ""

    # ---- nodes and graphs

    def attribute(self, data: memoryview, depth: int) -> Attribute:
        a = Attribute()
        lists: dict[int, list[Any]] = {}
        for number, wire, value, part in self.walk(data, "attribute"):
            if number == 1:
                a.name = text(part)
            elif number == 20:
                a.kind = value
            elif number == 21:
                a.refers = text(part)
            else:
                self._listed(number, wire, value, part, lists, depth)
        if not a.kind:  # older writers leave it out
            a.kind = next(iter(lists), 0)
        found = lists.get(a.kind)
        a.value = (
            _SINGLES.get(a.kind) if not found and a.kind <= 5 else (found or [])[-1] if a.kind <= 5 else found or []
        )
        return a

    def _listed(
        self, number: int, wire: int, value: int, part: memoryview, lists: dict[int, list[Any]], depth: int
    ) -> None:
        """The value of an attribute, or one element, or a packed list of them, of one that is a list."""
        if number in (2, 3, 4, 5, 6):
            lists.setdefault(number - 1, []).append(self._single(number, value, part, depth))
        elif number == 7:
            if wire == BYTES and len(part) % 4 == 0:
                lists.setdefault(6, []).extend(struct.unpack(f"<{len(part) // 4}f", part))
            elif wire == FIXED32:
                lists.setdefault(6, []).append(real(value))
        elif number == 8:
            lists.setdefault(7, []).extend(signed(n) for n in (varints(part, self.name) if wire == BYTES else (value,)))
        elif number == 9:
            lists.setdefault(8, []).append(text(part))
        elif number == 10:
            lists.setdefault(9, []).append(self.tensor(part))
        elif number == 11:
            lists.setdefault(10, []).append(self.graph(part, depth + 1))

    def _single(self, number: int, value: int, part: memoryview, depth: int) -> Any:
        if number == 2:
            return real(value & 0xFFFFFFFF)
        if number == 3:
            return signed(value)
        if number == 4:
            return text(part)
        return self.tensor(part) if number == 5 else self.graph(part, depth + 1)

    def node(self, data: memoryview, depth: int) -> NodeInfo:
        node = NodeInfo(self.count)
        self.count += 1
        within("operators", self.count, MAX_OPERATORS)
        for number, _, _, part in self.walk(data, "operator"):
            if number == 1:
                node.inputs.append(text(part))
            elif number == 2:
                node.outputs.append(text(part))
            elif number == 3:
                node.name = text(part)
            elif number == 4:
                node.op = text(part)
            elif number == 7:
                node.domain = text(part)
            elif number == 5:
                attribute = self.attribute(part, depth)
                if attribute.name in node.attributes:
                    raise self.fail(f"operator {node.index} has two attributes {safe_name(attribute.name)}")
                node.attributes[attribute.name] = attribute
        return node

    def graph(self, data: memoryview, depth: int) -> GraphInfo:
        within("depth of graphs inside each other", depth, MAX_DEPTH, "use a simpler model")
        graph = GraphInfo()
        for number, _, _, part in self.walk(data, "graph"):
            if number == 1:
                graph.nodes.append(self.node(part, depth))
            elif number == 2:
                graph.name = text(part)
            elif number == 5:
                tensor = self.tensor(part)
                if tensor.name in graph.tensors:
                    raise self.fail(f"two initializers are called {safe_name(tensor.name)}")
                graph.tensors[tensor.name] = tensor
            elif number == 11:
                graph.inputs.append(self.value_info(part))
            elif number == 12:
                graph.outputs.append(self.value_info(part))
            elif number == 13:
                graph.declared.append(part)  # there are as many as nodes, and only outlines read them
            elif number == 15:
                graph.sparse += 1
        graph.nodes = in_order(graph.nodes)
        return graph

    def function(self, data: memoryview) -> tuple[str, str, GraphInfo]:
        graph, name, domain = GraphInfo(), "", ""
        for number, _, _, part in self.walk(data, "function"):
            if number == 1:
                name = text(part)
            elif number == 4:
                graph.inputs.append(ValueInfo(text(part)))
            elif number == 5:
                graph.outputs.append(ValueInfo(text(part)))
            elif number == 7:
                graph.nodes.append(self.node(part, 1))
            elif number == 9:
                key, version = self.opset(part)
                graph.opsets[key] = version
            elif number == 10:
                domain = text(part)
            elif number == 11:
                default = self.attribute(part, 1)
                graph.defaults[default.name] = default
        graph.nodes = in_order(graph.nodes)
        return plain_domain(domain), name, graph

    def opset(self, data: memoryview) -> tuple[str, int]:
        domain, version = "", 0
        for number, _, value, part in self.walk(data, "opset"):
            if number == 1:
                domain = text(part)
            elif number == 2:
                version = signed(value)
        return plain_domain(domain), version


def in_order(nodes: list[NodeInfo]) -> list[NodeInfo]:
    """The nodes, each behind those whose results it or a graph inside of it reads; as they are if that cannot be.

    Runtimes sort them too: converters to float16 put the casts that they add at the end of the file.
    """
    places = {name: place for place, node in enumerate(nodes) for name in node.outputs if name}
    if all(places.get(name, -1) < place for place, node in enumerate(nodes) for name in node.reads()):
        return nodes
    before = [sorted({places[name] for name in node.reads() if name in places}) for node in nodes]
    order, done = list[NodeInfo](), dict[int, bool]()  # False while a node waits for others
    waiting = [(place, False) for place in reversed(range(len(nodes)))]
    while waiting:
        place, ready = waiting.pop()
        if ready:
            done[place] = True
            order.append(nodes[place])
        elif place not in done:
            done[place] = False
            waiting.append((place, True))
            if any(done.get(other) is False for other in before[place]):
                return nodes  # a cycle, which is an error where it is read
            waiting += [(other, False) for other in reversed(before[place]) if other not in done]
    return order


def value_info(data: memoryview, name: str) -> ValueInfo:
    """What the file of this name says of one value.

    Raises:  ModelFormatError if the bytes break a rule
    """
    return _Parser(name).value_info(data)


def plain_domain(domain: str) -> str:
    """The domain's name, "" for the operators of ONNX itself."""
    return "" if domain == "ai.onnx" else domain


def read_file(data: memoryview, name: str) -> ModelInfo:
    """The records of an ONNX file.

    Raises:  ModelFormatError if the bytes break a rule; LimitError
    """
    parser, graphs = _Parser(name), list[memoryview]()
    opsets: dict[str, int] = {}
    functions: dict[tuple[str, str], GraphInfo] = {}
    for number, _, _, part in parser.walk(data, "model"):
        if number == 7:
            graphs.append(part)
        elif number == 8:
            domain, version = parser.opset(part)
            opsets[domain] = version
        elif number == 25:
            domain, function, body = parser.function(part)
            within("functions", len(functions) + 1, MAX_FUNCTIONS)
            functions[domain, function] = body
    if len(graphs) != 1:
        if other := protobuf_kind(data):
            raise ModelFormatError(f"{name!r} is not an ONNX model: it is {other}")
        raise parser.fail(f"{len(graphs)} graphs, a model has one")
    return ModelInfo(name, parser.graph(graphs[0], 0), opsets, functions)
