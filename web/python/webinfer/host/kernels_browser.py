"""Kernel instances in the browser, of one thread: the module in a memory of its own, beside Pyodide's.

Threads are in thread_pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import js
from pyodide.ffi import JsException, JsProxy, to_js

from webinfer.errors import BackendUnavailableError, ClosedError, IntegrityError, KernelError, OutOfMemoryError
from webinfer.host.checksums import check_kernels
from webinfer.host.prefetch import fetched, prefetched
from webinfer.kernel_constants import MEMORY_MAX_BYTES
from webinfer.spans import FileSpan

PAGE = 65536  # bytes
FIRST_PAGES = 16  # of a new memory
MAX_WINDOWS = 64  # JavaScript views that an instance keeps
ELEMENT_BYTES = {
    "Float32Array": 4,
    "Int32Array": 4,
    "Uint32Array": 4,
    "Int16Array": 2,
    "Uint16Array": 2,
    "Int8Array": 1,
}

_HEADER = "00 61 73 6d 01 00 00 00 01 05 01 60 00 01 7b 03 02 01 00 "
# Two one-function modules that only an engine with the feature accepts: i8x16.splat, f32x4.relaxed_madd.
PROBES = {
    "relaxed": _HEADER + "0a 13 01 11 00 41 00 fd 0f 41 00 fd 0f 41 00 fd 0f fd 85 02 0b",
    "simd128": _HEADER + "0a 08 01 06 00 41 00 fd 0f 0b",
}
_modules: dict[str, Any] = {}


def best_build() -> str:
    """The best kernel build that this WebAssembly engine accepts: "relaxed", "simd128" or "scalar"."""
    for isa, probe in PROBES.items():
        if js.WebAssembly.validate(to_js(bytes.fromhex(probe))):
            return isa
    return "scalar"


async def open_kernels(url: str, isa: str) -> BrowserKernels:
    """A new instance of the build `isa` at `url`; the compiled module is kept for the next one.

    Raises:  BackendUnavailableError if the module cannot be fetched, compiled or started
    """
    return await _opened(url, await compiled(url), isa)


async def open_module(data: bytes, isa: str) -> BrowserKernels:
    """A new instance of a module that is not the page's own.

    Raises:  BackendUnavailableError if it cannot be compiled or started
    """
    try:
        module = await js.WebAssembly.compile(to_js(data))
    except JsException as error:
        raise BackendUnavailableError(f"a kernel module cannot be compiled: {error}") from error
    return await _opened("of a package", module, isa)


async def _opened(url: str, module: Any, isa: str) -> BrowserKernels:
    memory = new_memory()
    return BrowserKernels(isa, await instance(url, module, memory), memory)


def new_memory(limits: Sequence[int] = (MEMORY_MAX_BYTES, 2**31), shared: bool = False) -> Any:
    """A memory that may grow to the first of these numbers of bytes that the browser grants.

    Raises:  BackendUnavailableError if it grants none
    """
    for limit in limits:
        try:
            return js.WebAssembly.Memory.new(options(initial=FIRST_PAGES, maximum=limit // PAGE, shared=shared))
        except JsException as error:
            reason = error
    kind, advice = ("shared memory", "use threads=1") if shared else ("memory for kernels", "close other pages")
    raise BackendUnavailableError(f"no {kind} can be created: {reason}; {advice}")


async def compiled(url: str) -> Any:
    """The compiled WebAssembly module at `url`, fetched once.

    Raises:  BackendUnavailableError if it cannot be fetched or compiled; IntegrityError if it is damaged
    """
    try:
        if url not in _modules:
            _modules[url] = await prefetched(url) or await _compiled_anew(url)
    except JsException as error:
        raise BackendUnavailableError(f"kernel module {url} does not start: {error}") from error
    return _modules[url]


async def _compiled_anew(url: str) -> Any:
    for cache in ("default", "reload"):  # the second time past what the browser has kept
        response = await fetched(url, cache)
        if not response.ok:
            raise BackendUnavailableError(f"kernel module {url}: HTTP {response.status}; check the server")
        data = await response.arrayBuffer()
        try:
            check_kernels(url, data.to_memoryview())
        except IntegrityError:
            if cache == "reload":
                raise
        else:
            return await js.WebAssembly.compile(data)


async def instance(url: str, module: Any, memory: Any) -> Any:
    """The exports of a new instance of a module over this memory. `url` is for the error's text.

    Raises:  BackendUnavailableError if it does not start
    """
    imports = js.Object.new()
    imports.env = js.Object.new()
    imports.env.memory = memory
    try:
        return (await js.WebAssembly.instantiate(module, imports)).exports
    except JsException as error:
        raise BackendUnavailableError(f"kernel module {url} does not start: {error}") from error


def options(**fields: Any) -> Any:
    """A JavaScript object with these fields."""
    return to_js(fields, dict_converter=js.Object.fromEntries)


class BrowserKernels:
    """One instance with a linear memory of its own (host.interface.Kernels)."""

    notes_load = False

    def __init__(self, isa: str, exports: Any, memory: Any) -> None:
        self.isa, self.threads = isa, 1
        self._exports, self._memory = exports, memory
        self._functions: dict[str, Any] = {}
        self._windows: dict[tuple[int, int], Any] = {}
        self._setters: dict[tuple[int, int, str], Any] = {}
        self.heap_base = int(getattr(exports, "__heap_base").value)
        self._bytes = js.Uint8Array.new(memory.buffer)

    def _live(self) -> Any:
        if self._memory is None:
            raise ClosedError("this kernel instance is closed; load the model again")
        return self._bytes

    def size(self) -> int:
        """Bytes of memory now."""
        return int(self._live().byteLength)

    def grow(self, nbytes: int) -> None:
        """Makes the memory at least this large.

        Raises:  OutOfMemoryError with what is needed and what there is
        """
        missing = -(-(nbytes - self.size()) // PAGE)
        if missing <= 0:
            return
        try:
            self._memory.grow(missing)
        except JsException as error:
            raise OutOfMemoryError(
                f"kernel memory needs {nbytes} bytes, has {self.size()} and cannot grow; "
                "close other sessions or use a smaller model"
            ) from error
        self._bytes = js.Uint8Array.new(self._memory.buffer)
        self._windows.clear()
        self._setters.clear()

    def _window(self, address: int, nbytes: int) -> Any:
        """These bytes as a JavaScript array, kept for the next run, which asks for the same ones."""
        window = self._windows.get((address, nbytes))
        if window is None:
            view = self._live()
            if address < 0 or address + nbytes > view.byteLength:
                raise KernelError(
                    f"bytes {address}..{address + nbytes} lie outside the memory of {view.byteLength} bytes"
                )
            if len(self._windows) >= MAX_WINDOWS:
                self._windows.clear()
            window = self._windows[address, nbytes] = view.subarray(address, address + nbytes)
        return window

    def read(self, address: int, nbytes: int) -> memoryview:
        """A copy of the bytes."""
        data: memoryview = self._window(address, nbytes).to_memoryview()
        return data

    @property
    def handle(self) -> Any:
        """Memory and exports, for JavaScript that runs a plan."""
        self._live()
        return options(memory=self._memory, exports=self._exports)

    def write(self, address: int, data: Any) -> None:
        """Copies a C-contiguous buffer, a list of bytes, a JavaScript typed array or a part of a large file there."""
        if isinstance(data, JsProxy):
            nbytes, kind = int(data.byteLength), str(data.constructor.name)
            setter = self._setters.get((address, nbytes, kind)) or self._new_setter(address, nbytes, kind)
            if setter is None:
                setter, data = (
                    self._window(address, nbytes).set,
                    js.Uint8Array.new(data.buffer, data.byteOffset, nbytes),
                )
            setter(data)
            return
        if isinstance(data, FileSpan):
            data.copy_into(self._window(address, len(data)))
            return
        if isinstance(data, list):
            data = memoryview(b"".join(data))
        view = data if type(data) is memoryview and data.format == "B" else memoryview(data).cast("B")
        self._window(address, view.nbytes).assign(view)

    def _new_setter(self, address: int, nbytes: int, kind: str) -> Any:
        """What copies typed arrays of this class to the address, kept for the next run: an array of their class over
        the memory needs no other view of them. None if there is none for this class.
        """
        window = self._window(address, nbytes)
        if kind != "Uint8Array":
            size = ELEMENT_BYTES.get(kind)
            if size is None or address % size:
                return None
            window = getattr(js, kind).new(window.buffer, address, nbytes // size)
        if len(self._setters) >= MAX_WINDOWS:
            self._setters.clear()
        setter = self._setters[address, nbytes, kind] = window.set
        return setter

    def call(self, name: str, *args: int | float) -> Any:
        """Calls an exported function of the module and returns its result.

        Raises:  KernelError if it traps or does not exist
        """
        self._live()
        function = self._functions.get(name)
        if function is None:
            function = getattr(self._exports, name, None)
            if function is None:
                raise KernelError(f"the kernel module has no function {name!r}; rebuild the kernels")
            self._functions[name] = function
        try:
            return function(*args)
        except JsException as error:
            raise KernelError(f"kernel {name} trapped: {error}") from error

    def run(self, program: int, first: int, count: int) -> None:
        """Runs `count` records, from number `first`, of the program at address `program`, on one thread.

        Raises:  KernelError if one traps
        """
        self.call("run", program, first, count, 0, 1)

    def run_turns(self, turns: int, count: int) -> int:
        """Runs the next turns of a loop, on one thread (host.interface.TurnKernels)."""
        return int(self.call("run_turns", 0, turns, count, 1))

    def close(self) -> None:
        """Drops the instance and its memory; a second call does nothing."""
        self._functions.clear()
        self._windows.clear()
        self._setters.clear()
        self._memory = self._exports = self._bytes = None
