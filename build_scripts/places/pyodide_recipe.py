"""`build pyodide`: the recipe by which webinfer enters the Pyodide distribution, checked by pyodide-build and built.

pyodide-build needs Python 3.12; it gets an environment of its own. Building needs its cross-build environment, which it
downloads where it can, or which a user has installed.
"""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from build_scripts.errors import BuildError
from build_scripts.options import switches
from build_scripts.paths import BUILD, NODE_MODULES, PAGE_ENGINE, ROOT, configuration, settings
from build_scripts.places.cpython_places import interpreter
from build_scripts.setup.environment import pip

RECIPES = ROOT / "build_scripts" / "recipes"
ENVIRONMENT = BUILD / "places" / "pyodide-build"
LOCKS = (NODE_MODULES / "pyodide" / "pyodide-lock.json", PAGE_ENGINE / "pyodide-lock.json")
SERIES = ("3.14", "3.13", "3.12")


def environment() -> Path:
    """The folder of programs of an environment with pyodide-build.

    Raises: BuildError if there is no Python that is new enough
    """
    programs = ENVIRONMENT / "bin"
    wanted = " ".join(settings()["places"]["pyodide_build"])
    stamp = ENVIRONMENT / "wanted.txt"
    if stamp.is_file() and stamp.read_text() == wanted:
        return programs
    command = next(filter(None, map(interpreter, SERIES)), None)
    if command is None:
        raise BuildError("pyodide-build needs Python 3.12 or newer, and this machine has none; install one")
    subprocess.run([command, "-m", "venv", "--clear", str(ENVIRONMENT)], check=True, capture_output=True)
    pip("install", "--quiet", *wanted.split(), python=programs / "python")
    stamp.write_text(wanted)
    return programs


def checked(programs: Path) -> dict[str, Any]:
    """What the recipe says, after the Pyodide project's own classes have read it and the lock files.

    Raises: BuildError if they refuse it, or if it says other things than pyproject.toml
    """
    script = Path(__file__).with_name("check_recipe.py")
    locks = [str(lock) for lock in LOCKS if lock.is_file()]
    done = subprocess.run([str(programs / "python"), str(script), str(RECIPES), *locks], capture_output=True, text=True)
    if done.returncode:
        raise BuildError(f"pyodide-build refuses the recipe: {done.stderr.strip()[-800:]}")
    facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    complaint = complaint_of(facts)
    if complaint:
        raise BuildError(f"build_scripts/recipes/webinfer/meta.yaml: {complaint}")
    return facts


def complaint_of(facts: dict[str, Any]) -> str:
    """What the recipe says that pyproject.toml and Pyodide's own lock file do not; "" if nothing."""
    project = configuration()["project"]
    wanted = {
        "name": project["name"], "version": project["version"], "summary": project["description"],
        "license": project["license"],
        "requires": [re.split(r"[<>=!~ \[]", name)[0].lower() for name in project["dependencies"]],
    }  # fmt: skip
    for key, value in wanted.items():
        if facts[key] != value:
            return f"{key} is {facts[key]!r}, pyproject.toml says {value!r}"
    if Path(facts["source"]).resolve() != ROOT:
        return f"its source is {facts['source']}, not this checkout"
    distribution = facts["locks"][0][1] if facts["locks"] else facts["requires"]
    missing = sorted(set(facts["requires"]) - set(distribution))
    return f"Pyodide has no package {missing[0]!r}" if missing else ""


def build(programs: Path) -> str:
    """Builds the recipe; how that ended.

    Raises: BuildError if it fails where the cross-build environment is installed
    """
    tool = str(programs / "pyodide")
    found = subprocess.run([tool, "xbuildenv", "version"], capture_output=True, text=True)
    said = (found.stdout + found.stderr).strip()
    if found.returncode or "not found" in said:
        return (
            "not built: pyodide-build's cross-build environment is not installed; where its releases can be reached, "
            f"run `{Path(tool).relative_to(ROOT)} xbuildenv install` and this verb again"
        )
    target = BUILD / "places" / "recipes"
    command = [tool, "build-recipes", "webinfer", "--recipe-dir", str(RECIPES), "--build-dir", str(target / "work")]
    done = subprocess.run([*command, "--install-dir", str(target)], capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise BuildError(f"pyodide build-recipes fails: {(done.stdout + done.stderr)[-1500:]}")
    return f"built into {target.relative_to(ROOT)} with the cross-build environment {said.splitlines()[-1]}"


def run(argv: list[str]) -> int:
    """Checks the recipe, builds it where that is possible, and says what was done."""
    switches("pyodide", "Checks the recipe for the Pyodide distribution with pyodide-build, and builds it.", argv)
    programs = environment()
    facts = checked(programs)
    print(f"recipe {facts['name']} {facts['version']}: valid; requires {', '.join(facts['requires'])}")
    for lock, (python, packages) in zip(LOCKS, facts["locks"], strict=False):
        print(f"lock {lock.relative_to(ROOT)}: valid; Python {python}, {len(packages)} packages")
    print(build(programs))
    return 0
