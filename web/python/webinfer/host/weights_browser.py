"""Large files in the browser, read in parts: kept in the origin's private file system, or files that the user chose.

A file is kept under its SHA-256. It is complete once a note lies beside it, which has the SHA-256 of each piece, so
that a later visit finds damage in a fraction of a second; without a note it is the beginning of a download, which goes
on where it broke off.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import js
from pyodide.ffi import JsException, JsProxy, to_js

from webinfer.errors import IntegrityError, ModelFormatError
from webinfer.host.interface import Progress, ProgressEvent
from webinfer.host.kernels_browser import options

log = logging.getLogger("webinfer")
FOLDER = "webinfer weights"
PIECE = 4 << 20  # bytes that are checked, and copied, together
DIGESTS = 4  # pieces that are checked at a time
BLOB = 8 << 20  # bytes of memory before they become a part of a Blob, which the browser may put on a disk
ATTEMPTS = 5  # of a download, one behind the other, that bring nothing
STALL_TIMEOUT_S = 20.0  # for the next bytes
BUSY_S = 30.0  # that another tab may be at a file without writing to it
_checking = asyncio.Lock()
_checked: dict[str, tuple[int, float]] = {}  # SHA-256 of files that this worker has checked -> size, time of change


class BlobFile:
    """A File or Blob of the browser (spans.LargeFile)."""

    def __init__(self, blob: Any) -> None:
        self._blob, self.size = blob, int(blob.size)

    def _array(self, at: int, nbytes: int) -> Any:
        try:
            return js.Uint8Array.new(js.FileReaderSync.new().readAsArrayBuffer(self._blob.slice(at, at + nbytes)))
        except JsException as error:
            raise ModelFormatError(f"the file cannot be read: {error}; choose it again") from error

    def read(self, at: int, nbytes: int) -> memoryview:
        """A copy of so many bytes from `at` on."""
        data: memoryview = self._array(at, nbytes).to_memoryview()
        return data

    def copy_into(self, at: int, array: Any) -> None:
        """Fills a typed array of bytes."""
        for first in range(0, int(array.length), PIECE):
            array.set(self._array(at + first, min(PIECE, int(array.length) - first)), first)

    def close(self) -> None:
        """Lets the file go."""
        self._blob = None


class KeptFile:
    """A file of the origin's private file system (spans.LargeFile); nobody else writes to it meanwhile."""

    def __init__(self, access: Any) -> None:
        self._access, self.size = access, int(access.getSize())
        self._room = js.Uint8Array.new(min(PIECE, max(self.size, 1)))

    def copy_into(self, at: int, array: Any) -> None:
        """Fills a typed array of bytes; handles do not read into memory that threads share, so that takes two steps."""
        length = int(array.length)
        if str(array.buffer.constructor.name) != "SharedArrayBuffer":
            self._fill(array, at)
            return
        for first in range(0, length, PIECE):
            part = self._room.subarray(0, min(PIECE, length - first))
            self._fill(part, at + first)
            array.set(part, first)

    def _fill(self, array: Any, at: int) -> None:
        if int(self._access.read(array, options(at=at))) != int(array.length):
            raise ModelFormatError("the stored weights end too early; delete them, then open the model again")

    def read(self, at: int, nbytes: int) -> memoryview:
        """A copy of so many bytes from `at` on."""
        array = js.Uint8Array.new(nbytes)
        self.copy_into(at, array)
        data: memoryview = array.to_memoryview()
        return data

    def close(self) -> None:
        """Lets the file go; a second call does nothing."""
        if self._access is not None:
            self._access.close()
            self._access = None


def as_file(source: Any) -> BlobFile | None:
    """A File or Blob of the browser as a file that is read in parts; None for anything else."""
    kind = str(getattr(getattr(source, "constructor", None), "name", "")) if isinstance(source, JsProxy) else ""
    return BlobFile(source) if kind in ("File", "Blob") and can_read_parts() else None


def can_read_parts() -> bool:
    """Whether files can be read without waiting for them: in workers only."""
    return getattr(js, "FileReaderSync", None) is not None


# ----- what is kept


async def _folder() -> Any:
    root = await js.navigator.storage.getDirectory()
    return await root.getDirectoryHandle(FOLDER, options(create=True))


async def _opened(name: str, create: bool, progress: Progress | None = None) -> Any:
    """The access handle of a file; another tab that is at it is waited for, as long as it writes there.

    Raises:  JsException if there is no such file, or nothing can be kept here
    """
    if create:
        _checked.pop(name, None)  # a file system in memory does not say when a file was changed
    loop, before = asyncio.get_event_loop(), -1
    until = loop.time() + BUSY_S
    while True:
        handle = await (await _folder()).getFileHandle(name, options(create=create))
        try:
            return await handle.createSyncAccessHandle(options(mode="readwrite" if create else "read-only"))
        except JsException as error:
            if error.name != "NoModificationAllowedError" or loop.time() > until:
                raise
            nbytes = int((await handle.getFile()).size)
            if nbytes > before:
                until, before = loop.time() + BUSY_S, nbytes
            if progress is not None:
                progress(ProgressEvent("elsewhere", nbytes, 0))
            await asyncio.sleep(0.3)


async def _stamp(sha256: str) -> tuple[int, float]:
    """A file's size, and when it was changed last."""
    file = await (await (await _folder()).getFileHandle(sha256)).getFile()
    return int(file.size), float(file.lastModified)


async def _write_note(sha256: str, hashes: Sequence[str]) -> None:
    access = await _opened(f"{sha256}.json", True)
    try:
        access.truncate(0)
        access.write(to_js(json.dumps(list(hashes)).encode()))
        access.flush()
    finally:
        access.close()


async def _note(sha256: str) -> list[Any] | None:
    """The SHA-256 of the pieces of a file that is complete."""
    try:
        handle = await (await _folder()).getFileHandle(f"{sha256}.json")
        found = json.loads(str(await (await handle.getFile()).text()))
    except (JsException, AttributeError, ValueError):  # AttributeError: a browser without such a file system
        return None
    return found if isinstance(found, list) else None


async def _hashes(file: KeptFile) -> list[str]:
    """The SHA-256 of each piece: the browser's own, which takes the processor's instructions for it.

    Some are under way in threads of the browser's while the next piece is read.
    """
    found, begun, room = list[str](), deque[Any](), js.Uint8Array.new(min(PIECE, max(file.size, 1)))

    async def end() -> None:
        found.append(bytes((await begun.popleft()).to_memoryview()).hex())

    for at in range(0, file.size, PIECE):
        if len(begun) == DIGESTS:
            await end()
        part = room.subarray(0, min(PIECE, file.size - at))
        file.copy_into(at, part)
        begun.append(js.crypto.subtle.digest("SHA-256", part))  # which copies the bytes before it returns
    while begun:
        await end()
    return found


async def kept(published: Sequence[str]) -> KeptFile | None:
    """The file with one of these SHA-256, if it is here and whole; a damaged one is removed, and the log says so.

    What this worker has checked is not checked again until it changes.
    """
    async with _checking:
        for sha256 in published:
            note = await _note(sha256)
            if note is None:
                continue
            try:
                stamp = await _stamp(sha256)
                file = KeptFile(await _opened(sha256, False))
            except JsException:
                continue
            if _checked.get(sha256) == stamp or await _hashes(file) == note:
                _checked[sha256] = stamp
                return file
            file.close()
            log.warning("weights %s were stored here and are damaged; they are fetched again", sha256[:16])
            await _remove(sha256)
    return None


async def _remove(sha256: str) -> None:
    for name in (f"{sha256}.json", sha256):
        try:
            await (await _folder()).removeEntry(name)
        except JsException:
            continue


async def forget() -> int:
    """Deletes all kept weights, begun ones too; the bytes that were freed. What another tab is at stays, as a whole."""
    found, freed, busy = await stored(), 0, set[str]()
    for name in sorted(found, key=lambda name: name.endswith(".json")):  # notes last
        if name.removesuffix(".json") in busy:
            continue
        try:
            await (await _folder()).removeEntry(name)
            freed += found[name]
        except JsException as error:
            busy.add(name)
            log.warning("stored weights %s cannot be deleted: %s", name[:16], error)
    return freed


async def stored() -> dict[str, int]:
    """The bytes of each file that is kept, notes and begun ones too; nothing where nothing can be kept."""
    found = {}
    try:
        names = (await _folder()).values()
        while not (step := await names.next()).done:
            found[str(step.value.name)] = int((await step.value.getFile()).size)
    except (JsException, AttributeError):
        return {}
    return found


# ----- downloads


async def fetched_file(url: str, published: Sequence[str], progress: Progress | None) -> KeptFile | BlobFile:
    """The file of a URL. Where its SHA-256 is known it is kept; one that comes damaged is asked for once more.

    Raises:  ModelFormatError if the download fails; IntegrityError if it was damaged twice
    """
    found = ""
    for _ in range(2):
        file: KeptFile | BlobFile | None = None
        if published:
            file, found = await _kept_download(url, published[0], progress)
        if file is None:
            file, found = await _blob_download(url, progress)
        if not published or found in published:
            return file
        file.close()
        log.warning("%s came damaged: its SHA-256 is %s", url, found)
        await _remove(published[0])
    raise IntegrityError(f"{url}: sha256 is {found}, {published[0]} was published; try again later")


async def _kept_download(url: str, sha256: str, progress: Progress | None) -> tuple[KeptFile | None, str]:
    """The file, kept, and its SHA-256; no file if nothing can be kept, or not so much."""
    try:
        access = await _opened(sha256, True, progress)
    except (JsException, AttributeError):
        return None, ""
    digest, at = hashlib.sha256(), int(access.getSize())
    try:
        begun = KeptFile(access)
        for first in range(0, at, PIECE):
            digest.update(begun.read(first, min(PIECE, at - first)))

        def take(chunk: Any, first: int) -> None:
            nonlocal digest
            if not first:
                digest = hashlib.sha256()
                access.truncate(0)
            written = int(access.write(chunk, options(at=first)))
            if written != int(chunk.length):
                raise OSError(f"{written} of {chunk.length} bytes were written")
            digest.update(chunk.to_memoryview())

        if digest.hexdigest() != sha256:
            await _download(url, at, take, progress)
        access.flush()
    except (JsException, OSError) as error:  # of the file system: the network's are ModelFormatErrors
        log.warning("weights cannot be kept here (%s); they are used without", error)
        access.close()
        await _remove(sha256)
        return None, ""
    except BaseException:
        access.close()
        raise
    file = KeptFile(access)
    if digest.hexdigest() == sha256:
        await _write_note(sha256, await _hashes(file))
    return file, digest.hexdigest()


async def _blob_download(url: str, progress: Progress | None) -> tuple[BlobFile, str]:
    digest, blobs, parts, held = hashlib.sha256(), js.Array.new(), js.Array.new(), 0

    def take(chunk: Any, first: int) -> None:
        nonlocal digest, blobs, parts, held
        if not first:
            digest, blobs, parts, held = hashlib.sha256(), js.Array.new(), js.Array.new(), 0
        digest.update(chunk.to_memoryview())
        parts.push(chunk)
        held += int(chunk.length)
        if held >= BLOB:
            blobs.push(js.Blob.new(parts))
            parts, held = js.Array.new(), 0

    await _download(url, 0, take, progress)
    blobs.push(js.Blob.new(parts))
    return BlobFile(js.Blob.new(blobs)), digest.hexdigest()


async def _download(url: str, at: int, take: Callable[[Any, int], None], progress: Progress | None) -> None:
    """Hands the bytes from `at` on to `take(chunk, its place)`; goes on where the connection breaks off.

    Raises:  ModelFormatError
    """
    failures, problem = 0, ""
    while failures < ATTEMPTS:
        before = at
        try:
            response = await _answer(url, at)
            if response.status == 416 and at:  # what was stored is longer than the file
                at = 0
                failures += 1
                continue
            if not response.ok:
                raise ModelFormatError(f"cannot fetch {url!r}: HTTP {response.status} {response.statusText}")
            at = at if response.status == 206 else 0
            total = at + int(response.headers.get("Content-Length") or 0)
            reader = response.body.getReader()
            try:
                while not (step := await asyncio.wait_for(reader.read(), STALL_TIMEOUT_S)).done:
                    take(step.value, at)
                    at += int(step.value.length)
                    if progress is not None:
                        progress(ProgressEvent("model", at, max(total, at)))
            finally:
                reader.cancel().catch(lambda _: None)
            if at >= total:
                return
            problem = f"{at} of {total} bytes came"
        except JsException as error:
            if error.name not in ("TypeError", "NetworkError", "AbortError"):
                raise  # from the consumer of the bytes
            problem = str(error)
        except TimeoutError:
            problem = f"nothing came for {STALL_TIMEOUT_S:.0f} s"
        failures = 1 if at > before else failures + 1
        log.warning("%s broke off at byte %d: %s", url, at, problem)
        await asyncio.sleep(min(0.25 * 2**failures, 4.0))
    raise ModelFormatError(
        f"cannot fetch {url!r}: {problem}; check the network, then try again: the download resumes there"
    )


async def _answer(url: str, at: int) -> Any:
    """The response with the bytes from `at` on. The browser keeps no second copy of them."""
    headers = options(Range=f"bytes={at}-")
    return await asyncio.wait_for(js.fetch(url, options(headers=headers, cache="no-store")), STALL_TIMEOUT_S)
