"""What a device can do at best: its arithmetic and its memory, timed once by graphs of one node on the backend."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from webinfer.backends import registry
from webinfer.backends.base import Backend, BuildOptions, PlanRow
from webinfer.errors import WebinferError
from webinfer.graph.ir import Graph, TensorType, Value, apply
from webinfer.host.interface import Host
from webinfer.lazy_dataclass import dataclass
from webinfer.session.inputs import info_of, zeros
from webinfer.session.selection import LoadOptions

COPIED = (1 << 14, 1 << 18, 1 << 22)  # floats: what fits the first cache of a processor, the second, none
LEAST_MS = 0.2  # of a timing of arithmetic: shorter ones are made of more work
LEAST_STEP_MS = 0.05  # of a step that tells of the device, not of its clock
MOST_WORK = 1 << 12
ROUNDS = 3
_known: dict[tuple[str, str, int | None], Peaks] = {}


@dataclass(frozen=True, slots=True)
class Peaks:
    """What this device reaches: multiplications and additions of floats, and copies of several sizes.

    Units: thousands of millions a second (0: not known); bytes read and written, and milliseconds of each copy.
    """

    gflops: float
    copies: tuple[tuple[int, float], ...]

    def least_ms(self, row: PlanRow) -> float:
        """The minimum time of a step: of its arithmetic or of its memory traffic, whichever is longer."""
        return max(row.flops / self.gflops / 1e6 if self.gflops else 0.0, self._moving(row.bytes))

    def raised(self, steps: Iterable[tuple[PlanRow, float]]) -> Peaks:
        """The peaks, no lower than what steps reached in their milliseconds: a device may be busy when it is timed.

        Steps that take less than the arithmetic that is counted for them tell nothing of it.
        """
        told = (row.flops / ms / 1e6 for row, ms in steps if ms >= LEAST_STEP_MS and not row.saves)
        most = max(told, default=0.0)
        return replace(self, gflops=most) if most > self.gflops > 0 else self

    def bound(self, row: PlanRow) -> str:
        """What bounds a step at best: "memory" or "arithmetic"."""
        return "memory" if self.least_ms(row) == self._moving(row.bytes) else "arithmetic"

    def _moving(self, nbytes: int) -> float:
        """Milliseconds to move so many bytes, between the two copies that are next to it in size."""
        if not self.copies:
            return 0.0
        small, small_ms = self.copies[0]
        for large, large_ms in self.copies[1:]:
            if small <= nbytes < large:
                return small_ms + (large_ms - small_ms) * (nbytes - small) / (large - small)
            if nbytes >= large:
                small, small_ms = large, large_ms
        return small_ms * nbytes / small


async def measured(name: str, host: Host, threads: int | None) -> Peaks:
    """The peaks of a backend on this host, timed by the first call; nothing is known where its graphs do not run."""
    key = (name, host.fingerprint(), threads)
    if key not in _known:
        options = LoadOptions(threads=threads, tuning_ms=0).of(name)
        try:
            backend = registry.open_backend(name)
            copies = [await _timed(backend, _copy(size), host, options) for size in COPIED]
            _known[key] = Peaks(await _gflops(backend, host, options), tuple(copies))
        except WebinferError:
            return Peaks(0.0, ())
    return _known[key]


def _copy(size: int) -> Graph:
    """A graph that reads so many floats and writes as many."""
    from webinfer.ops import elementwise as ew  # and all operators with it, which a compiled model does without

    x = Value("x", TensorType((size,)))
    node = apply(ew.ABS, [x], ew.UnaryAttrs(), "copy")
    return Graph("copy", [x], [node.output], [node])


async def _gflops(backend: Backend, host: Host, options: BuildOptions) -> float:
    work = 1
    while (graph := backend.arithmetic(work)) is not None:
        _, ms = await _timed(backend, graph, host, options)
        if ms >= LEAST_MS or work >= MOST_WORK:
            return graph.nodes[0].cost().flops / max(ms, 1e-9) / 1e6
        work *= 8
    return 0.0


async def _timed(backend: Backend, graph: Graph, host: Host, options: BuildOptions) -> tuple[int, float]:
    """The bytes that a graph moves, and its milliseconds."""
    executor = await backend.build(graph, host, options)
    try:
        times = await executor.profile(zeros([info_of(v, graph) for v in graph.inputs]), ROUNDS)
    finally:
        executor.close()
    return graph.nodes[0].cost().bytes, sum(times)
