"""Files beside a model: one name for each, however a model or a caller writes it, and their bytes looked at."""

from __future__ import annotations

from collections.abc import Mapping

from webinfer.errors import ModelFormatError
from webinfer.graph.printer import safe_name
from webinfer.importers.core.other_files import not_weights

MAX_FILE_NAME = 255  # characters
_STRANGE = frozenset("\\:#%\0")  # means more than a name to some system or in a URL
Files = Mapping[str, memoryview]  # by `plain_name`


def plain_name(name: str) -> str:
    """The one name of a file relative to the model's folder: `./a`, `b//a` and `b/../a` become plain. No query.

    Raises:  ModelFormatError if it lies outside of the folder, or has no name there
    """
    parts: list[str] = []
    path = name.partition("?")[0]
    for part in path.split("/"):
        if part == ".." and parts:
            parts.pop()
        elif part == "..":
            parts = []
            break
        elif part not in ("", "."):
            parts.append(part)
    plain = "/".join(parts)
    if not plain or path.startswith("/") or len(plain) > MAX_FILE_NAME or set(plain) & _STRANGE:
        raise ModelFormatError(f"the file {name[:MAX_FILE_NAME]!r}, which is outside its folder")
    return plain


def with_plain_names(files: Files) -> dict[str, memoryview]:
    """The files by their plain names; those outside of the folder under the names that they have."""
    found: dict[str, memoryview] = {}
    for name, data in files.items():
        try:
            found.setdefault(plain_name(name), data)
        except ModelFormatError:
            found[name] = data
    return found


def bytes_beside(files: Files, name: str, what: str) -> memoryview:
    """The bytes of the file of weights that a model calls so; `what` lies there.

    Raises:  ModelFormatError if it was not given, lies outside of the folder, or is a web page, a Git LFS pointer or
             a compressed file
    """
    data = files.get(plain_name(name))
    if data is None:
        raise ModelFormatError(
            f"{what} is stored in a separate file, {safe_name(name)}, which was not given; load the model by its "
            "path or URL, or give all of its files as a mapping"
        )
    if found := not_weights(data):
        raise ModelFormatError(f"{safe_name(name)}, which should contain {what}, is {found}")
    return data
