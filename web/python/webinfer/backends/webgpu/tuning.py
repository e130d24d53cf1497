"""Which kernel each shape of a graph gets: one that won on this device, else a default tuning, else the default."""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Mapping, Sequence, Set
from dataclasses import field
from functools import cached_property

from webinfer.backends.base import Executor
from webinfer.backends.webgpu.default_tunings import default_tunings
from webinfer.backends.webgpu.dispatch import Target
from webinfer.backends.webgpu.executor import WebGpuExecutor, compiled
from webinfer.backends.webgpu.fused_groups import find_fusions, find_groups
from webinfer.backends.webgpu.fusion import SEPARATE
from webinfer.backends.webgpu.lowerings.variants import candidates, tuning_key
from webinfer.backends.webgpu.speculative_lowering import SpeculativeLowering
from webinfer.errors import DeviceLostError, GpuError, LimitError, ModelFormatError, OutOfMemoryError
from webinfer.flags import debug
from webinfer.graph.ir import Graph, Node, Value
from webinfer.host.gpu import GpuDevice, GpuOffer
from webinfer.host.interface import Host, Progress, ProgressEvent
from webinfer.lazy_dataclass import dataclass
from webinfer.tune.log import About, Log, TuningReport, Verdict, tuned_of
from webinfer.tune.search import Run, Trial, Winner, beats, compare, search
from webinfer.tune.single_node import graph_of_nodes, random_values
from webinfer.version import VERSION

MIN_MS = 5.0  # a timing lasts fifty times the 0.1 ms to which browsers round the GPU's clock
PLAN_MARGIN = 0.01  # share by which a tuned plan must beat the default one
PLAN_ROUNDS = 7  # interleaved; as many as of a tile on wasm
FLOPS_PER_BYTE = 20.0  # what a GPU computes while it moves a byte: 67 TFLOP/s over 3.35 TB/s of an H100


@dataclass(slots=True)
class Shape:
    """A node that several kernels can compute, or nodes that one kernel may compute together.

    `names` are the candidates, the default first; `places` the positions of such nodes in the graph. `inner` are
    the tuning keys of the single nodes, for where they are not fused. `known` are values that are made at load.
    """

    nodes: tuple[Node, ...]
    names: tuple[str, ...]
    places: list[tuple[int, ...]] = field(default_factory=list)
    inner: tuple[str, ...] = ()
    known: frozenset[Value] = frozenset()

    @property
    def weight(self) -> float:
        """A shape's part of the model's work."""
        total = 0.0
        for node in self.nodes:
            cost = node.cost()
            total += max(cost.flops, FLOPS_PER_BYTE * cost.bytes)
        return total * max(len(self.places), 1)


def shapes_of(graph: Graph, target: Target, folded: set[Value]) -> dict[str, Shape]:
    """The distinct shapes by tuning key: of fused nodes, of the single nodes among these, and of all others."""
    found: dict[str, Shape] = {}
    at = {node: position for position, node in enumerate(graph.nodes)}
    fused: set[Node] = set()
    for node, (fusion, _) in find_fusions(graph, target).items():
        parts = tuple(sorted((*fusion.absorbed, node), key=at.__getitem__))
        inner = tuple(tuning_key(part) for part in parts if len(candidates(part, target)) > 1)
        shape = found.setdefault(fusion.key, Shape(parts, fusion.candidates(target), inner=inner))
        shape.places.append(tuple(at[part] for part in parts))
        fused.update(parts)
    replaced: set[Node] = set()
    for node, group in find_groups(graph, target, set()).items():
        if group.product is None:
            continue
        replaced.update(one for one in group.absorbed if one.op is group.product.op)
        names = candidates(group.product, target)
        if len(names) > 1:
            fresh = Shape((group.product,), names, known=frozenset(group.constants))
            found.setdefault(tuning_key(group.product), fresh).places.append((at[node],))
    for position, node in enumerate(graph.nodes):
        if node in replaced or all(v in folded or not v.type.size for v in node.outputs):
            continue
        names = candidates(node, target)
        if len(names) > 1:
            shape = found.setdefault(tuning_key(node), Shape((node,), names))
            if node not in fused:
                shape.places.append((position,))
    return found


def about(device: GpuDevice | GpuOffer) -> About:
    """The place that timings on a device belong to."""
    return About(device.name, device.runtime, VERSION)


async def recall(host: Host, device: GpuDevice | GpuOffer) -> Log:
    """What was found on this device before. Lines that cannot be read are left out: they are found again."""
    log = Log(about(device))
    for problem in log.read(await host.recall(_file_name(device)) or ""):
        debug(1, f"remembered tuning log, {problem}; the line is ignored")
    return log


async def known(host: Host, device: GpuDevice | GpuOffer, tuning_ms: float | None) -> Log:
    """What a load with this budget for timings goes by: with 0 nothing that was timed here applies."""
    return Log(about(device)) if tuning_ms == 0 else await recall(host, device)


async def remember(host: Host, device: GpuDevice, log: Log) -> None:
    """Stores a log for later loads."""
    await host.remember(_file_name(device), log.text())


async def forget(host: Host) -> None:
    """Forgets what was found on this host's device."""
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


def _file_name(device: GpuDevice | GpuOffer) -> str:
    place = f"{device.name} {device.runtime}"
    return f"tuning-webgpu-{hashlib.sha256(place.encode()).hexdigest()[:16]}"


class Tuner:
    """Finds the kernels of one graph on one device, and builds with those that are known."""

    def __init__(self, graph: Graph, host: Host, device: GpuDevice, log: Log) -> None:
        self.graph, self.host, self.device, self.log = graph, host, device, log
        self._offered = default_tunings(device.name, device.software)
        self._trying = ""

    @cached_property
    def _folded(self) -> set[Value]:
        return self.graph.fixed_values()

    @cached_property
    def shapes(self) -> dict[str, Shape]:
        """What several kernels can compute, by tuning key; a load without a log does not need to know."""
        return shapes_of(self.graph, Target.of(self.device), self._folded)

    @cached_property
    def shipped(self) -> dict[str, str]:
        """The default tunings that suit this graph on this device."""
        return {key: self._offered[key] for key, s in self.shapes.items() if self._offered.get(key) in s.names}

    @cached_property
    def plan(self) -> str:
        """The name of the graph's verdict in the log: a digest of its tuning keys and how often each is used."""
        keys = " ".join(f"{key} {len(s.places)}" for key, s in sorted(self.shapes.items()))
        return hashlib.sha256(keys.encode()).hexdigest()[:16]

    def tuned(self) -> dict[str, str]:
        """Winners from the log that this device can run; none if the plan made of them had lost to the default."""
        if not self.log.winners:
            return {}
        verdict = self.log.verdicts.get(self.plan)
        if verdict is not None and not verdict.kept:
            return {}
        known = tuned_of(self.log.winners[key] for key in self.shapes if key in self.log.winners)
        return {key: kernel for key, kernel in known.items() if kernel in self.shapes[key].names}

    def _used(self) -> set[str]:
        """The tuning keys that matter now: not those of nodes that are fused everywhere."""
        kernels = {**self.shipped, **self.tuned()}
        apart = {k for key, s in self.shapes.items() if kernels.get(key) == SEPARATE for k in s.inner}
        return {key for key, shape in self.shapes.items() if shape.places} | apart

    async def compiled(
        self,
        tuned: Mapping[str, str],
        progress: Progress | None = None,
        *,
        given_ends: bool = False,
        ahead: SpeculativeLowering | None = None,
        beside: Sequence[Executor] = (),
    ) -> WebGpuExecutor:
        """The graph with these kernels, for other shapes with the default tunings, for others yet with the defaults."""
        kernels = {**self._offered, **tuned}  # the lowerings leave what does not suit

        def origins() -> dict[int, str]:
            return self.origins(tuned)

        return await compiled(
            self.graph, self.host, self.device, kernels, origins, progress, given_ends=given_ends, ahead=ahead,
            beside=beside,
        )  # fmt: skip

    def origins(self, tuned: Mapping[str, str]) -> dict[int, str]:
        """By a node's position: whether its kernel is tuned, shipped with the engine, or the default."""
        found: dict[int, str] = {}
        for key, shape in self.shapes.items():
            origin = "tuned" if key in tuned else "shipped" if key in self.shipped else "default"
            for places in shape.places:
                found |= dict.fromkeys(places, origin)
        return found

    # ----- tuning

    async def tune(self, budget_ms: float, progress: Progress | None = None) -> WebGpuExecutor:
        """The faster one of the tuned and the default plan; winners and verdict are remembered.

        What is known already is not timed again.
        """
        verdict, used = self.log.verdicts.get(self.plan), self._used()
        if verdict is not None and used <= self.log.winners.keys():
            executor = await self.compiled(self.tuned(), progress)
            executor.tuning = self._report(verdict, used, used)
            return executor
        base = await self.compiled({}, progress)
        try:
            before = set(self.log.winners)
            self.log.verdicts.pop(self.plan, None)
            used = await self._search(budget_ms, progress)
            chosen, verdict = await self._judge(base, self.tuned(), used)
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
        chosen.tuning = self._report(verdict, used, used & before)
        return chosen

    def _report(self, verdict: Verdict, used: Set[str], known: Set[str]) -> TuningReport:
        winners = {key: winner for key, winner in self.log.winners.items() if key in used}
        lines = Log(self.log.about, winners, {self.plan: verdict}).text()
        return TuningReport(self.log.about, verdict, len(winners) - len(known), len(known), len(used), lines)

    async def _search(self, budget_ms: float, progress: Progress | None) -> set[str]:
        """Finds winners, those of nodes that are better not fused behind the others; the keys in use."""
        deadline, done, clock = self.host.now_ms() + budget_ms, 0, self.host.now_ms
        used = self._used()

        def found(winner: Winner, number: int, total: int) -> None:
            self.log.winners[winner.key] = winner
            _tell(progress, done + number, done + total)

        while trials := [self._trial(key) for key in sorted(used) if key not in self.log.winners]:
            _tell(progress, done, done + len(trials))
            left = max(deadline - clock(), 0.0)
            winners = await search(trials, self._prepare, clock, left, min_ms=MIN_MS, found=found)
            done += len(winners)
            used = self._used()
            if len(winners) < len(trials):
                break
        self._trying = ""
        _tell(progress, done, done)
        return used

    def _trial(self, key: str) -> Trial:
        shape = self.shapes[key]
        default = self.shipped.get(key, shape.names[0])
        return Trial(key, (default, *(name for name in shape.names if name != default)), shape.weight)

    async def _prepare(self, trial: Trial, name: str) -> Run | None:
        self._trying = trial.key
        await self.host.pause()
        shape = self.shapes[trial.key]
        graph = graph_of_nodes(shape.nodes, self._folded | shape.known)
        kernels = {**self.shipped, **self.tuned(), trial.key: name}
        try:
            executor = await compiled(graph, self.host, self.device, kernels, dict)
        except (GpuError, LimitError, OutOfMemoryError) as error:
            debug(1, f"tuning {trial.key}: {name} cannot run: {error}")
            return None
        await executor.fill({v.name: random_values(v.type) for v in graph.inputs})
        return executor

    async def _judge(
        self, base: WebGpuExecutor, kernels: Mapping[str, str], used: set[str]
    ) -> tuple[WebGpuExecutor, Verdict]:
        """The plan that stays, and why; the other one is closed."""
        defaults = {key: self.shipped.get(key, shape.names[0]) for key, shape in self.shapes.items()}
        changed = sum(kernel != defaults[key] for key, kernel in kernels.items() if key in used)
        other = await self.compiled(kernels)
        runs: dict[str, Run] = {"default": base, "tuned": other} if changed else {"default": base}
        try:
            for executor in (base, other):
                await executor.fill({v.name: random_values(v.type) for v in self.graph.inputs})
            times = await compare(runs, MIN_MS, rounds=PLAN_ROUNDS)
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
