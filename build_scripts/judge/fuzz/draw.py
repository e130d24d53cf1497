"""The source of randomness: shapes, numbers, and operands out of what a graph has already."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from build_scripts.judge.fuzz.graphs import Array, FuzzNode, Quant

FLOATS = ("float32", "float16", "float64")
SIGNED = ("int64", "int32", "int16", "int8")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = (*SIGNED, *UNSIGNED)
NUMBERS = (*FLOATS, *INTEGERS)
BOOL = ("bool",)
ANY = (*NUMBERS, *BOOL)
WEIGHTS = {
    "float32": 12, "int64": 4, "int32": 3, "float16": 1.5, "float64": 0.7, "uint8": 1.5, "int8": 1.5, "bool": 1.0,
    "int16": 0.4, "uint16": 0.2, "uint32": 0.4, "uint64": 0.4,
}  # fmt: skip
SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 16, 17)
SIZE_ODDS = (20, 22, 20, 14, 10, 5, 6, 2, 2, 1)
EMPTY = 0.02  # odds that a tensor has an axis of 0
MOST = 3000  # elements of an operand
REUSED = 0.75  # odds that an operand is a value that is there, if one fits
STORED = 0.4  # odds that a new operand is a constant


class Draw:
    """One graph being drawn. `values` has the numbers of all names, so that a row may look at what it gets."""

    def __init__(self, seed: Sequence[int], version: int, weights: dict[str, float] | None = None) -> None:
        self.rng = np.random.default_rng(list(seed))
        self.version = version
        self.weights = WEIGHTS if weights is None else weights
        self.values: dict[str, Array] = {}
        self.fresh: dict[str, Array] = {}  # values made for the node being drawn, which may yet be refused
        self.stored: set[str] = set()  # constants
        self.quants: dict[str, Quant] = {}
        self.count = 0
        self.open_sizes = False  # whether axes have 0 to 9 elements, each size as often
        self.odd = True  # whether numbers may be NaN, infinite or extreme

    # ----- numbers

    def integer(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return int(self.rng.integers(low, high, endpoint=True))

    def chance(self, odds: float) -> bool:
        """True so often."""
        return bool(self.rng.random() < odds)

    def pick(self, things: Sequence[Any], odds: Sequence[float] | None = None) -> Any:
        """One of the things."""
        if odds is None:
            return things[self.integer(0, len(things) - 1)]
        shares = np.asarray(odds, np.float64)
        return things[int(self.rng.choice(len(things), p=shares / shares.sum()))]

    def real(self, *choices: float) -> float:
        """One of the numbers, or one near them."""
        found = float(self.pick(choices))
        return found if self.chance(0.6) else round(found + float(self.rng.normal()) / 4, 4)

    def dtype(self, kinds: Sequence[str]) -> str:
        """One of the element types, common ones more often."""
        return str(self.pick(kinds, [self.weights.get(kind, 0.01) for kind in kinds]))

    def size(self) -> int:
        """The size of an axis; never 0."""
        return int(self.pick(SIZES, SIZE_ODDS))

    def shape(self, low: int = 0, high: int = 4, most: int = MOST) -> tuple[int, ...]:
        """A shape of a rank from `low` to `high`; seldom with an axis of 0."""
        rank = int(
            self.pick(range(low, high + 1), [0.5 if r == 0 else 0.4 if r == 5 else 1 for r in range(low, high + 1)])
        )
        shape = [self.integer(0, 9) if self.open_sizes else self.size() for _ in range(rank)]
        while int(np.prod(shape, dtype=np.int64)) > most:
            at = int(np.argmax(shape))
            shape[at] = max(shape[at] // 2, 1)
        if rank and not self.open_sizes and self.chance(EMPTY):
            shape[self.integer(0, rank - 1)] = 0
        return tuple(shape)

    def axis(self, rank: int) -> int:
        """An axis, counted from either end."""
        at = self.integer(0, rank - 1)
        return at - rank if self.chance(0.3) else at

    def axes(self, rank: int, low: int = 0) -> list[int]:
        """Different axes, at least `low`, each counted from either end."""
        count = self.integer(min(low, rank), rank)
        found = [int(a) for a in self.rng.permutation(rank)[:count]]
        return [a - rank if self.chance(0.2) else a for a in found]

    def regrouped(self, size: int) -> list[int]:
        """Another shape for so many elements, as a reshape is asked for one: it may leave one size to be computed."""
        left, wanted = size, list[int]()
        while left > 1 and len(wanted) < 4:
            factor = self.pick([n for n in range(1, left + 1) if left % n == 0])
            wanted.append(factor)
            left //= factor
        wanted += [left] if left != 1 or self.chance(0.2) else []
        if wanted and size and self.chance(0.3):
            wanted[self.integer(0, len(wanted) - 1)] = -1
        return wanted

    def array(self, dtype: str, shape: Sequence[int], low: float | None = None, high: float | None = None) -> Array:
        """Numbers of the type: ordinary ones most often; small whole ones, equal ones, extremes and NaN seldom."""
        kind = np.dtype(dtype)
        if kind == np.bool_:
            return np.asarray(self.rng.random(shape) < self.pick((0.5, 0.5, 0.1, 0.9)))
        if low is not None and high is not None:
            if kind.kind in "iu":
                return self.rng.integers(int(low), int(high), shape, endpoint=True).astype(kind)
            return np.asarray(self.rng.uniform(low, high, shape)).astype(kind)
        return self._integers(kind, shape) if kind.kind in "iu" else self._floats(kind, shape)

    def _floats(self, kind: np.dtype[Any], shape: Sequence[int]) -> Array:
        style = self.pick(
            ("normal", "scaled", "whole", "share", "equal", "special"), (55, 12, 16, 10, 3, 15 * self.odd)
        )
        numbers = self.rng.normal(size=shape)
        if style == "scaled":
            numbers = numbers * self.pick((0.01, 0.3, 10.0, 100.0))
        elif style == "whole":
            numbers = np.round(numbers * 2)
        elif style == "share":
            numbers = self.rng.random(shape)
        elif style == "equal":
            numbers = np.full(shape, round(float(self.rng.normal()), 1))
        elif style == "special":
            odd = self.rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 65504.0, 1e-8], size=shape)
            numbers = np.where(self.rng.random(shape) < 0.2, odd, numbers)
        return np.asarray(numbers).astype(kind)

    def _integers(self, kind: np.dtype[Any], shape: Sequence[int]) -> Array:
        info = np.iinfo(kind)
        style = self.pick(
            ("small", "full", "extreme"), (30, 60, 10) if kind.itemsize == 1 else (80, 12 * self.odd, 8 * self.odd)
        )
        if style == "small":
            return self.rng.integers(max(-5, info.min), 6, shape).astype(kind)
        full = self.rng.integers(info.min, info.max, shape, dtype=kind, endpoint=True)
        if style == "full":
            return np.asarray(full, kind)
        odd = [
            info.min,
            info.max,
            info.max - 1,
            0,
            1,
            *(n for n in (2**31, 2**32 + 1, 2**53 + 1, -(2**31) - 1, 4099 * 4097) if info.min <= n <= info.max),
        ]
        return np.asarray([self.pick(odd) for _ in range(int(np.prod(shape)))], kind).reshape(shape)

    # ----- operands

    def name(self) -> str:
        """A name that is not used yet."""
        self.count += 1
        return f"v{self.count}"

    def new(self, array: Array, stored: bool | None = None) -> str:
        """A new operand of these numbers: fed, or a constant."""
        name = self.name()
        self.fresh[name] = array
        if self.chance(STORED) if stored is None else stored:
            self.stored.add(name)
        return name

    def constant(self, numbers: Any, dtype: str = "int64") -> str:
        """A constant of these numbers."""
        return self.new(np.asarray(numbers, dtype), stored=True)

    def known(self, name: str) -> Array:
        """The numbers of a value."""
        return self.fresh[name] if name in self.fresh else self.values[name]

    def kind(self, name: str) -> str:
        """What rows choose operands by: the element type."""
        return str(self.known(name).dtype.name)

    def given(self, kind: str, array: Array, stored: bool | None = None) -> str:
        """A new operand of a kind."""
        return self.new(array, stored)

    def fitting(self, kinds: Sequence[str], fits: Callable[[Array], bool] = lambda a: True) -> list[str]:
        """The values that are there, of these types and this form; what no constant is, comes twice."""
        found = [n for n, a in self.values.items() if self.kind(n) in kinds and a.size <= MOST and fits(a)]
        return found + [n for n in found if n not in self.stored]

    def value(
        self, kinds: Sequence[str] = FLOATS, low: int = 0, high: int = 4,
        fits: Callable[[Array], bool] | None = None, make: Callable[[str], Array] | None = None,
    ) -> str:  # fmt: skip
        """An operand of a rank from `low` to `high`: one that is there, or a new one that `make` makes of a type."""
        found = self.fitting(kinds, lambda a: low <= a.ndim <= high and (fits is None or fits(a)))
        if found and self.chance(REUSED):
            if self.chance(0.4):
                return found[-1] if found[-1] not in self.stored else str(self.pick(found))
            return str(self.pick(found))
        dtype = self.dtype(kinds)
        return self.given(dtype, self.array(dtype, self.shape(low, high)) if make is None else make(dtype))

    def like(self, name: str, shape: Sequence[int], **limits: float) -> str:
        """An operand of the type of a value, in this shape: one that is there, or new."""
        dtype, wanted = self.kind(name), tuple(shape)
        found = self.fitting((dtype,), lambda a: a.shape == wanted) if not limits else []
        if found and self.chance(REUSED):
            return str(self.pick(found))
        return self.given(dtype, self.array(dtype, wanted, **limits))

    def partner(self, name: str) -> str:
        """An operand that broadcasts with a value: itself, one that is there, or a new one."""
        x = self.known(name)
        if self.chance(0.08):
            return name
        found = self.fitting((self.kind(name),), lambda a: broadcasts(a.shape, x.shape))
        if found and self.chance(0.6):
            return str(self.pick(found))
        shape = [d if self.chance(0.75) else 1 for d in x.shape]
        if self.chance(0.3):
            shape = shape[self.integer(0, len(shape)) :]
        elif len(shape) < 4 and self.chance(0.1):
            shape = [self.integer(1, 3), *shape]
        if self.chance(0.1) and 1 in shape:
            shape[shape.index(1)] = self.size() if x.size < 300 else 1
        return self.given(self.kind(name), self.array(self.kind(name), shape))

    def node(self, op: str, inputs: Sequence[str], outputs: int = 1, **attrs: Any) -> FuzzNode:
        """A node with new names for its outputs; attributes that are None are left out."""
        names = tuple(self.name() for _ in range(outputs))
        return FuzzNode(op, tuple(inputs), names, {k: v for k, v in attrs.items() if v is not None})

    def maybe(self, thing: Any, odds: float = 0.5) -> Any:
        """The thing, or None."""
        return thing if self.chance(odds) else None


def int32(d: Draw, numbers: Any) -> str:
    """A constant of int32, as TensorFlow's formats want sizes and axes."""
    return d.constant(numbers, "int32")


def broadcasts(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether shapes broadcast, to something that is not too large."""
    try:
        return int(np.prod(np.broadcast_shapes(tuple(a), tuple(b)), dtype=np.int64)) <= MOST
    except ValueError:
        return False
