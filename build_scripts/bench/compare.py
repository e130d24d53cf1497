"""`measure bench`: webinfer and its rivals in one page, on the same models, interleaved."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from build_scripts.bench.columns import NAMED, SYSTEMS, THREADS, entries_of
from build_scripts.bench.rivals import rivals_step
from build_scripts.bench.sources import readers
from build_scripts.errors import BuildError
from build_scripts.paths import BENCH_OUTPUT, ENGINE, MODELS, ROOT, ZOO
from build_scripts.setup.sequence import set_up
from build_scripts.steps import run_steps

MIN_ROUNDS = 5


def run(argv: list[str]) -> int:
    """0 when the benchmark ran to its end, whatever single systems could not do."""
    options = parse(argv)
    if options.kernels:
        return _kernel_site(options)
    if options.kernels_wasm:
        from build_scripts.bench.wasm_kernels import bench_wasm_kernels

        set_up()
        return bench_wasm_kernels(options.only.split(",") if options.only else (), options.json)
    if options.busy is not None:
        return _busy(options)
    set_up()
    run_steps([rivals_step()])
    sys.path.insert(0, str(ENGINE.parent))  # the engine of this checkout exports graphs for TF.js
    from build_scripts.bench.measure import measure, pack_static

    if options.static:
        return pack_static(options, entries_of(options))
    if options.first:
        from build_scripts.bench.first_runs import measure_first, report_first

        if options.report:
            return report_first(options.report, options.json)
        return measure_first(options, entries_of(options))
    if options.report:
        from build_scripts.bench.report import report_log

        return report_log(options.report, options.json)
    return measure(options, entries_of(options))


def _kernel_site(options: argparse.Namespace) -> int:
    sys.path.insert(0, str(ENGINE.parent))
    from build_scripts.bench.kernel_page import write_kernel_site

    print(f"{options.static}: {write_kernel_site(options.static, options.models)} cases; open kernels.html there")
    return 0


def _busy(options: argparse.Namespace) -> int:
    from build_scripts.bench.busy import bench_busy

    set_up()
    names = options.only.split(",") if options.only else ()
    paths = [path for path in sorted(options.models.glob("*.tflite")) if not names or path.stem in names]
    return bench_busy(paths, options.busy, max(options.threads), options.rounds, options.json)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The command line, checked."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts measure bench", description=__doc__)
    zoo = ZOO if ZOO.is_dir() else MODELS
    folder = "a folder of .tflite (ONNX versions in its onnx/) or .onnx files, or of folders with a model.json"
    parser.add_argument("--models", type=Path, default=zoo, help=folder)
    parser.add_argument("--only", help="comma-separated names of models of that folder")
    named = f"comma-separated, of {', '.join((*SYSTEMS, *NAMED))} (default: those that read a format of the folder)"
    parser.add_argument("--systems", help=named)
    parser.add_argument("--threads", type=int, action="append", help="a thread count, repeatable (default 1 and 2)")
    parser.add_argument("--rounds", type=int, default=MIN_ROUNDS, help="rounds in which every system has its turn")
    parser.add_argument("--turn-ms", type=float, default=120, help="about how long a turn lasts")
    parser.add_argument("--limit", type=float, default=120, help="seconds for one call of a system")
    parser.add_argument("--backend", choices=("wasm", "webgpu"), default="wasm")
    where = f"where the JSON goes, table and chart beside it (default {BENCH_OUTPUT.relative_to(ROOT)}/bench.json)"
    parser.add_argument("--json", type=Path, help=where)
    parser.add_argument("--static", type=Path, help="write a site that needs no server of ours, and measure nothing")
    parser.add_argument("--kernels", action="store_true", help="with --static: a site that times single GPU kernels")
    parser.add_argument("--kernels-wasm", action="store_true", help="every WASM kernel alone (--only: these kernels)")
    beside = "one thread and teams of threads, natively, alone and beside so many busy processes on their cores"
    parser.add_argument("--busy", type=int, help=beside)
    parser.add_argument("--first", action="store_true", help="only first runs, in a fresh browser each")
    parser.add_argument("--report", type=Path, help="make JSON, table and chart from lines that a static site posted")
    parser.add_argument("--screenshot", type=Path, help="also write a picture of the finished page")
    options = parser.parse_args(argv)
    options.systems = options.systems.split(",") if options.systems else readers(SYSTEMS, options.models)
    if unknown := [name for name in options.systems if name not in (*SYSTEMS, *NAMED)]:
        raise BuildError(f"there is no system {unknown[0]!r}; there are {', '.join((*SYSTEMS, *NAMED))}")
    if options.kernels and not options.static:
        raise BuildError("--kernels writes a site for the machine with the GPU: say where with --static DIR")
    if options.rounds < 1:
        raise BuildError(f"--rounds {options.rounds}: at least one round is needed")
    options.threads = options.threads or ([0] if options.backend == "webgpu" else list(THREADS))
    return options
