"""What the page's worker asked for before Python was up: downloads, compiled kernels, a thread's worker, a GPU device.

The worker (web/static/startup/prefetch.js) keeps a Map from URL to promise in `globalThis.webinfer.prefetched`; the key
"gpu" stands for the device, "gpu offer" for what it will be, until it is there. Each entry is handed out once.
"""

from __future__ import annotations

from typing import Any

import js
from pyodide.ffi import JsException, to_js

from webinfer.errors import IntegrityError


def take(url: str) -> Any | None:
    """The promise of what was asked for under this URL (or "gpu"), removed from the table; None if nothing was."""
    table = getattr(getattr(js, "webinfer", None), "prefetched", None)
    if table is None or not table.has(url):
        return None
    promise = table.get(url)
    table.delete(url)
    return promise


async def prefetched(url: str) -> Any | None:
    """What was asked for under this URL (or "gpu"), once it is there; None if nothing was asked for, or it failed.

    After a failure the caller asks again by itself, and so gets the error with its reason.
    """
    promise = take(url)
    try:
        return None if promise is None else await promise
    except JsException:
        return None


async def fetched(url: str, cache: str = "default") -> Any:
    """The browser's response; `cache` "reload" asks the server even where the browser has kept the file.

    Raises:  IntegrityError if the page's worker found that the file is damaged
    """
    try:
        return await js.fetch(url, to_js({"cache": cache}, dict_converter=js.Object.fromEntries))
    except JsException as error:
        if getattr(error, "code", "") == IntegrityError.code:
            raise IntegrityError(str(error)) from error
        raise
