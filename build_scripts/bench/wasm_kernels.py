"""Times every WASM kernel of the list alone, in wasmtime, on the largest case that its test declares."""

import asyncio
import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from build_scripts.files import write_json
from build_scripts.paths import ROOT

MIN_SECONDS = 0.002  # of one timing: a kernel that is faster is repeated
ROUNDS = 7
COPIES = 32  # of the step in the program that is timed
ELEMENTS = 1 << 16  # of the first input, where the case can be made larger


@dataclass(frozen=True)
class Timing:
    """One kernel on one case. `gbytes` counts the blocks that the step touches, `gflops` a step that is all that
    its operator does; else it is None.

    Units: milliseconds; thousands of millions a second.
    """

    kernel: str
    case: str
    shapes: str
    ms: float
    gflops: float | None
    gbytes: float


def bench_wasm_kernels(names: Collection[str], json: Path | None) -> int:
    """Prints the table of all kernels, or of those named, and writes it as JSON too; always 0."""
    for folder in (ROOT / "web" / "python", ROOT):  # the engine and the kernels' cases, from the checkout
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    timings, isa = asyncio.run(_time_all(names))
    print(f"{isa} build in wasmtime, one thread, the best of {ROUNDS} rounds")
    print(table(timings))
    if json is not None:
        write_json(json, {"isa": isa, "kernels": [asdict(timing) for timing in timings]})
    return 0


async def _time_all(names: Collection[str]) -> tuple[list[Timing], str]:
    from kernels_wasm.tests.kernel_cases import PAIRS_ONLY, TASKS_ONLY, kernel_cases
    from webinfer.backends.wasm.kernel_table import KERNELS
    from webinfer.host.native import NativeHost

    host, cases, timings, isa = NativeHost(), kernel_cases(), list[Timing](), ""
    for name in KERNELS:
        if name in PAIRS_ONLY or (names and name not in names):
            continue
        kernels = await host.kernels()
        isa = kernels.isa
        try:
            timings.append(_time_picture(name, kernels) if name in TASKS_ONLY else _time(name, cases[name][0], kernels))
        finally:
            kernels.close()
    return timings, isa


def _time(kernel: str, variant: Any, kernels: Any) -> Timing:
    """The kernel's step with most units, alone."""
    from webinfer.backends.base import shapes_text
    from webinfer.backends.wasm.kernel_table import KERNELS
    from webinfer.plan import program

    variant = variant.enlarged(kernel, ELEMENTS)
    arrays = variant.arrays()
    node = variant.node(arrays)
    executor, builder = variant.executor(node, kernels)
    steps = builder.run_part.steps
    if any(step.kernel == kernel for step in steps):
        values = dict(zip(node.inputs, arrays, strict=True))
        for place, value in zip(executor.layout.inputs, executor.graph.inputs, strict=True):
            kernels.write(place.address, values[value].tobytes())
    else:  # a kernel of the load, whose steps still have what they read
        steps = builder.prepare_part.steps
    at = max((i for i, step in enumerate(steps) if step.kernel == kernel), key=lambda i: steps[i].units)
    copies = [*steps[:at], *steps[at : at + 1] * COPIES]  # so many, that the call itself is little beside them
    address = executor.layout.top
    kernels.grow(address + program.nbytes(copies))
    kernels.write(address, program.encode(copies, KERNELS))
    kernels.run(address, 0, at)  # what the step reads
    seconds = _best(lambda: kernels.run(address, at, COPIES)) / COPIES
    flops = 0
    if len(steps) == 1 and steps is builder.run_part.steps:
        flops = node.cost().flops
    blocks = {arg.block: arg.block.nbytes for arg in steps[at].args if hasattr(arg, "block")}
    return _timing(kernel, node.label, shapes_text(node), seconds, flops, sum(blocks.values()))


def _time_picture(kernel: str, kernels: Any) -> Timing:
    """A kernel that lays a picture into a tensor, which no plan has."""
    import numpy as np

    from kernels_wasm.tests.kernel_cases import task_call
    from webinfer.tasks.workspace import Workspace

    image = np.random.default_rng(3).integers(0, 256, (256, 256, 4), np.uint8)
    args = task_call(kernel, Workspace(kernels), image)
    seconds = _best(lambda: kernels.call(kernel, *args, 0, len(image)))
    return _timing(kernel, "a picture", "256x256x4 -> 256x256x3", seconds, 0, 4 * image.size)


def _best(work: Callable[[], Any]) -> float:
    """Seconds of one call: the least of some rounds, each long enough for the clock."""
    repeats, found = 1, list[float]()
    while len(found) < ROUNDS:
        begin = time.perf_counter()
        for _ in range(repeats):
            work()
        elapsed = time.perf_counter() - begin
        if elapsed < MIN_SECONDS and not found:
            repeats *= 4
        else:
            found.append(elapsed / repeats)
    return min(found)


def _timing(kernel: str, case: str, shapes: str, seconds: float, flops: int, nbytes: int) -> Timing:
    gflops = flops / seconds / 1e9 if flops else None
    return Timing(kernel, case, shapes, seconds * 1e3, gflops, nbytes / seconds / 1e9)


def table(timings: Sequence[Timing]) -> str:
    """The timings as columns of text."""
    lines = [f"{'kernel':38} {'ms':>9} {'GFLOP/s':>8} {'GB/s':>8}  shapes"]
    for t in timings:
        gflops = f"{t.gflops:8.2f}" if t.gflops is not None else f"{'-':>8}"
        lines.append(f"{t.kernel:38} {t.ms:9.5f} {gflops} {t.gbytes:8.2f}  {t.shapes}")
    return "\n".join(lines)
