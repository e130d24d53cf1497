"""Ensembles of decision trees as nodes of the graph: all rows go down all trees together, one level at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import field

from webinfer.dtypes import DType
from webinfer.graph.ir import Op, Value
from webinfer.importers.core.limits import MAX_NODES, within
from webinfer.importers.onnx.operation import Operation
from webinfer.lazy_dataclass import dataclass
from webinfer.ops import elementwise as ew
from webinfer.ops import gather, reduce
from webinfer.ops.registry import NoAttrs

MODES: dict[str, Op] = {
    "BRANCH_LEQ": ew.LESS_EQUAL, "BRANCH_LT": ew.LESS, "BRANCH_GTE": ew.GREATER_EQUAL, "BRANCH_GT": ew.GREATER,
    "BRANCH_EQ": ew.EQUAL, "BRANCH_NEQ": ew.NOT_EQUAL,
}  # fmt: skip
_LARGEST = 3.4028234663852886e38
COMBINED: dict[str, tuple[Op, float]] = {
    "SUM": (reduce.REDUCE_SUM, 0.0), "AVERAGE": (reduce.REDUCE_SUM, 0.0), "MIN": (reduce.REDUCE_MIN, _LARGEST),
    "MAX": (reduce.REDUCE_MAX, -_LARGEST),
}  # fmt: skip
MOST_NODES, _MOST_WEIGHTS, _MOST_LEVELS = 2**20, 2**22, 512


@dataclass(slots=True)
class Trees:
    """Nodes of all trees, by number. A leaf is its own child on both sides; its threshold is never asked for."""

    features: list[int] = field(default_factory=list)
    thresholds: list[float] = field(default_factory=list)
    modes: list[str] = field(default_factory=list)  # "" of a leaf
    left: list[int] = field(default_factory=list)  # where the comparison holds
    right: list[int] = field(default_factory=list)
    missing: list[bool] = field(default_factory=list)  # whether NaN goes left
    roots: list[int] = field(default_factory=list)
    weights: dict[int, list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))  # of leaves

    def add(self, feature: int, threshold: float, mode: str, ways: Sequence[int], missing: bool) -> None:
        """One more node; its children stand where the comparison holds and where it does not."""
        self.features.append(feature)
        self.thresholds.append(threshold)
        self.modes.append(mode)
        self.left.append(ways[0])
        self.right.append(ways[1])
        self.missing.append(missing)

    def levels(self, op: Operation) -> int:
        """The most comparisons on the way to a leaf.

        Raises:  ModelFormatError if a path never ends
        """
        count = len(self.modes)
        parents, level = [0] * count, [0] * count
        for n in range(count):
            for child in self._children(n):
                parents[child] += 1
        waiting = [n for n in range(count) if not parents[n]]
        done = 0
        while waiting:
            n = waiting.pop()
            done += 1
            for child in self._children(n):
                level[child] = max(level[child], level[n] + 1)
                parents[child] -= 1
                if not parents[child]:
                    waiting.append(child)
        if done < count:
            op.fail("nodes of a tree form a ring")
        within(f"{op.what}: levels", max(level), _MOST_LEVELS, "use shallower trees")
        return max(level)

    def _children(self, n: int) -> tuple[int, ...]:
        return (self.left[n], self.right[n]) if self.modes[n] else ()

    def leaves(self, root: int) -> list[int]:
        """The leaves of one tree, of which `levels` has shown that it has no ring."""
        found, seen, waiting = list[int](), {root}, [root]
        while waiting:
            n = waiting.pop()
            if not self.modes[n]:
                found.append(n)
            new = set(self._children(n)) - seen
            seen |= new
            waiting += new
        return found


def rows_of(op: Operation) -> Value:
    """The inputs as float32 [N, F]."""
    x = op.value(0)
    if op.file_type(0) is DType.FLOAT64:
        op.refuse("features of float64, which decide in float64")
    x = op.cast(x, DType.FLOAT32)
    if x.type.rank == 1:
        x = op.reshape(x, (1, *x.type.shape))
    if x.type.rank != 2:
        op.fail(f"features {x.type.shape} are not a table")
    return x


def sums(op: Operation, x: Value, trees: Trees, count: int, combine: str = "SUM") -> Value:
    """What the leaves amount to in which each row ends. Shapes:  x [N, F] → [N, count]"""
    kind, neutral = COMBINED[combine]
    if any(not 0 <= f < x.type.shape[1] for f, mode in zip(trees.features, trees.modes, strict=True) if mode):
        op.fail(f"a node compares a feature that is none of {x.type.shape[1]}")
    ends = _descend(op, x, trees)
    within(f"{op.what}: weights of leaves", len(trees.modes) * count, _MOST_WEIGHTS, "use smaller trees")
    table = [neutral] * (len(trees.modes) * count)
    for n, weights in trees.weights.items():
        own = defaultdict[int, float](float) if kind is reduce.REDUCE_SUM else {}
        for target, weight in weights:
            if not 0 <= target < count:
                op.fail(f"a leaf has a weight for {target}, there are {count}")
            own[target] = own[target] + weight if kind is reduce.REDUCE_SUM else weight
        for target, weight in own.items():
            table[n * count + target] = weight
    leaves = op.constant(table, DType.FLOAT32, (len(trees.modes), count))
    y = op.emit(kind, [at(op, leaves, ends)], reduce.ReduceAttrs((1,)))
    return op.unary(ew.LINEAR, y, 1 / len(trees.roots)) if combine == "AVERAGE" else y


def _descend(op: Operation, x: Value, trees: Trees) -> Value:
    """The leaf of each tree in which each row ends. Shapes:  x [N, F] → [N, T]"""
    rows, kinds = x.type.shape[0], sorted({mode for mode in trees.modes if mode})
    levels, count = trees.levels(op), len(trees.roots)
    if len(kinds) > 1:
        op.refuse(f"trees that compare in several ways: {', '.join(kinds)}")
    whole = {
        "left": op.constant(trees.left, DType.INT32), "right": op.constant(trees.right, DType.INT32),
        "features": op.constant(trees.features, DType.INT32), "missing": op.constant(trees.missing, DType.BOOL),
        "thresholds": op.constant(trees.thresholds, DType.FLOAT32),
    }  # fmt: skip
    if not levels:
        return op.expand(op.constant(trees.roots, DType.INT32, (1, count)), (rows, count))
    within(f"{op.what}: levels of the graph", 12 * levels, MAX_NODES, "use shallower trees")
    here = op.expand(op.constant(trees.roots, DType.INT32, (1, count)), (rows, count))
    for _ in range(levels):
        found = {name: at(op, table, here) for name, table in whole.items() if name != "missing"}
        value = op.emit(gather.GATHER_ELEMENTS, [x, found["features"]], gather.ElementsAttrs(1))
        holds = op.binary(MODES[kinds[0]], value, found["thresholds"])
        if any(trees.missing):
            nan = op.binary(ew.NOT_EQUAL, value, value)
            holds = op.binary(ew.LOGICAL_OR, holds, op.binary(ew.LOGICAL_AND, nan, at(op, whole["missing"], here)))
        here = op.emit(ew.WHERE, [holds, found["left"], found["right"]], NoAttrs())
    return here


def at(op: Operation, table: Value, positions: Value) -> Value:
    """The rows of a table at these positions."""
    return op.emit(gather.GATHER, [table, positions], gather.GatherAttrs(0))
