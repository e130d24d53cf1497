"""`measure lab-executor`: headless browsers as one executor, against one of them; three are killed in the middle.

Each browser has a processor core of its own, in turn, so that one thread computes in it. What one does and what all do
take turns, and the best turn counts. Every answer is compared with what this process computes. Nothing is set up: the
site must be built, and the browser be there.
"""

import argparse
import contextlib
import os
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from build_scripts.bench.lab_crowd import TOKEN, served
from build_scripts.bench.undriven import Undriven, undriven
from build_scripts.errors import BuildError
from build_scripts.judge.backends import use_engine
from build_scripts.setup.chromium import OVERRIDE, driver, launch_options

ROUNDS, INPUTS = 3, 8
MODEL = "blazeface_full_range"
START_MS, DEVICES_S, TURN_S = 180_000, 120.0, 600.0  # limits, for busy machines


def run(argv: list[str]) -> int:
    """0 if every answer was right, also while browsers were killed."""
    parser = argparse.ArgumentParser(
        prog="python3 -m build_scripts measure lab-executor", description=(__doc__ or "").strip()
    )
    parser.add_argument("--browsers", type=int, default=8, help="how many (default: %(default)s)")
    parser.add_argument("--kill", type=int, default=3, help="of them in the middle (default: %(default)s)")
    parser.add_argument("--chromium", type=Path, help=f"the browser (default: ${OVERRIDE}, else one that is installed)")
    parser.add_argument("--model", default=MODEL, help="a known model or a file (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=100, help="of a browser in a turn (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="processes of the server (default: %(default)s)")
    options = parser.parse_args(argv)
    if not 0 <= options.kill < options.browsers:
        raise BuildError(f"--kill {options.kill} of --browsers {options.browsers} leaves none")
    if options.chromium is not None:
        os.environ[OVERRIDE] = str(options.chromium)
    use_engine()
    with served(options.workers, options.browsers) as root, _devices(root, options.browsers) as browsers:
        return _measured(f"{root}/lab#token={TOKEN}", browsers, options)


@contextlib.contextmanager
def _devices(root: str, count: int) -> Iterator[dict[str, Undriven]]:
    """Browsers that are devices of the lab, by name. Their driver leaves them when they are in.

    Chromium gives a driver every message of a page's WebSockets: 25 of 75 ms of processor time a run, 2026-11-28.
    """
    chosen = launch_options(webgpu=False)
    with contextlib.ExitStack() as stack:
        found = {}
        for number in range(count):
            with _on_core(number):
                found[f"browser {number}"] = stack.enter_context(undriven(chosen))
        with driver() as playwright:
            for name, browser in found.items():
                connection = playwright.chromium.connect_over_cdp(browser.address)
                page = connection.contexts[0].new_page()
                page.goto(f"{root}/lab#token={TOKEN}")
                page.wait_for_selector("#agree[aria-disabled=false]", timeout=START_MS)
                page.locator("#name").fill(name)
                page.locator("#agree").click()
                page.wait_for_selector("html[data-webinfer-device]", state="attached", timeout=START_MS)
        yield found


@contextlib.contextmanager
def _on_core(number: int) -> Iterator[None]:
    """Programs that are started meanwhile have one processor core, where the system can do that."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {sorted(cores)[number % len(cores)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def _measured(address: str, browsers: dict[str, Undriven], options: argparse.Namespace) -> int:
    import webinfer

    names = list(browsers)
    with webinfer.load_sync(options.model, backend="wasm") as session:
        inputs = [dict(session.noise(seed)) for seed in range(INPUTS)]
        known = [session.run(given) for given in inputs]
    work = _Work(address, options.model, inputs, known)
    rates = {1: 0.0, len(names): 0.0}
    for _ in range(ROUNDS):
        for count in rates:
            rates[count] = max(rates[count], work.turn(names[:count], options.runs * count))
    print(f"{options.model}, {os.cpu_count()} cores, the best of {ROUNDS} turns of {options.runs} runs a browser")
    for count, rate in rates.items():
        print(f"browsers: {count}, {rate:.1f} runs/s, {rate / rates[1]:.2f} times one")
    killed = [browsers[name] for name in names[len(names) - options.kill :]]
    rate = work.turn(names, options.runs * len(names), killed)
    print(f"{options.kill} of {len(names)} killed after a third of the runs: {rate:.1f} runs/s")
    print(f"{work.checked:,} answers, {work.wrong:,} of them wrong")
    return 1 if work.wrong else 0


class _Work:
    """A model's runs on the devices of a lab, each compared with its known answer."""

    def __init__(
        self, address: str, model: str, inputs: Sequence[dict[str, Any]], known: Sequence[dict[str, Any]]
    ) -> None:
        self._address, self._model, self._inputs, self._known = address, model, inputs, known
        self.checked = self.wrong = 0

    def turn(self, names: Sequence[str], count: int, killed: Sequence[Undriven] = ()) -> float:
        """Runs a second on these devices; the `killed` browsers end when a third of the runs is done.

        Raises:  NoDeviceError, TimeoutError
        """
        from webinfer import lab

        with lab.Executor(self._address, devices=names) as executor:
            executor.wait_for_devices(len(names), DEVICES_S)
            self._check([executor.submit(self._model, self._inputs[i % INPUTS]) for i in range(4 * len(names))])
            begin = time.perf_counter()
            found = [executor.submit(self._model, self._inputs[i % INPUTS]) for i in range(count)]
            if killed:
                found[count // 3].result(TURN_S)
                for browser in killed:
                    os.kill(browser.process.pid, signal.SIGKILL)
            for future in found:
                future.result(TURN_S)
            taken = time.perf_counter() - begin
            self._check(found)
            if executor.put_aside:
                raise BuildError(f"devices answered wrongly: {executor.put_aside}")
        return count / taken

    def _check(self, found: Sequence[Any]) -> None:
        from webinfer.lab.executor import TOLERANCE, farthest

        for i, future in enumerate(found):
            _, far = farthest(future.result(TURN_S), self._known[i % INPUTS])
            self.checked += 1
            self.wrong += not far <= TOLERANCE


if __name__ == "__main__":
    import sys

    sys.exit(run(sys.argv[1:]))
