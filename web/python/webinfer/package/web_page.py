"""A compiled package as a static page: the player beside it, a picture in, what is found in it out."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path

from webinfer.errors import InputError
from webinfer.host.whole_files import write_folder
from webinfer.package.container import Package

PARTS = Path(__file__).resolve().parents[1] / "_static"  # of a wheel
PREFIX = "player_"  # of the page's files there
PAGE = "index.html"
MARK = "webinfer-export"  # a file that says that a folder may be replaced
OWN_TITLE, OWN_SAMPLE = "Faces in a picture", ' data-sample="photo.png"'  # of the page as it lies in web/player/demo


def export_page(package: Path, folder: Path, parts: Mapping[str, bytes] | None = None) -> dict[str, int]:
    """Writes a folder that any static host serves; bytes by file.

    `parts` are the player and its page, by default those of the installed wheel. The folder is new, empty, or an
    earlier export, which is replaced.

    Raises:  ModelFormatError if the file is not a package, InputError if the folder holds something else or the
             installation has no player; OSError
    """
    data = package.read_bytes()
    Package(memoryview(data), package.stem)  # complains of what is none
    parts = installed() if parts is None else parts
    if folder.exists() and not (folder / MARK).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} holds other files; name a new folder")
    page = parts[PAGE].decode().replace(OWN_TITLE, escape(package.stem)).replace(OWN_SAMPLE, "")
    files = {**parts, PAGE: page.encode(), "model.webinfer": data}
    write_folder(folder, {**files, MARK: b"", ".nojekyll": b""})
    return {name: len(content) for name, content in sorted(files.items())}


def installed() -> dict[str, bytes]:
    """The player and its page, as they lie in the wheel.

    Raises:  InputError if there are none: a checkout is not a wheel
    """
    found = {path.name.removeprefix(PREFIX): path.read_bytes() for path in PARTS.glob(f"{PREFIX}*")}
    if PAGE not in found:
        raise InputError(
            "this is a checkout, which has no player put together: python3 -m build_scripts export --package"
        )
    return found
