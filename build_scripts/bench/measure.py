"""Runs the benchmark's page in headless Chromium, or packs it as a site for another machine."""

import argparse
import os
import platform
import queue
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from build_scripts.bench.columns import PLAYER, Entry
from build_scripts.bench.models import ModelEntry, prepare
from build_scripts.bench.report import Collected, write_all
from build_scripts.bench.server import serving
from build_scripts.bench.site import assemble, configure, without
from build_scripts.bench.sources import models_in, sized
from build_scripts.errors import BuildError
from build_scripts.judge.zoo_judge import Judge
from build_scripts.locks import one_at_a_time
from build_scripts.paths import BENCH_OUTPUT
from build_scripts.setup.chromium import driver, launch_options

SILENCE_S = 300  # longest wait for the next report of the page
HEARTBEAT_MS = 1000
MAX_RESTARTS = 50  # of a browser that a system has ended
PAUSE_MS = 40
WARM = {"warm_ms": 1000, "warm_runs": 10, "most_runs": 60}
TURNS = {"wasm": {"least_runs": 1, "lanes": 0}, "webgpu": {"least_runs": 10, "lanes": 4}}  # lanes: frames in flight


def measure(options: argparse.Namespace, entries: Sequence[Entry]) -> int:
    """Writes JSON, table and chart; 0 when the page came to its end."""
    with one_at_a_time(BENCH_OUTPUT, "benchmark"):  # two at once would measure each other
        return _measure(options, entries)


def _measure(options: argparse.Namespace, entries: Sequence[Entry]) -> int:
    site = BENCH_OUTPUT / "site"
    models = prepared(options, entries, site)
    native = _native_system(options.models, models)
    collected = Collected(machine(), datetime.now(UTC).isoformat(timespec="seconds"), _settings(options))
    begin = time.monotonic()
    with serving(site, native.answer) as (address, reports):
        _drive(address, reports, options, collected, len(entries))
    print(f"\nmeasured in {time.monotonic() - begin:.0f} s")
    write_all(collected, options.json or BENCH_OUTPUT / "bench.json")
    return 0 if collected.ended and not collected.failure else 1


def pack_static(options: argparse.Namespace, entries: Sequence[Entry]) -> int:
    """Writes the site; gpu hosts open its bench.html."""
    prepared(options, entries, options.static)
    size = sum(path.stat().st_size for path in options.static.rglob("*") if path.is_file())
    print(f"\n{options.static}: {size / 1e6:.1f} MB; open bench.html there, keep what it posts to /log, then")
    print("python3 -m build_scripts measure bench --report LINES makes the table and the chart of it")
    return 0


def prepared(options: argparse.Namespace, entries: Sequence[Entry], site: Path) -> list[ModelEntry]:
    """The site, with every model of the folder that anything can read."""
    assemble(site, options.backend)
    models = []
    with Judge() as judge:
        for source in (row for found in models_in(options.models, options.only) for row in sized(found, judge)):
            try:
                models.append(prepare(source, site, judge, options.backend if PLAYER in options.systems else ""))
            except BuildError as error:
                print(f"  left out: {error}")
    configure(site, models, entries, **_settings(options), pause_ms=PAUSE_MS, **WARM, **TURNS[options.backend])
    print(f"  {len(models)} models, {len(entries)} columns, {options.rounds} rounds")
    return models


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    limits = {"turn_ms": options.turn_ms, "limit_ms": 1000 * options.limit}
    return {"backend": options.backend, "rounds": options.rounds, **limits}


def _native_system(folder: Path, models: Sequence[ModelEntry]) -> Any:
    from build_scripts.bench.native_litert import NativeSystem

    paths = {model.name: folder / next(iter(model.files)) for model in models if model.format == "tflite"}
    return NativeSystem(paths, {model.name: model.arrays for model in models})


def _drive(
    address: str, reports: "queue.Queue[list[Any]]", options: argparse.Namespace, collected: Collected, columns: int
) -> None:
    """Opens the page and collects its reports until it is done.

    A system that ends the page, or leaves it silent, gets this as its row, and a new browser goes on without it.
    """
    with driver() as playwright:
        for _ in range(MAX_RESTARTS):
            failure = _visit(playwright, address, reports, options, collected, columns)
            if not failure or not collected.doing:
                break
            print(f"  {collected.doing}: {failure}")
            without(BENCH_OUTPUT / "site", list(collected.models), collected.doing, failure)
            collected.failure, collected.doing = "", {}


def _visit(
    playwright: Any, address: str, reports: "queue.Queue[list[Any]]", options: argparse.Namespace,
    collected: Collected, columns: int,
) -> str:  # fmt: skip
    """One browser's way through the models; why it did not come to the end."""
    browser = playwright.chromium.launch(**launch_options(webgpu=options.backend == "webgpu"))
    collected.browser = f"Chromium {browser.version}, headless"
    page = browser.new_page(viewport={"width": 220 + 120 * columns, "height": 800})
    page.on("console", lambda message: collected.hear(message.type, message.text))
    page.on("pageerror", lambda error: collected.hear("error", str(error)))
    page.on("crash", lambda _: reports.put(["failed", "the page crashed"]))
    page.goto(f"{address}/bench.html")
    silence_limit = max(SILENCE_S, 2 * options.limit)
    quiet_since = time.monotonic()
    while not collected.ended and not collected.failure:
        try:
            collected.take(*reports.get_nowait())
            quiet_since = time.monotonic()
        except queue.Empty:
            if time.monotonic() - quiet_since > silence_limit:
                collected.failure = f"the page was silent for {silence_limit:.0f} s"
            else:
                page.wait_for_timeout(HEARTBEAT_MS)
    if collected.failure:
        print(f"FAILED: {collected.failure}")
    elif options.screenshot:
        page.screenshot(path=options.screenshot, full_page=True)
    browser.close()
    while not reports.empty():  # of the browser that is gone
        reports.get_nowait()
    return collected.failure


def machine() -> str:
    """Processor and cores, as people name a machine."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor() or platform.machine()}, {os.cpu_count()} logical cores"
