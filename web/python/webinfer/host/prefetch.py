"""What the page's worker asked for before Python was up: downloads, kernels, a thread's worker, a GPU device."""

from __future__ import annotations

from typing import Any

import js
from pyodide.ffi import JsException


def take(url: str) -> Any | None:
    """The promise that was prefetched for this URL, or for "gpu"; None if there is none.

    Each promise is handed out once.
    """
    table = getattr(getattr(js, "webinfer", None), "prefetched", None)
    if table is None or not table.has(url):
        return None
    promise = table.get(url)
    table.delete(url)
    return promise


async def prefetched(url: str) -> Any | None:
    """What was prefetched for this URL; None if nothing was, or if that failed: asking again tells why."""
    promise = take(url)
    try:
        return None if promise is None else await promise
    except JsException:
        return None
