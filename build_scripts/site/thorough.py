"""Deflate that takes seconds where zlib takes a tenth of one, and makes the browser's wheel four per cent smaller."""

from zopfli import zlib


class Thorough:
    """Compresses as zipfile's own compressors do: raw deflate, without the frame of zlib."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def compress(self, data: bytes) -> bytes:
        """Nothing as yet."""
        self._parts.append(bytes(data))
        return b""

    def flush(self) -> bytes:
        """All that was given, compressed."""
        framed: bytes = zlib.compress(b"".join(self._parts), numiterations=5)
        return framed[2:-4]
