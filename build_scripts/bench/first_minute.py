"""`measure first-minute`: from an empty environment and the wheel to a saved picture with boxes, as a newcomer does it.

An environment is made, the wheel is installed with `native` and `pillow` out of the package registry, without pip's
cache, and three lines of Python and one of shell find faces. Nothing of the checkout is used but the wheel.
"""

import argparse
import os
import subprocess
import tempfile
import time
import venv
from collections.abc import Callable
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.paths import IMAGES, WHEELS
from build_scripts.site.wheel import wheel_name

LIMIT_S = 60.0  # what the project promises, all steps up to the first picture together
STEP_LIMIT_S = 600
LINES = """import webinfer
faces = webinfer.pipeline("face-detection")({photo!r})
faces.save({out!r})
"""


def run(argv: list[str]) -> int:
    """Prints the time of each step; 1 if the first picture took more than a minute, which a busy machine may need."""
    parser = argparse.ArgumentParser(prog="python3 -m build_scripts measure first-minute")
    parser.add_argument("--photo", type=Path, default=IMAGES / "astronaut.png")
    options = parser.parse_args(argv)
    wheel = WHEELS / wheel_name()
    if not wheel.is_file():
        raise BuildError(f"there is no {wheel}: python3 -m build_scripts build wheel")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        steps = _steps(folder, wheel, options.photo.resolve())
        times = [(title, _timed(step)) for title, step in steps]
        for out in ("faces.jpg", "shell.jpg"):
            if not (folder / out).is_file():
                raise BuildError(f"{out} was not written")
    parts = [seconds for _, seconds in times[:3]]
    whole = sum(one for one, _ in parts), sum(cpu for _, cpu in parts)
    times.insert(3, ("from nothing to the first picture", whole))
    print(f"{'':36}{'seconds':>9}{'CPU':>9}")
    for title, (seconds, cpu) in times:
        print(f"{title:36}{seconds:9.1f}{cpu:9.1f}")
    return 0 if whole[0] <= LIMIT_S else 1


def _steps(folder: Path, wheel: Path, photo: Path) -> list[tuple[str, Callable[[], None]]]:
    home = folder / "home"
    home.mkdir()
    programs = folder / "environment" / ("Scripts" if os.name == "nt" else "bin")
    lines = LINES.format(photo=str(photo), out=str(folder / "faces.jpg"))
    variables = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}

    def call(*command: str | Path) -> Callable[[], None]:
        return lambda: _called([str(one) for one in command], folder, variables)

    install = "pip", "install", "--quiet", "--no-cache-dir", f"{wheel}[native,pillow]"
    return [
        ("an empty environment", lambda: venv.EnvBuilder(with_pip=True).create(folder / "environment")),
        ("pip install, without a cache", call(programs / "python", "-m", *install)),
        ("three lines of Python", call(programs / "python", "-c", lines)),
        ("the same again", call(programs / "python", "-c", lines)),
        ("one line of shell", call(programs / "webinfer", "faces", photo, "-o", folder / "shell.jpg")),
    ]


def _timed(step: Callable[[], None]) -> tuple[float, float]:
    """Seconds, and those of processors that the step's processes had: on a busy machine these tell more."""
    started, before = time.perf_counter(), os.times()
    step()
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - started, used


def _called(command: list[str], folder: Path, variables: dict[str, str]) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=variables, timeout=STEP_LIMIT_S, check=False
    )
    if done.returncode:
        raise BuildError(f"{' '.join(command[:4])} failed: {done.stderr.strip()[-800:]}")
