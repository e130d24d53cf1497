"""What the page's worker began before Python was up: downloads, compiled kernels, a thread's worker, a GPU device."""

from __future__ import annotations

from typing import Any

import js
from pyodide.ffi import JsException


def take(url: str) -> Any | None:
    """The promise for this URL, or "gpu", which is handed out once; None if nothing was begun."""
    table = getattr(getattr(js, "webinfer", None), "begun", None)
    if table is None or not table.has(url):
        return None
    promise = table.get(url)
    table.delete(url)
    return promise


async def begun(url: str) -> Any | None:
    """What was begun for this URL, or None if nothing was or it failed: whoever then asks again hears why."""
    promise = take(url)
    try:
        return None if promise is None else await promise
    except JsException:
        return None
