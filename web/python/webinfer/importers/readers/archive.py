"""Zip archives: their files unpacked, within limits that no honest model reaches."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from io import BytesIO

from webinfer.errors import ModelFormatError
from webinfer.graph.printer import safe_name
from webinfer.importers.core.limits import within

SIGNATURE = b"PK\x03\x04"
MAX_MEMBERS = 10_000
MAX_UNPACKED = 2**31 - 1  # bytes of all files
MAX_RATIO = 200  # bytes of all files for each byte of the archive; model.json has 30
LEAST = 2**20  # bytes that any archive may hold
BUNDLES = (".task", ".zip")  # files in an archive that are archives themselves
MAX_NESTED = 3


def is_archive(data: memoryview) -> bool:
    """Whether these are the bytes of a zip archive, after up to four zeros: bundles of MediaPipe's are aligned."""
    return data[:8].tobytes().lstrip(b"\0").startswith(SIGNATURE)


def unpack(data: memoryview, name: str) -> dict[str, memoryview]:
    """The files of an archive by name, folders left out. Those of bundles in it have the bundle's name before theirs.

    Raises:  ModelFormatError if an archive is damaged, encrypted, holds a name twice or one that leaves it; LimitError
    """
    from zipfile import BadZipFile

    files = dict[str, memoryview]()
    limit = min(max(MAX_RATIO * len(data), LEAST), MAX_UNPACKED)
    waiting, count = [("", data)], 0
    try:
        while waiting:
            before, packed = waiting.pop()
            for file, inside in _members(packed, name, limit):
                count, limit = count + 1, limit - len(inside)
                within(f"{name!r}: files of the zip archive", count, MAX_MEMBERS, "unpack it yourself")
                path = before + file
                if path in files:
                    raise ModelFormatError(f"{name!r}: {safe_name(path)} is in the zip archive twice")
                nested = file.endswith(BUNDLES) and is_archive(inside) and before.count("/") < MAX_NESTED
                if nested:
                    waiting.append((f"{path}/", inside))
                else:
                    files[path] = inside
    except (BadZipFile, EOFError, LookupError, NotImplementedError, OSError, RuntimeError, ValueError, zlib.error) as e:
        raise ModelFormatError(f"{name!r} is a zip archive that is damaged: {e}; download it again") from e
    return files


def _members(data: memoryview, name: str, limit: int) -> Iterator[tuple[str, memoryview]]:
    """The files of one archive, whose sizes are checked before any is unpacked."""
    from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

    with ZipFile(BytesIO(data)) as archive:
        members = [info for info in archive.infolist() if not info.is_dir()]
        total = sum(info.file_size for info in members)
        within(f"{name!r}: files of the zip archive", len(members), MAX_MEMBERS, "unpack it yourself")
        within(f"{name!r}: bytes of the zip archive", total, limit, "unpack it yourself")
        for info in members:
            parts = info.filename.replace("\\", "/").split("/")
            if info.flag_bits & 1 or info.compress_type not in (ZIP_STORED, ZIP_DEFLATED) or {"", ".", ".."} & {*parts}:
                raise ModelFormatError(
                    f"{name!r}: {safe_name(info.filename)} is encrypted, packed in an unusual way, or leaves the zip "
                    "archive; unpack it yourself"
                )
            yield info.filename, memoryview(archive.read(info))
