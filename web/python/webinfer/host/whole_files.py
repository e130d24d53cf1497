"""Files as a whole: written so that the one before stays until all of the new one is on the disk; read as memory."""

from __future__ import annotations

import contextlib
import mmap
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

MAPPED = 1 << 25  # bytes of a file from which on it is mapped


def write_whole(file: Path, data: bytes) -> None:
    """Writes a file, in place of the one before if there is one. Devices and pipes are written to as they are.

    Raises:  OSError naming the file; it is then what it was
    """
    place = Path(os.path.realpath(file))  # a link stays one
    try:
        if place.exists() and (not place.is_file() or not os.access(place, os.W_OK)):
            file.write_bytes(data)  # a device, or what says why it cannot be written
            return
        fresh = place.with_name(f".{os.getpid()}-{threading.get_ident()}.new")
        try:
            fresh.write_bytes(data)
            fresh.replace(place)
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as error:
        raise _named(error, file) from error


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes these files into a folder, and removes all others in it. The folder itself stays, if it is there.

    Raises:  OSError naming the folder; what is in it is then what it was
    """
    with replaced(folder) as fresh:
        for name, data in files.items():
            (fresh / name).write_bytes(data)


@contextlib.contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """An empty folder; what the block puts there becomes all that is in the other one, which stays, if it is there.

    Raises:  OSError naming the folder; what is in it is then what it was
    """
    import shutil  # which no load needs, nor tempfile
    import tempfile

    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".new-") as place:
            fresh = Path(place)
            yield fresh
            for old in [old for old in folder.iterdir() if old != fresh]:  # from here on nothing needs room
                shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
            for new in list(fresh.iterdir()):
                new.rename(folder / new.name)
    except BaseException as error:
        if made and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
        if isinstance(error, OSError):
            raise _named(error, folder) from error
        raise


def _named(error: OSError, file: Path) -> OSError:
    return OSError(error.errno, error.strerror or str(error), str(file))


def mapped(path: Path) -> memoryview:
    """A file's bytes; those of a large one come from the disk as they are read, and need no memory of their own."""
    if path.stat().st_size < MAPPED:
        return memoryview(path.read_bytes())
    with path.open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
