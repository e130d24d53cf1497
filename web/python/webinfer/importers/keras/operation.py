"""One call of a layer: what it reads by position, options from its configuration, weights by their names."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import Any

from webinfer.dtypes import DType
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Value
from webinfer.graph.printer import safe_name
from webinfer.importers.core.limits import within
from webinfer.importers.core.operation import WRONG_ARGUMENTS, BaseOperation
from webinfer.importers.core.operation import Convert as ConvertAny
from webinfer.importers.core.writer import GraphWriter
from webinfer.importers.keras.model import LayerInfo, ModelInfo, layer_of
from webinfer.importers.tfjs.model import damaged
from webinfer.lazy_dataclass import dataclass

_MOST_ALIKE = 1000  # weights of one name in layers of one name
Path = tuple[str, ...]  # names of the models and layers around a layer, and its own


class Weights:
    """The weights of a model by their names, which begin with those of layers."""

    def __init__(self, found: Mapping[str, Value], strange: Mapping[str, str]) -> None:
        self._named: dict[tuple[str, str], list[str]] = {}  # by a layer's and the weight's own name
        self._values, self._strange = found, strange
        self._done: dict[tuple[Path, str], str | None] = {}
        for name in (*found, *strange):
            *layers, own = name.split("/")
            for layer in dict.fromkeys(layers[-16:]):
                self._named.setdefault((layer, own), []).append(name)

    def of(self, path: Path, own: str) -> Value | None:
        """The weight of a layer; None if there is none. Names lack some of the path, and hold more than that.

        Raises:  ModelFormatError if two weights would fit as well
        """
        if (path, own) not in self._done:
            self._done[path, own] = self._find(path, own)
        name = self._done[path, own]
        if name in self._strange:
            damaged(f"weight {safe_name(name or '')} has the type {self._strange[name or '']}")
        return None if name is None else self._values[name]

    def holds(self, layer: str, own: str) -> bool:
        """Whether some layer of this name has a weight of that one."""
        return (layer, own) in self._named

    def _find(self, path: Path, own: str) -> str | None:
        for layer in reversed(path):  # what a wrapper holds may have the wrapper's name
            fitting = self._named.get((layer, own), [])
            within(f"weights {safe_name(own)} of layers {safe_name(layer)}", len(fitting), _MOST_ALIKE)
            ranks = sorted((-len({*path} & {*name.split("/")}), name.count("/"), name) for name in fitting)
            if len(ranks) > 1 and ranks[0][:2] == ranks[1][:2]:
                damaged(f"{safe_name(ranks[0][2])} and {safe_name(ranks[1][2])} may both be meant by {'/'.join(path)}")
            if ranks:
                return ranks[0][2]
        return None


@dataclass(slots=True)
class Context:
    """What is shared while one model is read."""

    writer: GraphWriter
    weights: Weights
    table: Mapping[str, Convert]
    guessed: set[int | str] = field(default_factory=set)
    # Models inside others, by the identity of what describes them, which is kept.
    models: dict[int, tuple[Mapping[str, Any], ModelInfo]] = field(default_factory=dict)
    masks: dict[Value, Value] = field(default_factory=dict)  # [N, T] of sequences: which steps count


class Operation(BaseOperation):
    """A layer with what it reads as values."""

    __slots__ = ("config", "context", "index_of", "named", "path", "positional")
    wrong = (ModelFormatError, *WRONG_ARGUMENTS)
    scope: dict[str, Value]

    def __init__(
        self, context: Context, info: LayerInfo, path: Path, scope: dict[str, Value], inputs: Sequence[str],
        outputs: Mapping[str, int], named: Sequence[tuple[str, int, Any]] = (),
    ) -> None:  # fmt: skip
        super().__init__(context.writer, scope, info.kind, info.index, inputs, list(outputs))
        self.context, self.config, self.path, self.index_of = context, info.config, path, outputs
        self.positional = max(len(inputs) - sum(count for _, count, _ in named), 0)
        self.named = named

    @property
    def what(self) -> str:
        """The layer in error messages."""
        return f"layer {safe_name('/'.join(self.path))} ({safe_name(self.name)})"

    def label(self, op: Any) -> tuple[str, str]:
        """The label of a new node, and the name of its result until it is bound."""
        return safe_name(self.path[-1]), f"{self.path[-1]}/{op.name}"

    # ---- what is read

    def optional(self, key: int) -> Value | None:
        """The value at this position, or None if it is absent."""
        return self.scope.get(self.inputs[key]) if key < len(self.inputs) else None

    def real(self, key: int = 0) -> Value:
        """A value in float32."""
        return self.cast(self.value(key), DType.FLOAT32)

    def mask(self) -> Value | None:
        """Which steps of the first value count, if a layer said so."""
        return self.context.masks.get(self.value(0))

    def argument(self, name: str) -> Value | None:
        """A value that the call has under this name, in float32; None if it has none."""
        first = self.positional
        for own, count, _ in self.named:
            if own == name and count == 1:
                return self.real(first)
            first += count
        return None

    def plain(self, name: str) -> bool:
        """Whether the call says yes to something under this name."""
        return any(own == name and not count and bool(each) for own, count, each in self.named)

    # ---- weights and options

    def weight(self, name: str, rank: int = 1) -> Value:
        """A weight of the layer in float32."""
        found = self.context.weights.of(self.path, name)
        if found is None:
            self.fail(f"the manifest of weights lists no {name} of it")
        if found.type.rank != rank:
            self.fail(f"its {name} has shape {found.type.shape}, needs rank {rank}")
        return self.cast(found, DType.FLOAT32)

    def inner_weight(self, layer: str, name: str, rank: int) -> Value:
        """A weight in float32 of a layer inside this one."""
        found = self.context.weights.of((*self.path, layer), name)
        if found is None or found.type.rank != rank:
            held = "none" if found is None else str(found.type.shape)
            self.fail(f"its {layer} has weights {name} {held}, needs rank {rank}")
        return self.cast(found, DType.FLOAT32)

    def bias(self) -> Value | None:
        """The layer's bias, if it has one."""
        return self.weight("bias") if self.flag("use_bias", True) else None

    def number(self, name: str, default: float = 0.0) -> float:
        """A number, which must be finite."""
        found = self.config.get(name)
        return self.finite(name, float(default if found is None else found))

    def flag(self, name: str, default: bool = False) -> bool:
        """Yes or no."""
        found = self.config.get(name)
        return default if found is None else bool(found)

    def whole(self, name: str, found: Any) -> int:
        """A number that was found, which must be whole."""
        if isinstance(found, bool) or not isinstance(found, (int, float)) or found != int(found) or abs(found) >= 2**31:
            self.fail(f"{name} is {str(found)[:40]}, must be a whole number")
        return int(found)

    def wholes(self, name: str, default: Any = None, count: int | None = None) -> tuple[int, ...]:
        """A list of whole numbers; one number stands for `count` of them, or for a list of one."""
        found = self.config.get(name)
        found = default if found is None else found
        listed = found if isinstance(found, (list, tuple)) else [found] * (count or 1)
        if count is not None and len(listed) != count:
            self.fail(f"{name} has {len(listed)} numbers, needs {count}")
        return tuple(self.whole(name, each) for each in listed)

    def word(self, name: str, default: str) -> str:
        """A word."""
        found = self.config.get(name)
        return default if found is None else str(found)

    @property
    def channels_first(self) -> bool:
        """Whether channels come before rows."""
        return self.chosen("data_format", ("channels_first", "channels_last"), "channels_last") == "channels_first"

    # ---- other layers

    def inner(self, described: Any, name: str | None, values: Sequence[Value], **changed: Any) -> list[Value]:
        """The results of a layer inside this one, called `name` there, with a changed configuration."""
        kind, config = layer_of(described)
        convert = self.context.table.get(kind)
        if convert is None or not isinstance(config, dict):
            self.refuse(f"{safe_name(kind)} inside")
        own = str(config.get("name") or kind) if name is None else name
        scope = {str(i): value for i, value in enumerate(values)}
        info = LayerInfo(self.index or 0, own, kind, {**config, **changed})
        op = Operation(self.context, info, (*self.path, own), scope, list(scope), {})
        self.writer.count_operator()
        with self.writer.nested(self.what):
            results = convert(op)
        return [results] if isinstance(results, Value) else list(results)

    def bind(self, results: Sequence[Value], made: Collection[Value]) -> None:
        """Makes the results the values under the keys that are read."""
        for key, place in self.index_of.items():
            if place >= len(results):
                self.fail(f"its result {place} is read, it has {len(results)}")
            if results[place] in made:
                results[place].name = self.path[-1]
            self.scope[key] = results[place]


Convert = ConvertAny[Operation]
