"""`judge model-sources`: whether every package and file that known models come from are still available.

Packages vanish from indexes. pip and npm are asked for what they know of each pinned package, servers for the head of
each file; nothing is downloaded. Models with one source are listed, as the first that would be lost.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from build_scripts.errors import BuildError
from build_scripts.paths import ENGINE
from build_scripts.setup.environment import pip
from build_scripts.setup.node import npm_command
from build_scripts.setup.published import PUBLISHERS, published, publishers

if str(ENGINE.parent) not in sys.path:
    sys.path.insert(0, str(ENGINE.parent))
from webinfer.models.registry import MODELS

LIMIT_S = 120
Check = Callable[[Mapping[str, Any], Mapping[str, Any]], str]  # of a package's row and the files: a problem, or ""


def run(argv: list[str]) -> int:
    """Prints each source and whether it resolves; 1 if one does not."""
    parser = argparse.ArgumentParser(
        prog="python3 -m build_scripts judge model-sources", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="of pyproject.toml; all if left out")
    names, table = parser.parse_args(argv).packages, published()
    if unknown := set(names) - set(table["packages"]):
        raise BuildError(f"there is no package {min(unknown)!r}; there are {', '.join(sorted(table['packages']))}")
    lost = 0
    for name in names or sorted(table["packages"]):
        problem = problem_of(name, table)
        lost += bool(problem)
        row = table["packages"][name]
        print(f"{'LOST' if problem else 'there':6} {row.get('requirement') or row.get('npm') or row['repositories']}"
              + (f": {problem}" if problem else ""), flush=True)  # fmt: skip
    for publisher, models in sorted(alone(table).items()):
        print(f"one source alone, {publisher}: {', '.join(sorted(models))}")
    return int(lost > 0)


def problem_of(name: str, table: Mapping[str, Any]) -> str:
    """Why a package, or a file of it, is not available; "" if it is."""
    row = table["packages"][name]
    sources = ((file, one) for file, row in table["files"].items() for one in (row, *row.get("also", ())))
    files = {file: one for file, one in sources if one["package"] == name}
    check = next(check for kind, check in CHECKS.items() if kind in row)
    return check(row, files)


def alone(table: Mapping[str, Any]) -> dict[str, list[str]]:
    """The known models that one package brings and no other, by who publishes it."""
    kinds, found = publishers(), dict[str, list[str]]()
    for model in MODELS.values():
        row = table["files"].get(model.file)
        if row is None or not row.get("also"):
            publisher = PUBLISHERS[kinds[row["package"]]] if row else "none: their files have to be given"
            found.setdefault(publisher, []).append(model.name)
    return found


def _of_the_index(row: Mapping[str, Any], _: Mapping[str, Any]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        try:
            # Without --ignore-requires-python a package for another Python than this one would count as lost.
            pip("install", "--dry-run", "--ignore-installed", "--ignore-requires-python", "--no-deps", "--only-binary",
                ":all:", "--platform", row["platform"], "--python-version", row["python"], "--target", folder,
                row["requirement"])  # fmt: skip
        except BuildError as error:
            return str(error).strip().splitlines()[-1].strip()
    return ""


def _of_npm(row: Mapping[str, Any], _: Mapping[str, Any]) -> str:
    command = [*npm_command(), "view", row["npm"], "dist.integrity", "--loglevel=error"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=LIMIT_S, env=os.environ
        )
    except subprocess.TimeoutExpired:
        return f"npm does not answer within {LIMIT_S} s"
    if done.returncode or not done.stdout.strip():
        return (done.stderr.strip().splitlines() or ["npm knows no such version"])[0]
    return ""


def _of_repositories(_: Mapping[str, Any], files: Mapping[str, Any]) -> str:
    for row in files.values():
        for address in row["members"]:
            try:
                with urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=LIMIT_S):
                    pass
            except OSError as error:
                reason = getattr(error, "reason", None) or error
                return f"{address}: {getattr(reason, 'strerror', None) or reason}"
    return ""


CHECKS: dict[str, Check] = {"requirement": _of_the_index, "npm": _of_npm, "repositories": _of_repositories}
