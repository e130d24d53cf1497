"""The user's cache folder: what CPython stores beyond a process, such as machine code.

Each file has a message authentication code (keyed BLAKE2b) by a key that lies elsewhere, in the user's folder of
settings. Who can write the cache folder alone cannot make this process run code, and damaged files are not used. The
folder belongs to the user and is closed to others; another folder, or one that others may write, is not
used. WEBINFER_CACHE names another folder, or is "off".
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import stat
import sys
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from webinfer.flags import debug
from webinfer.host.whole_files import write_whole

log = logging.getLogger("webinfer")
OFF = ("off", "0")  # of WEBINFER_CACHE
MAGIC = b"WIC2"
EARLIER = b"WIC1"  # of files that had a checksum without a key
KEY_BYTES = CODE_BYTES = 32


def recall(name: str) -> memoryview | None:
    """The bytes under this name, or None. A damaged or foreign file is removed, and the log says so."""
    place = folder()
    if place is None or (key := _key(_settings())) is None:
        return None
    file = place / name
    try:
        stored = memoryview(file.read_bytes())
        head, code, data = stored[:4], stored[4 : 4 + CODE_BYTES], stored[4 + CODE_BYTES :]
        if head == MAGIC and hmac.compare_digest(code, _code(key, name, data)):
            with suppress(OSError):
                os.utime(file, ns=(time.time_ns(), file.stat().st_mtime_ns))  # when it was used, for `remember`
            return data
        if head != EARLIER:
            log.warning("%s was stored here and is damaged or not of this user; it is made anew", name)
        file.unlink()
    except OSError:
        pass
    return None


def remember(name: str, data: bytes, kind: str = "", kept: int = 0, kept_bytes: int = 0) -> None:
    """Stores bytes; a folder that cannot be written or is not used is not a failure.

    Of the files whose names begin with `kind`, only the `kept` ones that were used last stay, of `kept_bytes` together.
    """
    place = folder()
    if place is None or (key := _key(_settings())) is None:
        return
    try:
        write_whole(place / name, MAGIC + _code(key, name, memoryview(data)) + data)
        if kind:
            found = [entry for entry in os.scandir(place) if entry.name.startswith(kind) and entry.name != name]
            others = sorted(((entry.stat(), entry.path) for entry in found), key=lambda other: -other[0].st_atime_ns)
            total = len(data)
            for number, (told, path) in enumerate(others, start=1):
                total += told.st_size
                if number >= kept or (kept_bytes and total > kept_bytes):
                    os.unlink(path)
    except OSError as error:
        debug(1, f"cannot remember {name}: {error}")


def forget(name: str) -> None:
    """Removes what is stored under this name, if anything is."""
    place = folder()
    try:
        if place is not None:
            (place / name).unlink(missing_ok=True)
    except OSError as error:
        debug(1, f"cannot remove {name}: {error}")


def _code(key: bytes, name: str, data: memoryview) -> bytes:
    made = hashlib.blake2b(key=key, digest_size=CODE_BYTES)
    made.update(f"{len(name)}:{name}".encode())  # a file does not do for another one
    made.update(data)
    return made.digest()


def folder() -> Path | None:
    """The folder, which is there; None if nothing is stored."""
    named = os.environ.get("WEBINFER_CACHE", "")
    if named.lower() in OFF:
        return None
    try:
        return _own(Path(named) if named else _place() / "webinfer")
    except (OSError, RuntimeError) as error:  # without a home, for example
        debug(1, f"nothing is stored: {error}")
        return None


def _own(folder: Path) -> Path | None:
    """A folder of this user that nobody else may write, made if there is none; None if it is another one's."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.name != "posix":
        return folder
    found = folder.stat()
    if found.st_uid != os.geteuid():
        _told(str(folder), "it belongs to another user")
        return None
    if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        folder.chmod(0o700)
    return folder


@lru_cache(maxsize=8)
def _told(folder: str, why: str) -> None:
    log.warning("the cache folder %s is not used: %s; WEBINFER_CACHE names another, or is off", folder, why)


def _place() -> Path:
    if named := os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA"):  # the latter on Windows
        return Path(named)
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")


def _settings() -> Path:
    """The file of the key: in the user's folder of settings, which is another one than the cache folder."""
    if named := os.environ.get("XDG_CONFIG_HOME") or os.environ.get("APPDATA"):
        return Path(named) / "webinfer" / "cache.key"
    home = Path(os.path.expanduser("~"))
    return home / ("Library/Application Support" if sys.platform == "darwin" else ".config") / "webinfer" / "cache.key"


@lru_cache(maxsize=4)
def _key(file: Path) -> bytes | None:
    """The user's key, made on first use; None, and nothing is stored, where it cannot be kept to the user."""
    try:
        if _own(file.parent) is None:
            return None
        try:
            with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as made:
                made.write(os.urandom(KEY_BYTES))
        except FileExistsError:
            pass
        found = file.stat()
        others = os.name == "posix" and (found.st_uid != os.geteuid() or found.st_mode & 0o077)
        key = file.read_bytes()
    except OSError as error:
        debug(1, f"nothing is stored: {error}")
        return None
    if others or len(key) != KEY_BYTES:
        _told(str(file), "this key is not a file of 32 bytes of this user alone")
        return None
    return key
