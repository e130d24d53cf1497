"""A script, all that it imports of ours and of npm's packages as one small file, by esbuild."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.paths import NODE_MODULES, VENV_PYTHON, WEB
from build_scripts.setup.node import node_commands

ESBUILD = NODE_MODULES / "esbuild" / "bin" / "esbuild"
OPTIONS = (
    "--bundle",
    "--minify-whitespace",
    "--minify-syntax",
    "--format=esm",
    "--target=es2022",
    "--charset=utf8",
    "--log-level=error",
)
PACKAGES = "node_modules/"  # in esbuild's names of files


def bundled(script: Path, names: bool = False, external: tuple[str, ...] = ()) -> bytes:
    """The script with what it imports, minified, behind the licences of the packages.

    With `names` functions and classes keep theirs, which errors and Python tell. Imports of `external` stay imports.

    Raises: BuildError if it cannot be put together
    """
    node = next(node_commands())
    environment = {**os.environ, "PATH": os.pathsep.join([str(VENV_PYTHON.parent), os.environ.get("PATH", "")])}
    with tempfile.TemporaryDirectory() as folder:
        facts, whole = Path(folder) / "facts.json", Path(folder) / script.name
        shortened = () if names else ("--minify-identifiers",)
        kept = (f"--external:{name}" for name in external)
        command = [
            node,
            str(ESBUILD),
            str(script),
            *OPTIONS,
            *shortened,
            *kept,
            f"--metafile={facts}",
            f"--outfile={whole}",
        ]
        done = subprocess.run(command, cwd=WEB, env=environment, capture_output=True)
        if done.returncode:
            raise BuildError(f"{script.name} cannot be bundled: {done.stderr.decode(errors='replace').strip()[-800:]}")
        return _licences(json.loads(facts.read_text())["inputs"]) + whole.read_bytes()


def _licences(files: Iterable[str]) -> bytes:
    """The licences of the packages that these files belong to, each text once."""
    packages: dict[str, list[str]] = {}
    for name in sorted({_package(file) for file in files if PACKAGES in file}):
        file = next((NODE_MODULES / name).glob("LICEN[CS]E*"))
        licence = file.read_text(encoding="utf-8").strip()
        packages.setdefault(licence, []).append(name)
    texts = [f"{', '.join(names)}:\n\n{licence}\n" for licence, names in packages.items()]
    return "/*!\n{}*/\n".format("\n".join(texts)).encode() if texts else b""


def _package(file: str) -> str:
    """The package of a file: the part of its path behind the last node_modules, two names where there is a scope."""
    parts = file.rsplit(PACKAGES, 1)[1].split("/")
    return "/".join(parts[: 2 if parts[0].startswith("@") else 1])
