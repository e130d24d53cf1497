"""`test`: set up, then every check and every ring of tests."""

import argparse
import importlib
import os
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.judge.check import command, static_stages
from build_scripts.judge.fuzz.tfjs.install import tfjs_step
from build_scripts.locks import one_at_a_time
from build_scripts.paths import BUILD, ROOT
from build_scripts.setup import chromium, other_browsers
from build_scripts.setup.environment import ensure_groups
from build_scripts.setup.node import bundlers_step
from build_scripts.setup.sequence import set_up
from build_scripts.stages import Stage, run_stages
from build_scripts.steps import run_steps

RINGS = {
    "rings 0 and 1": ("web/python/tests", "kernels_wasm/tests", "server/tests", "build_scripts/tests"),
    "ring 2": ("e2e_tests",),
}
PROCESSES = {"rings 0 and 1": 8, "ring 2": 4}  # at most; in ring 2 each has a server and browsers of its own
GROUPS = ("browser", "native", "test", "lab")  # of packages: what the set-up itself does without
VULKAN_DRIVERS = (Path("/usr/share/vulkan/icd.d"), Path("/etc/vulkan/icd.d"))


def run(argv: list[str]) -> int:
    """0 when everything is green; a skip for want of a browser or a GPU counts as a failure."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts test")
    parser.add_argument("--ring", choices=["static", *RINGS], action="append", help="only this part; may be repeated")
    parser.add_argument(
        "--every-browser", action="store_true", help="install Firefox and WebKitGTK where they are missing"
    )
    options = parser.parse_args(argv)
    wanted = options.ring or ["static", *RINGS]
    checks: list[Future[list[Stage]]] = []
    with one_at_a_time(BUILD, "build_scripts command"), ThreadPoolExecutor(2) as beside:
        installed = beside.submit(
            _install, options.every_browser
        )  # waits for the network while kernels are compiled, and the other way round

        def begin_checks() -> None:  # the steps after the kernels keep one core busy, mypy the other
            if "static" in wanted:
                checks.append(beside.submit(_static_stages, installed))

        set_up(begin_checks)
        browser = installed.result()
        stages = checks[0].result() if checks else []
    print(f"  chromium       {browser}")
    os.environ["WEBINFER_CI"] = "1"
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process that tests start compiles the engine
    os.environ[other_browsers.EXPECTED] = "1" if options.every_browser else ""
    os.environ[chromium.OVERRIDE] = str(browser)
    # Mesa's software GPU then optimizes no shader, which takes a quarter of the time of tests that run each but once;
    # whole models take as long as before.
    os.environ.setdefault("GALLIVM_PERF", "nopt")
    stages += [Stage(name, lambda name=name: _pytest(name)) for name in RINGS if name in wanted]  # type: ignore[misc]
    return run_stages(stages)


def _install(every_browser: bool) -> Path:
    """The tests' packages, TensorFlow.js, bundlers, a Vulkan driver, and browsers; the path of Chromium."""
    ensure_groups(GROUPS)
    importlib.invalidate_caches()
    run_steps([tfjs_step(), bundlers_step()])
    _software_vulkan()
    if every_browser:
        other_browsers.install()
    return chromium.chromium()


def _static_stages(installed: Future[Path]) -> list[Stage]:
    """The static checks, begun as soon as their packages are installed."""
    installed.result()
    return static_stages(ahead=True)


def _pytest(ring: str) -> int:
    """pytest's status; it gives 5, which is red, when it collects nothing."""
    found = [path for path in RINGS[ring] if (ROOT / path).is_dir()]
    if not found:
        print(f"none of {', '.join(RINGS[ring])} is there")
        return 5
    processes = min(os.cpu_count() or 1, PROCESSES[ring])
    several = ["-n", str(processes), "--dist", "worksteal"] if processes > 1 else []
    slow = ["--durations=12", "--durations-min=5"]
    return command([sys.executable, "-m", "pytest", "-q", *slow, *several, *found])


def _software_vulkan() -> None:
    """wgpu-py needs a Vulkan driver; where the machine has none, Mesa's software driver serves."""
    if not sys.platform.startswith("linux") or any(list(folder.glob("*.json")) for folder in VULKAN_DRIVERS):
        return
    if not chromium.apt_install("mesa-vulkan-drivers", "libvulkan1"):
        raise BuildError("the GPU tests need a Vulkan driver; on Debian: apt-get install mesa-vulkan-drivers")
