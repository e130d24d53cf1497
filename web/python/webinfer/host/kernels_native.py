"""Kernel instances in CPython, through wasmtime, of one thread. Threads are in threads_native."""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import os
import platform
import threading
import weakref
from functools import lru_cache
from pathlib import Path
from typing import Any

import wasmtime

from webinfer.errors import BackendUnavailableError, ClosedError, KernelError, OutOfMemoryError
from webinfer.flags import debug
from webinfer.host import cache_folder
from webinfer.host.checksums import check_kernels
from webinfer.host.native_calls import Call, fast_call
from webinfer.host.shared_memory import SharedMemory
from webinfer.kernel_constants import MEMORY_MAX_BYTES

PAGE = 65536  # bytes
MAX_STORED = 16  # modules' machine code of a kind, of a megabyte each
MAX_PAGES = MEMORY_MAX_BYTES // PAGE


def _new_engine(parallel: bool) -> wasmtime.Engine:
    config = wasmtime.Config()
    config.wasm_simd = True
    config.wasm_relaxed_simd = True
    config.wasm_threads = config.shared_memory = True
    config.parallel_compilation = parallel
    return wasmtime.Engine(config)


@lru_cache(maxsize=1)
def kernel_engine() -> wasmtime.Engine:
    """The engine of all kernel instances of this process."""
    return _new_engine(parallel=True)


def kernel_folder() -> Path:
    """Where the built kernel modules lie: $WEBINFER_KERNELS, inside the wheel, or the checkout's build.

    Raises:  BackendUnavailableError if none of them holds any
    """
    named = os.environ.get("WEBINFER_KERNELS")
    package = Path(__file__).resolve().parent.parent
    places = [Path(named)] if named else [package / "_kernels", package.parents[2] / "build" / "kernels"]
    for place in places:
        if (place / "webinfer-scalar.wasm").is_file():
            return place
    raise BackendUnavailableError(
        f"no kernel module in {', '.join(map(str, places))}; "
        "run `python3 -m build_scripts build kernels` in the checkout"
    )


def checked_module(build: str) -> bytes:
    """The bytes of a build.

    Raises:  BackendUnavailableError if there is none; IntegrityError if the file is damaged
    """
    file = kernel_folder() / f"webinfer-{build}.wasm"
    try:
        data = file.read_bytes()
    except OSError as error:
        raise BackendUnavailableError(f"no kernel module {file}: {error.strerror}") from error
    check_kernels(str(file), data)
    return data


@lru_cache(maxsize=5)
def compiled_build(build: str) -> wasmtime.Module:
    """The compiled build, in the order of instructions that suits wasmtime where there are two: the bits are the same.

    Raises:  IntegrityError if the file is damaged
    """
    return _machine_code("machine-code", checked_module(build.replace("relaxed", "relaxed-native")))


def _machine_code(kind: str, data: bytes) -> wasmtime.Module:
    """A module's machine code, which is stored under the hash of what it was made of.

    wasmtime's own cache has no checksums: it would run damaged machine code. An installation of wasmtime is told by
    when it was written, as `importlib.metadata` would take longer than reading the code; code of another version,
    which wasmtime refuses, is compiled anew.
    """
    installed = os.stat(wasmtime.__file__).st_mtime_ns
    compiler = f"wasmtime {installed} {platform.machine()} threads "
    place = f"{kind}.{hashlib.sha256(compiler.encode() + data).hexdigest()[:32]}"
    if (stored := cache_folder.recall(place)) is not None:
        try:
            return wasmtime.Module.deserialize(kernel_engine(), bytes(stored))
        except wasmtime.WasmtimeError as error:
            debug(1, f"stored machine code {place} does not fit here: {error}")
    module = _compiled(data)
    cache_folder.remember(place, bytes(module.serialize()), f"{kind}.", MAX_STORED)
    return module


def _compiled(data: bytes) -> wasmtime.Module:
    """A module compiled now. In a child of fork(), where wasmtime's compiling threads are missing, on this thread."""
    if not _forked:
        return wasmtime.Module(kernel_engine(), data)
    alone = wasmtime.Module(_new_engine(parallel=False), data)
    return wasmtime.Module.deserialize(kernel_engine(), alone.serialize())


def _foreign(data: bytes) -> wasmtime.Module:
    """A module that is not of this installation, such as a package's: it imports a memory and nothing else."""
    try:
        module = _machine_code("package-code", bytes(data))
    except wasmtime.WasmtimeError as error:
        raise BackendUnavailableError(f"a kernel module cannot be compiled: {error}") from error
    if [(i.module, i.name) for i in module.imports] != [("env", "memory")]:
        raise BackendUnavailableError("a kernel module imports something other than a memory")
    return module


OWN = "kernels"  # what a linker calls the instance
_open: weakref.WeakSet[NativeKernels] = weakref.WeakSet()
_forked = False  # whether this process is a child of one that had imported this module


def _after_fork() -> None:
    """Instances go on in the child, on memory that is copied where it is written to; but not one that was running."""
    global _forked
    _forked = True
    for kernels in list(_open):
        kernels.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def _close_all() -> None:
    """Frees instances before the interpreter takes wasmtime's functions away."""
    for kernels in list(_open):
        kernels.close()
    compiled_build.cache_clear()
    kernel_engine.cache_clear()


class NativeKernels:
    """One instance with a linear memory of its own (host.interface.Kernels).

    Raises:  OutOfMemoryError without that memory; BackendUnavailableError if the bytes are not a kernel module
    """

    notes_load = False

    def __init__(self, isa: str, data: bytes = b"", module: wasmtime.Module | None = None) -> None:
        """`data` are the bytes of a module that is not the installation's, `module` is another build than `isa`."""
        module = module or (_foreign(data) if data else compiled_build(isa))
        self.isa, self.threads, self._module = isa, 1, module
        self._mutex = threading.RLock()  # wasmtime ends the process if two threads are in one instance
        self._inside, self._torn = False, False
        self._place: tuple[int, int] | None = None
        self._store: wasmtime.Store | None = wasmtime.Store(kernel_engine())
        wanted = next(i.type for i in module.imports if i.name == "memory")
        assert isinstance(wanted, wasmtime.MemoryType)
        limits = wasmtime.Limits(wanted.limits.min, wanted.limits.max or MAX_PAGES)
        try:
            self._memory: Any = (
                SharedMemory(kernel_engine(), wasmtime.MemoryType(limits, shared=True))
                if wanted.is_shared
                else wasmtime.Memory(self._store, wasmtime.MemoryType(limits))
            )
        except wasmtime.WasmtimeError as error:
            raise OutOfMemoryError(f"no address space for kernel memory ({error}); close other sessions") from error
        self._calls = dict[str, Call]()
        self._linker = wasmtime.Linker(
            kernel_engine()
        )  # finds one export by its name; `exports` wraps all: 6 ms for 353
        self._linker.define_instance(self._store, OWN, wasmtime.Instance(self._store, module, [self._memory]))
        base = self._linker.get(self._store, OWN, "__heap_base")
        assert isinstance(base, wasmtime.Global)
        self.heap_base = int(base.value(self._store))
        _open.add(self)

    def _live(self) -> wasmtime.Store:
        if self._store is None:
            raise ClosedError("this kernel instance is closed; load the model again")
        if self._torn:
            raise KernelError("these kernels were running when the process was forked; the next run starts new ones")
        return self._store

    def after_fork(self) -> None:
        """Takes the lock from a thread that is not there in this process."""
        self._torn, self._mutex = self._inside, threading.RLock()

    def size(self) -> int:
        """Bytes of memory now."""
        return int(self._memory.data_len(self._live()))

    def grow(self, nbytes: int) -> None:
        """Makes the memory at least this large.

        Raises:  OutOfMemoryError with what is needed and what there is
        """
        with self._mutex:
            store = self._live()
            missing = -(-(nbytes - self.size()) // PAGE)
            if missing <= 0:
                return
            self._place = None
            try:
                self._memory.grow(store, missing)
            except wasmtime.WasmtimeError as error:
                raise OutOfMemoryError(
                    f"kernel memory needs {nbytes} bytes, has {self.size()} and cannot grow ({error}); "
                    "use a smaller model"
                ) from error

    def _pointer(self, address: int, nbytes: int) -> int:
        store = self._live()
        base, size = self._place or self._find_place(store)
        if address < 0 or address + nbytes > size:
            raise KernelError(f"bytes {address}..{address + nbytes} lie outside the memory of {size} bytes")
        return base + address

    def _find_place(self, store: wasmtime.Store) -> tuple[int, int]:
        """Where the memory lies in this process, and its bytes: true until it grows, which code in it might do too."""
        base = ctypes.cast(self._memory.data_ptr(store), ctypes.c_void_p).value
        assert base is not None
        self._place = base, int(self._memory.data_len(store))
        return self._place

    def read(self, address: int, nbytes: int) -> memoryview:
        """A copy of the bytes."""
        with self._mutex:
            source = (ctypes.c_char * nbytes).from_address(self._pointer(address, nbytes))
            return memoryview(bytearray(source))

    def write(self, address: int, data: Any) -> None:
        """Copies any C-contiguous buffer into the memory, or a list of bytes one behind the other."""
        if isinstance(data, list):
            self._write_joined(address, data)
            return
        view = memoryview(data).cast("B")
        with self._mutex:
            target = (ctypes.c_char * view.nbytes).from_address(self._pointer(address, view.nbytes))
            memoryview(target).cast("B")[:] = view

    def _write_joined(self, address: int, pieces: list[memoryview]) -> None:
        nbytes, at = sum(map(len, pieces)), 0
        with self._mutex:
            target = memoryview((ctypes.c_char * nbytes).from_address(self._pointer(address, nbytes))).cast("B")
            for piece in pieces:
                end = at + len(piece)
                target[at:end] = piece
                at = end

    def call(self, name: str, *args: int | float) -> Any:
        """Calls an exported function of the module and returns its result.

        Raises:  KernelError if it traps or does not exist
        """
        with self._mutex:
            function = self._calls.get(name) or self._function(name)
            self._live()
            self._inside, self._place = True, None
            try:
                return function(*args)
            except (wasmtime.Trap, wasmtime.WasmtimeError) as error:
                raise KernelError(f"kernel {name} trapped: {error}") from error
            finally:
                self._inside = False

    def _function(self, name: str) -> Call:
        """What calls an exported function."""
        try:
            export = self._linker.get(self._live(), OWN, name)
        except wasmtime.WasmtimeError:
            export = None
        if not isinstance(export, wasmtime.Func):
            raise KernelError(f"the kernel module has no function {name!r}; rebuild the kernels")
        self._calls[name] = found = fast_call(self._live(), export)
        return found

    def run(self, program: int, first: int, count: int) -> None:
        """Runs `count` records, from number `first`, of the program at address `program`.

        Raises:  KernelError if one traps
        """
        self.call("run", program, first, count, 0, 1)

    def run_turns(self, turns: int, count: int) -> int:
        """Runs the next turns of a loop, on one thread (host.interface.TurnKernels)."""
        return int(self.call("run_turns", 0, turns, count, 1))

    def close(self) -> None:
        """Frees the instance and its memory; a second call does nothing."""
        with self._mutex:
            if self._store is not None:
                self._store.close()
                self._store = None
                self._calls.clear()
