"""One ONNX operator: inputs by position, attributes by name, views of values in another order of axes."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple

from webinfer.dtypes import DType, round_to_f32
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Node, Value
from webinfer.graph.printer import safe_name
from webinfer.importers.core.operation import WRONG_ARGUMENTS, BaseOperation
from webinfer.importers.core.operation import Convert as ConvertAny
from webinfer.importers.core.tensor_list import Listed
from webinfer.importers.core.writer import GraphWriter
from webinfer.importers.onnx.layouts import Arranged, View, arranged, channels_last, inverse
from webinfer.importers.onnx.model import Attribute, GraphInfo, ModelInfo, NodeInfo
from webinfer.importers.onnx.tensors import DTYPES, External, constant_of
from webinfer.lazy_dataclass import dataclass

Scope = ChainMap[str, Value]
Attributes = Mapping[str, Attribute]


class LoopProgress(NamedTuple):
    """Where a loop stands that is written turn by turn: the writer's mark, turns that are written, what they gave."""

    mark: tuple[int, ...]
    turn: int
    state: list[Value]
    lists: list[list[Value]]

    def values(self) -> list[Value]:
        """What later turns and the end of the loop read."""
        return [*self.state, *(value for listed in self.lists for value in listed)]


@dataclass(frozen=True, slots=True)
class Context:
    """The file on its way into one graph; `run` converts a sub-graph and gives the values of its outputs."""

    model: ModelInfo
    writer: GraphWriter
    external: External
    run: Callable[[Context, GraphInfo, Scope, Attributes, str], list[Value]]
    guessed: set[int | str] = field(default_factory=set)  # names of values that could not be made
    given_out: frozenset[str] = frozenset()  # names of the model's results, and of what they are parts of
    is_whole: bool = True  # not a branch, a loop's body or a function
    loops: dict[int | None, LoopProgress] = field(default_factory=dict)  # of the whole graph, by operators' numbers

    def copied(self, writer: GraphWriter) -> Context:
        """The same file, written by another writer."""
        return replace(self, writer=writer, guessed=set(self.guessed), loops=dict(self.loops))


def computed_values(value: Value) -> list[Value]:
    """What is computed of a value of the file: a view's source, and what was written out of it; a list's items."""
    if isinstance(value, Listed):
        return [one for item in value.items if item is not None for one in computed_values(item)]
    if isinstance(value, View):
        return [value.source, *([] if value.dense is None else [value.dense])]
    return [value]


def scope_copy(scope: Scope, nodes: Sequence[Node]) -> Scope:
    """A scope of the whole file's graph for other graphs that begin with these nodes; views forget later ones."""
    made = {value for node in nodes for value in node.outputs}
    copies: dict[Value, Value] = {}

    def copied(value: Value) -> Value:
        if value not in copies:
            copies[value] = copy(value)
        return copies[value]

    def copy(value: Value) -> Value:
        if isinstance(value, Listed):
            return Listed([item and copied(item) for item in value.items], value.element)
        if not isinstance(value, View):
            return value
        view = View(value.name, value.source, value.perm)
        view.dense = value.dense if value.dense is None or value.dense.is_constant or value.dense in made else None
        return view

    moved = (Listed, View)
    return ChainMap({name: copied(v) if isinstance(v, moved) else v for name, v in scope.items()})


class Operation(BaseOperation):
    """An operator of the file. `given` are the attributes of the function call that it stands in, if it does."""

    __slots__ = ("attributes", "context", "info", "opset")
    wrong = (ModelFormatError, *WRONG_ARGUMENTS)
    scope: Scope

    def __init__(self, info: NodeInfo, context: Context, scope: Scope, opset: int, given: Attributes) -> None:
        super().__init__(context.writer, scope, info.full_name, info.index, info.inputs, [o for o in info.outputs if o])
        self.info, self.context, self.opset = info, context, opset
        self.attributes: dict[str, Attribute] = {}
        for key, attribute in info.attributes.items():
            found = given.get(attribute.refers) if attribute.refers else attribute
            if found is not None:
                self.attributes[key] = found

    def standing_for(self, kind: str, domain: str, opset: int, values: Sequence[Value | None]) -> Operation:
        """Another operator on these values, with the attributes and outputs of this one."""
        names = [f"{self.outputs[0]}/{i}" if value is not None else "" for i, value in enumerate(values)]
        own = self.info
        info = NodeInfo(own.index, names, list(own.outputs), own.name, kind, domain, own.attributes)
        given = {name: value for name, value in zip(names, values, strict=True) if value is not None}
        return Operation(info, self.context, self.scope.new_child(given), opset, {})

    # ---- inputs

    def optional(self, key: Any) -> Value | None:
        """The input at this position, its axes in the order of the file; None if it is absent."""
        found = self._found(key)
        return self.dense(found) if isinstance(found, View) else found

    def _found(self, key: int) -> Value | None:
        found = self.passed(key)
        if isinstance(found, Listed):
            self.fail(f"input {key} is a sequence, needs a tensor")
        return found

    def passed(self, key: int) -> Value | None:
        """What is at this position, be it a sequence of tensors; None if it is absent."""
        if key >= len(self.inputs) or not self.inputs[key]:
            return None
        name = self.inputs[key]
        if name not in self.scope:
            self.fail(f"input {key}, {safe_name(name)}, is computed by no operator before it")
        return self.scope[name]

    def arranged(self, key: int) -> Arranged:
        """The input at this position as it is computed."""
        found = self._found(key)
        return arranged(self.value(key) if found is None else found)

    def named(self, name: str) -> Value:
        """The value of this name, its axes in the order of the file."""
        if name not in self.scope:
            self.fail(f"{safe_name(name)} is computed by no operator before it")
        found = self.scope[name]
        if isinstance(found, Listed):
            self.refuse(f"{safe_name(name)}, which is a sequence")
        return self.dense(found) if isinstance(found, View) else found

    @property
    def kind(self) -> DType:
        """Element type of the first input."""
        return self.arranged(0).value.type.dtype

    def file_type(self, key: int) -> DType:
        """Element type of an input as the file says it, as far as that is known."""
        found = self._found(key)
        if isinstance(found, View):
            found = found.source
        return self.kind if found is None else self.writer.kind(found)

    def known(self, key: int) -> bool:
        """Whether the input's elements are known while the model is read."""
        found = self._found(key)
        return found is not None and found.is_constant

    # ---- orders of axes

    def dense(self, value: Value) -> Value:
        """The value with its axes in the order of the file, written out once."""
        if not isinstance(value, View):
            return value
        if value.dense is None:
            value.dense = self.transpose(value.source, value.perm)
        return value.dense

    def view(self, value: Value, perm: Sequence[int]) -> Value:
        """The value whose axis i is axis perm[i] of what was computed; nothing is written."""
        order = tuple(perm)
        return value if order == tuple(range(value.type.rank)) else View(value.name, value, order)

    def like(self, part: Arranged, perm: tuple[int, ...]) -> Value:
        """An operand of a broadcast brought to the order `perm` of a wider value; it gets axes of size 1."""
        missing = len(perm) - len(part.perm)
        value, own = part.value, part.perm
        if missing:
            value = self.reshape(value, (1,) * missing + value.type.shape)
            own = (*range(missing), *(p + missing for p in own))
        if own == perm:
            return value
        return self.transpose(value, [own[i] for i in inverse(perm)])

    def aligned(self, parts: Sequence[Arranged]) -> tuple[list[Value], tuple[int, ...]]:
        """Operands of a broadcast, all in the order of the largest one that is not in the file's order."""
        rank = max(len(part.perm) for part in parts)
        perm, size = tuple(range(rank)), -1
        for part in parts:
            own = (*range(rank - len(part.perm)), *(p + rank - len(part.perm) for p in part.perm))
            if part.value.type.size > size and own != tuple(range(rank)) and not part.value.is_constant:
                perm, size = own, part.value.type.size
        return [self.like(part, perm) for part in parts], perm

    def together(self, compute: Callable[..., Value], *keys: int) -> Value:
        """`compute` on inputs that broadcast, in whatever order of axes the largest one is."""
        values, perm = self.aligned([self.arranged(key) for key in keys])
        y = compute(*values)
        missing = len(perm) - y.type.rank
        return y if missing else self.view(y, perm)

    def each(self, compute: Callable[[Value], Value], key: int = 0) -> Value:
        """`compute` on one input, which treats all elements alike."""
        x = self.arranged(key)
        return self.view(compute(x.value), x.perm)

    def channels_last(self, key: int = 0) -> Value:
        """An image [N, C, ...] as [N, ..., C]."""
        x = self.arranged(key)
        perm = channels_last(len(x.perm))
        if len(perm) < 3:
            self.fail(f"input {key} of shape {x.shape} is not an image")
        return self.like(x, perm)

    def channels_first(self, y: Value) -> Value:
        """An image [N, ..., C] as users know it."""
        return self.view(y, channels_last(y.type.rank))

    # ---- attributes

    def _attribute(self, name: str, kind: int, default: Any) -> Any:
        found = self.attributes.get(name)
        if found is None:
            return default
        if found.kind != kind:
            self.fail(f"attribute {safe_name(name)} is of kind {found.kind}, needs {kind}")
        return found.value

    def real(self, name: str, default: float) -> float:
        """A number."""
        return round_to_f32(self._attribute(name, 1, default))  # a default too, as the operator's schema has it

    def whole(self, name: str, default: int) -> int:
        """A whole number."""
        return int(self._attribute(name, 2, default))

    def word(self, name: str, default: str) -> str:
        """A word."""
        return str(self._attribute(name, 3, default))

    def wholes(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...] | None:
        """Whole numbers, or the default where the file gives none."""
        found = self._attribute(name, 7, default)
        return None if found is None else tuple(found)

    def reals(self, name: str) -> tuple[float, ...] | None:
        """Numbers, or None."""
        found = self._attribute(name, 6, None)
        return None if found is None else tuple(found)

    def words(self, name: str, default: Sequence[str]) -> tuple[str, ...]:
        """Words."""
        return tuple(self._attribute(name, 8, default))

    def tensor(self, name: str) -> Value | None:
        """A tensor as a constant, or None."""
        found = self._attribute(name, 4, None)
        if found is None:
            return None
        value = constant_of(found, self.name_of(self.outputs[0]), self.context.external)
        return self.writer.typed(value, DTYPES[found.kind])

    def graph(self, name: str) -> GraphInfo:
        """A sub-graph, which must be there."""
        found: GraphInfo | None = self._attribute(name, 5, None)
        if found is None:
            self.fail(f"attribute {name} is missing")
        return found

    def run(self, graph: GraphInfo, inputs: Sequence[Value]) -> list[Value]:
        """The results of a sub-graph, which sees all values around it."""
        if len(inputs) != len(graph.inputs):
            self.fail(f"a graph of {len(graph.inputs)} inputs gets {len(inputs)}")
        scope = self.scope.new_child({info.name: v for info, v in zip(graph.inputs, inputs, strict=True)})
        with self.writer.nested(self.what):
            return self.context.run(self.context, graph, scope, self.attributes, self.info.domain)

    def numbers_or(self, key: int, name: str, default: Sequence[int] | None = None) -> tuple[int, ...] | None:
        """Whole numbers that newer opsets give as an input and older ones as an attribute."""
        if self._found(key) is not None:
            return self.integers(key)
        return self.wholes(name, default)

    # ---- results

    def bind(self, results: Sequence[Value], made: Collection[Value]) -> None:
        """Makes the results the values of the listed outputs, some of which may be left out."""
        listed = self.info.outputs
        if len(results) < len(listed) and any(listed[len(results) :]):
            self.fail(f"{len(listed)} outputs are listed, {len(results)} are known")
        for key, value in zip(listed, results, strict=False):
            if not key:
                continue
            if key in self.scope.maps[0]:
                self.fail(f"two values are called {safe_name(key)}")
            if value in made:
                value.name = key
            self.scope[key] = value


Convert = ConvertAny[Operation]
