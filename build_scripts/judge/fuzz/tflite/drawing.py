"""Operands of TFLite graphs: quantised ones are kinds of their own, "qint8" for bytes with a scale."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from build_scripts.judge.fuzz.draw import Draw
from build_scripts.judge.fuzz.graphs import Array, FuzzNode, Quant

WEIGHTS = {
    "float32": 12, "int32": 4, "int64": 1.5, "bool": 1, "qint8": 4, "quint8": 2, "qint16": 1, "int8": 0.3, "uint8": 0.3,
    "int16": 0.3, "float16": 0.1, "uint32": 0.1,
}  # fmt: skip
STORED8 = ("qint8", "quint8")
STORED = (*STORED8, "qint16")
REAL = ("float32",)
WHOLE = ("int32", "int64")


class TfliteDraw(Draw):
    """A graph being drawn whose quantised values have scales."""

    def __init__(self, seed: Sequence[int]) -> None:
        super().__init__(seed, 3, WEIGHTS)

    def kind(self, name: str) -> str:
        """The element type; with a q before it if the numbers have a scale."""
        return f"{'q' if name in self.quants else ''}{self.known(name).dtype.name}"

    def array(self, dtype: str, shape: Sequence[int], low: float | None = None, high: float | None = None) -> Array:
        """As in every format; quantised numbers fill their type."""
        plain = dtype.removeprefix("q")
        if plain != dtype and low is None:
            info = np.iinfo(plain)
            least = -32767 if plain == "int16" else info.min
            return self.rng.integers(least, info.max, shape, endpoint=True).astype(plain)
        return super().array(plain, shape, low, high)

    def given(self, kind: str, array: Array, stored: bool | None = None) -> str:
        """A new operand; quantised ones get a scale."""
        name = self.new(array, stored)
        if kind.startswith("q"):
            self.quants[name] = self.quant(kind)
        return name

    def quant(self, kind: str) -> Quant:
        """A scale and a zero point that suit a quantised type."""
        scale = float(np.float32(self.rng.uniform(0.002, 0.1)))
        if kind == "qint16":
            return Quant((scale / 256,), (0,))
        zero = self.pick((0, self.integer(-128, 127))) + 128 * (kind == "quint8")
        return Quant((scale,), (min(zero, 255),))

    def out(self, kind: str, quant: Quant | None = None) -> tuple[str, Quant | None]:
        """A result of a kind: its element type, and the scale where it is quantised."""
        plain = kind.removeprefix("q")
        return plain, None if plain == kind else quant or self.quant(kind)

    def same(self, name: str) -> tuple[str, Quant | None]:
        """A result of the type and the scale of an operand."""
        return self.known(name).dtype.name, self.quants.get(name)

    def make(self, op: str, inputs: Sequence[str], *results: tuple[str, Quant | None], **options: Any) -> FuzzNode:
        """A node with results of these types."""
        node = self.node(op, inputs, len(results), **options)
        for name, (_, quant) in zip(node.outputs, results, strict=True):
            if quant is not None:
                self.quants[name] = quant
        return FuzzNode(op, node.inputs, node.outputs, node.attrs, tuple(dtype for dtype, _ in results))

    def activation(self) -> int | None:
        """What is fused behind an operator: none, Relu, Relu in -1 to 1, Relu6."""
        return self.maybe(self.pick((0, 1, 2, 3)))  # type: ignore[no-any-return]
