"""Files: those below a folder, a digest of them, and a file that is written whole or not at all."""

import hashlib
import json
import os
from pathlib import Path


def files_below(path: Path) -> list[Path]:
    """Every file below a folder, sorted; a file gives itself. Python's caches and stamps are left out."""
    if path.is_file():
        return [path]
    found = [p for p in path.rglob("*") if p.is_file() and "__pycache__" not in p.parts and p.name[0] != "."]
    return sorted(found, key=lambda p: p.relative_to(path).as_posix())


def digest_of(path: Path) -> str:
    """A digest of names and contents."""
    digest = hashlib.sha256()
    for file in files_below(path):
        name = file.relative_to(path).as_posix()
        digest.update(f"{name} {file.stat().st_size}\n".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def write_json(target: Path, data: object) -> None:
    """The data as indented JSON, whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(data, indent=1) + "\n")
    temporary.replace(target)
