"""As many threads as are faster than one here: browsers may name more cores than there are, or others use them."""

from __future__ import annotations

import logging
from collections.abc import Callable

from webinfer.backends.wasm.kernel_table import KERNELS
from webinfer.errors import BackendUnavailableError
from webinfer.host.interface import Host, Kernels
from webinfer.plan import program
from webinfer.plan.blocks import Block, Kind, Ref, Step

STEPS, ELEMENTS = 32, 1 << 14  # of the trial: as many pauses as a small model has, and little between them
ROUNDS = 3  # of trials, the least of which counts
ABORT_RATIO = 4  # times as long as one thread takes: not measured again
log = logging.getLogger("webinfer")
_fast: list[int] = []  # how many were fast in this process, once that is known
_offered: list[int] = []  # how many the host would have given then


def begin_team(host: Host, threads: int | None) -> None:
    """Starts the instance that `open_threads` will want first."""
    host.begin_kernels(None, _fast[0] if threads is None and _fast else threads)


async def open_threads(host: Host, isa: str | None, threads: int | None, proven: int = 0) -> Kernels:
    """A kernel instance of this many threads; None: of as many as start, and are faster than one in a trial.

    So many as were `proven` by an earlier visit are not tried again: while a page starts, other work takes cores from
    them, and a plan that was stored for them would be made anew. If they are too many, runs tell (pace.py), if they are
    too few, `better_thread_count`.

    Raises:  BackendUnavailableError
    """
    if threads is not None or _fast:
        return await host.kernels(isa, _fast[0] if threads is None else threads)
    try:
        kernels = await host.kernels(isa, None)
    except BackendUnavailableError as error:
        kernels = await host.kernels(isa, 1)
        log.warning("one thread is used: %s", error)
    if host.knows_cores:
        return kernels
    _offered[:] = [kernels.threads]
    if 0 < proven < kernels.threads:
        kernels.close()
        kernels = await host.kernels(kernels.isa, proven)
    while kernels.threads > 1 and kernels.threads != proven:
        team, one = trial(host, kernels)
        if team < one:
            break
        log.warning("%s threads are slower than one here (%.2f ms, against %.2f ms)", kernels.threads, team, one)
        kernels.close()
        kernels = await host.kernels(kernels.isa, kernels.threads // 2)
    _fast[:] = [kernels.threads]
    return kernels


async def better_thread_count(host: Host, isa: str) -> Kernels | None:
    """An instance of more threads than are used, if the host offers more and they are faster now; None if not.

    For who has the time to ask when nothing else is at work. As many are used from now on.
    """
    used = _fast[0] if _fast else 0
    if not used or used >= _offered[0]:
        return None
    _fast.clear()
    kernels = await open_threads(host, isa, None)
    if kernels.threads > used:
        return kernels
    kernels.close()
    _fast[:] = [used]
    return None


def trial(host: Host, kernels: Kernels) -> tuple[float, float]:
    """Milliseconds of short steps on all threads of an instance that holds no plan yet, and on one; nothing stays."""
    data = Block("trial", 4 * ELEMENTS, Kind.ARENA, address=(kernels.heap_base + 63) // 64 * 64)
    start = data.address + data.span
    args = KERNELS["f32_clamp"].arranged({"x": Ref(data), "y": Ref(data), "a": 0.0, "b": 1.0}, ELEMENTS)
    text = program.encode([Step("f32_clamp", args, ELEMENTS, 0)] * STEPS, KERNELS)
    kernels.grow(start + len(text))
    kernels.write(start, text)

    def least(work: Callable[[], object], repeats: int, abort_ms: float = float("inf")) -> float:
        work()  # code and threads wake up
        best = float("inf")
        for _ in range(ROUNDS):
            begin = host.now_ms()
            for _ in range(repeats):
                work()
            best = min(best, host.now_ms() - begin)
            if best > abort_ms:
                break
        return best

    one = team = 0.0
    repeats = 1
    while not (one and team) and repeats < 1000:  # some browsers' clocks are coarse on purpose
        one = least(lambda: kernels.call("run", start, 0, STEPS, 0, 1), repeats)
        if one:
            team = least(lambda: kernels.run(start, 0, STEPS), repeats, ABORT_RATIO * one)
        repeats *= 8
    kernels.write(start, bytes(len(text)))
    return team, one
