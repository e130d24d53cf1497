"""The kernels' builds with threads, natively: threads of this process walk a program as the browser's workers do."""

from __future__ import annotations

import ctypes
import threading
from functools import cache

import wasmtime
from wasmtime import _ffi as ffi

from webinfer.errors import KernelError
from webinfer.host.kernel_constants import (
    MEMORY_STACK_BYTES,
    THREAD_POOL_BYTES,
    THREAD_POOL_MAX_NAPS_WORD,
    THREAD_POOL_NAP_MS,
)
from webinfer.host.kernels_native import NativeKernels, kernel_folder

SUFFIX = "-threads"  # of a build's name
DEADLINE_MS = 60_000


class _Memory(wasmtime.SharedMemory):  # type: ignore[misc]
    """A shared memory that can be imported, which wasmtime 50 forgets a dereference for."""

    def _as_extern(self) -> ffi.wasmtime_extern_t:
        union = ffi.wasmtime_extern_union(sharedmemory=self.ptr())
        return ffi.wasmtime_extern_t(ffi.WASMTIME_EXTERN_SHAREDMEMORY, union)


@cache
def _engine() -> wasmtime.Engine:
    config = wasmtime.Config()
    config.wasm_simd = config.wasm_relaxed_simd = config.wasm_threads = config.shared_memory = config.cache = True
    return wasmtime.Engine(config)


@cache
def _module(isa: str) -> wasmtime.Module:
    return wasmtime.Module.from_file(_engine(), str(kernel_folder() / f"webinfer-{isa}{SUFFIX}.wasm"))


class ThreadedKernels(NativeKernels):
    """One memory, an instance of the module for each thread (host.interface.Kernels)."""

    def __init__(self, isa: str, threads: int) -> None:
        module = _module(isa)
        wanted = next(i.type for i in module.imports if i.name == "memory")
        assert isinstance(wanted, wasmtime.MemoryType)
        self.isa, self.threads = isa, threads
        self._mutex, self._inside, self._torn, self._calls = threading.RLock(), False, False, {}
        self._memory = _Memory(_engine(), wasmtime.MemoryType(wanted.limits, shared=True))
        self._store = wasmtime.Store(_engine())
        self._exports = wasmtime.Instance(self._store, module, [self._memory]).exports(self._store)
        base = self._exports["__heap_base"]
        assert isinstance(base, wasmtime.Global)
        self._pool = (int(base.value(self._store)) + 63) // 64 * 64
        stacks = self._pool + THREAD_POOL_BYTES
        self.heap_base = stacks + (threads - 1) * MEMORY_STACK_BYTES
        self.grow(self.heap_base)
        self.write(self._pool, bytes(THREAD_POOL_BYTES))
        naps = DEADLINE_MS // THREAD_POOL_NAP_MS
        self.write(self._pool + 4 * THREAD_POOL_MAX_NAPS_WORD, naps.to_bytes(4, "little"))
        self._workers = [
            threading.Thread(
                target=self._work, args=(module, thread, stacks + thread * MEMORY_STACK_BYTES), daemon=True
            )
            for thread in range(1, threads)
        ]
        for worker in self._workers:
            worker.start()

    def _work(self, module: wasmtime.Module, thread: int, stack_top: int) -> None:
        store = wasmtime.Store(_engine())
        exports = wasmtime.Instance(store, module, [self._memory]).exports(store)
        stack, work = exports["__stack_pointer"], exports["thread_pool_work"]
        assert isinstance(stack, wasmtime.Global)
        assert isinstance(work, wasmtime.Func)
        stack.set_value(store, stack_top)
        work(store, self._pool, thread, 0)

    def size(self) -> int:
        """Bytes of memory now."""
        self._live()
        return int(self._memory.data_len())

    def grow(self, nbytes: int) -> None:
        """Makes the memory at least this large."""
        missing = -(-(nbytes - self.size()) // 65536)
        if missing > 0:
            self._memory.grow(missing)

    def _pointer(self, address: int, nbytes: int) -> int:
        if address < 0 or address + nbytes > self.size():
            raise KernelError(f"bytes {address}..{address + nbytes} lie outside the memory of {self.size()} bytes")
        base = ctypes.cast(self._memory.data_ptr(), ctypes.c_void_p).value
        assert base is not None
        return base + address

    def run(self, program: int, first: int, count: int) -> None:
        """Runs records on all threads at once.

        Raises:  KernelError if one traps or a thread does not answer
        """
        if self.call("thread_pool_run", self._pool, program, first, count, self.threads):
            raise KernelError(f"a thread did not answer within {DEADLINE_MS} ms")

    def close(self) -> None:
        """Sends the threads home and frees the instances."""
        if self._store is not None:
            self.call("thread_pool_dismiss", self._pool)
            for worker in self._workers:
                worker.join()
        super().close()
