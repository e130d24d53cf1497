"""`measure open-sizes`: what a new size of an input costs over a size that is repeated, and the memory after 50 sizes.

Models with open sizes run at 20 sizes that they have not met, and once more at each. The decoder's cache grows by one
a step, beside ONNX Runtime. Times are CPU time of this process on one thread, so that other work on the machine counts
little; a size that begins a new plan (a regime) is told apart.
"""

import argparse
import asyncio
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from build_scripts.judge.backends import use_engine
from build_scripts.paths import ROOT

FOLDER = ROOT.parent / "shared" / "onnx"
SIZES, MORE, STEPS = 20, 50, 200
Feed = Callable[[int, np.random.Generator], dict[str, Any]]


def _words(i: int, draw: np.random.Generator) -> dict[str, Any]:
    tokens = 10 + 7 * i % 113
    ids = draw.integers(1000, 2000, (1, tokens))
    return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}


def _line(i: int, draw: np.random.Generator) -> dict[str, Any]:
    return {"x": draw.random((1, 3, 48, 96 + 8 * (37 * i % 50)), np.float32)}


def _photo(i: int, draw: np.random.Generator) -> dict[str, Any]:
    return {"x": draw.random((1, 3, 192 + 32 * (3 * i % 7), 192 + 32 * (5 * i % 9)), np.float32)}


def _camera(i: int, draw: np.random.Generator) -> dict[str, Any]:
    return {"input_1": draw.random((1, 100 + 11 * i % 97, 120 + 7 * i % 89, 3), np.float32)}


MODELS: dict[str, Feed] = {
    "minilm_l6_v2_int8w": _words, "ppocr_v6_rec_tiny_int8w": _line, "ppocr_v6_det_tiny": _photo, "mtcnn_pnet": _camera,
}  # fmt: skip


@dataclass
class Sweep:
    """What a model's sizes cost, in milliseconds of CPU time, and the memory of the process, in MiB."""

    model: str
    repeated: list[float] = field(default_factory=list)
    new: list[float] = field(default_factory=list)  # over the repeated run of the same size
    planned: list[float] = field(default_factory=list)  # as `new`, of sizes that began a plan
    plans: int = 0
    first_mib: float = 0.0
    last_mib: float = 0.0

    def row(self) -> list[str]:
        """As the table has it."""
        median = statistics.median(self.new) if self.new else float("nan")
        return [
            self.model, f"{statistics.median(self.repeated):.1f}", f"{median:.2f}", f"{max(self.new, default=0.0):.2f}",
            str(self.plans), f"{statistics.median(self.planned):.0f}" if self.planned else "–",
            f"{self.first_mib:.0f}", f"{self.last_mib:.0f}",
        ]  # fmt: skip


COLUMNS = ["model", "repeated", "new: median over it", "new: most", "plans", "a plan takes", "MiB first", "MiB last"]


def resident_mib() -> float:
    """Memory of this process that is resident; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


async def _timed(session: Any, fed: dict[str, Any]) -> float:
    """CPU milliseconds of a run."""
    start = time.process_time()
    await session.run(fed)
    return (time.process_time() - start) * 1e3


async def swept(path: Path, feed: Feed, backend: str) -> Sweep:
    """A model at 20 new sizes, each repeated, and at 50 in all for the memory."""
    from webinfer.session.loading import load

    draw, found = np.random.default_rng(1), Sweep(path.stem)
    with await load(path, backend=backend, threads=1, strict=True) as session:
        for i in range(2):  # a plan of numbers, then one with symbols
            await session.run(feed(i, draw))
        found.first_mib, plans = resident_mib(), {id(session.executor)}
        for i in range(2, 2 + SIZES):
            fed = feed(i, draw)
            cost = await _timed(session, fed)
            again = min([await _timed(session, fed) for _ in range(3)])
            (found.new if id(session.executor) in plans else found.planned).append(cost - again)
            plans.add(id(session.executor))
            found.repeated.append(again)
        for i in range(2 + SIZES, MORE):
            await session.run(feed(i, draw))
            plans.add(id(session.executor))
        found.last_mib, found.plans = resident_mib(), len(plans)
    return found


async def decoded(backend: str) -> tuple[list[float], list[float], float]:
    """CPU milliseconds a token of a small decoder, ours and ONNX Runtime's, and the largest difference of a logit."""
    import onnxruntime

    from build_scripts.judge.open_models import HEADS, WIDTH, decoder
    from webinfer.session.loading import load

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    rival = onnxruntime.InferenceSession(decoder(), options, providers=["CPUExecutionProvider"])
    names, ours, theirs, worst = [o.name for o in rival.get_outputs()], list[float](), list[float](), 0.0
    with await load(decoder(), backend=backend, threads=1, strict=True) as session:
        pasts = [info.name for info in session.inputs if info.name != "ids"]
        past: dict[str, Any] = {name: np.zeros((1, HEADS, 1, WIDTH // HEADS), np.float32) for name in pasts}
        other = dict(past)
        for step in range(STEPS):
            ids = np.array([[step % 40]])
            start = time.process_time()
            got = await session.run({"ids": ids, **past})
            middle = time.process_time()
            want = dict(zip(names, rival.run(None, {"ids": ids, **other}), strict=True))
            ours.append((middle - start) * 1e3)
            theirs.append((time.process_time() - middle) * 1e3)
            worst = max(worst, float(np.abs(got["logits"].numpy() - want["logits"]).max()))
            past = {name: got[name.replace("past", "next")].numpy() for name in pasts}
            other = {name: want[name.replace("past", "next")] for name in pasts}
    return ours, theirs, worst


def run(argv: list[str]) -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(prog="build_scripts measure open-sizes", description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where models lie")
    parser.add_argument("--backend", default="wasm")
    options = parser.parse_args(argv)
    use_engine()
    rows = []
    for name, feed in MODELS.items():
        path = options.folder / f"{name}.onnx"
        if path.is_file():
            rows.append(asyncio.run(swept(path, feed, options.backend)).row())
    machine = (
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    )
    print(f"# Open sizes on {options.backend}\n\n- {machine}\n- CPU time of one thread, in milliseconds\n")
    print("## New sizes\n")
    for row in (COLUMNS, ["---"] * len(COLUMNS), *rows):
        print(f"| {' | '.join(row)} |")
    ours, theirs, worst = asyncio.run(decoded(options.backend))
    print("\n## A decoder whose cache grows by one a step\n")
    print("| steps | ours, median | mean | first three | ONNX Runtime, median | mean | largest difference |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    shown = ", ".join(f"{value:.0f}" for value in ours[:3])
    middle, mean = statistics.median(ours), statistics.fmean(ours)
    print(
        f"| {STEPS} | {middle:.2f} | {mean:.2f} | {shown} | {statistics.median(theirs):.2f} | "
        f"{statistics.fmean(theirs):.2f} | {worst:.1e} |"
    )
    return 0
