"""What was tuned on other devices, for the plans of a package: the lines of a log by the place where they hold."""

from __future__ import annotations

import json

from webinfer.errors import InputError, LimitError
from webinfer.tune.log import About, Log
from webinfer.version import VERSION

MAX_PLACES = 64  # each is a plan in the package


def places_of(text: str) -> list[Log]:
    """A log for each adapter and browser that a tuning log has lines of, made by this version of the engine.

    Raises:  InputError naming lines that cannot be read; LimitError if there are too many places
    """
    logs: dict[About, Log] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            about = About(str(row["adapter"]), str(row["browser"]), str(row["engine"]))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise InputError(f"tuning log, line {number}: {error!r}; export it again") from error
        if problems := logs.setdefault(about, Log(about)).read(line):
            raise InputError(f"tuning log, line {number}: {problems[0].partition(': ')[2]}; export it again")
    found = [log for about, log in logs.items() if about.engine == VERSION and words_of(about.adapter)]
    if len(found) > MAX_PLACES:
        raise LimitError("places in a tuning log", len(found), MAX_PLACES, "leave some of its lines out")
    return found


def words_of(adapter: str) -> list[str]:
    """The words of an adapter's name, as devices are told apart by them."""
    return adapter.lower().replace("(", " ").replace("/", " ").split()
