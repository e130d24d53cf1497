"""Downloads over HTTP in CPython, with the standard library: the wheel needs no HTTP client of its own.

urllib follows redirects, reads the proxies of the environment or of the system, and trusts the system's certificates.
What it leaves out is here: Content-Encoding, going on where a connection broke off, the hash that a server tells, and
errors that say what the server answered. httpx or urllib3 would add connection pools and HTTP/2, which one download of
a model does not need, for four more packages in each user's environment. `kept_downloads` keeps what came.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import io
import os
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Mapping
from typing import IO, Any

from webinfer.errors import IntegrityError, LimitError, ModelFormatError
from webinfer.host.hub import is_of_hub
from webinfer.host.interface import Progress, ProgressEvent
from webinfer.lazy_dataclass import dataclass

CHUNK = 1 << 18  # bytes between two progress reports
MAX_BYTES = 1 << 34  # of a decoded file
TIMEOUT_S = 30
ATTEMPTS = 4  # of which nothing new came, before a broken download is given up
PAUSE_S = 0.5  # before the first of these; each next one waits twice as long
BUSY = (429, 500, 502, 503, 504)  # statuses of a server that may answer later
_ANY_WRAPPER = 47  # zlib's number for gzip or zlib, whichever comes


class NotReached(ModelFormatError):
    """The server gave no answer: an earlier copy of the file may do."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said of a file."""

    etag: str = ""
    modified: str = ""  # Last-Modified, as the server wrote it
    total: int = 0  # bytes of the file as it is sent; 0 where that is not told
    sha256: str = ""  # that the file shall have; "" where the server does not tell it
    git_sha1: str = ""  # the same as Git's name of the file
    encoded: bool = False  # whether a Content-Encoding was undone
    keep: bool = True  # False: Cache-Control: no-store
    unchanged: bool = False  # 304: the copy that the caller has is the file

    @property
    def resumable(self) -> str:
        """What tells the server of which version a part has come; "" where none can be asked for."""
        return "" if self.encoded or self.etag.startswith("W/") else self.etag or self.modified


def download(url: str, progress: Progress | None = None) -> memoryview:
    """The bytes at an http(s) URL, with their Content-Encoding undone. Nothing is kept.

    Raises:  ModelFormatError saying what the server answered, or that the connection ended early; LimitError;
             IntegrityError if they have another hash than the server says
    """
    out = io.BytesIO()
    download_into(url, out, progress)
    return out.getbuffer()


def download_into(
    url: str, out: IO[bytes], progress: Progress | None = None, known: Answer | None = None,
    begun: Answer | None = None, note: Callable[[Answer], None] = lambda answer: None,
) -> Answer:  # fmt: skip
    """Writes the file at a URL, and says what the server told of it. A connection that breaks off is taken up again.

    `out` holds what came of `begun` earlier, or nothing. If the file is still as `known` says, nothing is written.
    `note` hears what the server says before the first bytes are written.

    Raises:  as `download`; NotReached if no server answered
    """
    out.seek(0, io.SEEK_END)
    answer, failed, far = begun, 0, out.tell()
    while True:
        try:
            answer = _attempt(url, out, progress, known, answer, note)
            break
        except _Broken as broken:
            answer = broken.answer
            resumable = answer is not None and bool(answer.resumable)
            failed = 0 if resumable and out.tell() > far else failed + 1
            far = out.tell()
            if failed >= (ATTEMPTS if resumable else 2):  # the whole again only once
                raise broken.error from broken.__cause__
            time.sleep(PAUSE_S * 2**failed / 2)
    if answer.unchanged:
        return answer
    try:
        _check(url, out, answer)
    except IntegrityError:
        if begun is None:
            raise
        return download_into(url, out, progress, known, None, note)  # the part of earlier was not of this file
    return answer


class _Broken(Exception):
    """A download that ended early, and what it would raise if it is not taken up."""

    def __init__(self, error: ModelFormatError, answer: Answer | None) -> None:
        super().__init__()
        self.error, self.answer = error, answer


def _attempt(
    url: str, out: IO[bytes], progress: Progress | None, known: Answer | None, begun: Answer | None,
    note: Callable[[Answer], None],
) -> Answer:  # fmt: skip
    """One request, which asks for what is missing."""
    start = out.tell() if begun is not None and begun.resumable else 0
    headers = {"Range": f"bytes={start}-", "If-Range": begun.resumable} if start and begun else {}
    if known is not None and not start:
        conditions = {"If-None-Match": known.etag, "If-Modified-Since": "" if known.etag else known.modified}
        headers |= {name: value for name, value in conditions.items() if value}
    answer = begun
    try:
        redirects = _Redirects()
        with urllib.request.build_opener(redirects).open(_request(url, headers), timeout=TIMEOUT_S) as response:
            told = redirects.linked | dict(response.headers.items())
            parts = response.headers.get_all("Content-Encoding") or []
            start = _begins(url, response, start)
            answer = _answer(told, ",".join(parts), start)
            out.seek(start)
            out.truncate()
            note(answer)
            _read(response, url, out, _Decoder(",".join(parts), url), answer, progress)
        return answer
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 304 and known is not None:
                return Answer(known.etag, known.modified, unchanged=True)
            failure = _refused(url, error)
            if error.code == 416 and start:  # what came is longer than the file: it was another version
                out.seek(0)
                out.truncate()
                raise _Broken(failure, None) from error
            if error.code in BUSY and begun is not None:
                raise _Broken(failure, begun) from error
            raise failure from error
    except (OSError, ValueError, http.client.HTTPException, zlib.error) as error:
        reached = answer is not begun
        kind = ModelFormatError if reached else NotReached
        failure = kind(f"cannot download {url!r}: {reason_of(error)}")
        if reached or begun is not None:
            raise _Broken(failure, answer) from error
        raise failure from error
    except EOFError as early:
        raise _Broken(ModelFormatError(str(early)), answer) from None


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, and notes what a model hub says of a file before it sends on to where its bytes lie."""

    def __init__(self) -> None:
        self.linked: dict[str, str] = {}

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        told = {name: value for name, value in headers.items() if name.lower().startswith(("x-linked-", "x-repo-"))}
        self.linked |= told
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _request(url: str, headers: Mapping[str, str]) -> urllib.request.Request:
    request = urllib.request.Request(url, headers=dict(headers))  # which asks for no encoding, and may get one
    if is_of_hub(url) and (token := os.environ.get("HF_TOKEN")):
        request.add_unredirected_header("Authorization", f"Bearer {token}")  # not for the servers that it sends on to
    return request


def _begins(url: str, response: Any, start: int) -> int:
    """Where in the file the answer's bytes begin: at `start`, if the server goes on there."""
    if response.status != 206:
        return 0
    found = str(response.headers.get("Content-Range", "")).replace(" ", "")
    if not start or not found.startswith(f"bytes{start}-") or response.headers.get("Content-Encoding"):
        raise ModelFormatError(f"{url!r}: bytes from {start} were requested, the server sent {found or 'others'}")
    return start


def _refused(url: str, error: urllib.error.HTTPError) -> ModelFormatError:
    """An error that says what the server answered, and of a hub what may be missing."""
    text = f"cannot download {url!r}: the server answered {error.code} {error.reason}"
    if is_of_hub(url) and error.code in (401, 403, 404):
        text += "; check owner, name and file, and for a private or gated repository set HF_TOKEN"
    return (NotReached if error.code in BUSY else ModelFormatError)(text)


def _answer(headers: Mapping[str, str], encodings: str, start: int) -> Answer:
    told = {name.lower(): value for name, value in headers.items()}
    length = int(told.get("content-length") or 0)
    encoded = encodings.strip().lower() not in ("", "identity")
    sha256, git_sha1 = _digest(told) if not encoded else "", ""
    linked = (told.get("x-linked-etag") or (told.get("etag", "") if "x-repo-commit" in told else "")).strip('"')
    if _is_hex(linked, 64):
        sha256 = linked
    elif _is_hex(linked, 40):
        git_sha1 = linked
    return Answer(
        told.get("etag", ""), told.get("last-modified", ""), length + start if length else 0, sha256, git_sha1, encoded,
        "no-store" not in told.get("cache-control", ""),
    )  # fmt: skip


def _digest(told: Mapping[str, str]) -> str:
    """The SHA-256 of RFC 9530's Repr-Digest, or of the Digest before it, in hexadecimal digits.

    A plain ETag is not read as a hash: servers are free to write what they like there, and some write 64 digits.
    """
    for part in ",".join((told.get("repr-digest", ""), told.get("digest", ""))).split(","):
        name, _, value = part.strip().partition("=")
        if name.lower() == "sha-256":
            try:
                return base64.b64decode(value.strip(":"), validate=True).hex()
            except ValueError:
                return ""
    return ""


def _is_hex(text: str, digits: int) -> bool:
    return len(text) == digits and not set(text) - set("0123456789abcdef")


def _check(url: str, out: IO[bytes], answer: Answer) -> None:
    """Raises IntegrityError, and empties the file, if it has another hash than the server says."""
    if not answer.sha256 and not answer.git_sha1:
        return
    wanted, digest = answer.sha256, hashlib.sha256()
    if not wanted:
        wanted, digest = answer.git_sha1, hashlib.sha1(f"blob {out.tell()}\0".encode(), usedforsecurity=False)
    out.seek(0)
    while chunk := out.read(1 << 20):
        digest.update(chunk)
    if (found := digest.hexdigest()) != wanted:
        out.seek(0)
        out.truncate()
        raise IntegrityError(
            f"{url!r} arrived damaged: its hash is {found[:16]}…, the server says {wanted[:16]}…; load it again"
        )


def reason_of(error: BaseException) -> str:
    """Why a request failed, without the name of a Python class."""
    reason = getattr(error, "reason", None) or error
    if isinstance(reason, http.client.IncompleteRead):
        return f"the connection ended after {len(reason.partial)} bytes; load it again"
    if isinstance(reason, TimeoutError):
        return f"no answer within {TIMEOUT_S} seconds; check the network, or give a path"
    if isinstance(reason, OSError):
        return f"{(reason.strerror or str(reason)).lower()}; check the address and the network, or give a path"
    return str(reason) or type(reason).__name__


class _Decoder:
    """Undoes a Content-Encoding, chunk by chunk."""

    def __init__(self, encodings: str, url: str) -> None:
        self._left, self._url = MAX_BYTES, url
        names = [name.strip().lower() for name in encodings.split(",")]
        self._names = [name.removeprefix("x-") for name in names if name not in ("", "identity")]
        if unknown := [name for name in self._names if name not in ("gzip", "deflate")]:
            raise ModelFormatError(
                f"{url!r} came as {unknown[0]}, which was not requested; serve the file uncompressed, or with gzip"
            )
        self._stages = [self._stage() for _ in self._names]

    def _stage(self) -> Any:
        return zlib.decompressobj(_ANY_WRAPPER)

    def decode(self, data: bytes) -> bytes:
        """The decoded bytes of the next encoded ones."""
        for number in reversed(range(len(self._stages))):
            data = self._inflated(number, data)
        self._left -= len(data)
        if self._left < 0:
            raise LimitError(f"bytes of {self._url!r}", MAX_BYTES - self._left, MAX_BYTES, "use a smaller file")
        return data

    def _inflated(self, number: int, data: bytes) -> bytes:
        out = bytearray()
        while data:
            stage = self._stages[number]
            try:
                out += stage.decompress(data)
            except zlib.error:
                if self._names[number] != "deflate" or out or getattr(stage, "eof", False):
                    raise
                self._stages[number] = zlib.decompressobj(-15)  # without the head that the standard asks for
                self._names[number] = "raw deflate"
                continue
            data = stage.unused_data  # of the next member of a gzip file
            if data:
                self._stages[number] = self._stage()
        return bytes(out)

    @property
    def ended(self) -> bool:
        """Whether nothing is missing at the end."""
        return all(stage.eof for stage in self._stages)


def _read(
    response: Any, url: str, out: IO[bytes], decoder: _Decoder, answer: Answer, progress: Progress | None
) -> None:
    """Raises EOFError that says how far it got if the connection ends early."""
    came = 0 if answer.encoded else out.tell()
    while chunk := response.read(CHUNK):
        came += len(chunk)
        _write(out, decoder.decode(chunk))
        if progress is not None:
            progress(ProgressEvent("model", came, answer.total))
    if answer.total and came != answer.total:
        raise EOFError(f"{url!r} ended after {came} of {answer.total} bytes; load it again")
    if not decoder.ended:
        raise EOFError(f"{url!r} ended inside its compressed data after {came} bytes; load it again")


def _write(out: IO[bytes], data: bytes) -> None:
    try:
        out.write(data)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ModelFormatError(
            f"cannot store the download: {reason}; free some space, or choose another folder with WEBINFER_CACHE"
        ) from error
