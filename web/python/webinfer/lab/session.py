"""A model on a device of the lab: what a Session does here, done there."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from webinfer.backends import registry
from webinfer.backends.base import PlanRow
from webinfer.dtypes import DType
from webinfer.errors import ClosedError, InputError
from webinfer.host.interface import Progress
from webinfer.lab.errors import error_of
from webinfer.lazy_dataclass import dataclass
from webinfer.session.inputs import TensorInfo
from webinfer.session.options import MAX_ROUNDS, real_number, whole_number
from webinfer.session.reports import Profile
from webinfer.session.verification import Difference, VerifyReport
from webinfer.tensor import Tensor, buffer_of
from webinfer.tune.log import About, TuningReport, Verdict

Answer = dict[str, Any]
BENCH_MS = 10_000


class Asks(Protocol):
    """What a session needs of its device."""

    name: str

    async def ask(
        self, action: str, fields: Mapping[str, Any], progress: Progress | None = None
    ) -> tuple[Answer, list[memoryview]]:
        """The answer, and its buffers."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds of whole runs on a device."""

    model: str
    device: str
    backend: str
    times_ms: list[float]

    @property
    def median_ms(self) -> float:
        """The time in the middle."""
        return statistics.median(self.times_ms)

    @property
    def least_ms(self) -> float:
        """The shortest time."""
        return min(self.times_ms)

    def __str__(self) -> str:
        figures = f"median {self.median_ms:.3f} ms, min {self.least_ms:.3f} ms of {len(self.times_ms)} runs"
        return f"{self.model} on {self.device}, {self.backend}: {figures}"


class DeviceSession:
    """A model that a device has open: run, verify, profile, bench and tune it there."""

    def __init__(self, device: Asks, name: str, asked: str) -> None:
        self.device, self.name, self.closed = device, name, False
        self.backend, self.choice = asked, ""
        self.inputs: tuple[TensorInfo, ...] = ()
        self._asked = asked

    async def compile(self, shapes: Mapping[str, Sequence[int]] | None, progress: Progress | None) -> None:
        """Has the device compile the model.

        Raises:  what `webinfer.load` raises; InputError if sizes stay open
        """
        found = await self._ask("plan", {"shapes": shapes or {}, "brief": True}, progress)
        if "error" in found:
            raise error_of(found["error"]["code"], found["error"]["message"])
        if found["open"]:
            raise InputError(f"{self.name!r} leaves sizes of its inputs open; give load(shapes=…)")
        self.backend, self.choice = found["backend"], found["choice"]
        self.inputs = tuple(
            TensorInfo(row["name"], DType(row["dtype"]), tuple(row["shape"]), None) for row in found["inputs"]
        )

    async def run(self, inputs: Mapping[str, Any] | Any | None = None) -> dict[str, Tensor]:
        """The outputs by name. `inputs` as `Session.run` takes them; None runs on seeded noise.

        Raises:  InputError; what the engine there raises; DeviceGoneError
        """
        given = {} if inputs is None else self._checked(inputs)
        found, buffers = await self._asked_with_buffers("run", {"inputs": given})
        rows = zip(found["outputs"], buffers, strict=True)
        return {row["name"]: Tensor(bytes(data), tuple(row["shape"]), DType(row["dtype"])) for row, data in rows}

    def _checked(self, inputs: Mapping[str, Any] | Any) -> dict[str, memoryview]:
        if not isinstance(inputs, Mapping):
            if len(self.inputs) != 1:
                raise InputError(f"{self.name!r} has {len(self.inputs)} inputs; give them by name")
            inputs = {self.inputs[0].name: inputs}
        infos = {info.name: info for info in self.inputs}
        if unknown := set(inputs) ^ set(infos):
            raise InputError(f"{self.name!r} takes {', '.join(infos)}; {', '.join(map(str, unknown))} does not fit")
        return {name: buffer_of(inputs[name], info.shape, info.dtype, name) for name, info in infos.items()}

    async def bench(self, rounds: int = 20, budget_ms: float = BENCH_MS) -> Timing:
        """Whole runs on noise, timed there: up to `rounds`, as long as the budget lasts.

        Raises:  InputError; what the engine there raises; DeviceGoneError
        """
        count = whole_number("rounds", rounds, 1, MAX_ROUNDS)
        found = await self._ask("time", {"count": count, "budget_ms": real_number("budget_ms", budget_ms)})
        return Timing(self.name, self.device.name, found["backend"], list(found["times"]))

    async def profile(self, rounds: int = 3, progress: Progress | None = None) -> Profile:
        """Milliseconds of each step of the plan, and of a whole run.

        Raises:  InputError; what the engine there raises; DeviceGoneError
        """
        found = await self._ask("profile", {"rounds": whole_number("rounds", rounds, 1, MAX_ROUNDS)}, progress)
        rows = [
            PlanRow(**{key: value for key, value in row.items() if key != "node"})
            for row in (await self._ask("graph", {}))["rows"]
        ]
        return Profile(self.name, self.backend, rows, found["times"], found["run_ms"], found["overhead_ms"])

    async def verify(
        self, against: str = "", tolerance: float = 1e-3, progress: Progress | None = None
    ) -> VerifyReport:
        """Every intermediate result compared with another backend of that device, on noise.

        Without a name it is the one that every browser has, or the GPU's where the session runs on that.

        Raises:  InputError; what the engine there raises; DeviceGoneError
        """
        other = against or next(row.name for row in registry.listed() if row.name not in (registry.AUTO, self.backend))
        fields = {"against": other, "tolerance": real_number("tolerance", tolerance)}
        found = await self._ask("verify", fields, progress)
        rows = [Difference(**{k: v for k, v in row.items() if k != "node"}) for row in found["differences"]]
        outputs = [Difference(**row) for row in found.get("outputs", ())]  # a page that was opened earlier sends none
        unjudged = found.get("unjudged", "")
        return VerifyReport(found["backend"], found["against"], tolerance, rows, outputs, unjudged)

    async def tune(self, budget_ms: float = 10_000, progress: Progress | None = None) -> TuningReport:
        """Kernels timed there; what is faster runs from now on, there and, by its log, wherever the device is the same.

        Raises:  InputError if the model's backend there is not tuned by hand; DeviceLostError; DeviceGoneError
        """
        budget_ms = real_number("budget_ms", budget_ms, unit=" of milliseconds")
        found = await self._ask("tune", {"budget_ms": budget_ms}, progress)
        about, verdict = About(**found["about"]), Verdict(**found["verdict"])
        return TuningReport(about, verdict, found["timed"], found["known"], found["shapes"], found["lines"])

    async def export_tuning(self) -> str:
        """All that was found on that device, as the lines of a log."""
        found: str = (await self._ask("export_tuning", {}))["lines"]
        return found

    async def import_tuning(self, text: str) -> tuple[int, int]:
        """Has the device take over lines of a log; how many, and how many are of other devices.

        Raises:  ModelFormatError naming lines that cannot be read
        """
        found = await self._ask("import_tuning", {"lines": text})
        return found["taken"], found["skipped"]

    async def _ask(self, action: str, fields: Mapping[str, Any], progress: Progress | None = None) -> Answer:
        return (await self._asked_with_buffers(action, fields, progress))[0]

    async def _asked_with_buffers(
        self, action: str, fields: Mapping[str, Any], progress: Progress | None = None
    ) -> tuple[Answer, list[memoryview]]:
        if self.closed:
            raise ClosedError(f"{self.device.name!r} has opened another model since; load {self.name!r} again")
        return await self.device.ask(action, {"backend": self._asked, **fields}, progress)

    def __repr__(self) -> str:
        return f"DeviceSession({self.name!r}, {self.backend} on {self.device.name})"
