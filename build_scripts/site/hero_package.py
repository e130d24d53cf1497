"""The face detector of the home page: a compiled package, which a visitor gets and starts faster than Python."""

import os
import subprocess
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.paths import ENGINE, KERNELS, MODELS, PACKAGES, VENV_PYTHON, WEB, version
from build_scripts.setup.environment import ensure_groups
from build_scripts.steps import Step

MODEL, FILE, TASK = "blazeface_short_range", "face_detection_short_range.tflite", "face-detector"
PACKAGE = PACKAGES / "faces.webinfer"


def hero_package_step() -> Step:
    """The step that compiles the package."""
    sources = [ENGINE, WEB / "shaders", KERNELS, MODELS / FILE, Path(__file__)]
    return Step(
        "hero package", "compile the face detector of the home page", inputs=lambda: [version(), *sources],
        outputs=(PACKAGE,), action=compile_package, stamp=PACKAGES / ".stamp",
    )  # fmt: skip


def compile_package() -> None:
    """Writes build/packages/faces.webinfer.

    Raises: BuildError if `webinfer compile` fails
    """
    ensure_groups(("native",))  # a plan is made with the kernels at hand; verbs that serve need no wasmtime otherwise
    PACKAGES.mkdir(parents=True, exist_ok=True)
    command = [str(VENV_PYTHON), "-m", "webinfer", "compile", MODEL, "--task", TASK, "-o", str(PACKAGE)]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(ENGINE.parent)}, capture_output=True, text=True, errors="replace"
    )
    if done.returncode:
        raise BuildError(
            f"the home page's face detector cannot be compiled: {(done.stdout + done.stderr).strip()[-800:]}"
        )
