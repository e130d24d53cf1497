"""The project's own virtual environment and its pinned packages."""

import os
import platform
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterable
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.paths import ROOT, VENV, VENV_PYTHON, configuration, settings
from build_scripts.steps import Step, run_steps

UNCHECKED = "WEBINFER_UNCHECKED_PACKAGES"  # set by who takes packages from an index with other files


def requirements_file(group: str) -> Path:
    """The file with everything that a dependency group brings along, with hashes; `build lock` writes it."""
    return ROOT / str(settings()["requirements"]) / f"{group}.txt"


def requirements(groups: Iterable[str]) -> list[str]:
    """The pinned requirements of these dependency groups, each once."""
    table = configuration()["dependency-groups"]
    return sorted({requirement for group in groups for requirement in table[group]})


def ensure_groups(groups: tuple[str, ...]) -> None:
    """Makes .venv hold these dependency groups."""
    run_steps([_venv_step(), *(_group_step(group) for group in groups)])


def pip(*arguments: str, python: Path = VENV_PYTHON, extra_environment: dict[str, str] | None = None) -> None:
    """Runs the pip of an environment, .venv by default; raises BuildError with the end of what it said."""
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

    return Step(
        f"pip {group}", "install " + ", ".join(name.split("==")[0] for name in wanted),
        inputs=lambda: [*wanted, requirements_file(group), _python_series()], outputs=(VENV_PYTHON,),
        action=lambda: _install(group), stamp=VENV / ".stamps" / group,
    )  # fmt: skip


def _install(group: str) -> None:
    """Installs a group; each file must have a hash of the lock, unless the environment says to check none.

    Raises: BuildError if pip cannot, and if a file has another hash
    """
    locked = requirements_file(group)
    # Most of what comes is never imported, and Python compiles what is; unless it must not write what it compiled.
    install = ("install",) if sys.dont_write_bytecode else ("install", "--no-compile")
    if os.environ.get(UNCHECKED):
        print(f"  {'':14} ${UNCHECKED} is set: versions are pinned, but no file is checked by its hash")
        with tempfile.TemporaryDirectory() as folder:
            versions = Path(folder) / locked.name
            versions.write_text("".join(f"{line}\n" for line in pinned_versions(locked.read_text())))
            pip(*install, "--requirement", str(versions))
        return
    try:
        pip(*install, "--require-hashes", "--requirement", str(locked))
    except BuildError as error:
        series = f"Python {_python_series()} on {platform.system()} {platform.machine()}"
        raise BuildError(
            f"{error}\n  Each file must have a hash that {locked.relative_to(ROOT)} lists.\n"
            f"  If your index has other files (a mirror that builds its own, or none of these for {series}),\n"
            f"  set {UNCHECKED}=1: the same versions are installed, without a check of hashes."
        ) from error


def pinned_versions(text: str) -> list[str]:
    """The requirements in the text of a requirements file, without their hashes."""
    return [line.removesuffix("\\").strip() for line in text.splitlines() if line[:1] not in ("", " ", "#")]
