"""`measure tune`: kernels timed in headless Chromium, or on another machine; logs made into default tunings."""

import argparse
import json
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from build_scripts.bench.page_reports import said
from build_scripts.errors import BuildError
from build_scripts.paths import BENCHMARKS, BUILD, ENGINE, MODELS, ZOO
from build_scripts.setup.sequence import set_up

OUTPUT = BUILD / "tune"
DEFAULT_TUNINGS = ENGINE / "backends" / "webgpu" / "shipped.json"
SILENCE_S = 600  # longest wait for a model


def run(argv: list[str]) -> int:
    """0 when every model was tuned, or the site or the default tunings are written."""
    options = _parse(argv)
    sys.path.insert(0, str(ENGINE.parent))  # what follows imports the engine of this checkout
    if options.ship:
        return ship(options.ship)
    set_up()
    site = options.static or OUTPUT / "site"
    names = write_site(site, options)
    if options.static:
        print(f"{site}: {len(names)} models; open tuning.html there, keep what it posts to /log, then")
        print("python3 -m build_scripts measure tune --ship LINES makes default tunings of it")
        return 0
    OUTPUT.mkdir(parents=True, exist_ok=True)
    lines = options.log or OUTPUT / "lines.jsonl"
    refused = 0
    with lines.open("w", encoding="utf-8") as file:
        for key, value in _reports(site):
            file.write(json.dumps([key, value]) + "\n")
            refused += key in ("refused", "failed")
            print(f"  {value['text'] if key == 'tuned' else f'{key}: {json.dumps(value)}'}", flush=True)
    print(f"{lines}: the page's lines")
    return 1 if refused else 0


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts measure tune", description=__doc__)
    zoo = ZOO if ZOO.is_dir() else MODELS
    parser.add_argument("--models", type=Path, default=zoo, help="a folder of .tflite files")
    parser.add_argument(
        "--only", help="comma-separated names of models of that folder, as name, name:float32 or name:float32:BATCH"
    )
    parser.add_argument("--budget-ms", type=float, default=20_000, help="for a model (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=50, help="runs of each plan with readback (default: %(default)s)")
    parser.add_argument("--static", type=Path, help="write a site that needs no server of ours, and tune nothing")
    parser.add_argument("--log", type=Path, help=f"where the page's lines go (default {OUTPUT}/lines.jsonl)")
    parser.add_argument("--ship", type=Path, help="make default tunings of the lines that the page posted")
    return parser.parse_args(argv)


def write_site(site: Path, options: argparse.Namespace) -> list[str]:
    """The page, the engine and the models; the models' names."""
    from build_scripts.bench.site import copy_engine

    paths = sorted(options.models.glob("*.tflite"))
    wanted = options.only.split(",") if options.only else [path.stem for path in paths]
    files = {name.split(":")[0] for name in wanted}
    if missing := files - {path.stem for path in paths}:
        raise BuildError(f"{options.models} has no {', '.join(sorted(missing))}.tflite")
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(BENCHMARKS / "tuning", site)
    (site / "systems").mkdir()
    shutil.copyfile(BENCHMARKS / "page" / "systems" / "webinfer.js", site / "systems" / "webinfer.js")
    copy_engine(site / "engine")
    (site / "models").mkdir()
    for name in files:
        shutil.copyfile(options.models / f"{name}.tflite", site / "models" / f"{name}.tflite")
    config = {"models": wanted, "budget_ms": options.budget_ms, "runs": options.runs}
    (site / "config.json").write_text(json.dumps(config))
    return wanted


def _reports(site: Path) -> Iterator[tuple[str, Any]]:
    """What the page says in headless Chromium, until it is done."""
    from build_scripts.bench.server import serving

    with serving(site, None) as (address, reports):
        for key, value in said(f"{address}/tuning.html", reports, SILENCE_S):
            if key != "done":
                yield key, value


# ----- default tunings


def ship(lines: Path) -> int:
    """Takes the kernels of plans that beat their default into shipped.json."""
    classes: dict[str, Any] = json.loads(DEFAULT_TUNINGS.read_text(encoding="utf-8"))
    reports = [
        json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines() if line.startswith('["tuned"')
    ]
    if not reports:
        raise BuildError(f'{lines} has no ["tuned", …] line; tune with the page that --static writes')
    added = merge(classes, (value for _, value in reports))
    DEFAULT_TUNINGS.write_text(json.dumps(classes, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    total = {name: len(entry["choices"]) for name, entry in classes.items()}
    print(f"{added} kernels from {len(reports)} models; in all: {total}")
    return 0


def merge(classes: dict[str, Any], tuned: Iterable[dict[str, Any]]) -> int:
    """Adds winners that differ from their default, of plans that were kept; how many. Marks classes as measured."""
    from webinfer.backends.webgpu.default_tunings import adapter_class

    added = 0
    for value in tuned:
        report = value["report"]
        place = report["about"]
        entry = classes.get(adapter_class(place["adapter"], "swiftshader" in place["adapter"].lower()))
        if entry is None:
            raise BuildError(
                f"adapter {place['adapter']!r} belongs to no class of {DEFAULT_TUNINGS.name}; add its words"
            )
        entry["measured"] = f"{place['adapter']}, {place['browser']}, webinfer {place['engine']}"
        if not report["verdict"]["kept"]:
            continue
        for row in map(json.loads, report["lines"].splitlines()):
            if "key" in row and row["choice"] != row["default"]:
                entry["choices"][row["key"]] = row["choice"]
                added += 1
    return added
