"""Bytes that stay in a file until they are read, so that a large file is not in memory twice."""

from __future__ import annotations

from typing import Any, Protocol


class LargeFile(Protocol):
    """A file that is read in parts. Units: bytes."""

    size: int

    def read(self, at: int, nbytes: int) -> memoryview:
        """A copy of so many bytes from `at` on.

        Raises:  ModelFormatError if they cannot be read
        """

    def copy_into(self, at: int, array: Any) -> None:
        """Fills an array of the platform, such as a window of kernel memory, with the bytes from `at` on.

        Raises:  ModelFormatError if they cannot be read
        """

    def close(self) -> None:
        """Lets the file go; a second call does nothing."""


class FileSpan:
    """Some bytes of a file, in place of a memoryview of them: each look at them reads them anew.

    Where Python has it (3.12 and newer) this is the buffer protocol, so that `memoryview(span)` and `bytes(span)` read.
    """

    __slots__ = ("at", "file", "nbytes")

    def __init__(self, file: LargeFile, at: int, nbytes: int) -> None:
        self.file, self.at, self.nbytes = file, at, nbytes

    def __len__(self) -> int:
        return self.nbytes

    def __buffer__(self, flags: int) -> memoryview:
        return self.view()

    def view(self) -> memoryview:
        """A copy of the bytes."""
        return self.file.read(self.at, self.nbytes)

    def part(self, first: int, nbytes: int) -> FileSpan:
        """Some of these bytes, still in the file."""
        return FileSpan(self.file, self.at + first, nbytes)

    def copy_into(self, array: Any) -> None:
        """Fills an array of the platform, of this length, with the bytes."""
        self.file.copy_into(self.at, array)
