"""Downloads that are kept in the user's cache folder, as browsers keep theirs: a later one asks for changes.

What came before a connection broke off, or the process ended, is kept too, and the next download goes on there. Where
no server answers, the copy is used, and the log says so. Each file's address, its hash and what the server said of it
are in an entry of `cache_folder`, which nobody else can write; a file that was touched since is checked by its hash.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from webinfer.lazy_dataclass import dataclass

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

from webinfer.host import cache_folder
from webinfer.host.downloads import Answer, NotReached, download, download_into
from webinfer.host.interface import Progress, ProgressEvent
from webinfer.host.whole_files import mapped

log = logging.getLogger("webinfer")
FOLDER = "downloads"
ENTRY = "download-"  # begins the names of entries
POLL_S = 0.2
_FIXED = re.compile(r"/resolve/[0-9a-f]{40}/")  # of an address whose file never changes


@dataclass(frozen=True, slots=True)
class StoredDownload:
    """A file that was downloaded: where from, what the server said, and what lies on the disk."""

    url: str
    answer: Answer
    sha256: str
    size: int
    mtime_ns: int


def kept_download(url: str, progress: Progress | None = None, fresh: bool = False) -> memoryview:
    """The bytes at a URL; a kept copy where it is still the file, unless `fresh`.

    Raises:  what `download` raises
    """
    url = url.partition("#")[0]
    folder = cache_folder.folder()
    if folder is None:
        return download(url, progress)
    (folder / FOLDER).mkdir(exist_ok=True)
    key = hashlib.sha256(url.encode()).hexdigest()[:32]
    place = folder / FOLDER / key
    with _begun(place) as part:
        kept = None if fresh else _kept(key, place)
        if kept is not None and _FIXED.search(url):
            return _used(place, progress)
        try:
            answer = download_into(
                url, part, progress, kept.answer if kept else None, _part_of(key), lambda told: _note(key, url, told)
            )
        except NotReached as error:
            if kept is None:
                raise
            day = time.strftime("%Y-%m-%d", time.localtime(kept.mtime_ns / 1e9))
            log.warning("%s; the copy of %s is used", str(error).partition("; ")[0], day)
            return _used(place, progress)
        if answer.unchanged:
            return _used(place, progress)
        return _finished(key, url, place, part, answer)


@dataclass(frozen=True, slots=True)
class Listed:
    """A download in the cache folder: its address, its file, how many bytes came, and when; `whole` if all came."""

    url: str
    file: Path
    size: int
    time: float  # seconds since 1970
    whole: bool


def listed() -> list[Listed]:
    """What was downloaded and what was begun, by address."""
    place, found = cache_folder.folder(), []
    for file in sorted((place / FOLDER).glob("*")) if place is not None else ():
        key, _, ending = file.name.partition(".")
        kept = None if ending else _entry(key)
        url = kept.url if kept else _part_url(key)
        with suppress(OSError):
            told = file.stat()
            found.append(Listed(url, file, told.st_size, told.st_mtime, kept is not None))
    return sorted(found, key=lambda row: row.url)


def removed(row: Listed) -> int:
    """Deletes a download; how many bytes that freed."""
    key, _, ending = row.file.name.partition(".")
    row.file.unlink(missing_ok=True)
    cache_folder.forget(f"{ENTRY}{key}.part" if ending else f"{ENTRY}{key}")
    return row.size


def _used(place: Path, progress: Progress | None) -> memoryview:
    data = mapped(place)
    if progress is not None:
        progress(ProgressEvent("model", len(data), len(data)))
    return data


def _finished(key: str, url: str, place: Path, part: IO[bytes], answer: Answer) -> memoryview:
    """Keeps what came, if the server lets it be kept and can tell later whether it changed."""
    part.flush()
    came = Path(part.name)
    cache_folder.forget(f"{ENTRY}{key}.part")
    if not answer.keep or not (answer.etag or answer.modified):
        data = memoryview(came.read_bytes())
        part.truncate(0)
        place.unlink(missing_ok=True)
        cache_folder.forget(f"{ENTRY}{key}")
        return data
    sha256 = answer.sha256 or _sha256(came)
    if fcntl is None:  # on Windows open files are not moved
        part.close()
    try:
        came.replace(place)
    except OSError:  # on Windows, where another process has mapped the earlier one
        return memoryview(came.read_bytes())
    found = place.stat()
    kept = StoredDownload(url, answer, sha256, found.st_size, found.st_mtime_ns)
    cache_folder.remember(f"{ENTRY}{key}", json.dumps(asdict(kept)).encode())
    return mapped(place)


def _kept(key: str, place: Path) -> StoredDownload | None:
    """The copy, if it is there and whole."""
    kept = _entry(key)
    if kept is None or not place.is_file():
        return None
    found = place.stat()
    if (found.st_size, found.st_mtime_ns) == (kept.size, kept.mtime_ns):
        return kept
    if _sha256(place) == kept.sha256:
        return kept
    log.warning("the copy of %s was changed; it is downloaded again", kept.url)
    return None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _entry(key: str) -> StoredDownload | None:
    data = cache_folder.recall(f"{ENTRY}{key}")
    try:
        row: Any = json.loads(bytes(data)) if data is not None else None
        return row and StoredDownload(**{**row, "answer": Answer(**row["answer"])})
    except (ValueError, TypeError, KeyError):  # of another version of webinfer
        return None


def _part_of(key: str) -> Answer | None:
    """What the server said of a file of which a part has come."""
    data = cache_folder.recall(f"{ENTRY}{key}.part")
    try:
        return Answer(**json.loads(bytes(data))["answer"]) if data is not None else None
    except (ValueError, TypeError, KeyError):
        return None


def _part_url(key: str) -> str:
    data = cache_folder.recall(f"{ENTRY}{key}.part")
    return str(json.loads(bytes(data))["url"]) if data is not None else "an unknown address"


def _note(key: str, url: str, answer: Answer) -> None:
    if answer.resumable:
        cache_folder.remember(f"{ENTRY}{key}.part", json.dumps({"url": url, "answer": asdict(answer)}).encode())
    else:
        cache_folder.forget(f"{ENTRY}{key}.part")


@contextmanager
def _begun(place: Path) -> Iterator[IO[bytes]]:
    """The file of what has come so far, which other processes and threads leave alone meanwhile."""
    own = f".{os.getpid()}-{threading.get_ident()}" if fcntl is None else ""  # without locks nobody shares a part
    path = place.with_name(f"{place.name}{own}.part")
    while True:
        with open(path, "r+b", opener=_made) as part:
            if not _locked(part, path):
                continue  # another process finished it meanwhile
            try:
                yield part
            finally:
                if not part.closed and path.exists() and not path.stat().st_size:
                    with suppress(OSError):
                        path.unlink()
            return


def _made(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CREAT, 0o600)


def _locked(part: IO[bytes], path: Path) -> bool:
    """Waits until nobody else writes the file; whether it still lies at this path."""
    while fcntl is not None:
        try:
            fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            time.sleep(POLL_S)
        except OSError:  # a file system without locks
            break
    try:
        return os.path.samestat(os.fstat(part.fileno()), path.stat())
    except OSError:
        return False
