"""One batch of graphs: drawn, run by the runtime and by this engine, judged."""

import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from build_scripts.judge.fuzz.drawing import Drawn, drawn
from build_scripts.judge.fuzz.graphs import FuzzGraph
from build_scripts.judge.fuzz.ours import Ours
from build_scripts.judge.fuzz.tally import DRAWING, OURS, RUNTIME, Finding, Tally, Task
from build_scripts.judge.fuzz.verdicts import EXPLAINED, FINDINGS, REFUSED, Verdict, attempt, judged, shrunk
from build_scripts.judge.together import Outcome

REFUSED_TRIED = 4  # every so many-th piece that the runtime refuses is tried here: no untyped error may come of it


class Batches:
    """Runs batches of one task. `mark` tells the watching process which graph is at which phase."""

    def __init__(self, task: Task, format: Any, mark: Callable[[int, int], None]) -> None:
        self._task, self._format, self._mark, self._ours = task, format, mark, Ours()
        self._pieces = 0

    def run(self, indices: Sequence[int]) -> Tally:
        """What came of the graphs of these numbers."""
        tally = Tally()
        cases: list[tuple[Drawn, Any]] = []
        with _timed(tally, "drawing"):
            for i in indices:
                self._mark(i, DRAWING)
                found = drawn(self._format, (self._task.seed, i), self._task.only, self._task.open_sizes)
                self._count(tally, found)
                if found.graph.outputs:
                    self._mark(i, RUNTIME)
                    cases.append((found, attempt(self._format.whole, found.graph)))
        for backend in self._task.backends:
            self._judge(backend, cases, tally)
        with _timed(tally, "refused pieces"):
            self._try_refused([found for found, _ in cases], tally)
        return tally

    def _count(self, tally: Tally, found: Drawn) -> None:
        tally.graphs += 1
        tally.nodes += len(found.graph.nodes)
        tally.pieces_refused += len(found.refused)
        tally.drawn.update(node.op for node in found.graph.nodes)
        tally.failed.update(found.failed)

    def _judge(self, backend: str, cases: Sequence[tuple[Drawn, Any]], tally: Tally) -> None:
        with _timed(tally, backend):
            outcomes = self._outcomes(backend, [found for found, _ in cases])
        with _timed(tally, "judging"):
            for (found, want), got in zip(cases, outcomes, strict=True):
                self._mark(found.seed[-1], RUNTIME)
                verdict = judged(self._format, found.graph, want, got, backend)
                if verdict.kind in FINDINGS:
                    verdict = self._found(backend, found.seed[-1], found.graph, verdict, tally)
                self._note(backend, verdict, tally)

    def _outcomes(self, backend: str, graphs: Sequence[Drawn]) -> list[Outcome]:
        alone = [
            i for i, g in enumerate(graphs) if np.random.default_rng([*g.seed, 5]).random() < self._task.session_share
        ]
        found: dict[int, Outcome] = {}
        for i in alone:
            self._mark(graphs[i].seed[-1], OURS)
            found[i] = self._ours.session(self._format, graphs[i].graph, backend)
        left = [i for i in range(len(graphs)) if i not in found]
        if left:
            self._mark(graphs[left[0]].seed[-1], OURS)
            together = self._ours.together(self._format, [graphs[i].graph for i in left], backend)
            found |= dict(zip(left, together, strict=True))
        return [found[i] for i in range(len(graphs))]

    def _note(self, backend: str, verdict: Verdict, tally: Tally) -> None:
        tally.verdicts[backend, verdict.kind] += 1
        if verdict.kind == EXPLAINED:
            tally.rules[backend, verdict.why] += 1
        if verdict.kind == REFUSED:
            tally.refusals[backend, _general(verdict.why)] += 1

    def _try_refused(self, cases: Sequence[Drawn], tally: Tally) -> None:
        for found in cases:
            for piece in found.refused:
                self._pieces += 1
                if self._pieces % REFUSED_TRIED:
                    continue
                backend = self._task.backends[0]
                self._mark(found.seed[-1], OURS)
                model = attempt(self._format.model, piece)
                if isinstance(model, Exception):
                    continue
                verdict = judged(
                    self._format, piece, RuntimeError("refused"), self._ours.session(self._format, piece, backend)
                )
                if verdict.kind in FINDINGS:
                    self._found(backend, found.seed[-1], piece, verdict, tally)

    def _found(self, backend: str, index: int, graph: FuzzGraph, verdict: Verdict, tally: Tally) -> Verdict:
        """The verdict on the graph made small; a finding is written down."""

        def run(candidate: FuzzGraph) -> Outcome:
            self._mark(index, OURS)
            return self._ours.session(self._format, candidate, backend)

        again = judged(self._format, graph, attempt(self._format.whole, graph), run(graph), backend)
        small, verdict = shrunk(self._format, graph, again if again.kind in FINDINGS else verdict, run, backend)
        if again.kind not in FINDINGS:
            verdict = Verdict(verdict.kind, f"{verdict.why} (together with others only)")
        if verdict.kind in FINDINGS:
            tally.findings.append(self._written(backend, index, small, verdict))
        return verdict

    def _written(self, backend: str, index: int, graph: FuzzGraph, verdict: Verdict) -> Finding:
        folder = self._task.folder
        folder.mkdir(parents=True, exist_ok=True)
        stem = folder / f"{self._format.name}-{self._task.seed}-{index}-{backend}"
        path = stem.with_suffix(f".{self._format.suffix}")
        path.write_bytes(self._format.model(graph))
        np.savez(stem.with_suffix(".npz"), **dict[str, Any](graph.inputs))
        finding = Finding(verdict.kind, backend, index, verdict.why, graph.described(), str(path))
        stem.with_suffix(".txt").write_text(f"{finding}\n")
        return finding


def _general(text: str) -> str:
    """An error without the numbers and names of one graph."""
    text = re.sub(r"has no plan yet, .*?load\(shapes=…\); ", "…", text)  # what comes behind it is the reason
    return re.sub(r"\bv?\d+\b", "N", text)[:160]


@contextmanager
def _timed(tally: Tally, name: str) -> Any:
    start = time.perf_counter()
    yield
    tally.seconds.update(Counter({name: time.perf_counter() - start}))
