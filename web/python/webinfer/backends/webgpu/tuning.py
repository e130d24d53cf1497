"""Which kernel each shape of a graph gets: one timed on this device, one shipped for its class, or the default."""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field

from webinfer.backends.webgpu.dispatch import Target
from webinfer.backends.webgpu.executor import WebGpuExecutor, compiled
from webinfer.backends.webgpu.lowerings.variants import candidates, tuning_key
from webinfer.backends.webgpu.schedule import fold
from webinfer.backends.webgpu.shipped import shipped_choices
from webinfer.errors import DeviceLostError, GpuError, LimitError, ModelFormatError, OutOfMemoryError
from webinfer.flags import debug
from webinfer.graph.ir import Graph, Node, Value
from webinfer.host.gpu import GpuDevice
from webinfer.host.interface import Host, Progress, ProgressEvent
from webinfer.tune.alone import alone, noise
from webinfer.tune.log import ENGINE, About, Log, TuningReport, Verdict, choices_of
from webinfer.tune.search import Run, Trial, Winner, beats, compare, search

LEAST_MS = 5.0  # a timing lasts fifty times the 0.1 ms to which browsers round the GPU's clock
PLAN_MARGIN = 0.01  # share by which a tuned plan must beat the default one
PLAN_ROUNDS = 7
FLOPS_PER_BYTE = 20.0  # what a GPU computes while it moves a byte


@dataclass(slots=True)
class Shape:
    """A distinct shape of a graph that has a choice: candidates (the default first) and its nodes' positions."""

    node: Node
    names: tuple[str, ...]
    positions: list[int] = field(default_factory=list)


def shapes_of(graph: Graph, target: Target, folded: set[Value]) -> dict[str, Shape]:
    """The shapes by key."""
    found: dict[str, Shape] = {}
    for position, node in enumerate(graph.nodes):
        if all(v in folded or not v.type.size for v in node.outputs):
            continue
        names = candidates(node, target)
        if len(names) > 1:
            found.setdefault(tuning_key(node), Shape(node, names)).positions.append(position)
    return found


def about(device: GpuDevice) -> About:
    """The place that timings on a device belong to."""
    return About(device.name, device.runtime, ENGINE)


async def recall(host: Host, device: GpuDevice) -> Log:
    """What was found on this device before. Lines that cannot be read are left out: they are found again."""
    log = Log(about(device))
    for problem in log.read(await host.recall(_file_name(device)) or ""):
        debug(1, f"remembered tuning log, {problem}; the line is ignored")
    return log


async def remember(host: Host, device: GpuDevice, log: Log) -> None:
    """Keeps a log for later loads."""
    await host.remember(_file_name(device), log.text())


async def forget(host: Host) -> None:
    """Lets go what is known of this host's device."""
    device = await host.gpu()
    await remember(host, device, Log(about(device)))


async def export_log(host: Host) -> str:
    """What was found on this host's device, as JSON lines."""
    return (await recall(host, await host.gpu())).text()


async def import_log(host: Host, text: str) -> Log:
    """Adds lines that `export_log` gave to what is known of this host's device; lines of other places are skipped.

    Raises:  ModelFormatError naming the lines that cannot be read; nothing is taken over then
    """
    device = await host.gpu()
    given = Log(about(device))
    if problems := given.read(text):
        raise ModelFormatError(f"tuning log: {'; '.join(problems[:3])}; export it again")
    log = await recall(host, device)
    log.winners |= given.winners
    log.verdicts |= given.verdicts
    await remember(host, device, log)
    return given


def _file_name(device: GpuDevice) -> str:
    place = f"{device.name} {device.runtime}"
    return f"tuning-webgpu-{hashlib.sha256(place.encode()).hexdigest()[:16]}"


class Tuner:
    """The choices of one graph on one device."""

    def __init__(self, graph: Graph, host: Host, device: GpuDevice, log: Log) -> None:
        self.graph, self.host, self.device, self.log = graph, host, device, log
        self._folded = fold(graph)
        target = Target(dict(device.limits), device.features, device.software)
        self.shapes = shapes_of(graph, target, self._folded)
        shipped = shipped_choices(device.name, device.software)
        self.shipped = {key: shipped[key] for key, s in self.shapes.items() if shipped.get(key) in s.names}
        keys = " ".join(f"{key} {len(s.positions)}" for key, s in sorted(self.shapes.items()))
        self.plan = hashlib.sha256(keys.encode()).hexdigest()[:16]
        self._trying = ""

    def tuned(self) -> dict[str, str]:
        """Choices from the log that this device can run; none if the plan made of them had lost to the default."""
        verdict = self.log.verdicts.get(self.plan)
        if verdict is not None and not verdict.kept:
            return {}
        known = choices_of(self.log.winners[key] for key in self.shapes if key in self.log.winners)
        return {key: choice for key, choice in known.items() if choice in self.shapes[key].names}

    async def compiled(self, tuned: Mapping[str, str], progress: Progress | None = None) -> WebGpuExecutor:
        """The graph with these choices before the shipped ones before the defaults."""
        origins: dict[int, str] = {}
        for key, shape in self.shapes.items():
            origin = "tuned" if key in tuned else "shipped" if key in self.shipped else "default"
            origins |= dict.fromkeys(shape.positions, origin)
        return await compiled(self.graph, self.host, self.device, {**self.shipped, **tuned}, origins, progress)

    # ----- tuning

    async def tune(self, budget_ms: float, progress: Progress | None = None) -> WebGpuExecutor:
        """The faster one of the tuned and the default plan; winners and verdict are remembered.

        What is known already is not timed again.
        """
        base = await self.compiled({}, progress)
        try:
            known = sum(key in self.log.winners for key in self.shapes)
            trials = self._trials()
            await self._search(trials, budget_ms, progress)
            fresh = sum(trial.key in self.log.winners for trial in trials)
            self.log.verdicts.pop(self.plan, None)
            chosen, verdict = await self._judge(base, self.tuned())
        except DeviceLostError as error:
            base.close()
            if self._trying:  # the next tuning leaves this shape alone
                default = self.shapes[self._trying].names[0]
                self.log.winners[self._trying] = Winner(self._trying, default, 0.0, 0.0, default)
            await remember(self.host, self.device, self.log)
            debug(1, f"tuning {self.graph.name!r} lost the device: {error}")
            self.device = await self.host.gpu()
            return await self.compiled({}, progress)
        except BaseException:
            base.close()
            raise
        self.log.verdicts[self.plan] = verdict
        await remember(self.host, self.device, self.log)
        winners = {key: self.log.winners[key] for key in self.shapes if key in self.log.winners}
        lines = Log(self.log.about, winners, {self.plan: verdict}).text()
        chosen.tuning = TuningReport(self.log.about, verdict, fresh, known, len(self.shapes), lines)
        return chosen

    def _trials(self) -> list[Trial]:
        trials = []
        for key, shape in self.shapes.items():
            if key in self.log.winners:
                continue
            node, default = shape.node, self.shipped.get(key, shape.names[0])
            types = [v.type if v is not None else None for v in node.inputs]
            cost = node.op.cost(types, [v.type for v in node.outputs], node.attrs)
            weight = len(shape.positions) * max(cost.flops, FLOPS_PER_BYTE * cost.bytes)
            names = (default, *(name for name in shape.names if name != default))
            trials.append(Trial(key, names, weight))
        return trials

    async def _search(self, trials: list[Trial], budget_ms: float, progress: Progress | None) -> None:
        def found(winner: Winner, number: int, total: int) -> None:
            self.log.winners[winner.key] = winner
            _tell(progress, number, total)

        _tell(progress, 0, len(trials))
        await search(trials, self._prepare, self.host.now_ms, budget_ms, least_ms=LEAST_MS, found=found)
        self._trying = ""
        _tell(progress, len(trials), len(trials))

    async def _prepare(self, trial: Trial, name: str) -> Run | None:
        self._trying = trial.key
        await self.host.pause()
        graph = alone(self.shapes[trial.key].node, self._folded)
        try:
            executor = await compiled(graph, self.host, self.device, {trial.key: name}, {})
        except (GpuError, LimitError, OutOfMemoryError) as error:
            debug(1, f"tuning {trial.key}: {name} cannot run: {error}")
            return None
        await executor.fill({v.name: noise(v.type) for v in graph.inputs})
        return executor

    async def _judge(self, base: WebGpuExecutor, choices: Mapping[str, str]) -> tuple[WebGpuExecutor, Verdict]:
        """The plan that stays, and why; the other one is closed."""
        changed = sum(c != self.shipped.get(key, self.shapes[key].names[0]) for key, c in choices.items())
        other = await self.compiled(choices)
        runs: dict[str, Run] = {"default": base, "tuned": other} if changed else {"default": base}
        try:
            for executor in (base, other):
                await executor.fill({v.name: noise(v.type) for v in self.graph.inputs})
            times = await compare(runs, LEAST_MS, rounds=PLAN_ROUNDS)
        except BaseException:
            other.close()
            raise
        default, tuned = times["default"], times.get("tuned", times["default"])
        kept = not changed or beats(tuned, default, PLAN_MARGIN)
        (base if kept else other).close()
        figures = statistics.median(default), statistics.median(tuned)
        return (other if kept else base), Verdict(self.plan, self.graph.name, *figures, changed, kept)


def _tell(progress: Progress | None, done: int, total: int) -> None:
    if progress is not None:
        progress(ProgressEvent("tune", done, total, "steps"))
