"""Values by name, checked arguments and the nodes so far: what every operator of a description is read with."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from webinfer.dtypes import DType
from webinfer.errors import ModelFormatError
from webinfer.graph.ir import Constant, Node, Op, TensorType, Value, apply
from webinfer.ops import movement
from webinfer.ops.elementwise import CAST, IDENTITY, CastAttrs, UnaryAttrs

DTYPES = {d.value: d for d in DType if d is not DType.BOOL and d is not DType.INT16}


@dataclass(frozen=True)
class Call:
    """One operator of a description: its arguments by name, options among them."""

    name: str
    arguments: Mapping[str, Any]
    outputs: tuple[str, ...]

    def get(self, name: str, default: Any = None) -> Any:
        """An argument or option, or its default."""
        found = self.arguments.get(name)
        return default if found is None else found

    def need(self, name: str) -> Any:
        """A required argument.

        Raises:  ModelFormatError naming operator and argument
        """
        if self.arguments.get(name) is None:
            raise ModelFormatError(f"{self.name} -> {', '.join(self.outputs)}: argument {name!r} is missing")
        return self.arguments[name]


Handler = Callable[["Reader", Call], "Value | Sequence[Value]"]


class Reader:
    """Values by name and the nodes so far."""

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        self.nodes: list[Node] = []
        self._label = ""
        self._count = 0

    # ----- what handlers call

    def value(self, call: Call, argument: str) -> Value:
        """The operand that a required argument names."""
        return self._named(call, call.need(argument))

    def optional(self, call: Call, argument: str) -> Value | None:
        """The operand that an option names, or None."""
        name = call.get(argument)
        return None if name is None else self._named(call, name)

    def named(self, call: Call, names: Iterable[str]) -> list[Value]:
        """The operands of these names."""
        return [self._named(call, name) for name in names]

    def _named(self, call: Call, name: str) -> Value:
        found = self.values.get(name)
        if found is None:
            raise ModelFormatError(f"{call.name}: there is no operand {name!r} before it")
        return found

    def emit(self, op: Op, inputs: Sequence[Value | None], attrs: Any) -> Value:
        """The only result of a new node."""
        return self.emit_all(op, inputs, attrs)[0]

    def emit_all(self, op: Op, inputs: Sequence[Value | None], attrs: Any) -> list[Value]:
        """All results of a new node."""
        self._count += 1
        node = apply(op, inputs, attrs, label=f"{self._label}/{op.name}.{self._count}")
        self.nodes.append(node)
        return node.outputs

    def number(self, number: float, like: Value) -> Value:
        """A scalar constant of the element type of `like`."""
        dtype = like.type.dtype
        return Value(
            f"{self._label}/{number}", TensorType((), dtype), Constant(memoryview(pack([number], dtype)), dtype)
        )

    def zeros(self, shape: tuple[int, ...], like: Value) -> Value:
        """Zeros of the element type of `like`."""
        data = Constant(memoryview(bytes(math.prod(shape) * like.type.dtype.itemsize)), like.type.dtype)
        return Value(f"{self._label}/zeros", TensorType(shape, like.type.dtype), data)

    def unary(self, op: Op, x: Value, a: float = 0.0, b: float = 0.0) -> Value:
        return self.emit(op, [x], UnaryAttrs(a, b))

    def cast(self, x: Value, dtype: DType) -> Value:
        """The operand in that element type; itself if it already is."""
        return x if x.type.dtype is dtype else self.emit(CAST, [x], CastAttrs(dtype))

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """The operand in that shape; itself if it already is."""
        return (
            x if x.type.shape == tuple(shape) else self.emit(movement.RESHAPE, [x], movement.ReshapeAttrs(tuple(shape)))
        )

    def transpose(self, x: Value, perm: Sequence[int]) -> Value:
        """The operand with axes in that order; itself if they already are."""
        if tuple(perm) == tuple(range(x.type.rank)):
            return x
        return self.emit(movement.TRANSPOSE, [x], movement.TransposeAttrs(tuple(perm)))

    def part(self, x: Value, axis: int, start: int, size: int) -> Value:
        """`size` elements of one axis from `start` on."""
        starts, sizes = [0] * x.type.rank, list(x.type.shape)
        starts[axis], sizes[axis] = start, size
        return self.emit(movement.SLICE, [x], movement.SliceAttrs(tuple(starts), tuple(sizes), (1,) * x.type.rank))

    # ----- the walk

    def read(self, call: Call, handler: Handler) -> None:
        """Runs one handler and names its results."""
        self._label = call.outputs[0]
        results = handler(self, call)
        results = [results] if isinstance(results, Value) else list(results)
        if len(results) != len(call.outputs):
            raise ModelFormatError(f"{call.name}: gives {len(results)} results, {len(call.outputs)} are named")
        for name, result in zip(call.outputs, results, strict=True):
            self._define(name, result)

    def _define(self, name: str, result: Value) -> None:
        if name in self.values:
            raise ModelFormatError(f"two operands are called {name!r}")
        produced = any(result is v for v in self.values.values()) or result.is_constant
        if produced:  # an operand that has a name already
            result = self.emit(IDENTITY, [result], UnaryAttrs())
        result.name = name
        self.values[name] = result


def pack(numbers: Sequence[float], dtype: DType) -> bytes:
    """The numbers as little-endian elements; floats beyond the type become infinities."""
    if not dtype.is_float:
        return struct.pack(f"<{len(numbers)}{dtype.letter}", *(int(n) for n in numbers))
    try:
        return struct.pack(f"<{len(numbers)}{dtype.letter}", *numbers)
    except OverflowError:
        limit = 65520.0 if dtype is DType.FLOAT16 else 3.4028235677973366e38
        safe = [math.copysign(math.inf, n) if abs(n) >= limit else n for n in numbers]
        return struct.pack(f"<{len(numbers)}{dtype.letter}", *safe)


__all__ = ["DTYPES", "Call", "Handler", "Reader", "pack"]
