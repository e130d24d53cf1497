"""The list of everything that may be served. A path is looked up in it, never joined to a folder."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SUFFIXES = {"zstd": ".zst", "br": ".br", "gzip": ".gz"}  # the one that browsers unpack fastest first
WAY_ON = (
    "run `python3 -m build_scripts setup` in a checkout, or start `webinfer serve --lab` again where it is installed"
)


class ManifestError(Exception):
    """The site was not built, or its files do not fit its manifest."""


@dataclass(frozen=True)
class Asset:
    """One file: where it lies, its type, its hash, and its compressed variants by encoding."""

    file: Path
    media_type: str
    sha256: str
    encodings: dict[str, Path]


@dataclass(frozen=True)
class Manifest:
    """The built site: assets by URL, and the JSON that pages and scripts read."""

    engine: str
    assets: dict[str, Asset]
    urls: dict[str, str]
    folders: dict[str, str]
    public: dict[str, Any]


def read_manifest(site: Path) -> Manifest:
    """The manifest of a built site; raises ManifestError if a file is missing, a link or of another size."""
    path = site / "manifest.json"
    if not path.is_file():
        raise ManifestError(f"{path} is missing; {WAY_ON}")
    data = json.loads(path.read_text())
    rows: dict[str, dict[str, Any]] = data["assets"]
    assets = {row["url"]: _asset(site, row) for row in rows.values()}
    public_rows = {name: {key: row[key] for key in ("url", "bytes", "sha256")} for name, row in rows.items()}
    facts = {name: data[name] for name in ("version", "engine", "page", "folders")}
    public = {**facts, "assets": public_rows}
    urls = {name: str(row["url"]) for name, row in rows.items()}
    return Manifest(data["engine"], assets, urls, data["folders"], public)


def _asset(site: Path, row: dict[str, Any]) -> Asset:
    file = _checked(site, row["url"].lstrip("/"))
    if file.stat().st_size != row["bytes"]:
        raise ManifestError(f"{file} has {file.stat().st_size} bytes, its manifest says {row['bytes']}; {WAY_ON}")
    encodings = {name: _checked(site, row["url"].lstrip("/") + SUFFIXES[name]) for name in row["encodings"]}
    return Asset(file, row["type"], row["sha256"], encodings)


def _checked(site: Path, relative: str) -> Path:
    file = site / relative
    if not file.is_file():
        raise ManifestError(f"{file} is missing though the manifest names it; {WAY_ON}")
    if file.resolve() != site.resolve() / relative:
        raise ManifestError(f"{file} is a link or lies outside of {site}; only plain files are served")
    return file
