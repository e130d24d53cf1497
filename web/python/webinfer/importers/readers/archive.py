"""Zip archives: their files unpacked, within limits that no honest model reaches."""

from __future__ import annotations

import zlib
from io import BytesIO

from webinfer.errors import LimitError, ModelFormatError
from webinfer.graph.printer import safe_name

SIGNATURE = b"PK\x03\x04"
MAX_MEMBERS = 10_000
MAX_UNPACKED = 2**31 - 1  # bytes of all files
MAX_RATIO = 200  # bytes of all files for each byte of the archive; model.json has 30
LEAST = 2**20  # bytes that any archive may hold


def unpack(data: memoryview, name: str) -> dict[str, memoryview]:
    """The files of an archive by name, folders left out.

    Raises:  ModelFormatError if the archive is damaged, encrypted or holds a name twice; LimitError
    """
    from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

    files = dict[str, memoryview]()
    try:
        with ZipFile(BytesIO(data)) as archive:
            members = [info for info in archive.infolist() if not info.is_dir()]
            total, limit = sum(info.file_size for info in members), min(max(MAX_RATIO * len(data), LEAST), MAX_UNPACKED)
            for what, found, most in (("files", len(members), MAX_MEMBERS), ("bytes", total, limit)):
                if found > most:
                    raise LimitError(f"{name!r}: {what} of the zip archive", found, most, "unpack it yourself")
            for info in members:
                if info.filename in files or info.flag_bits & 1 or info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
                    raise ModelFormatError(
                        f"{name!r}: {safe_name(info.filename)} is in the zip archive twice, encrypted or packed in an "
                        "unusual way; unpack it yourself"
                    )
                files[info.filename] = memoryview(archive.read(info))
    except (BadZipFile, EOFError, LookupError, NotImplementedError, OSError, RuntimeError, ValueError, zlib.error) as e:
        raise ModelFormatError(f"{name!r} is a zip archive that is damaged: {e}; get it again") from e
    return files
