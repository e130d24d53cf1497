"""The tuned kernels that come with the engine, for classes of adapters. The data: shipped.json.

`python3 -m build_scripts measure tune --ship LINES` writes it from tuning logs. A class without measurements says so
there and names no kernels: its adapters start with the lowerings' own defaults.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Mapping
from typing import Any

ADAPTER_WORDS = {  # class -> words in the names of its adapters
    "nvidia": ("nvidia", "geforce", "quadro"),
    "apple": ("apple",),
    "intel": ("intel",),
    "amd": ("amd", "radeon"),
    "qualcomm": ("qualcomm", "adreno"),
}
# Class -> {"measured", "choices"}. Read on import: an interpreter restored from a snapshot has no files.
DATA: Mapping[str, Mapping[str, Any]] = json.loads(pkgutil.get_data(__name__, "shipped.json") or b"{}")


def adapter_class(name: str, software: bool) -> str:
    """The class of an adapter by its name: "nvidia", "apple" and so on, or "software"; "" where it belongs to none."""
    if software:
        return "software"
    words = name.lower().replace("(", " ").replace("/", " ").split()
    return next((found for found, marks in ADAPTER_WORDS.items() if any(word.startswith(marks) for word in words)), "")


def default_tunings(name: str, software: bool) -> Mapping[str, str]:
    """Kernel names by tuning key for an adapter; empty where its class was not measured."""
    found: Mapping[str, str] = DATA.get(adapter_class(name, software), {}).get("choices", {})
    return found
