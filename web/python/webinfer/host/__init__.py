"""The one door to the platform: only files of this room import js, pyodide, wasmtime or wgpu.

`interface` says what the engine needs, `browser` and `native` give it. Knows nothing of graphs or models.
"""

from __future__ import annotations

import sys

from webinfer.host.interface import Host

_host: Host | None = None


def current() -> Host:
    """The host of this process: the browser under Pyodide, else CPython."""
    global _host
    if _host is None:
        if sys.platform == "emscripten":
            from webinfer.host.browser import BrowserHost

            _host = BrowserHost()
        else:
            from webinfer.host.native import NativeHost

            _host = NativeHost()
    return _host
