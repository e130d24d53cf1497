"""Judges that need an environment of their own: how it is made, and what their scripts answer."""

import json
import os
import subprocess
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from build_scripts.errors import BuildError
from build_scripts.setup.environment import pip
from build_scripts.steps import Step


def python_of(environment: Path) -> Path:
    """The interpreter of an environment."""
    return environment / "bin" / "python"


def environment_step(name: str, title: str, environment: Path, requirements: Sequence[str]) -> Step:
    """Installs the requirements in an environment that holds nothing else."""
    python = python_of(environment)

    def create() -> None:
        venv.EnvBuilder(with_pip=True, clear=True).create(environment)
        pip("install", *requirements, python=python)

    return Step(
        name, title, inputs=lambda: list(requirements), outputs=(python,), action=create,
        stamp=environment / ".stamp",
    )  # fmt: skip


def answers_of(
    who: str, environment: Path, script: str, output: Path, arguments: Sequence[object], limit_s: float,
    variables: Mapping[str, str] | None = None,
) -> Any:  # fmt: skip
    """What a script beside this one, run in the environment, writes to a JSON file.

    Raises:  BuildError with the end of what it said if it fails
    """
    command = [str(python_of(environment)), str(Path(__file__).with_name(script)), *map(str, arguments)]
    env = {**os.environ, **(variables or {})}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=limit_s)
    if done.returncode or not output.is_file():
        raise BuildError(f"{who} gave no answers: {done.stderr.strip()[-400:]}")
    return json.loads(output.read_text())
