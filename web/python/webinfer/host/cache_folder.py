"""The user's cache folder: what CPython stores beyond a process, each file with a checksum."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from webinfer.flags import debug
from webinfer.host.checksums import sealed, unsealed
from webinfer.host.whole_files import write_whole


def recall(name: str) -> memoryview | None:
    """The bytes under this name, or None. A damaged file is removed, and the log says so."""
    file = _folder() / name
    try:
        data = unsealed(name, file.read_bytes())
        if data is None:
            file.unlink()
    except OSError:
        return None
    return data


def remember(name: str, data: bytes, kept: int | None = None) -> None:
    """Stores bytes; a folder that cannot be written is no failure.

    Of the files whose names begin as this one does, up to the first point, only the newest `kept` stay.
    """
    folder = _folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / name, sealed(data))
        if kept is not None:
            others = sorted(folder.glob(f"{name.partition('.')[0]}.*"), key=lambda file: -file.stat().st_mtime_ns)
            for file in others[kept:]:
                file.unlink()
    except OSError as error:
        debug(1, f"cannot remember {name}: {error}")


def _folder() -> Path:
    if named := os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA"):  # the latter on Windows
        return Path(named) / "webinfer"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "webinfer"
