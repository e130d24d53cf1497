"""The platform that Python runs on: only files of this room import js, pyodide, wasmtime or wgpu.

`interface` and `gpu` say what the engine needs; `browser` and `native` with the files named after them provide it.
Knows nothing of graphs, models or backends.
"""

from __future__ import annotations

import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

from webinfer.host.interface import Host

T = TypeVar("T")

_host: Host | None = None


def current() -> Host:
    """The host of this process, always the same one: the browser's under Pyodide, else CPython's."""
    global _host
    if _host is None:
        if sys.platform == "emscripten":
            from webinfer.host.browser import BrowserHost

            _host = BrowserHost()
        else:
            from webinfer.host.native import NativeHost

            _host = NativeHost()
    return _host


def wait_here(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine of a session or a task, for callers that cannot `await`.

    In CPython it runs on the calling thread, so that several threads run several sessions at once.

    Raises:  what the coroutine raises; InputError where nothing can wait
    """
    host = current()
    result: T = getattr(host, "wait_here", host.wait)(work)
    return result


def blocking() -> Host:
    """The host for callers that cannot `await`: in a browser that cannot suspend Python, one that never waits."""
    host = current()
    if sys.platform != "emscripten":
        return host
    from webinfer.host.blocking_browser import blocking_host

    return blocking_host(host)
