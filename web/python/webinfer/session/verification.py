"""Whether a session computes what its model says: outputs beside those of the graph as imported, then each step."""

from __future__ import annotations

import math
from array import array
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from operator import sub

from webinfer.backends.base import Executor
from webinfer.dtypes import DType
from webinfer.errors import LimitError, UnsupportedOpError
from webinfer.graph.ir import Graph, Value
from webinfer.lazy_dataclass import dataclass
from webinfer.ops.elementwise import QUANTIZE
from webinfer.session.reports import table
from webinfer.tensor import Tensor

ROUNDED = 8 / 255  # of its range: how far an output may be if a file rounds to 8 bits between operators, which passes
# compute in integers; each difference of one step may move the next one


@dataclass(frozen=True, slots=True)
class Difference:
    """How far one tensor is from the other backend's. `relative` is by the tensor's range.

    `nonfinite` elements are infinite or no numbers: of these only the place is compared.
    """

    label: str
    op: str
    value: str
    max_abs: float
    relative: float
    within: bool
    nonfinite: int = 0


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """Every step that both backends computed, in the order of the graph, and the outputs.

    `outputs` are compared by name with those of the graph as it was imported, before any pass, on the other backend.
    Where that backend cannot run it, or there is none (compiled models, models in parts), `unjudged` says why, and
    there are no `outputs`.
    """

    backend: str
    against: str
    tolerance: float
    differences: list[Difference]
    outputs: list[Difference] = field(default_factory=list)
    unjudged: str = ""

    @property
    def first(self) -> Difference | None:
        """The first step that differs by more than the tolerance; if none does, the first such output."""
        return next((d for d in (*self.differences, *self.outputs) if not d.within), None)

    @property
    def ok(self) -> bool:
        """True if at least one tensor was compared and none differs."""
        return bool(self.differences or self.outputs) and self.first is None

    @property
    def notes(self) -> list[str]:
        """What was not compared: outputs without a graph to compare with, elements that are not finite."""
        told = f"outputs were not compared with the graph as imported: {self.unjudged}"
        strange = [each for each in self.outputs or self.differences[-1:] if each.nonfinite]
        return [told] * bool(self.unjudged) + [
            f"{each.value}: {each.nonfinite} elements are infinite or NaN on {self.against}: not judged"
            for each in strange
        ]

    def __str__(self) -> str:
        verdict = "agree" if self.ok else "have no tensor in common"
        if self.first is not None:
            first, what = self.first, "first" if self.first in self.differences else "from the graph as imported"
            verdict = (
                f"differ {what} at {first.label} ({first.op}) by {first.max_abs:.3g}, {first.relative:.3g} of its range"
            )
        if self.outputs:
            wrong = sum(not each.within for each in self.outputs)
            made = f"{wrong} of {len(self.outputs)} outputs differ" if wrong else "all outputs are the same"
            verdict += f"; beside the graph as imported, {made}"
        rows = [
            [d.label, d.op, f"{d.max_abs:.3g}", f"{d.relative:.3g}", "ok" if d.within else "DIFFERS"]
            for d in (*self.differences, *self.outputs)
        ]
        lines = [f"{self.backend} and {self.against} {verdict}", *self.notes]
        return "\n".join([*lines, table(["step", "op", "max abs", "of range", ""], rows)])


def distance(got: Tensor, want: Tensor) -> tuple[float, float]:
    """(largest absolute difference, that relative to the range of `want`); not-a-number counts as infinite."""
    if got.dtype is want.dtype and got.flat() == want.flat():
        return 0.0, 0.0
    a, b = got.tolist(), want.tolist()
    if math.isfinite(sum(a) + sum(b)):
        worst, finite = float(max(map(abs, map(sub, a, b)), default=0.0)), b
    else:
        worst, finite = _worst(a, b), [q for q in b if abs(q) < float("inf")]
    if not finite:
        return worst, worst
    low, high = min(finite), max(finite)
    span = max(high - low, abs(high), abs(low)) or 1.0
    return worst, worst / span


def _worst(a: Sequence[float], b: Sequence[float]) -> float:
    """The largest difference where some are infinite or not numbers."""
    worst = 0.0
    for p, q in zip(a, b, strict=True):
        if p == q or (p != p and q != q):
            continue
        off = abs(p - q)
        worst = max(worst, off if off == off else float("inf"))
    return worst


async def compare_backends(
    mine: Executor, other: Executor, inputs: Mapping[str, memoryview], tolerance: float, graph: Graph,
    step: Callable[[int], Awaitable[None]],
) -> VerifyReport:  # fmt: skip
    """Runs both backends node by node and compares every tensor that both name; `step` hears of each node's number.

    They go on side by side, so that few tensors are kept, where both follow the order of the graph.
    """
    places = {value: i for i, node in enumerate(graph.nodes) for value in node.outputs}
    theirs, wanted, at = other.probe(inputs), dict[Value, Tensor](), -1
    differences = []
    async for node, value, tensor in mine.probe(inputs):
        while value not in wanted and at <= places.get(value, len(places)):
            found = await anext(theirs, None)
            if found is None:
                break
            at = max(at, places.get(found[1], -1))
            wanted[found[1]] = found[2]
        await step(places.get(value, 0))
        if (want := wanted.pop(value, None)) is None:
            continue
        differences.append(_difference(node.label, node.op.name, value.name, tensor, want, tolerance))
    return VerifyReport(mine.backend, other.backend, tolerance, differences)


async def compare_outputs(
    mine: Executor, imported: Graph, build: Callable[[Graph], Awaitable[Executor]], inputs: Mapping[str, memoryview],
    tolerance: float,
) -> tuple[list[Difference], str]:  # fmt: skip
    """The session's outputs beside those of the graph as imported, which `build` compiles; or why there are none."""
    try:
        other = await build(imported)
    except (UnsupportedOpError, LimitError) as error:
        return [], str(error)
    try:
        want, got = await other.run(inputs), await mine.run(inputs)
    finally:
        other.close()
    if any(node.op is QUANTIZE for node in imported.nodes):
        tolerance = max(tolerance, ROUNDED)
    return [_difference(f"output {n}", "output", n, got[n], tensor, tolerance) for n, tensor in want.items()], ""


def _difference(label: str, op: str, name: str, got: Tensor, want: Tensor, tolerance: float) -> Difference:
    if want.dtype is not got.dtype and DType.FLOAT16 in (want.dtype, got.dtype):
        want, got = _as_float32(want), _as_float32(got)
    absolute, relative = distance(got, want)
    strange = sum(not math.isfinite(x) for x in want.tolist()) if want.dtype.is_float else 0
    return Difference(label, op, name, absolute, relative, relative <= tolerance, strange)


def _as_float32(tensor: Tensor) -> Tensor:
    return Tensor(array("f", tensor.tolist()), tensor.shape, DType.FLOAT32)
