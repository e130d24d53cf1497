"""`judge hostile-files`: damaged or hostile models give a right result or a typed error, never anything else.

Without an option damaged model files of every format are imported, optimised, verified and planned. With `--types`,
models of one operator whose tensors have other element types take their place, and with `--operands N` every
operator's cases with hostile operands: those that are not refused run, some with guarded gaps between their tensors,
and must compute what the reference does. `--all` does all three, `--count` cases in all.
"""

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from build_scripts.judge.backends import use_engine
from build_scripts.paths import ROOT

MOST_RESIDENT = 2**30  # bytes of this process at its peak
TYPES_SHARE, OPERANDS_SHARE = 0.1, 0.45  # of the cases of --all; damaged files are the rest
TYPES_ON_GPU = 0.1  # of the models with other element types that webgpu can plan
ON_GPU = 0.02  # of hostile operands, as many more on webgpu


def run(argv: list[str]) -> int:
    """0 if every case ended in a right result or a typed error, within its time and memory."""
    options = _parse(argv)
    for folder in (ROOT / "web" / "python", ROOT):  # the engine and its tests
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    use_engine()
    start = time.perf_counter()
    parts = {name: _told(part) for name, part in _parts(options).items()}
    total, seconds = _summed(list(parts.values())), time.perf_counter() - start
    resident = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if options.all and resident > MOST_RESIDENT:
        total.others.append(f"the sweeps took {resident} bytes of memory, {MOST_RESIDENT} are allowed")
    print(f"{total.count} cases in {seconds:.0f} s")
    print(f"  results        {total.results}")
    print(f"  typed errors   {sum(total.errors.values())}  ({_listed(total.errors)})")
    print(f"  differences    {total.differences}")
    print(f"  anything else  {len(total.others) - total.differences}")
    if total.webgpu:
        print("  webgpu         " + ", ".join(f"{what} {count}" for what, count in sorted(total.webgpu.items())))
    if total.untouched or total.touched:
        print(f"  guarded runs   {total.untouched} touched nothing beside their results, {total.touched} did")
    print(f"  slowest case   {1000 * total.slowest_s:.1f} ms")
    print(f"  most memory    {total.most_bytes / 2**20:.2f} MiB for a file, {resident / 2**20:.0f} MiB in all")
    for other in total.others[:20]:
        print(other, file=sys.stderr)
    if options.json is not None:
        numbers = {**_numbers(total), "most_resident_bytes": resident, "seconds": round(seconds, 1)}
        numbers["parts"] = {name: _numbers(tally) for name, tally in parts.items()}
        options.json.write_text(json.dumps(numbers, indent=2) + "\n")
    return 1 if total.others else 0


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python3 -m build_scripts judge hostile-files", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--count", type=int, help="cases to try (default 20000 damaged files, 100000 with --all)")
    parser.add_argument("--seed", type=int, default=1, help="another seed damages in other places")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--model", type=Path, help="damage this model file instead of the built-in samples")
    what.add_argument("--format", help="damage samples of this format alone, by its name or suffix")
    what.add_argument("--types", action="store_true", help="change element types of one-operator models instead")
    what.add_argument("--operands", type=int, metavar="N", help="try so many hostile operands instead")
    what.add_argument("--all", action="store_true", help="damaged files of every format, types and operands")
    parser.add_argument("--json", type=Path, help="write the numbers to this file too")
    options = parser.parse_args(argv)
    if options.count is None:
        options.count = 100_000 if options.all else 20_000
    return options


def _parts(options: argparse.Namespace) -> dict[str, Callable[[], Any]]:
    """The sweeps that were asked for, by name."""
    if options.types:
        return {"types": lambda: _types(options.seed, None)}
    if options.operands is not None:
        return {"operands": lambda: _operands(options.operands, options.seed)}
    if not options.all:
        return {"files": lambda: _files(options, options.count)}
    types, operands = int(TYPES_SHARE * options.count), int(OPERANDS_SHARE * options.count)
    return {
        "types": lambda: _types(options.seed, types),
        "operands": lambda: _operands(operands, options.seed),
        "files": lambda: _files(options, options.count - types - operands),
    }


def _told(part: Callable[[], Any]) -> Any:
    tally = part()
    print(f"  {tally.count} cases, {len(tally.others)} bad", flush=True)
    return tally


def _types(seed: int, count: int | None) -> Any:
    from tests.importers.type_sweep import KINDS, RUNS, size, sweep
    from tests.ops.case_graphs import run as finish

    from build_scripts.judge.hostile import WEBGPU, targets_here
    from webinfer.host.native import NativeHost

    host = NativeHost()
    gpu_share = TYPES_ON_GPU if WEBGPU in finish(targets_here(host)) else 0.0
    print(f"{len(RUNS)} operators' runs with {len(KINDS)} kinds of elements, judged by the reference", flush=True)
    return sweep(host, 1.0 if count is None else min(1.0, count / size()), seed, gpu_share)


def _operands(count: int, seed: int) -> Any:
    from tests.ops.case_graphs import run as finish

    from build_scripts.judge.hostile import WEBGPU, sweep, targets_here
    from webinfer.host.native import NativeHost

    host = NativeHost()
    targets = finish(targets_here(host))
    print(f"hostile operands on {', '.join(map(str, targets))}, judged by the reference", flush=True)
    tally = sweep(host, count, seed, [t for t in targets if t is not WEBGPU], progress=_progress(count))
    if WEBGPU in targets:
        tally.add(sweep(host, int(ON_GPU * count), seed, [WEBGPU]))
    return tally


def _progress(count: int) -> Callable[[Any], None]:
    """Says at every tenth of the cases how far it is."""
    told = 0

    def tell(tally: Any) -> None:
        nonlocal told
        if 10 * tally.count // max(count, 1) > told:
            told = 10 * tally.count // count
            print(f"  {tally.count} of {count}, {len(tally.others)} bad", flush=True)

    return tell


def _files(options: argparse.Namespace, count: int) -> Any:
    from tests.importers.format_samples import samples
    from tests.importers.mutations import PLANS, survey

    if options.model is not None:
        models = {options.model.name: options.model.read_bytes()}
    else:
        models = samples(options.format)
    print(f"damaged copies of {', '.join(models)}{'' if PLANS else '; no kernel table, so no planning'}", flush=True)
    return survey(models, count, options.seed)


def _summed(tallies: list[Any]) -> Any:
    total = tallies[0]
    if len(tallies) > 1:
        total = type(total)()
        for tally in tallies:
            total.add(tally)
    return total


def _listed(errors: dict[str, int]) -> str:
    return ", ".join(f"{code} {count}" for code, count in sorted(errors.items())) or "none"


def _numbers(tally: Any) -> dict[str, Any]:
    return {
        "count": tally.count,
        "results": tally.results,
        "typed_errors": dict(sorted(tally.errors.items())),
        "differences": tally.differences,
        "anything_else": len(tally.others) - tally.differences,
        "webgpu": dict(sorted(tally.webgpu.items())),
        "guards": {"untouched": tally.untouched, "touched": tally.touched},
        "slowest_ms": round(1000 * tally.slowest_s, 3),
        "most_bytes": tally.most_bytes,
    }
