"""Resolves the pinned requirements of every group again and writes what they bring along, with hashes.

A file for each dependency group, in pip's own form. uv resolves for every platform and Python version at once and
lists the hashes of all files of a release; pip would resolve for this machine alone.
"""

import os
import re
import subprocess
import tempfile
import venv
from collections.abc import Iterable
from pathlib import Path

from build_scripts.errors import BuildError
from build_scripts.options import switches
from build_scripts.paths import ROOT, configuration, settings
from build_scripts.setup.environment import pinned_versions, pip, requirements, requirements_file

HEAD = """\
# Written by `python3 -m build_scripts build lock`: all that the dependency group {group!r} of pyproject.toml
# needs, and the SHA-256 of every file that the index has of it, for all platforms and Python versions.
"""


def run(argv: list[str]) -> int:
    """Writes the requirements file of each group and says how many packages and hashes they hold."""
    about = "Writes the requirements files of the dependency groups, with hashes; keeps the versions that still fit."
    chosen = switches("lock", about, argv, upgrade="take the newest versions")
    groups = list(configuration()["dependency-groups"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        uv = _uv(folder)
        everything = folder / "everything.txt"  # one resolution, so that no two groups want different versions
        if not chosen.upgrade:
            texts = [path.read_text() for path in map(requirements_file, groups) if path.exists()]
            everything.write_text("\n".join({line for text in texts for line in pinned_versions(text)}))
        _resolve(uv, requirements(groups), "--output-file", str(everything))
        wanted = {group: requirements([group]) for group in groups}
        written = {group: _resolve(uv, wanted[group], "--constraints", str(everything)) for group in groups}
    requirements_file(groups[0]).parent.mkdir(exist_ok=True)
    for group, text in written.items():
        requirements_file(group).write_text(HEAD.format(group=group) + text)
    packages = {line.split()[0] for text in written.values() for line in text.splitlines() if "==" in line}
    hashes = {found for text in written.values() for found in re.findall(r"sha256:\w+", text)}
    print(f"{requirements_file(groups[0]).parent.relative_to(ROOT)}: {len(packages)} packages, {len(hashes)} hashes")
    return 0


def _uv(folder: Path) -> Path:
    venv.EnvBuilder(with_pip=True).create(folder / "venv")
    programs = next(p for p in (folder / "venv" / "bin", folder / "venv" / "Scripts") if p.is_dir())
    pip(
        "install",
        str(settings()["lock_tool"]),
        python=next(path for path in programs.iterdir() if path.stem == "python"),
    )
    return next(path for path in programs.iterdir() if path.stem == "uv")


def _resolve(uv: Path, wanted: Iterable[str], *options: str) -> str:
    """What these requirements resolve to, as pip's requirements with hashes.

    Raises: BuildError if they do not fit together
    """
    oldest = configuration()["project"]["requires-python"].removeprefix(">=")
    command = [str(uv), "pip", "compile", "--universal", "--generate-hashes", "--python-version", oldest, *options]
    command += ["--no-annotate", "--no-header", "--no-config", "--quiet", "-"]
    environment = {**os.environ, "UV_SYSTEM_CERTS": "1"}
    lines = "\n".join(wanted)
    done = subprocess.run(command, cwd=uv.parent, env=environment, input=lines, capture_output=True, text=True)
    if done.returncode:
        raise BuildError(f"the pinned requirements do not fit together; uv says:\n{done.stderr.strip()}")
    return done.stdout
