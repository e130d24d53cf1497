"""Everything between a fresh clone and a site that can be served, after .venv stands."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from build_scripts.kernels.step import kernels_step
from build_scripts.locks import one_at_a_time
from build_scripts.options import switches
from build_scripts.paths import BUILD
from build_scripts.setup.downloads import browser_wheels_step, lock_step
from build_scripts.setup.models import models_step, photo_step
from build_scripts.setup.node import npm_step
from build_scripts.site.assemble import compress_ahead, site_step
from build_scripts.site.hero_package import hero_package_step
from build_scripts.site.page_engine import page_engine_step
from build_scripts.site.snapshot import snapshot_step
from build_scripts.site.wheel import wheel_step
from build_scripts.steps import run_steps

FETCHED = (browser_wheels_step, models_step, photo_step)  # which read nothing but what npm has brought
STEPS = (kernels_step, wheel_step, page_engine_step, lock_step, snapshot_step, hero_package_step, site_step)


def set_up(kernels_are_built: Callable[[], None] = lambda: None) -> None:
    """Runs the steps that are needed; each is described only when its turn comes, after those it reads from.

    `kernels_are_built` is called when all modules that are generated into the engine are there.
    """
    begin = time.monotonic()
    with one_at_a_time(BUILD, "build_scripts command"), ThreadPoolExecutor(1) as beside:
        run_steps([npm_step()])
        compress_ahead()
        fetched = beside.submit(_fetch)  # waits for the network while kernels are compiled
        for step in STEPS:
            if step is lock_step:
                fetched.result()
            run_steps([step()])
            if step is kernels_step:
                kernels_are_built()
    print(f"  set up in {time.monotonic() - begin:.1f} s")


def _fetch() -> None:
    for step in FETCHED:
        run_steps([step()])


def run(argv: list[str]) -> int:
    """Sets everything up."""
    switches("setup", "Everything that demo does before it serves.", argv)
    set_up()
    return 0
