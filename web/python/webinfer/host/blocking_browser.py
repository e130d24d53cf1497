"""A browser's host for callers that cannot wait: everything that it does is done when the call returns.

Where Python runs without JSPI, or was called synchronously, no promise can be waited for. Kernels are compiled and
files read by calls that block, there is one thread and no GPU, and nothing is stored for later visits. Coroutines of
the engine then never suspend, and `driven` runs them to their end.
"""

from __future__ import annotations

import hashlib
import importlib.resources
from typing import Any

import js
from pyodide.ffi import JsException, can_run_sync, to_js

from webinfer.errors import BackendUnavailableError, ModelFormatError
from webinfer.host.browser import BrowserHost
from webinfer.host.checksums import check_kernels
from webinfer.host.interface import Host, Kernels, Progress
from webinfer.host.kernels_browser import BrowserKernels, best_build, new_memory, options

NO_DEVICE = "needs Python that is awaited in a browser with JSPI (Chrome 137, Firefox 153, Safari 27); use wasm"
_modules: dict[str, Any] = {}  # compiled kernels by build


def blocking_host(host: Any) -> Host:
    """The host for a session whose caller cannot `await`: the browser's own where it can suspend Python meanwhile."""
    return host if can_run_sync() else BlockingHost(host)


class BlockingHost(BrowserHost):
    """The browser's host without what waits (host.interface.Host)."""

    settles_later = False

    def __init__(self, base: BrowserHost) -> None:
        super().__init__()
        self.assets = base.assets

    async def pause(self) -> None:
        """Nothing: nobody else can run."""

    async def fetch(self, url: str, progress: Progress | None = None, fresh: bool = False) -> memoryview:
        """The bytes of a URL.

        Raises:  ModelFormatError saying what could not be fetched and why
        """
        try:
            return memoryview(_asked(url))
        except BackendUnavailableError as error:
            raise ModelFormatError(str(error)) from error

    async def large_file(self, place: Any, published: Any = (), progress: Progress | None = None) -> None:
        """None: files are read whole."""

    async def kept_file(self, published: Any) -> None:
        """None."""

    async def kernels(self, isa: str | None = None, threads: int | None = 1, module: bytes = b"") -> Kernels:
        """A new kernel instance of one thread.

        Raises:  BackendUnavailableError if the module is missing or does not start
        """
        build = isa or best_build()
        memory = new_memory()
        imports = options(env=options(memory=memory))
        try:
            if module:
                code = js.WebAssembly.Module.new(to_js(module))
            elif build in _modules:
                code = _modules[build]
            else:
                code = _modules[build] = js.WebAssembly.Module.new(to_js(bytes(await self.kernel_module(build))))
            return BrowserKernels(build, js.WebAssembly.Instance.new(code, imports).exports, memory)
        except JsException as error:
            raise BackendUnavailableError(f"the {build} kernels do not start synchronously: {error}") from error

    def begin_kernels(self, isa: str | None = None, threads: int | None = 1) -> None:
        """Nothing: an instance is there at once."""

    async def kernel_module(self, build: str) -> memoryview:
        """The bytes of a build of the kernel module, from the wheel or the site.

        Raises:  BackendUnavailableError; IntegrityError if it is damaged
        """
        name = f"webinfer-{build}.wasm"
        own = importlib.resources.files("webinfer") / "_kernels" / name
        asset = f"kernels/{name}"
        data = own.read_bytes() if own.is_file() else _asked(self.asset(asset))
        check_kernels(self.assets.get(asset, asset), memoryview(data))
        return memoryview(data)

    def why_one_thread(self) -> str:
        """That nobody waits."""
        return "kernel threads start only where Python can wait for them"

    async def gpu(self, kind: str = "") -> Any:
        """No device. Raises: BackendUnavailableError."""
        raise BackendUnavailableError(f"WebGPU {NO_DEVICE}")

    async def gpu_offer(self) -> None:
        """None."""

    async def webnn(self, device: str = "") -> Any:
        """No context. Raises: BackendUnavailableError."""
        raise BackendUnavailableError(f"WebNN {NO_DEVICE}")

    def identity(self) -> str:
        """The empty text: no plan is stored."""
        return ""

    async def sha256(self, data: memoryview) -> str:
        """The SHA-256 of bytes."""
        return hashlib.sha256(data).hexdigest()

    async def recall_bytes(self, name: str) -> None:
        """None: the origin's cache cannot be asked."""

    async def remember_bytes(self, name: str, data: bytes) -> None:
        """Nothing."""


def _asked(url: str) -> bytes:
    """The bytes of a URL, by a request that blocks.

    Raises:  BackendUnavailableError
    """
    if getattr(js, "XMLHttpRequest", None) is None:
        raise BackendUnavailableError(f"cannot fetch {url} synchronously: there is no XMLHttpRequest; pass bytes")
    request = js.XMLHttpRequest.new()
    try:
        request.open("GET", url, False)
        request.overrideMimeType("text/plain; charset=x-user-defined")  # pages get no bytes from such requests
        request.send()
    except JsException as error:
        raise BackendUnavailableError(f"cannot fetch {url}: {error}; check the network") from error
    if request.status not in (0, 200):
        raise BackendUnavailableError(f"cannot fetch {url}: HTTP {request.status}")
    return str(request.responseText).encode("utf-16-le")[::2]  # bytes from 0x80 on came as U+F780 and so on
