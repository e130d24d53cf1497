"""One WebNN operator: operands and options are arguments by name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from webinfer.dtypes import DType
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Op, Value
from webinfer.importers.core.operation import WRONG_ARGUMENTS, BaseOperation
from webinfer.importers.core.operation import Convert as ConvertAny
from webinfer.importers.core.writer import GraphWriter
from webinfer.ops.elementwise import IDENTITY

DTYPES = {
    d.value: d
    for d in (
        DType.FLOAT32, DType.FLOAT16, DType.INT8, DType.UINT8, DType.INT32, DType.UINT32, DType.INT64, DType.UINT64,
        DType.INT4, DType.UINT4,
    )
}  # fmt: skip


class Operation(BaseOperation):
    """An operator of a description; `arguments` holds its operands' names and its options."""

    __slots__ = ("arguments",)
    wrong = WRONG_ARGUMENTS

    def __init__(self, writer: GraphWriter, scope: dict[str, Value], described: Mapping[str, Any]) -> None:
        self.arguments: dict[str, Any] = {}
        for part in described.get("arguments") or ():
            for key, value in (part or {}).items():
                self.arguments.update((value or {}) if key == "options" else {key: value})
        outputs = described.get("outputs")
        names = (outputs,) if isinstance(outputs, str) else tuple(outputs or ())
        if not names:
            raise ModelFormatError(f"operator {described.get('name')!r} has no output")
        listed = [v if isinstance(v, list) else [v] for v in self.arguments.values()]
        inputs = [name for names in listed for name in names if isinstance(name, str)]
        super().__init__(writer, scope, str(described.get("name")), None, inputs, names)

    @property
    def what(self) -> str:
        """The operator in error messages."""
        return f"{self.name} -> {', '.join(self.outputs)}"

    def label(self, op: Op) -> tuple[str, str]:
        """The label of a new node, which counts all nodes; its result has the same name."""
        label = f"{self.outputs[0]}/{op.name}.{self.writer.position + 1}"
        return label, label

    def problem(self, reason: str) -> str:
        """How something that is not supported is listed."""
        return reason

    def located(self, error: Exception) -> ModelFormatError:
        """An error of a converter, with the operator."""
        return error if isinstance(error, ModelFormatError) else ModelFormatError(f"{self.what}: {error}")

    # ---- arguments

    def get(self, name: str, default: Any = None) -> Any:
        """An argument or option, or its default."""
        found = self.arguments.get(name)
        return default if found is None else found

    def need(self, name: str) -> Any:
        """A required argument.

        Raises:  ModelFormatError naming operator and argument
        """
        if self.arguments.get(name) is None:
            self.fail(f"argument {name!r} is missing")
        return self.arguments[name]

    def value(self, key: str) -> Value:
        """The operand that a required argument names."""
        return self.named([self.need(key)])[0]

    def optional(self, key: str) -> Value | None:
        """The operand that an option names, or None."""
        name = self.get(key)
        return None if name is None else self.named([name])[0]

    def named(self, names: Iterable[str]) -> list[Value]:
        """The operands of these names."""
        found = []
        for name in names:
            if name not in self.scope:
                raise ModelFormatError(f"{self.name}: there is no operand {name!r} before it")
            found.append(self.scope[name])
        return found

    # ---- results

    def bind(self, results: Sequence[Value], made: Collection[Value]) -> None:
        """Names the results. An operand that has a name already passes through an identity."""
        if len(results) != len(self.outputs):
            raise ModelFormatError(f"{self.name}: gives {len(results)} results, {len(self.outputs)} are named")
        for name, result in zip(self.outputs, results, strict=True):
            if name in self.scope:
                raise ModelFormatError(f"two operands are called {name!r}")
            if result.is_constant or result in self.scope.values():
                result = self.unary(IDENTITY, result)
            result.name = name
            self.scope[name] = result


Convert = ConvertAny[Operation]
