"""The host in Pyodide: WebAssembly, WebGPU, fetch, images and storage of the browser.

Kernel instances and the GPU device themselves are in kernels_browser, thread_pool and gpu_browser.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import js
from pyodide.ffi import JsBuffer, JsException, JsProxy, can_run_sync, run_sync, to_js

from webinfer.errors import BackendUnavailableError, ModelFormatError
from webinfer.host import origin_cache
from webinfer.host.canvas_browser import Canvas
from webinfer.host.checksums import check_kernels
from webinfer.host.coroutines import driven
from webinfer.host.gpu import GpuOffer, GpuTensor
from webinfer.host.interface import ARRAYS_MET, IDLE_DELAY_S, Capability, Kernels, PageArray, Progress, ProgressEvent
from webinfer.host.kernels_browser import best_build, compiled, open_kernels, open_module, options
from webinfer.host.late_parts import find_late_parts
from webinfer.host.own_files import own_file, own_identity, published_file
from webinfer.host.page_arrays import ARRAY_TYPES
from webinfer.host.pictures import PixelLayout, Pixels, SizeCheck, python_picture
from webinfer.host.prefetch import fetched, prefetched
from webinfer.host.thread_pool import open_thread_pool
from webinfer.host.urls import beside
from webinfer.spans import LargeFile

HASHED_AT_ONCE = 2**27  # bytes; the browser copies what it hashes
PUBLISHED = "published:"  # of addresses of files that packages have (published_table)
LEAST_PAGE_ARRAY = 2**15  # bytes; fewer are copied sooner than looked at


class BrowserHost:
    """A page or a worker with Pyodide (host.interface.Host).

    `assets` is the page's manifest: logical names ("kernels/webinfer-simd128.wasm") to same-origin URLs.
    """

    name = "browser"
    knows_cores = False
    settles_later = True

    def __init__(self, assets: Mapping[str, str] | None = None) -> None:
        tell_errors()
        self.assets: dict[str, str] = dict(assets or {})
        self._gpu: Any = None
        self._gpu_kind = ""  # that was asked for
        self._page_gpu: Any = None  # a GPUDevice that the page gave
        self._no_gpu = ""  # why no device could be had, once it was tried
        self._canvas = Canvas()
        self._begun: dict[tuple[str | None, int | None], asyncio.Task[Kernels]] = {}  # kernels that nobody has yet

    def configure(self, assets: Mapping[str, str]) -> None:
        """Adds the page's manifest, logical names to URLs."""
        self.assets.update(assets)
        find_late_parts(self.assets)

    def asset(self, *names: str) -> str:
        """The URL of a published file by its logical name; of several names, the first that the manifest holds.

        Without a manifest, in a third-party page, it is a file of the installed wheel, or a model that a package has.

        Raises:  BackendUnavailableError if it is nowhere
        """
        found = next((name for name in names if name in self.assets), names[0])
        if found not in self.assets:
            own = own_file(found) or published_file(*names)
            if own is None:
                what = "the page's manifest does not name" if self.assets else "this installation of webinfer has no"
                raise BackendUnavailableError(f"{what} {found!r}; give the URL of a copy of it, or rebuild the site")
            self.assets[found] = own
        return self.assets[found]

    def beside(self, place: str, name: str) -> str:
        """The URL of a file that a model at this URL names, in the model's folder."""
        return beside(place, name)

    @property
    def idle_delay_s(self) -> float:
        """Seconds after a load before work that only later visits gain from begins; a page may ask for more."""
        asked = getattr(getattr(js, "webinfer", None), "idleDelay", 0.0)  # milliseconds
        return max(IDLE_DELAY_S, asked / 1e3)

    def now_ms(self) -> float:
        """Milliseconds of a monotonic clock."""
        return float(js.performance.now())

    async def pause(self) -> None:
        """Lets messages and painting run."""
        await asyncio.sleep(0)

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        """The result of a coroutine; WebAssembly is suspended meanwhile, where the browser and the caller allow that.

        Raises:  what the coroutine raises; InputError where nothing can wait and the coroutine has to
        """
        if can_run_sync():
            return run_sync(work)
        return driven(work)

    async def fetch(self, url: str, progress: Progress | None = None, fresh: bool = False) -> memoryview:
        """The bytes of a URL, from the page's worker where it has asked for them already.

        Raises:  ModelFormatError saying what could not be fetched and why; IntegrityError from the page's worker
        """
        if url.startswith(PUBLISHED):
            from webinfer.host.published_browser import published

            return await published(self, url, progress, fresh)
        if not fresh and (early := await prefetched(url)) is not None:
            data: memoryview = early.to_memoryview()
            if progress is not None:
                progress(ProgressEvent("model", data.nbytes, data.nbytes))
            return data
        try:
            response = await fetched(url, "reload" if fresh else "default")
            if not response.ok:
                raise ModelFormatError(f"cannot fetch {url!r}: HTTP {response.status} {response.statusText}")
            return await _read_body(response, progress)
        except JsException as error:
            raise ModelFormatError(f"cannot fetch {url!r}: {error}; check the address and the network") from error

    async def large_file(
        self, place: Any, published: Sequence[str] = (), progress: Progress | None = None
    ) -> LargeFile | None:
        """A file that is read in parts, of a URL or one that the user chose; None outside of workers.

        With a published SHA-256 it is kept in the origin's private file system.

        Raises:  ModelFormatError saying what could not be fetched and why; IntegrityError if it came damaged twice
        """
        from webinfer.host import weights_browser

        if not weights_browser.can_read_parts() or str(place).startswith(PUBLISHED):
            return None
        if not isinstance(place, str):
            return weights_browser.as_file(place)
        return await weights_browser.fetched_file(place, published, progress)

    async def kept_file(self, published: Sequence[str]) -> LargeFile | None:
        """The file with one of these SHA-256 that `large_file` kept; None if none is here, or not whole."""
        from webinfer.host import weights_browser

        return await weights_browser.kept(published)

    async def kept_files(self) -> Mapping[str, int]:
        """The bytes of each file that `large_file` keeps, begun ones too; one is complete if `name`.json is there."""
        from webinfer.host import weights_browser

        return await weights_browser.stored()

    async def forget_files(self) -> int:
        """Deletes what `large_file` keeps; how many bytes that freed."""
        from webinfer.host import weights_browser

        return await weights_browser.forget()

    async def kernels(self, isa: str | None = None, threads: int | None = 1, module: bytes = b"") -> Kernels:
        """A new kernel instance: the best build that this engine accepts unless one is named.

        More than one thread needs a cross-origin isolated worker; elsewhere there is one.

        Raises:  BackendUnavailableError if the module, its memory or a thread is not available
        """
        if module:
            return await open_module(module, isa or best_build())
        if begun := self._begun.pop((isa, threads), None):
            with suppress(BackendUnavailableError):  # what is wrong, another try tells
                return await begun
        return await self._open_kernels(isa or best_build(), threads)

    def begin_kernels(self, isa: str | None = None, threads: int | None = 1) -> None:
        """Starts what the next call of `kernels` with these arguments waits for: threads come up while Python works."""
        if (isa, threads) not in self._begun:
            begun = asyncio.ensure_future(self._open_kernels(isa or best_build(), threads))
            begun.add_done_callback(lambda task: task.cancelled() or task.exception())  # which `kernels` tells
            self._begun[isa, threads] = begun

    async def _open_kernels(self, chosen: str, threads: int | None) -> Kernels:
        wanted = self.default_threads() if threads is None else threads
        if wanted > 1 and chosen != "scalar" and not self.why_one_thread():
            url = self.asset(f"kernels/webinfer-{chosen}-threads.wasm")
            return await open_thread_pool(url, self.asset("static/thread_worker.js"), chosen, wanted)
        return await open_kernels(self.asset(f"kernels/webinfer-{chosen}.wasm"), chosen)

    async def kernel_module(self, build: str) -> memoryview:
        """The bytes of a build of the kernel module.

        Raises:  BackendUnavailableError, ModelFormatError if the download fails; IntegrityError if it is damaged
        """
        url = self.asset(f"kernels/webinfer-{build}.wasm")
        data = await self.fetch(url)
        check_kernels(url, data)
        return data

    async def compiled_kernels(self, isa: str) -> Any:
        """The compiled module of a kernel build, for JavaScript that runs plans without Python.

        Raises:  BackendUnavailableError if it cannot be fetched or compiled
        """
        return await compiled(self.asset(f"kernels/webinfer-{isa}.wasm"))

    def default_threads(self) -> int:
        """Threads that suit the machine: its cores up to four, half of them above, at most eight."""
        cores = int(_navigator("hardwareConcurrency") or 1)
        return cores if cores <= 4 else max(4, min(cores // 2, 8))

    def why_one_thread(self) -> str:
        """Why threads are not available here, or "" if they are."""
        if not getattr(js, "crossOriginIsolated", False):
            return "the page is not cross-origin isolated"
        if getattr(js, "WorkerGlobalScope", None) is None:
            return "the engine runs on the page's main thread, which must not wait"
        return "" if _shares_memory() else "this browser shares no memory between threads"

    async def gpu(self, kind: str = "") -> Any:
        """The shared GPU device; a new one if the last one was lost, or of another kind.

        Raises:  BackendUnavailableError with the reason and what would help
        """
        if self._gpu is None or self._gpu.lost or (kind and kind != self._gpu_kind):
            from webinfer.host.gpu_browser import open_device

            try:
                self._gpu, self._gpu_kind = await open_device(self._page_gpu, kind), kind
            except BackendUnavailableError as error:
                self._no_gpu = str(error)
                raise
            self._no_gpu = ""
        return self._gpu

    async def gpu_offer(self) -> GpuOffer | None:
        """What the shared device will be, while it is being opened; None if it is there, or nobody knows."""
        if self._gpu is not None or self._page_gpu is not None:
            return None
        from webinfer.host.gpu_browser import open_offer

        return await open_offer()

    async def webnn(self, device: str = "") -> Any:
        """A context of WebNN: the browser's own, or one of ours in the site's engine worker.

        Raises:  BackendUnavailableError with the reason
        """
        from webinfer.host.webnn_browser import open_webnn

        return await open_webnn(device)

    def use_gpu(self, device: Any) -> None:
        """Makes sessions that are loaded from now on run on this GPUDevice of the page; None: on the engine's own."""
        self._page_gpu, self._gpu = device, None

    def gpu_buffer(self, value: Any) -> Any:
        """The GPUBuffer where `value` is one or a GpuTensor, else None."""
        if isinstance(value, GpuTensor):
            return value.buffer
        if not isinstance(value, JsProxy) or isinstance(value, JsBuffer):
            return None
        return value if str(getattr(value.constructor, "name", "")) == "GPUBuffer" else None

    def page_array(self, value: Any) -> PageArray | memoryview | None:
        """A typed array of JavaScript, or a copy of its elements where they are few; None for another thing."""
        kind: Any = type(value)
        if not _is_buffer(kind):
            return None
        ARRAYS_MET.add(kind)
        nbytes = int(value.byteLength)
        if nbytes < LEAST_PAGE_ARRAY:
            data: memoryview = value.to_memoryview()
            return data
        return PageArray(value, ARRAY_TYPES.get(str(value.constructor.name), ""), nbytes)

    def capabilities(self) -> Sequence[Capability]:
        """Every feature that matters, present or not, with reason and fix."""
        build = best_build()
        isolated, one_thread = bool(getattr(js, "crossOriginIsolated", False)), self.why_one_thread()
        offered = _navigator("gpu") is not None
        no_gpu = self._no_gpu if offered else "navigator.gpu is missing"
        ml = _navigator("ml") is not None
        return [
            Capability("wasm", True, value=f"{build} build"),
            _capability(
                "isolated", isolated, "the page is not cross-origin isolated, so one thread is used",
                "send Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp"
                if getattr(js, "isSecureContext", True) else "open the page over https or as localhost",
            ),
            _capability(
                "threads", not one_thread, one_thread, "isolate the page and run the engine in a worker",
                str(self.default_threads()) if not one_thread else "1",
            ),
            _capability(
                "jspi", bool(can_run_sync()), "the browser cannot suspend WebAssembly, or nobody waits for this Python",
                "use Chrome 137, Firefox 153 or Safari 27, and call Python so that it is awaited",
            ),
            _capability("webgpu", not no_gpu, no_gpu, "use a browser with WebGPU over https or localhost"),
            _capability("webnn", ml, "navigator.ml is missing", "enable WebNN in the browser's flags"),
        ]  # fmt: skip

    def image(self, source: Any, check: SizeCheck) -> Pixels | None:
        """The pixels of ImageData or anything a canvas can draw, of a Pillow image or a picture file; or None.

        A page's pixels stay in JavaScript: a typed array that `Kernels.write` copies without a detour.
        """
        if not isinstance(source, JsProxy):
            return python_picture(source, check)
        found = self._canvas.pixels_of(source, check)
        return None if found is None else Pixels(*found, PixelLayout.rgba(found[0]))

    def fingerprint(self) -> str:
        """A hash of the browser's version and of what it tells of the machine: cores, memory, best kernel build."""
        told = [str(_navigator(name)) for name in ("userAgent", "hardwareConcurrency", "deviceMemory")]
        text = f"{' '.join(told)} {best_build()}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def identity(self) -> str:
        """A hash of the URLs of engine and kernels, which hold the hashes of their files, or of the wheel's own."""
        names = [name for name in sorted(self.assets) if name.startswith(("kernels/", "python/", "snapshot/"))]
        text = " ".join(self.assets[name] for name in names)
        return (
            hashlib.sha256(text.encode()).hexdigest()[:16]
            if any("python/" in name for name in names)
            else own_identity()
        )

    async def recall(self, name: str) -> str | None:
        """The text under this name in the origin's cache; None where there is none or storage is switched off."""
        data = await self.recall_bytes(name)
        return None if data is None else bytes(data).decode(errors="replace")

    async def remember(self, name: str, text: str) -> None:
        """Stores a text in the origin's cache; a full or missing cache is not a failure."""
        await self.remember_bytes(name, text.encode())

    async def sha256(self, data: memoryview) -> str:
        """The SHA-256 of bytes: the browser's own, which works beside Python, where it has one and they are few."""
        subtle = getattr(getattr(js, "crypto", None), "subtle", None)
        if subtle is None or data.nbytes > HASHED_AT_ONCE:
            return hashlib.sha256(data).hexdigest()
        return bytes((await subtle.digest("SHA-256", to_js(data))).to_memoryview()).hex()

    async def recall_bytes(self, name: str) -> memoryview | None:
        """The bytes under this name in the origin's cache, or None; the page's worker may have fetched them already."""
        return await origin_cache.recall(name)

    async def remember_bytes(self, name: str, data: bytes) -> None:
        """Stores bytes in the origin's cache; a full or missing cache is not a failure."""
        await origin_cache.remember(name, data)


@cache
def _is_buffer(kind: Any) -> bool:
    """Whether Python's class of a JavaScript value is one of buffers: Pyodide has a class for each set of abilities."""
    return issubclass(kind, JsBuffer)


def tell_errors() -> None:
    """Lets Pyodide see that exceptions which a browser derives from DOMException are errors.

    It takes for one what has a stack or is called DOMException. Chromium's QuotaExceededError is neither: a promise
    that it rejects would never end for who awaits it.
    """
    prototype = getattr(getattr(js, "DOMException", None), "prototype", None)
    if prototype is not None and not js.Reflect.has(prototype, "stack"):
        js.Object.defineProperty(prototype, "stack", options(value="", writable=True, configurable=True))


def _navigator(name: str) -> Any:
    """What the browser tells of itself; None where there is no such thing, as in an old Node."""
    return getattr(getattr(js, "navigator", None), name, None)


@cache
def _shares_memory() -> bool:
    """Whether another thread could be handed a memory; some browsers isolate pages and still refuse it."""
    try:
        memory = js.WebAssembly.Memory.new(options(initial=1, maximum=1, shared=True))
        port = js.MessageChannel.new().port1
        port.postMessage(memory)
        port.close()
        return True
    except JsException:
        return False


def _capability(name: str, present: bool, reason: str, fix: str, value: str = "") -> Capability:
    """The capability; reason and fix only where it is absent."""
    return Capability(name, present, "" if present else reason, "" if present else fix, value)


async def _read_body(response: Any, progress: Progress | None) -> memoryview:
    total = int(response.headers.get("Content-Length") or 0)
    if progress is None or response.body is None:
        data: memoryview = (await response.arrayBuffer()).to_memoryview()
        return data
    reader, parts, done = response.body.getReader(), bytearray(), 0
    while True:
        chunk = await reader.read()
        if chunk.done:
            return memoryview(bytes(parts))
        parts += chunk.value.to_memoryview()
        done += int(chunk.value.byteLength)
        progress(ProgressEvent("model", done, max(total, done) if total else 0))
