"""Addresses of files that lie beside another one."""

from __future__ import annotations

OF_ONE_FILE = ("x-amz-signature=", "x-goog-signature=", "signature=")  # a signature that holds for one address alone
OF_FOLDERS = ("policy=", "key-pair-id=")  # one that may hold for a folder


def beside(place: str, name: str) -> str:
    """The URL of a file in the folder of the one at `place`; `name` may bring a query of its own.

    A query of `place` is kept, as tokens of shared folders stand there (`?sv=…&sig=…`), unless it signs one file.
    """
    path, _, query = place.partition("#")[0].partition("?")
    folder, slash, _ = path.rpartition("/")
    told = query.lower()
    signed = any(part in told for part in OF_ONE_FILE) and not any(part in told for part in OF_FOLDERS)
    return f"{folder}{slash}{name}" + (f"?{query}" if query and not signed and "?" not in name else "")
