"""Differences from a format's runtime that are no faults: each a rule with its reason, never a list of graphs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from build_scripts.judge.fuzz.graphs import Array, FuzzGraph, FuzzNode

SMALLEST, LARGEST = 1.2e-38, 1e37  # sizes that every GPU computes with as numbers
NEARLY = 4e-6  # of the largest number beside it, or of 1: what sums may be off by
TELL_ZEROS = ("div", "reciprocal", "rsqrt", "atan2", "pow")  # operators whose name holds this: 1 / -0 is -inf


@dataclass(frozen=True)
class Difference:
    """A graph whose outputs differ from the runtime's. `values` are the runtime's own, node by node."""

    graph: FuzzGraph
    got: Sequence[Array]
    want: Sequence[Array]
    values: Mapping[str, Array]
    backend: str = "wasm"

    def read(self, node: FuzzNode) -> list[Array]:
        """What a node reads, as far as it is known."""
        return [self.values[name] for name in node.inputs if name in self.values]

    def made(self, node: FuzzNode) -> list[Array]:
        """What a node gives in the runtime."""
        return [self.values[name] for name in node.outputs if name in self.values]


When = Callable[[Difference, FuzzNode], bool]


@dataclass(frozen=True)
class Rule:
    """A kind of difference that is accepted where a node of these operators is as `when` says, and why."""

    ops: frozenset[str]
    reason: str
    when: When


def explained(format: str, difference: Difference) -> str:
    """The reason of the first rule that applies to a node, or an empty text."""
    if difference.backend == "webgpu" and any(map(_is_odd, difference.values.values())):
        return "WGSL need not know infinities and NaN"
    if any(map(_exceeds_float32, difference.values.values())):
        return "float64 is computed in float32, which does not hold such numbers"
    rules: Sequence[Rule] = import_module(f"build_scripts.judge.fuzz.{format}.rules").RULES
    for node in difference.graph.nodes:
        for rule in rules:
            if node.op in rule.ops and rule.when(difference, node):
                return f"{node.op}: {rule.reason}"
    return ""


def _is_odd(a: Array) -> bool:
    """Whether numbers are there that WGSL need not know: NaN, infinities, and those next to them or to 0."""
    if a.dtype.kind != "f":
        return False
    size = np.abs(a[a != 0].astype(np.float64))
    return not bool(((size >= SMALLEST) & (size <= LARGEST)).all())


def _exceeds_float32(a: Array) -> bool:
    """Whether float64 numbers are there that are infinite in float32."""
    return a.dtype == np.float64 and bool((np.abs(a[np.isfinite(a)]) > np.finfo(np.float32).max).any())


def reads_nan(difference: Difference, node: FuzzNode) -> bool:
    """Whether a NaN goes in."""
    return any(a.dtype.kind == "f" and bool(np.isnan(a).any()) for a in difference.read(node))


def reads_odd(difference: Difference, node: FuzzNode) -> bool:
    """Whether a NaN or an infinity goes in."""
    return any(a.dtype.kind == "f" and not bool(np.isfinite(a).all()) for a in difference.read(node))


def reads_negative_zero(difference: Difference, node: FuzzNode) -> bool:
    """Whether a zero with a sign goes in, in a graph that tells zeros apart."""
    if not any(word in node.op.lower() for node in difference.graph.nodes for word in TELL_ZEROS):
        return False
    return any(a.dtype.kind == "f" and bool((np.signbit(a) & (a == 0)).any()) for a in difference.read(node))


def reads_nothing(difference: Difference, node: FuzzNode) -> bool:
    """Whether a tensor without elements goes in."""
    return any(not a.size for a in difference.read(node))


def nearly_equal(difference: Difference, node: FuzzNode) -> bool:
    """Whether floats meet that differ by no more than the rounding of what made them."""
    a, b = np.broadcast_arrays(*difference.read(node)[:2])
    if a.dtype.kind != "f":
        return False
    with np.errstate(all="ignore"):
        apart = np.abs(a.astype(np.float64) - b)
        size = max(1.0, float(np.abs(a[np.isfinite(a)]).max(initial=0.0)))
    return bool(((apart > 0) & (apart <= NEARLY * size)).any())


def odd_taps(ops: Iterable[str]) -> Rule:
    """The rule of weighted sums, of windows, products and interpolation."""
    reason = "whether a tap of weight 0, which may make a NaN of an infinity, is read is open"
    return Rule(frozenset(ops), reason, reads_odd)


def reads_beyond(limit: float) -> When:
    """Whether a number beyond the limit goes in, or a NaN."""

    def when(difference: Difference, node: FuzzNode) -> bool:
        return any(
            a.dtype.kind in "fiu" and a.size and not bool((np.abs(a.astype(np.float64)) <= limit).all())
            for a in difference.read(node)
        )

    return when


def whole_overflows(difference: Difference, node: FuzzNode) -> bool:
    """Whether integers go in whose sum or product no integer of their type holds."""
    arrays: list[Any] = [a for a in difference.read(node) if a.dtype.kind in "iu" and a.size]
    return any(_most(node, a) > np.iinfo(a.dtype).max for a in arrays[:1])


def _most(node: FuzzNode, a: Array) -> float:
    size = np.abs(a.astype(np.float64))
    if "Prod" in node.op or "PROD" in node.op:
        return float(np.prod(np.maximum(size, 1)))
    return float((size**2).sum() if "Square" in node.op or "L2" in node.op else size.sum())


def powers_overflow(difference: Difference, node: FuzzNode) -> bool:
    """Whether integers are raised to powers that are no numbers, or that their type does not hold."""
    a, b = (x.astype(np.float64) for x in difference.read(node)[:2])
    kind = difference.read(node)[0].dtype
    with np.errstate(all="ignore"):
        return kind.kind in "iu" and bool((~(np.abs(np.power(a, b)) <= np.iinfo(kind).max)).any())
