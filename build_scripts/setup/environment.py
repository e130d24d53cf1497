"""The project's own virtual environment and its pinned packages."""

import subprocess
import sys
import venv
from collections.abc import Iterable
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.paths import ROOT, VENV, VENV_PYTHON, configuration, settings
from build_scripts.steps import Step, run_steps


def constraints_file() -> Path:
    """The file with the versions of everything that the pinned packages bring along."""
    return ROOT / str(settings()["constraints"])


def requirements(groups: Iterable[str]) -> list[str]:
    """The pinned requirements of these dependency groups, each once."""
    table = configuration()["dependency-groups"]
    return sorted({requirement for group in groups for requirement in table[group]})


def ensure_groups(groups: tuple[str, ...]) -> None:
    """Makes .venv hold these dependency groups."""
    run_steps([_venv_step(), *(_group_step(group) for group in groups)])


def pip(*arguments: str, python: Path = VENV_PYTHON, extra_environment: dict[str, str] | None = None) -> None:
    """Runs the pip of an environment, .venv by default; raises BuildError with the end of what it said."""
    import os

    command = [str(python), "-m", "pip", "--disable-pip-version-check", *arguments]
    environment = {**os.environ, **(extra_environment or {})}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, errors="replace")
    if done.returncode:
        tail = "\n    ".join((done.stdout + done.stderr).strip().splitlines()[-8:])
        raise BuildError(f"pip {' '.join(arguments[:2])} failed; is the package index reachable?\n    {tail}")


def _venv_step() -> Step:
    def create() -> None:
        if VENV.is_symlink():  # what it leads to would be emptied, while others use it
            raise BuildError(f"{VENV.name} is a link to {VENV.resolve()}; remove the link, or set up there")
        try:
            venv.EnvBuilder(with_pip=True, clear=True, symlinks=sys.platform != "win32").create(VENV)
        except (subprocess.CalledProcessError, OSError) as error:
            raise BuildError(
                f"Python's venv could not make {VENV.name} ({error}); on Debian: apt-get install python3-venv"
            ) from error

    return Step(
        "venv", "create the virtual environment .venv",
        inputs=lambda: [_python_series()], outputs=(VENV_PYTHON,), action=create, stamp=VENV / ".stamps" / "venv",
    )  # fmt: skip


def _python_series() -> str:
    """The base interpreter's series; .venv is made anew when it changes."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _group_step(group: str) -> Step:
    wanted = requirements([group])

    def install() -> None:
        pip("install", "--constraint", str(constraints_file()), *wanted)

    return Step(
        f"pip {group}", "install " + ", ".join(name.split("==")[0] for name in wanted),
        inputs=lambda: [*wanted, constraints_file(), _python_series()], outputs=(VENV_PYTHON,), action=install,
        stamp=VENV / ".stamps" / group,
    )  # fmt: skip
