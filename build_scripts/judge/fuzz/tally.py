"""What a process is to do, and what came of it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

DRAWING, RUNTIME, OURS = 0, 1, 2  # what a process is at
PHASES = ("drawing with the runtime", "the runtime", "this engine")


@dataclass
class Task:
    """What a process is to do: graphs `start` to `stop` of a seed."""

    format: str
    seed: int
    start: int
    stop: int
    backends: Sequence[str]
    folder: Path
    skip: frozenset[int] = frozenset()
    batch: int = 16
    session_share: float = 0.1  # of graphs that go through `load`
    only: tuple[str, ...] = ()
    open_sizes: bool = False  # files leave the sizes of inputs open, which are drawn from 0 to 9


@dataclass
class Finding:
    """A difference or an untyped error, made small and written down."""

    kind: str
    backend: str
    index: int
    why: str
    described: str
    file: str = ""

    def __str__(self) -> str:
        return f"{self.kind} on {self.backend}, graph {self.index}: {self.why}\n    {self.described}\n    {self.file}"


@dataclass
class Tally:
    """What came of some graphs."""

    graphs: int = 0
    nodes: int = 0
    pieces_refused: int = 0
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)  # (backend, kind)
    rules: Counter[tuple[str, str]] = field(default_factory=Counter)  # (backend, rule)
    refusals: Counter[tuple[str, str]] = field(default_factory=Counter)  # (backend, the error)
    drawn: Counter[str] = field(default_factory=Counter)  # operators
    failed: Counter[str] = field(default_factory=Counter)  # rows that drew nothing
    findings: list[Finding] = field(default_factory=list)
    seconds: Counter[str] = field(default_factory=Counter)
    crashes: list[str] = field(default_factory=list)  # of the runtime

    def add(self, other: "Tally") -> None:
        """Adds what came of others."""
        self.graphs += other.graphs
        self.nodes += other.nodes
        self.pieces_refused += other.pieces_refused
        for name in ("verdicts", "rules", "refusals", "drawn", "failed", "seconds"):
            getattr(self, name).update(getattr(other, name))
        self.findings += other.findings
        self.crashes += other.crashes
