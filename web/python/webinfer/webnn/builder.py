"""One graph under construction, call by call: each is checked at once, by its declaration and by the operators' own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from webinfer.dtypes import DType
from webinfer.errors import InputError, WebinferError
from webinfer.graph.ir import Constant, Graph, TensorType, Value
from webinfer.importers.core.limits import MAX_TENSOR_BYTES
from webinfer.importers.core.operation import WRONG_ARGUMENTS
from webinfer.importers.core.problems import Refusal
from webinfer.importers.core.steps import pack
from webinfer.importers.core.writer import GraphWriter
from webinfer.importers.webnn.convert import CONVERTERS
from webinfer.importers.webnn.operation import DTYPES, Operation
from webinfer.packing import spread, to_inner
from webinfer.webnn.rules import check_call
from webinfer.webnn.signatures import ANY, MAX_RANK, WORDS, Operand, signature

Described = tuple[str, str, list[int]]  # an operand as JavaScript knows it: its key, its element type, its shape
_keys = itertools.count(1)  # no two operands of any builder share a key


def nbytes_of(dtype: str, shape: Sequence[int]) -> int:
    """Bytes of a tensor as callers give it: 4-bit elements lie two in a byte.

    Raises:  InputError if there can be no such tensor
    """
    if len(shape) > MAX_RANK:
        raise InputError(f"rank {len(shape)} of shape {list(shape)} is more than {MAX_RANK}")
    if any(size < 1 for size in shape):
        raise InputError(f"shape {list(shape)} has a size of 0")
    nbytes = (math.prod(shape) * DType(dtype).bits + 7) // 8
    if nbytes > MAX_TENSOR_BYTES:
        raise InputError(f"shape {list(shape)} of {dtype} needs {nbytes} bytes; the limit is {MAX_TENSOR_BYTES}")
    return nbytes


class _Call(Operation):
    """A call of a method, for the converter of its operator."""

    @property
    def what(self) -> str:
        return self.name


class Builder:
    """The operands of one MLGraphBuilder and the nodes between them."""

    def __init__(self) -> None:
        self._writer, self._scope = GraphWriter("webnn", folding=0, clamps_positions=True), dict[str, Value]()
        self._inputs: list[Value] = []  # names may come twice, but not in one graph

    def _added(self, value: Value) -> Described:
        key = f"#{next(_keys)}"
        self._scope[key] = value
        return key, self._writer.kind(value).value, list(value.type.shape)

    # ---- operands without an operator

    def input(self, name: str, dtype: str, shape: Sequence[int]) -> Described:
        """A new input.

        Raises:  InputError if the name is empty, or there is no such tensor
        """
        if not name:
            raise InputError("an input needs a name")
        if dtype not in ANY:
            raise InputError(f"an input cannot be {dtype}")
        nbytes_of(dtype, shape)
        self._inputs.append(value := Value(name, TensorType(tuple(shape), DTYPES[dtype])))
        return self._added(value)

    def constant(self, dtype: str, shape: Sequence[int], data: bytes) -> Described:
        """A new constant of these bytes.

        Raises:  InputError if they do not fill the shape
        """
        needed = nbytes_of(dtype, shape)
        if len(data) != needed:
            raise InputError(f"a constant of {dtype} {list(shape)} needs {needed} bytes, the buffer has {len(data)}")
        kind = DTYPES[dtype]
        inner = TensorType(tuple(shape), kind.inner)
        elements = to_inner(spread(memoryview(data), kind, inner.size), kind)
        return self._added(self._writer.typed(Value("constant", inner, Constant(elements, kind.inner)), kind))

    def scalar(self, dtype: str, number: float) -> Described:
        """A new constant without axes."""
        kind = DTYPES[dtype]
        if not kind.is_float:
            if isinstance(number, float) and not math.isfinite(number):
                raise InputError(f"{number} is no {dtype}")
            low, high = kind.range
            number = min(max(int(number), low), high)
        inner = TensorType((), kind.inner)
        return self._added(
            self._writer.typed(
                Value("constant", inner, Constant(memoryview(pack([number], kind.inner)), kind.inner)), kind
            )
        )

    # ---- operators

    def call(self, name: str, arguments: Mapping[str, Any]) -> list[Described]:
        """The results of a method.

        Raises:  InputError saying what does not fit, with the call's label
        """
        try:
            found = self._checked(name, arguments)
            check_call(name, found, arguments)
            described = {
                "name": name,
                "arguments": [{key: value} for key, value in arguments.items()],
                "outputs": ["y"],
            }
            results = CONVERTERS[name](_Call(self._writer, self._scope, described))
            values = [results] if isinstance(results, Value) else list(results)
            for value in values:
                nbytes_of(self._writer.kind(value).value, value.type.shape)
        except Refusal as error:
            raise InputError(_labelled(arguments, name, "; ".join(error.reasons))) from None
        except (WebinferError, *WRONG_ARGUMENTS) as error:
            raise InputError(_labelled(arguments, name, error)) from error
        return [self._added(value) for value in values]

    def _checked(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The operands of a call, of which each has a type and a rank that its declaration allows."""
        found: dict[str, Any] = {}
        for operand in signature(name).operands:
            given = arguments.get(operand.name)
            if given is None:
                continue
            values = [self._operand(key) for key in (given if operand.listed else [given])]
            for value in values:
                self._check(operand, value, found)
            if operand.listed and not values:
                raise InputError(f"{operand.name} is empty")
            found[operand.name] = values if operand.listed else values[0]
        return found

    def _operand(self, key: str) -> Value:
        value = self._scope.get(key)
        if value is None:
            raise InputError("an operand belongs to another builder")
        return value

    def _check(self, operand: Operand, value: Value, found: Mapping[str, Any]) -> None:
        kind, (low, high) = self._writer.kind(value), operand.ranks
        if kind.value not in operand.types:
            raise InputError(f"{operand.name} is {kind}, needs {', '.join(operand.types)}")
        if operand.like and kind is not (other := self._writer.kind(found[operand.like])):
            raise InputError(f"{operand.name} is {kind}, needs {other} like {operand.like}")
        if not low <= value.type.rank <= high:
            needed = str(low) if low == high else f"{low} to {high}"
            raise InputError(f"{operand.name} has rank {value.type.rank}, needs {needed}")

    # ---- the end

    def graph(self, outputs: Mapping[str, str]) -> Graph:
        """What computes these outputs, keys by name, and nothing else.

        Raises:  InputError if there are none, or one is not a result of an operator of this builder
        """
        if not outputs:
            raise InputError("a graph needs an output")
        wanted = {name: self._operand(key) for name, key in outputs.items()}
        made = self._writer.made_since(0)
        for name, value in wanted.items():
            if not name:
                raise InputError("an output needs a name")
            if value not in made:
                raise InputError(f"output {name!r} is an input or a constant")
            if self._writer.kind(value).value not in ANY:
                raise InputError(f"output {name!r} cannot be {self._writer.kind(value)}")
        needed, nodes = set(wanted.values()), []
        for node in reversed(self._writer.graph.nodes):
            if not needed.isdisjoint(node.outputs):
                nodes.append(node)
                needed.update(value for value in node.inputs if value is not None)
        inputs = [value for value in self._inputs if value in needed]
        if len({value.name for value in inputs}) < len(inputs):
            raise InputError("two inputs of the graph have the same name")
        graph = self._writer.graph
        graph.nodes, graph.inputs = nodes[::-1], inputs
        return self._writer.finish([(name, "", value) for name, value in wanted.items()])


def _labelled(arguments: Mapping[str, Any], name: str, problem: object) -> str:
    label = arguments.get("label")
    return f"[{label}] {name}: {problem}" if label else f"{name}: {problem}"


def accepted(dtype: str) -> None:
    """Nothing, if tensors may have this element type.

    Raises:  InputError if not
    """
    if dtype not in ANY:
        raise InputError(f"a tensor cannot be {dtype}; {', '.join(set(WORDS) - set(ANY))} are for constants")
