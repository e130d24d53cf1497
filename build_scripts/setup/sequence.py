"""Everything between a fresh clone and a site that can be served, after .venv stands."""

import time
from collections.abc import Callable

from build_scripts.kernels.step import kernels_step
from build_scripts.options import switches
from build_scripts.setup.downloads import browser_wheels_step, lock_step
from build_scripts.setup.models import models_step, photo_step
from build_scripts.setup.node import npm_step
from build_scripts.site.assemble import compress_ahead, site_step
from build_scripts.site.hero_package import hero_package_step
from build_scripts.site.page_engine import page_engine_step
from build_scripts.site.snapshot import snapshot_step
from build_scripts.site.wheel import wheel_step
from build_scripts.steps import run_steps

STEPS = (
    npm_step,
    kernels_step,
    wheel_step,
    page_engine_step,
    browser_wheels_step,
    lock_step,
    snapshot_step,
    models_step,
    photo_step,
    hero_package_step,
    site_step,
)


def set_up(kernels_are_built: Callable[[], None] = lambda: None) -> None:
    """Runs the steps that are needed; each is described only when its turn comes, after those it reads from.

    `kernels_are_built` is called when all modules that are generated into the engine are there.
    """
    begin = time.monotonic()
    for step in STEPS:
        run_steps([step()])
        if step is npm_step:
            compress_ahead()
        elif step is kernels_step:
            kernels_are_built()
    print(f"  set up in {time.monotonic() - begin:.1f} s")


def run(argv: list[str]) -> int:
    """Sets everything up."""
    switches("setup", "Everything that demo does before it serves.", argv)
    set_up()
    return 0
