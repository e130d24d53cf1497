"""One node of a TensorFlow graph: inputs by position, options are attributes."""

from __future__ import annotations

import base64
from collections import ChainMap
from collections.abc import Callable, Collection, Sequence
from dataclasses import field
from typing import Any, Protocol

from webinfer.dtypes import DType
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import TensorType, Value
from webinfer.graph.printer import safe_name
from webinfer.importers.core.geometry import check_window
from webinfer.importers.core.operation import WRONG_ARGUMENTS, BaseOperation
from webinfer.importers.core.operation import Convert as ConvertAny
from webinfer.importers.core.spectral import Complex
from webinfer.importers.core.tensor_list import Listed
from webinfer.importers.core.writer import GraphWriter
from webinfer.importers.tfjs.model import GraphInfo, NodeInfo
from webinfer.importers.tfjs.order import Order
from webinfer.lazy_dataclass import dataclass

Scope = ChainMap[str, Value]
# TensorFlow.js has these types alone.
DTYPES = {
    **dict.fromkeys(("DT_FLOAT", "DT_HALF", "DT_DOUBLE", "DT_BFLOAT16"), DType.FLOAT32),
    **dict.fromkeys(("DT_INT8", "DT_UINT8", "DT_INT16", "DT_UINT16", "DT_INT32", "DT_INT64"), DType.INT32),
    "DT_BOOL": DType.BOOL,
}
# Attributes under the names of TFLite's options, where these differ.
_NAMES = {
    "squeeze_dims": ("squeeze_dims", "axis"), "keep_dims": ("keep_dims", "keepdims"),
}  # fmt: skip


class Dead(Value):
    """Stands for what the other way of a condition computes."""

    def __init__(self) -> None:
        super().__init__("dead", TensorType((), DType.INT32))


class Walk(Protocol):
    """A graph whose nodes are converted in order."""

    order: Order

    def op_of(self, key: str) -> str:
        """The operator that makes a value."""

    def convert(self, nodes: Sequence[NodeInfo], scope: Scope) -> None:
        """Converts some of the nodes.

        Raises:  Refusal listing everything that is not supported; ModelFormatError; LimitError
        """


Run = Callable[["Context", str, list[Value]], list[Value]]


@dataclass(slots=True)
class Context:
    """What is shared while one model is read; `run` converts a function with these inputs and gives its outputs."""

    writer: GraphWriter
    weights: dict[str, Value]
    strange: dict[str, str]  # types of weights that cannot be held, by name
    functions: dict[str, GraphInfo]
    run: Run
    guessed: set[int | str] = field(default_factory=set)
    branches: bool = False  # whether any way of a condition is not taken
    walks: dict[str, Any] = field(default_factory=dict)  # of functions, by name


class Operation(BaseOperation):
    """A node with its inputs as values."""

    __slots__ = ("context", "info", "walk")
    wrong = (ModelFormatError, *WRONG_ARGUMENTS)
    scope: Scope

    def __init__(self, info: NodeInfo, context: Context, scope: Scope, walk: Walk) -> None:
        super().__init__(context.writer, scope, info.op, info.index, info.inputs, info.outputs)
        self.info, self.context, self.walk = info, context, walk

    @property
    def what(self) -> str:
        """The node in error messages."""
        return f"node {safe_name(self.info.name)} ({safe_name(self.name)})"

    # ---- inputs

    @property
    def count(self) -> int:
        """How many inputs are listed."""
        return len(self.inputs)

    def optional(self, key: int) -> Value | None:
        """The tensor at this position, or None if it is absent."""
        found = self.passed(key) if key < self.count else None
        if isinstance(found, (Complex, Dead, Listed)):
            self.fail(f"input {key} is {type(found).__name__.lower()}, needs a tensor")
        return found

    def passed(self, key: int) -> Value:
        """What is at this position, be it a list of tensors or complex."""
        if key >= self.count:
            self.fail(f"input {key} is missing; {self.count} are listed")
        name = self.inputs[key]
        try:
            return self.scope[name]
        except KeyError:
            self.fail(f"input {key}, {safe_name(name)}, is computed by no node before it")

    # ---- attributes

    def _attribute(self, name: str, kind: str, default: Any) -> Any:
        for key in _NAMES.get(name, (name,)):
            found = self.info.attributes.get(key)
            if found is not None:
                return found.get(kind, default)
        return default

    def number(self, name: str, default: int = 0) -> int:
        """A whole number."""
        return _whole(self._attribute(name, "i", default))

    def real(self, name: str, default: float = 0.0) -> float:
        """A number, which must be finite."""
        return self.finite(name, float(self._attribute(name, "f", default)))

    def flag(self, name: str, default: bool = False) -> bool:
        """Yes or no."""
        return bool(self._attribute(name, "b", default))

    def word(self, name: str, default: str = "") -> str:
        """A word."""
        found = self._attribute(name, "s", None)
        return default if found is None else _text(found)

    def words(self, name: str) -> list[str]:
        """A list of words."""
        return [_text(each) for each in self._attribute(name, "list", {}).get("s") or ()]

    def vector(self, name: str) -> tuple[int, ...]:
        """A list of whole numbers."""
        return tuple(_whole(each) for each in self._attribute(name, "list", {}).get("i") or ())

    def shape(self, name: str) -> tuple[int, ...] | None:
        """A shape with -1 for open sizes; None if even its rank is open."""
        return shape_of(self._attribute(name, "shape", None))

    def dtype(self, name: str, default: str = "DT_FLOAT") -> DType:
        """An element type."""
        found = str(self._attribute(name, "type", default))
        if found not in DTYPES:
            self.refuse(f"the type {safe_name(found.removeprefix('DT_').lower())}")
        return DTYPES[found]

    def run(self, name: str, inputs: list[Value]) -> list[Value]:
        """The outputs of the function that an attribute names, with these inputs."""
        found = self._attribute(name, "func", {}).get("name")
        if not isinstance(found, str) or found not in self.context.functions:
            self.fail(f"{name}: there is no function {safe_name(str(found))}")
        with self.writer.nested(self.what):
            return self.context.run(self.context, found, inputs)

    def channels_last(self) -> None:
        """Nothing, if images have their channels last; another order is refused."""
        self.chosen("data_format", ("NHWC", "NWC", "NDHWC", "channelsLast"), "NHWC")

    def window(self, name: str) -> tuple[int, int]:
        """What a list of four numbers says of height and width."""
        numbers = self.vector(name) or (1, 1, 1, 1)
        if len(numbers) != 4 or numbers[0] != 1 or numbers[3] != 1:
            self.refuse(f"{name} {numbers}")
        high, wide = check_window(self, {f"{name} 1": numbers[1], f"{name} 2": numbers[2]})
        return high, wide

    def window3(self, name: str) -> tuple[int, ...]:
        """What a list of five numbers says of depth, height and width."""
        numbers = self.vector(name) or (1, 1, 1, 1, 1)
        if len(numbers) != 5 or numbers[0] != 1 or numbers[4] != 1:
            self.refuse(f"{name} {numbers}")
        return check_window(self, {f"{name} {i}": n for i, n in enumerate(numbers[1:4], 1)})

    # ---- steps

    def in_shape(self, x: Value, shape: tuple[int, ...]) -> Value:
        """x in another shape."""
        return self.reshape(x, shape)

    def bind(self, results: Sequence[Value], made: Collection[Value]) -> None:
        """Makes the results the values of the node's outputs."""
        for key, value in zip(self.outputs, results, strict=False):
            if value in made:
                value.name = key
            self.scope[key] = value


def _whole(found: Any) -> int:
    number = int(found)
    if not -(2**63) <= number < 2**63:
        raise ModelFormatError(f"{number} is beyond 64 bits")
    return number


def _text(found: Any) -> str:
    if isinstance(found, list):  # of the codes of characters
        return bytes(found).decode("ascii")
    return base64.b64decode(found, validate=True).decode("utf-8")


def shape_of(described: Any) -> tuple[int, ...] | None:
    """A described shape, -1 for open sizes; None if its rank is open."""
    if described is None or described.get("unknownRank"):
        return None
    return tuple(max(_whole(each.get("size", -1)), -1) for each in described.get("dim") or ())


Convert = ConvertAny[Operation]
