"""The host in CPython: wasmtime for kernels, wgpu for shaders, files, the network and a cache folder.

Kernel instances and the GPU device themselves are in kernels_native and gpu_native.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import os
import platform
import threading
import time
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Any

from webinfer.errors import BackendUnavailableError, InputError, ModelFormatError
from webinfer.host import cache_folder, published_table
from webinfer.host.cores import default_threads
from webinfer.host.gpu import GpuTensor
from webinfer.host.interface import IDLE_DELAY_S, Capability, Kernels, Progress, ProgressEvent
from webinfer.host.pictures import Pixels, SizeCheck, python_picture
from webinfer.host.progress_bar import shown
from webinfer.host.urls import beside
from webinfer.host.whole_files import mapped
from webinfer.version import VERSION

SCHEMES = ("http://", "https://")
STARTED_NS = time.time_ns()  # files of the engine that are newer may not be what this process imported
PLANS = "plan-"  # begins the names of stored plans
MAX_PLANS, MAX_PLAN_BYTES = 200, 512 << 20  # that the cache folder keeps, those used last
BUILDS = ("relaxed", "simd128", "scalar")  # of the kernel module, the best first


_gpu_asked = _gpu_forked = False  # whether a GPU was asked for: by this process, by one that it was forked from


def _after_fork() -> None:
    global _gpu_forked
    _gpu_forked = _gpu_asked or _gpu_forked


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class NativeHost:
    """CPython on an ordinary machine (host.interface.Host)."""

    name = "native"
    knows_cores = True
    settles_later = False  # a script's calls wait, and nothing goes on between them
    idle_delay_s = IDLE_DELAY_S

    def __init__(self) -> None:
        self._gpu: Any = None

    def now_ms(self) -> float:
        """Milliseconds of a monotonic clock."""
        return time.perf_counter() * 1e3

    async def pause(self) -> None:
        """Lets other tasks run."""
        await asyncio.sleep(0)

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        """The result of a coroutine, which runs in a loop on a thread of the engine's own.

        Raises:  what the coroutine raises; InputError on that very thread
        """
        loop = _waited_loop(os.getpid())
        if asyncio._get_running_loop() is loop:
            work.close()
            raise InputError("run_sync inside a coroutine that run_sync is waiting for would deadlock; use await there")
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def wait_here(self, work: Coroutine[Any, Any, Any]) -> Any:
        """As `wait`, on the calling thread where it runs no loop itself: calls of several threads run side by side.

        For sessions and tasks, which any loop may use. What a loop has to serve between calls belongs to `wait`.
        """
        if asyncio._get_running_loop() is not None:
            return self.wait(work)
        loop = _own_loop()
        task = loop.create_task(work)
        try:
            return loop.run_until_complete(task)
        except BaseException:
            if not task.done():  # a signal's handler raised
                task.cancel()
                with suppress(asyncio.CancelledError):
                    loop.run_until_complete(task)
            raise

    async def fetch(self, url: str, progress: Progress | None = None, fresh: bool = False) -> memoryview:
        """The bytes of a path, of an http(s) URL, or of a file that a package publishes; both are kept.

        Without `progress` a terminal or a notebook shows a bar (`progress_bar`).

        Raises:  ModelFormatError saying what could not be read and why
        """
        if url.startswith((published_table.SCHEME, *SCHEMES)):
            from webinfer.host import kept_downloads, published_files  # and an HTTP client with them

            published = url.startswith(published_table.SCHEME)
            get = published_files.published if published else kept_downloads.kept_download
            name = PurePath(url.removeprefix(published_table.SCHEME).split("?")[0]).name
            with shown(progress, name) as told:
                return await asyncio.to_thread(get, url, told, fresh)
        try:
            data = mapped(Path(url))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise ModelFormatError(f"cannot read {url!r}: {reason}; give the path of a model file") from error
        if progress is not None:
            progress(ProgressEvent("model", len(data), len(data)))
        return data

    async def large_file(self, place: Any, published: Sequence[str] = (), progress: Progress | None = None) -> None:
        """None: `fetch` maps large files into memory, whose pages are read on first access."""

    async def kept_file(self, published: Sequence[str]) -> None:
        """None: what packages publish is kept by `fetch`."""

    async def kept_files(self) -> Mapping[str, int]:
        """None."""
        return {}

    async def forget_files(self) -> int:
        """Nothing is freed."""
        return 0

    def asset(self, *names: str) -> str:
        """The path of a published file by its logical name; of several names of one folder, the first that exists.

        "models/x" is looked for in the folders that $WEBINFER_MODELS lists, then in the checkout's build/models; else
        the address of a package that publishes it is returned, where one does.

        Raises:  ModelFormatError naming the folders if none holds such a file
        """
        kind = names[0].partition("/")[0]
        variable = f"WEBINFER_{kind.upper()}"
        listed = [Path(p) for p in os.environ.get(variable, "").split(os.pathsep) if p]
        folders = [*listed, Path(__file__).resolve().parents[4] / "build" / kind]
        files = [name.partition("/")[2] for name in names]
        for path in (folder / file for folder in folders for file in files):
            if path.is_file():
                return str(path)
        if kind == "models" and (address := published_table.address_of(*files)) is not None:
            return address
        raise ModelFormatError(
            f"{files[0]} is not in {', '.join(map(str, folders))}; run `python3 -m build_scripts setup` "
            f"(or `models`) in the checkout, or set {variable} to a folder that holds it"
        )

    def beside(self, place: str, name: str) -> str:
        """The URL or path of a file that a model at `place` names, inside the model's folder.

        Raises:  ModelFormatError if it lies outside of that folder, by a link for example, or is no file
        """
        if place.startswith(SCHEMES):
            return beside(place, name)
        folder = Path(place).parent.resolve()
        found = (folder / name.partition("?")[0]).resolve()
        if not found.is_relative_to(folder) or not found.is_file():
            raise ModelFormatError(f"{name!r}, which {place!r} names, is not a file in the folder {str(folder)!r}")
        return str(found)

    async def kernels(self, isa: str | None = None, threads: int | None = 1, module: bytes = b"") -> Kernels:
        """A new kernel instance; relaxed SIMD unless `isa` names another build. The scalar build has one thread.

        Raises:  BackendUnavailableError if wasmtime or the build is missing
        """
        if importlib.util.find_spec("wasmtime") is None:
            raise BackendUnavailableError("the wasm backend needs wasmtime in CPython: pip install 'webinfer[native]'")
        from webinfer.host.kernels_native import NativeKernels

        if isa is not None and isa not in BUILDS:
            raise BackendUnavailableError(f"no kernel build is called {isa!r}; there are {', '.join(BUILDS)}")
        isa, wanted = isa or BUILDS[0], default_threads() if threads is None else threads
        if wanted > 1 and isa != "scalar" and not module:
            from webinfer.host.threads_native import ThreadPoolKernels

            return ThreadPoolKernels(isa, wanted)
        return NativeKernels(isa, module)

    async def kernel_module(self, build: str) -> memoryview:
        """The bytes of a build of the kernel module.

        Raises:  BackendUnavailableError if it is missing; IntegrityError if it is damaged
        """
        from webinfer.host.kernels_native import checked_module

        return memoryview(checked_module(build))

    async def gpu_offer(self) -> None:
        """Nothing: a device is there at once."""

    async def gpu(self, kind: str = "") -> Any:
        """The shared GPU device, which the system chooses; a new one if the last one was lost.

        Raises:  BackendUnavailableError with the reason and what would help
        """
        if importlib.util.find_spec("wgpu") is None:
            raise BackendUnavailableError("the webgpu backend needs wgpu in CPython: pip install 'webinfer[native]'")
        global _gpu_asked
        if _gpu_forked:
            raise BackendUnavailableError(
                "webgpu cannot run in a child of fork() whose parent has used the GPU; start processes with 'spawn' or "
                "'forkserver', or load models after the fork"
            )
        _gpu_asked = True
        if self._gpu is None or self._gpu.lost:
            from webinfer.host.gpu_native import open_device

            self._gpu = await open_device()
        return self._gpu

    async def webnn(self, device: str = "") -> Any:
        """Nothing: WebNN is an interface of browsers.

        Raises:  BackendUnavailableError
        """
        raise BackendUnavailableError("webnn is only available in browsers; in CPython use wasm or webgpu")

    def gpu_buffer(self, value: Any) -> Any:
        """The wgpu buffer where `value` is one or a GpuTensor, else None."""
        if isinstance(value, GpuTensor):
            return value.buffer
        return value if type(value).__name__ == "GPUBuffer" else None

    def page_array(self, value: Any) -> None:
        """None: there is no page."""

    def capabilities(self) -> Sequence[Capability]:
        """WebAssembly, WebGPU and NumPy: present, or which module to install."""
        found = []
        for feature, module in (("wasm", "wasmtime"), ("webgpu", "wgpu"), ("numpy", "numpy")):
            present = importlib.util.find_spec(module) is not None
            found.append(
                Capability(
                    feature,
                    present,
                    "" if present else f"{module} is not installed",
                    "" if present else f"pip install {module}",
                )
            )
        wasm, threads = found[0].present, default_threads()
        found.append(Capability("threads", wasm, found[0].reason, found[0].fix, str(threads if wasm else 1)))
        return found

    def image(self, source: Any, check: SizeCheck) -> Pixels | None:
        """The pixels of a Pillow image or of a picture file, or None."""
        return python_picture(source, check)

    async def sha256(self, data: memoryview) -> str:
        """The SHA-256 of bytes."""
        return hashlib.sha256(data).hexdigest()

    def begin_kernels(self, isa: str | None = None, threads: int | None = 1) -> None:
        """Nothing: an instance is there at once."""

    def fingerprint(self) -> str:
        """A hash of the processor's model."""
        return hashlib.sha256(f"{_processor()} wasmtime".encode()).hexdigest()[:16]

    def identity(self) -> str:
        """A hash of the names, sizes and times of the engine's files, by which Python knows its compiled modules too.

        Empty if one of them changed after this process started, or $WEBINFER_PLANS is "off": no plans are stored then.
        """
        return "" if os.environ.get("WEBINFER_PLANS", "").lower() in cache_folder.OFF else _identity(os.getpid())

    async def recall(self, name: str) -> str | None:
        """The text under this name in the user's cache folder, or None."""
        data = await self.recall_bytes(name)
        return None if data is None else bytes(data).decode(errors="replace")

    async def remember(self, name: str, text: str) -> None:
        """Stores a text in the user's cache folder; a folder that cannot be written is not a failure."""
        await self.remember_bytes(name, text.encode())

    async def recall_bytes(self, name: str) -> memoryview | None:
        """The bytes under this name in the user's cache folder, or None; damaged ones are removed."""
        return cache_folder.recall(name)

    async def remember_bytes(self, name: str, data: bytes) -> None:
        """Stores bytes in the user's cache folder; a folder that cannot be written is not a failure."""
        if name.startswith(PLANS):
            cache_folder.remember(name, data, PLANS, MAX_PLANS, MAX_PLAN_BYTES)
        else:
            cache_folder.remember(name, data)


@lru_cache(maxsize=1)
def _identity(process: int) -> str:
    """As `NativeHost.identity`, asked once a process, whose number tells a child of fork() from its parent."""
    package = Path(__file__).resolve().parent.parent
    checkout = package.parents[2] / "build" / "kernels", package.parents[1] / "shaders"
    named = [Path(folder) for folder in [os.environ.get("WEBINFER_KERNELS")] if folder]
    return identity_of((package, *checkout, *named))


def identity_of(folders: Iterable[Path]) -> str:
    """A hash of names, sizes and times of the files below these folders; "" if one is newer than this process."""
    digest, newest = hashlib.sha256(VERSION.encode()), 0
    for folder in folders:
        for file in _files(folder):
            told = file.stat()
            newest = max(newest, told.st_mtime_ns)
            digest.update(f"{file.path} {told.st_size} {told.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16] if newest < STARTED_NS else ""


def _files(folder: str | Path) -> Iterator[os.DirEntry[str]]:
    """The files below a folder that the engine reads: not compiled modules, which Python writes."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _files(entry.path)
        elif not entry.name.endswith(".pyc"):
            yield entry


@lru_cache(maxsize=1)
def _waited_loop(process: int) -> asyncio.AbstractEventLoop:
    """A running loop on a thread that ends with the process, of this number: a child of fork() has no such thread."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="webinfer", daemon=True).start()
    return loop


class _OwnLoop:
    """The event loop of `wait_here` of one thread and process: closed when they drop it."""

    def __init__(self) -> None:
        self.loop, self.process = asyncio.new_event_loop(), os.getpid()

    def __del__(self) -> None:
        if self.process == os.getpid() and not self.loop.is_running():
            self.loop.close()


_own = threading.local()


def _own_loop() -> asyncio.AbstractEventLoop:
    """The calling thread's loop; a new one in a child of fork(), which shares the file descriptors of its parent's."""
    kept: _OwnLoop | None = getattr(_own, "kept", None)
    if kept is None or kept.process != os.getpid():
        _own.kept = kept = _OwnLoop()
    return kept.loop


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    models = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return models[0] if models else f"{platform.machine()} {platform.processor()}"
