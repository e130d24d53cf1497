"""Downloads over HTTP in CPython, with the standard library: the wheel needs no HTTP client of its own.

urllib follows redirects and reads the proxies of the environment. What it leaves out is here: Content-Encoding, the
length of what came, and errors that say what the server answered. httpx or urllib3 would add connection pools and
HTTP/2, which one download of a model does not need, for four more packages in each user's environment.
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
import zlib
from typing import Any

from webinfer.errors import LimitError, ModelFormatError
from webinfer.host.interface import Progress, ProgressEvent

CHUNK = 1 << 18  # bytes between two progress reports
MAX_BYTES = 1 << 34  # of a decoded file
TIMEOUT_S = 30
_ANY_WRAPPER = 47  # zlib's number for gzip or zlib, whichever comes


def download(url: str, progress: Progress | None = None) -> memoryview:
    """The bytes at an http(s) URL, with their Content-Encoding undone.

    Raises:  ModelFormatError saying what the server answered, or that the connection ended early; LimitError
    """
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response:  # which asks for no encoding, and may get one
            return memoryview(_read(response, url, progress))
    except urllib.error.HTTPError as error:
        raise ModelFormatError(f"cannot download {url!r}: the server answered {error.code} {error.reason}") from error
    except (OSError, ValueError, http.client.HTTPException, zlib.error) as error:
        raise ModelFormatError(f"cannot download {url!r}: {reason_of(error)}") from error


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
                f"{url!r} came as {unknown[0]}, which was not asked for; serve it as it is, or with gzip"
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


def _read(response: Any, url: str, progress: Progress | None) -> bytearray:
    total, came, data = int(response.headers.get("Content-Length") or 0), 0, bytearray()
    decoder = _Decoder(",".join(response.headers.get_all("Content-Encoding") or []), url)
    while chunk := response.read(CHUNK):
        came += len(chunk)
        data += decoder.decode(chunk)
        if progress is not None:
            progress(ProgressEvent("model", came, total))
    if total and came != total:
        raise ModelFormatError(f"{url!r} ended after {came} of {total} bytes; load it again")
    if not decoder.ended:
        raise ModelFormatError(f"{url!r} ended inside its compressed data after {came} bytes; load it again")
    return data
