"""Checksums of what the engine stores and of its kernel modules: nothing is made of damaged bytes."""

from __future__ import annotations

import hashlib
import logging
from typing import Any

from webinfer.errors import IntegrityError

log = logging.getLogger("webinfer")
MAGIC = b"WIC1"
DIGEST_BYTES = 16
# What a kernel module ends in before its SHA-256: the head of a custom section (0, bytes of the rest, length of the
# name, name). build_scripts/kernels/compile.py writes it.
KERNELS_TAIL = b"\x00\x30\x0fwebinfer/sha256"


def sealed(data: bytes) -> bytes:
    """The bytes with a checksum before them, as hosts store them."""
    return MAGIC + hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest() + data


def unsealed(name: str, data: Any) -> memoryview | None:
    """The bytes that were `sealed`; None, and a warning in the log, if they are damaged."""
    view, begin = memoryview(data), len(MAGIC) + DIGEST_BYTES
    body = view[begin:]
    if view[: len(MAGIC)] == MAGIC and hashlib.blake2b(body, digest_size=DIGEST_BYTES).digest() == view[4:begin]:
        return body
    log.warning("%s was stored here and is damaged; it is made anew", name)
    return None


def check_kernels(place: str, data: Any) -> None:
    """Returns if a kernel module holds the SHA-256 of its own bytes.

    Raises:  IntegrityError naming the `place` that it was read from
    """
    view = memoryview(data)
    end = max(len(view) - 32, 0)
    begin = max(end - len(KERNELS_TAIL), 0)
    if view[begin:end] != KERNELS_TAIL or hashlib.sha256(view[:begin]).digest() != view[end:]:
        raise IntegrityError(
            f"kernel module {place}: its {len(view)} bytes do not have the checksum in them; "
            "fetch it again, in a checkout run `python3 -m build_scripts build kernels --force`"
        )
