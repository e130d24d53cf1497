"""What is remembered from visit to visit, in the origin's Cache API store."""

from __future__ import annotations

import js
from pyodide.ffi import JsException, to_js

from webinfer.flags import debug
from webinfer.host.checksums import sealed, unsealed
from webinfer.host.kernels_browser import options
from webinfer.host.prefetch import take

CACHE = "webinfer"  # name of the store


async def recall(name: str) -> memoryview | None:
    """The bytes under this name, or None. Damaged ones are removed."""
    url = f"/{CACHE}/{name}"
    try:
        asked = take(url)  # what the page's worker did not find is not there
        found = await (asked or js.caches.match(url, options(cacheName=CACHE)))
        if found is None:
            return None
        data = unsealed(name, (await found.arrayBuffer()).to_memoryview())
        if data is None:
            await (await js.caches.open(CACHE)).delete(url)
        return data
    except (JsException, AttributeError):
        return None


async def remember(name: str, data: bytes) -> None:
    """Stores bytes; a full or missing cache is not a failure."""
    try:
        await (await js.caches.open(CACHE)).put(f"/{CACHE}/{name}", js.Response.new(to_js(sealed(data))))
    except (JsException, AttributeError) as error:
        debug(1, f"cannot remember {name}: {error}")
