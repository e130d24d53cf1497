"""The wheel that users install: in CPython, and in pages of their own by micropip. One for every place.

The build backend that pyproject.toml names makes it, as `pip install .` does; native_wheel.py adds what is not Python.
"""

import hashlib
import subprocess
import sys
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.options import switches
from build_scripts.paths import ENGINE, KERNELS, ROOT, SIGNATURES, STATIC, WEB, WHEELS, version
from build_scripts.steps import Step


def wheel_name() -> str:
    """The wheel's file name."""
    return f"webinfer-{version()}-py3-none-any.whl"


def wheel_step() -> Step:
    """The step that builds the wheel."""
    sources = [
        ENGINE,
        WEB / "shaders",
        STATIC,
        WEB / "package-lock.json",
        KERNELS,
        SIGNATURES,
        ROOT / "server",
    ]
    texts = [ROOT / name for name in ("pyproject.toml", "README.md", "LICENSE")]
    return Step(
        "wheel", "pack engine, kernels, shaders and scripts for users",
        inputs=lambda: [*sources, *texts, Path(__file__), Path(__file__).with_name("native_wheel.py")],
        outputs=(WHEELS / wheel_name(),), action=build_wheel, stamp=WHEELS / ".stamp",
    )  # fmt: skip


def build_wheel() -> None:
    """Writes build/wheels/webinfer-*.whl and removes those of other versions."""
    for old in WHEELS.glob("webinfer-*.whl"):
        old.unlink()
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(WHEELS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace")
    if done.returncode or not (WHEELS / wheel_name()).is_file():
        tail = "\n    ".join((done.stdout + done.stderr).strip().splitlines()[-8:])
        raise BuildError(f"the wheel cannot be built:\n    {tail}")


def run(argv: list[str]) -> int:
    """Builds the wheel and prints where it lies and how large it is."""
    switches("wheel", "Builds the wheel that is installed in CPython and by micropip in a browser.", argv)
    build_wheel()
    path = WHEELS / wheel_name()
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    print(f"{path.relative_to(ROOT)}  {path.stat().st_size} bytes  sha256 {digest}")
    return 0
