"""JSON that comes from devices and programs, made fit for every reader: JavaScript, SQLite, PostgreSQL and Python.

Python reads NaN, Infinity and 1e999 where JSON has no such numbers, and texts with lone surrogates or NUL characters,
which databases refuse.
"""

import json
import math
import re
from typing import Any

MAX_DEPTH = 64
MAX_WHOLE = 2**63  # larger numbers become floats
_STRANGE = re.compile("[\ud800-\udfff\0]")
REPLACEMENT = "\ufffd"


def clean_text(text: str, limit: int) -> str:
    """A text that any database takes, of at most so many characters."""
    return _STRANGE.sub(REPLACEMENT, text[:limit])


def clean(value: Any, depth: int = 0) -> Any:
    """JSON without numbers and characters that others do not read: those numbers become None, as in JavaScript.

    What lies deeper than MAX_DEPTH becomes None, too.
    """
    if isinstance(value, str):
        return _STRANGE.sub(REPLACEMENT, value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= MAX_WHOLE:
        return clean(float(value)) if abs(value) < 10**300 else None
    if isinstance(value, dict):
        pairs = value.items() if depth < MAX_DEPTH else ()
        return {_STRANGE.sub(REPLACEMENT, str(key)): clean(one, depth + 1) for key, one in pairs}
    if isinstance(value, list):
        return [clean(one, depth + 1) for one in value] if depth < MAX_DEPTH else []
    return value


def loads(text: str | bytes) -> Any:
    """The JSON in a text, whose numbers beyond JSON are None.

    Raises: ValueError, RecursionError
    """
    return json.loads(text, parse_constant=lambda _: None, parse_float=_finite)


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None
