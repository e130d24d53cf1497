"""Which package on the package index publishes which model, as wheels tell their users' installations."""

import json
import sys
from pathlib import Path, PurePosixPath
from typing import Any

from build_scripts.paths import WEB, settings

ANYWHERE = {"platform": "manylinux_2_28_x86_64", "python": "3.12"}  # of packages that say nothing of it


def published() -> dict[str, dict[str, Any]]:
    """`files`: each file's package and place in it; `packages`: what pip is asked for; `pyodide`: npm, for the lab."""
    mediapipe, others = settings()["mediapipe"], settings()["task_packages"]
    members = [*mediapipe["members"], *mediapipe["editions"]]
    files = {PurePosixPath(member).name: ("mediapipe", f"mediapipe/modules/{member}") for member in members}
    packages = {"mediapipe": mediapipe}
    for name, package in others.items():
        if "requirement" in package:
            models = {member: PurePosixPath(place) for member, place in package["files"].items()}
            found = {place.name: (name, member) for member, place in models.items() if place.parts[0] == "models"}
            if found:  # not a sample
                packages[name], files = {**ANYWHERE, **package}, files | found
    keys = ("requirement", "sha256", "megabytes", "platform", "python")
    pyodide = json.loads((WEB / "package-lock.json").read_text())["packages"]["node_modules/pyodide"]
    runtime = {key: pyodide[key] for key in ("version", "integrity")}
    return {
        "files": files,
        "pyodide": runtime,
        "packages": {name: {key: row[key] for key in keys} for name, row in packages.items()},
    }


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(published(), indent=1, sort_keys=True) + "\n")
