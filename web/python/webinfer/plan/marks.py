"""What tells equal constants of several plans apart, so that their memory has each of them once."""

from __future__ import annotations

import hashlib
import itertools
import weakref
from typing import Any

LARGE_BYTES = 1 << 16  # of a view
NUMBERED = b"view "  # how marks begin that are no hashes


class Marks:
    """What tells the bytes of views apart: a hash, found once for each view.

    In Pyodide a hash takes 2.6 ms a MB (Node 20, EPYC, 2026-11-28). Large parts of a file get a number instead where
    marks need not last: the plans of a model share the views of its file.
    """

    def __init__(self) -> None:
        self._known = dict[int, tuple[weakref.ref[memoryview], bytes]]()  # by ids, which other views may get later
        self._numbers = itertools.count()

    def of(self, data: memoryview, lasting: bool) -> bytes:
        """Equal for one and the same view, or for equal bytes; a `lasting` one is the same in every process."""
        key = id(data)
        found = self._known.get(key)
        if found is not None and found[0]() is data and not (lasting and found[1].startswith(NUMBERED)):
            return found[1]
        is_numbered = not lasting and data.nbytes >= LARGE_BYTES and _is_part(data)
        mark = NUMBERED + b"%d" % next(self._numbers) if is_numbered else digest(b"bytes", data)
        self._known[key] = weakref.ref(data, lambda reference: self._forget(key, reference)), mark
        return mark

    def _forget(self, key: int, reference: Any) -> None:
        if (found := self._known.get(key)) is not None and found[0] is reference:
            del self._known[key]


def _is_part(data: memoryview) -> bool:
    """Whether it is a view of something larger, as tensors of a file are."""
    return data.obj is not None and memoryview(data.obj).nbytes > data.nbytes


def digest(*parts: bytes | memoryview) -> bytes:
    """A hash of parts, each told apart from the next."""
    found = hashlib.blake2b(digest_size=20)
    for part in parts:
        found.update(b"%d:" % memoryview(part).nbytes)
        found.update(part)
    return found.digest()
