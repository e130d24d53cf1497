"""The verb `mutate`: damaged model files give a graph or a typed error, never anything else.

With `--types`, models of one operator whose tensors have other element types take their place: those that are not
refused run on wasm with guarded gaps between tensors, which must stay as they are while wasm computes what the
reference does.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from build_scripts.paths import ROOT


def run(argv: list[str]) -> int:
    """0 if every damaged file was read or refused with a typed error, within its time and memory."""
    parser = argparse.ArgumentParser(
        prog="python3 -m build_scripts mutate", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--count", type=int, default=20_000, help="damaged files to try (default 20000)")
    parser.add_argument("--seed", type=int, default=1, help="another seed damages in other places")
    parser.add_argument("--model", type=Path, help="damage this .tflite file instead of the built-in samples")
    parser.add_argument("--types", action="store_true", help="change element types of one-operator models instead")
    parser.add_argument("--json", type=Path, help="write the numbers to this file too")
    options = parser.parse_args(argv)
    start = time.perf_counter()
    tally, what = _sweep(options) if options.types else _survey(options)
    seconds = time.perf_counter() - start
    print(f"{tally.count} {what} in {seconds:.0f} s")
    print(f"  results        {tally.results}")
    print(f"  typed errors   {sum(tally.errors.values())}  ({_listed(tally.errors)})")
    print(f"  anything else  {len(tally.others)}")
    if tally.untouched or tally.touched:
        print(f"  guarded runs   {tally.untouched} touched nothing beside their results, {tally.touched} did")
    print(f"  slowest case   {1000 * tally.slowest_s:.1f} ms")
    print(f"  most memory    {tally.most_bytes / 2**20:.2f} MiB")
    for other in tally.others[:20]:
        print(other, file=sys.stderr)
    if options.json is not None:
        options.json.write_text(json.dumps(_numbers(tally, seconds), indent=2) + "\n")
    return 1 if tally.others else 0


def _use_checkout() -> None:
    for folder in (ROOT / "web" / "python", ROOT):  # the engine and its tests
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))


def _sweep(options: argparse.Namespace) -> tuple[Any, str]:
    _use_checkout()
    from tests.importers.type_sweep import KINDS, RUNS, sweep

    from webinfer.host.native import NativeHost

    print("import, passes, verification, planning and running on wasm, judged by the reference")
    tally = sweep(NativeHost(), seed=options.seed)
    return tally, f"models of {len(RUNS)} operators' runs with {len(KINDS)} kinds of elements"


def _survey(options: argparse.Namespace) -> tuple[Any, str]:
    _use_checkout()
    from tests.importers.mutations import PLANS, survey
    from tests.importers.sample_models import SAMPLES

    if options.model is not None:
        models = {options.model.name: options.model.read_bytes()}
    else:
        models = {name: make() for name, make in SAMPLES.items()}
    print(f"import, passes, verification{', planning for wasm' if PLANS else '; no kernel table, so no planning'}")
    return survey(models, options.count, options.seed), f"damaged copies of {', '.join(models)}"


def _listed(errors: dict[str, int]) -> str:
    return ", ".join(f"{code} {count}" for code, count in sorted(errors.items())) or "none"


def _numbers(tally: Any, seconds: float) -> dict[str, Any]:
    return {
        "count": tally.count,
        "results": tally.results,
        "typed_errors": dict(sorted(tally.errors.items())),
        "anything_else": len(tally.others),
        "guards": {"untouched": tally.untouched, "touched": tally.touched},
        "slowest_ms": round(1000 * tally.slowest_s, 3),
        "most_bytes": tally.most_bytes,
        "seconds": round(seconds, 1),
    }
