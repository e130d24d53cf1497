"""JSON with one value altered, as a package's facts may come."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

MISSING = object()


def altered(facts: Any) -> Iterator[tuple[str, Any]]:
    """Copies of JSON with one value another one, and what was changed."""
    for path, value in leaves(facts):
        others: list[Any] = [None, "x", MISSING]
        if type(value) is int:
            others += [-1, 0, 1, 2 * value, value + 1, value + 4, value + 16, value + (1 << 32), 1 << 31, value + 0.5]
        for other in others:
            changed = copy.deepcopy(facts)
            place = changed
            for step in path[:-1]:
                place = place[step]
            if other is MISSING:
                del place[path[-1]]
            else:
                place[path[-1]] = other
            if changed != facts:
                yield (
                    f"{'.'.join(map(str, path))}: {value!r} -> {'missing' if other is MISSING else repr(other)}",
                    changed,
                )


def leaves(facts: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Each value and each list with its place."""
    if path and not isinstance(facts, dict):
        yield path, facts
    steps = facts.items() if isinstance(facts, dict) else enumerate(facts) if isinstance(facts, list) else ()
    for step, value in steps:
        yield from leaves(value, (*path, step))
