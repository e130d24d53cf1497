"""The debug ladder and every other switch, declared in one place.

`DEBUG=0..5` in the environment, `?debug=` on the page; `LEVELS` says what each level prints, beside what the levels
below it print. Everything is printed once a model, while it is loaded: runs are as fast as without.
"""

from __future__ import annotations

import os
import sys

LEVELS = {  # from here comes the README's table
    0: "quiet",
    1: "backend chosen and why",
    2: "time per step",
    3: "fusions and plan",
    4: "generated WGSL",
    5: "IR after each pass",
}


def _from_environment() -> int:
    text = os.environ.get("DEBUG", "0")
    return int(text) if text.isdecimal() and int(text) in LEVELS else 0


_level = _from_environment()


def debug_level() -> int:
    """The level in force."""
    return _level


def set_debug_level(level: int) -> None:
    """Sets the level; the page calls this with its `?debug=` value."""
    global _level
    if level not in LEVELS:
        raise ValueError(f"debug level {level}: choose one of {sorted(LEVELS)}")
    _level = level


def debug(level: int, message: str) -> None:
    """Prints `message` to stderr when the level in force is at least `level`."""
    if _level >= level:
        print(f"webinfer[{level}] {message}", file=sys.stderr)
