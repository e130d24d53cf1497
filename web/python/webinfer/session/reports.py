"""What a session tells about itself: plan, profile and comparison, each a table, JSON or a picture."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, field
from typing import Any

from webinfer.backends.base import Executor, MemoryReport, PlanRow
from webinfer.lazy_dataclass import dataclass
from webinfer.session.roofline import Peaks

SAMPLES = 5
VISIBLE_MS = 5.0  # a coarse clock's steps of 0.1 ms are 2 % of it
MAX_REPEATS = 256


def table(head: list[str], rows: list[list[str]]) -> str:
    """Rows of text below a head, each column as wide as its widest cell."""
    widths = [max(len(line[i]) for line in [head, *rows]) for i in range(len(head))]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in [head, *rows]]
    return "\n".join([lines[0], "  ".join("-" * w for w in widths), *lines[1:]])


def _escaped(text: str) -> str:
    """Text as HTML shows it."""
    import html  # and the names of all its characters with it, which no load needs

    return html.escape(text)


class Displayed:
    """What notebooks show of a report: its text."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f"<pre>{_escaped(str(self))}</pre>"


class DisplayedSession:
    """What notebooks show of a session: its name, its backend and why, its inputs and outputs."""

    def _repr_html_(self) -> str:
        session: Any = self
        rows = [
            [kind, info.name, str(info.dtype), " x ".join(map(str, info.shape)) or "scalar"]
            for kind, infos in (("input", session.inputs), ("output", session.outputs))
            for info in infos
        ]
        cells = "".join(f"<tr>{''.join(f'<td>{_escaped(cell)}</td>' for cell in row)}</tr>" for row in rows)
        return f"<p>{_escaped(repr(self))}: {_escaped(session.choice)}</p><table>{cells}</table>"


@dataclass(frozen=True, slots=True)
class PlanReport(Displayed):
    """The plan of a session; `str()` is a table, `rows` the data."""

    model: str
    backend: str
    choice: str
    rows: list[PlanRow]
    memory: MemoryReport
    notes: tuple[str, ...] = ()  # how the model is computed, where there is a choice
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # of the inputs that it was made for

    def __str__(self) -> str:
        head = ["#", "op", "backend", "kernel", "shapes", "MFLOP", "kB", "why"]
        rows = [
            [str(r.index), r.op, r.backend, r.kernel, r.shapes, f"{r.flops / 1e6:.2f}", f"{r.bytes / 1e3:.0f}", r.why]
            for r in self.rows
        ]
        m = self.memory
        made = ", ".join(f"{name} {'x'.join(map(str, shape)) or '1'}" for name, shape in self.shapes.items())
        memory = (
            f"{len(self.rows)} steps, constants {m.constants} bytes, arena {m.arena} bytes (at least {m.arena_bound}), "
            f"for {made}"
        )
        lines = [f"{self.model} on {self.backend}: {self.choice}", memory, *self.notes, table(head, rows)]
        return "\n".join(lines)

    def json(self) -> str:
        """The plan as JSON."""
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class Profile(Displayed):
    """Milliseconds of each step of a plan, of a whole run, and of its part outside them (checks, copies, waits).

    `peaks` is what the device can do, by backend; with it goes each step's share of that.
    """

    model: str
    backend: str
    rows: list[PlanRow]
    times_ms: list[float]
    run_ms: float
    overhead_ms: float
    peaks: Mapping[str, Peaks] = field(default_factory=dict)

    @property
    def least_ms(self) -> list[float]:
        """The minimum time of each step by this device's peak arithmetic and bandwidth; 0: not known.

        A step that was faster than copies of its bytes, which caches may make it, needs what it took; if it took what
        no clock sees, what copies take.
        """
        found = [(row, self.peaks.get(row.backend), ms) for row, ms in zip(self.rows, self.times_ms, strict=True)]
        return [min(peaks.least_ms(row), ms or math.inf) if peaks else 0.0 for row, peaks, ms in found]

    @property
    def total_ms(self) -> float:
        """The sum over all steps."""
        return sum(self.times_ms)

    def _title(self) -> str:
        share = 100 * self.overhead_ms / (self.run_ms or 1)
        outside = f"{self.overhead_ms:.3f} ms ({share:.1f} %) outside the kernels"
        return f"{self.model} on {self.backend}: {self.run_ms:.3f} ms a run, {outside}"

    def __str__(self) -> str:
        head = ["#", "op", "kernel", "shapes", "ms", "share", "GFLOP/s", "GB/s", "of peak", "could save"]
        rows = [
            [
                str(r.index), r.op, r.kernel, r.shapes, f"{ms:.4f}", f"{100 * ms / (self.total_ms or 1):.1f} %",
                f"{r.flops / (ms or 1e-9) / 1e6:.1f}", f"{r.bytes / (ms or 1e-9) / 1e6:.1f}",
                f"{100 * least / ms:.0f} % {self.peaks[r.backend].bound(r)}" if least and ms else "",
                f"{max(ms - least, 0.0):.4f}" if least else "",
            ]
            for r, ms, least in zip(self.rows, self.times_ms, self.least_ms, strict=True)
        ]  # fmt: skip
        peaks = [f"{name} reaches {p.gflops:.1f} GFLOP/s" for name, p in self.peaks.items() if p.gflops]
        least = sum(self.least_ms)
        steps = f"{len(rows)} steps, one by one: {self.total_ms:.3f} ms"
        if least:
            steps = f"{steps}, at this device's peak {least:.3f} ms; {', '.join(peaks)}"
        return f"{self._title()}\n{steps}\n{table(head, rows)}"

    def _repr_html_(self) -> str:
        return f"{self.svg()}<pre>{_escaped(str(self))}</pre>"

    def json(self) -> str:
        """The profile as JSON."""
        timed = zip(self.rows, self.times_ms, self.least_ms, strict=True)
        steps = [{**asdict(row), "ms": ms, "least_ms": least} for row, ms, least in timed]
        times = {"run_ms": self.run_ms, "overhead_ms": self.overhead_ms, "total_ms": self.total_ms}
        peaks = {"peak_gflops": {name: found.gflops for name, found in self.peaks.items()}}
        return json.dumps({"model": self.model, "backend": self.backend, **times, **peaks, "steps": steps})

    def svg(self, width: int = 720) -> str:
        """A bar for each step and one for what is outside the kernels, longest time widest, as an SVG picture."""
        steps = [(f"{r.index} {r.kernel}"[:40], ms) for r, ms in zip(self.rows, self.times_ms, strict=True)]
        steps.append(("outside the kernels", self.overhead_ms))
        longest, row, left = max(1e-9, *(ms for _, ms in steps)), 16, 250
        bars = []
        for i, (name, ms) in enumerate(steps):
            y, length = 28 + i * row, (width - left - 90) * ms / longest
            bars.append(
                f'<text x="{left - 6}" y="{y + 11}" text-anchor="end">{_escaped(name)}</text>'
                f'<rect x="{left}" y="{y + 2}" width="{length:.1f}" height="{row - 4}" rx="2"/>'
                f'<text x="{left + length + 6:.1f}" y="{y + 11}">{ms:.3f} ms</text>'
            )
        height = 40 + row * len(steps)
        title = _escaped(self._title())
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{title}" '
            f'font-family="system-ui, sans-serif" font-size="10" fill="currentColor">'
            f'<text x="8" y="16" font-size="13">{title}</text>'
            f'<g fill-opacity="0.75">{"".join(bars)}</g></svg>'
        )


async def time_runs(
    run: Callable[[Any], Awaitable[Any]],
    executor: Executor,
    inputs: Mapping[str, memoryview],
    clock: Callable[[], float],
) -> tuple[float, float]:
    """Milliseconds of a whole run and of its part outside the kernels: medians of runs and bare passes in turns."""
    repeats, whole, outside = 1, list[float](), list[float]()
    while len(whole) < SAMPLES:
        start = clock()
        for _ in range(repeats):
            await run(inputs)
        elapsed = clock() - start
        if elapsed < VISIBLE_MS and repeats < MAX_REPEATS:
            repeats *= 2
            continue
        whole.append(elapsed / repeats)
        outside.append(whole[-1] - await executor.pass_ms(inputs, repeats))
    from statistics import median

    return median(whole), max(median(outside), 0.0)
