"""Makes a builder's calls for the nodes of a graph, each held to what the context says that it supports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, TensorType, Value
from webinfer.host.interface import WebNn
from webinfer.ops.elementwise import DEQUANTIZE

# Element types that WebNN has; bool is uint8 there, 0 or 1.
TYPES = ("float32", "float16", "int32", "uint32", "int64", "uint64", "int8", "uint8")


class Operand:
    """An operand of the builder, with its element type."""

    __slots__ = ("dtype", "handle")

    def __init__(self, handle: Any, dtype: str) -> None:
        self.handle, self.dtype = handle, dtype


class Emitter:
    """The operands of one graph's values, and the calls that make them."""

    def __init__(self, ml: WebNn) -> None:
        self._ml, self.builder = ml, ml.builder()
        self._operands: dict[Value, Operand] = {}
        self.methods: list[str] = []  # of the node at hand

    # ----- values

    def input(self, value: Value) -> None:
        """A new input of the graph.

        Raises:  UnsupportedOpError if the context takes no such input
        """
        dtype = type_of(value.type)
        if dtype not in self._ml.limits["input"]["dataTypes"]:
            raise UnsupportedOpError([f"{value.name}: this context has no input of type {dtype}"])
        self._operands[value] = Operand(self.builder.input(value.name, dtype, value.type.shape), dtype)

    def operand(self, value: Value) -> Operand:
        """The operand of a value, which is an input, a constant or the result of a node before."""
        found = self._operands.get(value)
        if found is None:
            assert value.constant is not None, f"{value.name} is computed by no node before"
            found = self._operands[value] = self.constant(value)
        return found

    def constant(self, value: Value) -> Operand:
        """A constant; one that is stored in a narrower type is cast."""
        constant, type = value.constant, value.type
        assert constant is not None
        if constant.sparsity is not None:
            raise UnsupportedOpError(["a sparse constant"])
        stored = type_of(TensorType(type.shape, constant.stored))
        if stored not in self._ml.limits["constant"]["dataTypes"]:
            raise UnsupportedOpError([f"this context has no constants of type {stored}"])
        made = Operand(self.builder.constant(stored, type.shape, constant.data), stored)
        wanted = type_of(type)
        return made if wanted == stored else self.cast(made, wanted)

    def numbers(self, data: bytes, shape: tuple[int, ...], dtype: str) -> Operand:
        """A new constant of these bytes."""
        return Operand(self.builder.constant(dtype, shape, memoryview(data)), dtype)

    # ----- calls

    def cast(self, x: Operand, dtype: str) -> Operand:
        """x in that element type."""
        return x if x.dtype == dtype else self.call("cast", x, dtype, gives=dtype)

    def call(self, method: str, *arguments: Any, gives: str = "", **options: Any) -> Operand:
        """The result of a method; `gives` is its element type where that is not the first operand's.

        Raises:  UnsupportedOpError if the context does not support it for these operands
        """
        limits: Mapping[str, Any] | None = self._ml.limits.get(method)
        if limits is None:
            raise UnsupportedOpError([f"this context has no {method}"])
        operands = [a for a in arguments if isinstance(a, Operand) or (isinstance(a, list) and self._listed(a))]
        named = [name for name in limits if name not in ("output", "outputs")]
        for name, operand in [*zip(named, operands, strict=False), *options.items()]:
            for one in operand if isinstance(operand, list) else [operand]:
                if isinstance(one, Operand) and one.dtype not in limits[name]["dataTypes"]:
                    allowed = ", ".join(limits[name]["dataTypes"])
                    raise UnsupportedOpError([f"{method} takes {name} of {allowed}, not {one.dtype}"])
        plain = [self._plain(argument) for argument in arguments]
        made = self.builder.call(method, plain, {key: self._plain(value) for key, value in options.items()})
        self.methods.append(method)
        first = operands[0][0] if isinstance(operands[0], list) else operands[0]
        return Operand(made, gives or first.dtype)

    @staticmethod
    def _listed(argument: list[Any]) -> bool:
        return bool(argument) and isinstance(argument[0], Operand)

    def _plain(self, argument: Any) -> Any:
        if isinstance(argument, list):
            return [self._plain(one) for one in argument]
        return argument.handle if isinstance(argument, Operand) else argument

    # ----- nodes

    def lower(self, node: Node, lowering: Lower) -> list[str]:
        """Makes a node's calls; the methods that were called."""
        self.methods = []
        for value in node.inputs:
            if value is not None and value.type.quant is not None and node.op is not DEQUANTIZE:
                raise UnsupportedOpError([f"{value.name} is quantised, {value.type}"])
        made = lowering(self, node)
        for value, operand in zip(node.outputs, made if isinstance(made, list) else [made], strict=True):
            self._operands[value] = operand
        return self.methods


Lower = Callable[[Emitter, Node], "Operand | list[Operand]"]


def type_of(type: TensorType) -> str:
    """The name that WebNN has for the element type.

    Raises:  UnsupportedOpError if it has none
    """
    name = "uint8" if type.dtype.value == "bool" else type.dtype.value
    if name not in TYPES:
        raise UnsupportedOpError([f"WebNN has no element type {name}"])
    return name
