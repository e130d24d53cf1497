"""The devices of a lab as one `concurrent.futures.Executor`: models run on whichever device is free.

What a device had when it went away is given to another. Each device is asked something whose answer is known, after it
has opened a model and behind each group of runs; the group's results are delivered when that answer is right. A device
that answers wrongly is put aside, and what it computed since runs again elsewhere. So a result is delivered once, and
computed at least once.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent import futures
from dataclasses import field
from functools import partial
from pathlib import PurePath
from typing import Any

from webinfer.errors import ClosedError, InputError, WebinferError
from webinfer.lab.addresses import devices as devices_of
from webinfer.lab.device import Device, device
from webinfer.lab.errors import DeviceGoneError, LabError, NoDeviceError
from webinfer.lab.session import DeviceSession
from webinfer.lazy_dataclass import dataclass
from webinfer.session.options import real_number, whole_number
from webinfer.session.session import Session
from webinfer.session.waiting import SyncSession, load_sync
from webinfer.tensor import Tensor

POLL_S = 1.0  # between two looks at who is in the lab
SILENCE_S = 60.0  # without a word about a run; then the device counts as gone
CHECK_EVERY = 16  # runs between two questions whose answer is known: 6 % of the work
TOLERANCE = 1e-3  # of an output's range: what GPUs and processors differ in, as `Session.verify` takes it
IN_FLIGHT = 2  # runs that a device has: one to work at, one on its way
MOST_LOSSES = 5  # devices that may go away at one run; then it fails
SEED = 20  # of the noise that is asked about


class Executor(futures.Executor):
    """Runs models on the lab's devices: `executor.submit(session, inputs)`, `executor.map(session, batches)`.

    A model is an open session, or what `load` takes; its results are those of `Session.run`. What else can be called
    runs on a thread of this process, where `executor.run` waits for a device: so Dask takes it as `scheduler`.
    """

    def __init__(
        self, address: str | None = None, *, devices: Sequence[str] | None = None, backend: str = "wasm",
        shapes: Mapping[str, Sequence[int]] | None = None, check_every: int = CHECK_EVERY,
        tolerance: float = TOLERANCE, silence_s: float = SILENCE_S,
    ) -> None:  # fmt: skip
        """`address` as `lab.device` takes it. `devices` names those that are used; None: all, also those that come.

        `backend` and `shapes` are those of `load` there. A device that says nothing about a run for `silence_s` seconds
        counts as gone.

        Raises:  InputError naming a wrong option
        """
        self._address, self._wanted, self._backend, self._shapes = address, devices, backend, shapes
        self._check_every = whole_number("check_every", check_every, 1, 1 << 20)
        self._tolerance = real_number("tolerance", tolerance)
        self._silence_s = real_number("silence_s", silence_s, unit=" of seconds")
        self.put_aside: dict[str, str] = {}  # devices that answered wrongly, and how
        self._jobs: deque[_Job] = deque()
        self._models: dict[str, _Model] = {}
        self._working: dict[str, asyncio.Task[None]] = {}
        self._over = False
        self._threads = futures.ThreadPoolExecutor(32, "webinfer lab calls")
        self._loop = asyncio.new_event_loop()
        self._came = asyncio.Event()
        self._watching = self._loop.create_task(self._watch())
        threading.Thread(target=self._serve, name="webinfer lab", daemon=True).start()

    @property
    def devices(self) -> tuple[str, ...]:
        """The names of the devices at work."""
        return tuple(self._working)

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
        """A future of a model's outputs for these inputs; or of a call of anything else, on a thread here.

        Raises:  ClosedError after `shutdown`; InputError if a session cannot be opened elsewhere
        """
        if self._over:
            raise ClosedError("this executor was shut down; create another one")
        if not isinstance(fn, Session | SyncSession | str | PurePath | bytes | bytearray | memoryview):
            return self._threads.submit(fn, *args, **kwargs)
        if len(args) != 1 or kwargs:
            count = len(args) + len(kwargs)
            raise InputError(f"a model is submitted with its inputs only, not with {count} arguments")
        job = _Job(self._model(fn), args[0])
        self._loop.call_soon_threadsafe(self._add, job)
        return job.future

    def run(self, model: Any, inputs: Any) -> dict[str, Tensor]:
        """The outputs by name, once a device has computed them.

        Raises:  what `Session.run` raises there
        """
        found: dict[str, Tensor] = self.submit(model, inputs).result()
        return found

    def wait_for_devices(self, count: int, timeout: float = 60.0) -> None:
        """Waits until so many devices are at work.

        Raises:  NoDeviceError after `timeout` seconds
        """
        end = time.monotonic() + timeout
        while len(self._working) < count:
            if time.monotonic() > end:
                raise NoDeviceError(
                    f"{len(self._working)} devices are in the lab, but {count} are needed; open its page"
                )
            time.sleep(0.02)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends it: at once with `cancel_futures`, else when all that was submitted is done; devices are let go."""
        if self._over:
            return
        self._over = True
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        ending = asyncio.run_coroutine_threadsafe(self._end(cancel_futures), self._loop)
        if wait:
            ending.result()

    # ----- on the executor's own loop

    def _serve(self) -> None:
        self._loop.run_forever()
        self._loop.close()

    def _model(self, given: Any) -> _Model:
        key, source, options = _source_of(given)
        return self._models.setdefault(key, _Model(key, source, dict(options)))

    def _add(self, job: _Job) -> None:
        self._jobs.append(job)
        self._came.set()

    async def _end(self, cancel: bool) -> None:
        while not cancel and (self._jobs or any(model.under_way for model in self._models.values())):
            await asyncio.sleep(0.01)
        tasks = [self._watching, *self._working.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for job in self._jobs:
            job.future.cancel()
        for model in self._models.values():
            model.close()
        self._loop.call_soon(self._loop.stop)

    async def _watch(self) -> None:
        """Puts devices to work that are in the lab and free."""
        while True:
            try:
                names = [str(row["name"]) for row in await devices_of(self._address) if not row["busy"]]
            except LabError:  # the server restarts
                names = []
            for name in names:
                if name in self._working or name in self.put_aside or (self._wanted and name not in self._wanted):
                    continue
                self._working[name] = task = self._loop.create_task(self._use(name))
                task.add_done_callback(partial(self._left, name))
            await asyncio.sleep(POLL_S)

    def _left(self, name: str, task: asyncio.Task[None]) -> None:
        self._working.pop(name, None)

    async def _use(self, name: str) -> None:
        """Drives one device until it goes away or answers wrongly."""
        try:
            async with await device(name, self._address, self._silence_s) as found:
                opened = None
                while True:
                    group = await self._next_group()
                    opened = await self._done_by(found, group, opened)
        except (LabError, _WrongAnswer):
            return  # another one goes on; the watch sees whether it comes again

    async def _next_group(self) -> list[_Job]:
        """Runs of one model, no more than this device's share of what is waiting."""
        while not self._jobs:
            self._came.clear()
            await self._came.wait()
        first = self._jobs.popleft()
        group, share = [first], -(-len(self._jobs) // max(len(self._working), 1))
        while len(group) < min(share, self._check_every) and self._jobs and self._jobs[0].model is first.model:
            group.append(self._jobs.popleft())
        return [job for job in group if job.begins()]

    async def _done_by(
        self, found: Device, group: list[_Job], opened: tuple[_Model, DeviceSession] | None
    ) -> tuple[_Model, DeviceSession] | None:
        """Runs a group on a device and delivers it once a known answer was right; else it waits for another device."""
        if not group:
            return opened
        model = group[0].model
        model.under_way.extend(group)
        try:
            if opened is None or opened[0] is not model:
                opened = model, await self._opened(found, model)
            check = self._check(found.name, opened[1], model)  # on its way while the last run is worked at
            *results, _ = await _in_flight([*(self._ran(opened[1], job) for job in group), check])
        except (LabError, _WrongAnswer, asyncio.CancelledError) as error:
            self._again(group, error)
            raise
        except Exception as error:  # the model cannot be opened
            for job in group:
                job.future.set_exception(error)
            return None
        finally:
            for job in group:
                model.under_way.remove(job)
        for job, result in zip(group, results, strict=True):
            if isinstance(result, WebinferError):
                job.future.set_exception(result)
            else:
                job.future.set_result(result)
        return opened

    async def _ran(self, session: DeviceSession, job: _Job) -> dict[str, Tensor] | WebinferError:
        try:
            return await session.run(job.inputs)
        except LabError:
            raise
        except WebinferError as error:  # of these inputs
            return error

    async def _opened(self, found: Device, model: _Model) -> DeviceSession:
        options = {"backend": self._backend, "shapes": self._shapes} | model.options
        await model.prepare(self._shapes)
        session = await found.load(model.source, **options)
        await self._check(found.name, session, model)
        return session

    async def _check(self, name: str, session: DeviceSession, model: _Model) -> None:
        """Asks for what is known.

        Raises:  _WrongAnswer
        """
        output, far = farthest(await session.run(model.known_inputs), model.known)
        if not far <= self._tolerance:
            self.put_aside[name] = (
                f"output {output!r} of {model.key[:40]!r} is {far:.3g} of its range off on {name!r}, where "
                f"{self._tolerance:g} is allowed"
            )
            raise _WrongAnswer(self.put_aside[name])

    def _again(self, group: Sequence[_Job], error: BaseException) -> None:
        """Gives a group to whichever device is free next."""
        for job in reversed(group):
            job.losses += 1
            if job.losses >= MOST_LOSSES:
                job.future.set_exception(DeviceGoneError(f"{job.losses} devices were lost during this run: {error}"))
            else:
                self._jobs.appendleft(job)
        self._came.set()


class _WrongAnswer(WebinferError):
    """A device answered wrongly."""


@dataclass(eq=False, slots=True)
class _Job:
    """One run to be done."""

    model: _Model
    inputs: Any
    future: futures.Future[Any] = field(default_factory=futures.Future)
    losses: int = 0  # devices that went away while they had it

    def begins(self) -> bool:
        """False if the caller has cancelled it."""
        return self.losses > 0 or self.future.set_running_or_notify_cancel()


@dataclass(eq=False, slots=True)
class _Model:
    """A model, and what is known of it: inputs of noise, and the outputs that this process computes for them."""

    key: str
    source: Any
    options: dict[str, Any]
    known_inputs: dict[str, Any] = field(default_factory=dict)
    known: dict[str, Tensor] = field(default_factory=dict)
    under_way: list[_Job] = field(default_factory=list)
    preparing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def prepare(self, shapes: Mapping[str, Sequence[int]] | None) -> None:
        """Computes the known answer, once."""
        async with self.preparing:
            if not self.known:
                options = {"shapes": shapes} | self.options
                self.known_inputs, self.known = await asyncio.to_thread(partial(known_answer, self.source, **options))

    def close(self) -> None:
        """Forgets what is known."""
        self.known.clear()


def _source_of(given: Any) -> tuple[str, Any, Mapping[str, Any]]:
    """What tells a model apart, what `load` takes for it, and its own options there."""
    if isinstance(given, SyncSession):
        given = given.session
    if isinstance(given, Session):
        if given.recipe is None:
            raise InputError(f"{given.name!r} was not loaded by `load`, so no device can open it")
        sealed = given.recipe.sealed()
        options = {name: sealed.options[name] for name in ("shapes", "member") if sealed.options.get(name)}
        return f"{sealed.name} {sealed.key}", sealed.source, options
    if isinstance(given, str | PurePath):
        return str(given), given, {}
    data = bytes(given)
    return hashlib.sha256(data).hexdigest(), data, {}


def known_answer(source: Any, **options: Any) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Noise for a model, and the outputs that this process computes for it. `options` are those of `load`.

    Raises:  what `load` and `Session.run` raise
    """
    with load_sync(source, **options | {"backend": "wasm"}) as session:
        inputs = session.noise(SEED)
        return dict(inputs), session.run(inputs)


def farthest(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> tuple[str, float]:
    """The output that is farthest from what is wanted, and how far, as `difference` has it; one that lacks is first."""
    far = {name: difference(found[name], tensor) if name in found else math.inf for name, tensor in wanted.items()}
    return max(far.items(), key=lambda pair: math.inf if math.isnan(pair[1]) else pair[1], default=("", 0.0))


async def _in_flight(runs: Sequence[Any]) -> list[Any]:
    """The results of coroutines in order, a few at a time; the first that raises ends all of them."""
    gate = asyncio.Semaphore(IN_FLIGHT)

    async def one(run: Any) -> Any:
        async with gate:
            return await run

    tasks = [asyncio.ensure_future(one(run)) for run in runs]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for run in runs:
            run.close()


def difference(found: Tensor, wanted: Tensor) -> float:
    """The largest difference of two tensors, relative to the range of the second; infinite if their shapes differ."""
    if found.shape != wanted.shape or found.dtype is not wanted.dtype:
        return float("inf")
    ours, theirs = found.tolist(), wanted.tolist()
    if not theirs:
        return 0.0
    span = float(max(theirs)) - float(min(theirs)) or max(abs(float(theirs[0])), 1.0)
    far = [abs(float(a) - float(b)) for a, b in zip(ours, theirs, strict=True) if a == a or b == b]
    return max((one if one == one else float("inf") for one in far), default=0.0) / span
