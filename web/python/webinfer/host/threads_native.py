"""Kernel instances with threads in CPython: one shared memory, and a thread of Python for each worker.

A worker has an instance of the module of its own and stays inside one call, which gives up the GIL, until the instance
is closed. The pool itself is C: kernels_wasm/include/thread_pool.h.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

import wasmtime

from webinfer.errors import BackendUnavailableError, KernelError
from webinfer.host.kernels_native import OWN, NativeKernels, compiled_build, kernel_engine
from webinfer.kernel_constants import (
    MEMORY_STACK_BYTES,
    THREAD_POOL_BYTES,
    THREAD_POOL_MAX_NAPS_WORD,
    THREAD_POOL_NAP_MS,
    THREAD_POOL_POISONED_WORD,
)

DEADLINE_MS = 60_000  # without an answer from a thread: a server that is overloaded may take a core away for seconds
SILENT = f"a kernel thread failed or did not answer within {DEADLINE_MS} ms; the next run starts new ones"
START_SECONDS = 10.0
END_SECONDS = 5.0  # for a worker to leave after it was dismissed
SUFFIX = "-threads"  # of a build's name


class ThreadPoolKernels(NativeKernels):
    """One memory, and an instance of the module for each thread (host.interface.Kernels).

    In a child of fork(), which has no workers, runs go on with one thread. A thread that stays silent for DEADLINE_MS
    ends the run in a KernelError; close the instance then and open another.

    Raises:  as `NativeKernels`; BackendUnavailableError if a worker does not start
    """

    def __init__(self, isa: str, threads: int) -> None:
        self._workers: list[threading.Thread] = []
        super().__init__(isa, module=compiled_build(f"{isa}{SUFFIX}"))
        self.threads = threads
        self._pool = (self.heap_base + 63) // 64 * 64
        stacks = self._pool + THREAD_POOL_BYTES
        self.heap_base = stacks + (threads - 1) * MEMORY_STACK_BYTES
        self.grow(self.heap_base)
        self.write(self._pool, bytes(THREAD_POOL_BYTES))
        naps = DEADLINE_MS // THREAD_POOL_NAP_MS
        self.write(self._pool + 4 * THREAD_POOL_MAX_NAPS_WORD, naps.to_bytes(4, "little"))
        self._start_workers(stacks)
        # Workers keep the memory, not this object: without a `close` they leave when nobody has it any more.
        dismiss = self._function("thread_pool_dismiss")
        self._dismiss = weakref.finalize(self, dismiss, self._pool)
        self._dismiss.atexit = False  # `kernels_native` closes what is open then

    def _start_workers(self, stacks: int) -> None:
        failed: list[str] = []
        ready = [threading.Event() for _ in range(1, self.threads)]
        poisoned = self._pool + 4 * THREAD_POOL_POISONED_WORD
        for thread, event in enumerate(ready, 1):
            work = _Worker(self._module, self._memory, self._pool, thread, stacks + thread * MEMORY_STACK_BYTES)
            worker = threading.Thread(
                target=work.run, args=(event, failed, poisoned), name=f"webinfer kernels {thread}", daemon=True
            )
            self._workers.append(worker)
            worker.start()
        started = [event.wait(START_SECONDS) for event in ready]
        if not all(started) or failed:
            self.close()
            raise BackendUnavailableError(
                f"kernel threads do not start: {failed[0] if failed else 'no answer'}; use threads=1"
            )

    def run(self, program: int, first: int, count: int) -> None:
        """Runs `count` records, from number `first`, of the program at address `program`, on all threads.

        Raises:  KernelError if one traps or a thread does not answer within the deadline
        """
        if not self._workers:  # of a child of fork()
            super().run(program, first, count)
        elif self.call("thread_pool_run", self._pool, program, first, count, self.threads):
            raise KernelError(SILENT)

    def run_turns(self, turns: int, count: int) -> int:
        """Runs the next turns of a loop, on all threads.

        Raises:  as `run`
        """
        if not self._workers:
            return super().run_turns(turns, count)
        if (done := int(self.call("run_turns", self._pool, turns, count, self.threads))) < 0:
            raise KernelError(SILENT)
        return done

    def after_fork(self) -> None:
        """Forgets workers that are not there in this process, and takes the lock from a thread that is not."""
        super().after_fork()
        self._workers.clear()
        self._dismiss.detach()  # nobody listens, and another thread may have held what it would wait for

    def close(self) -> None:
        """Ends the threads and frees the instances and their memory; a second call does nothing."""
        with self._mutex:
            if self._store is not None and self._workers:
                self.call("thread_pool_dismiss", self._pool)
                for worker in self._workers:
                    worker.join(END_SECONDS)
                self._workers.clear()
                self._dismiss.detach()
            super().close()


class _Worker:
    """What a worker thread does: an instance of its own on the memory of all, inside one call until it is dismissed."""

    def __init__(self, module: wasmtime.Module, memory: Any, pool: int, thread: int, stack_top: int) -> None:
        self._module, self._memory, self._pool = module, memory, pool
        self._thread, self._stack_top = thread, stack_top

    def run(self, ready: threading.Event, failed: list[str], poisoned: int) -> None:
        """Works until the pool is dismissed or poisoned; what goes wrong poisons it, so that nobody waits."""
        store = wasmtime.Store(kernel_engine())
        try:
            linker = wasmtime.Linker(kernel_engine())
            linker.define_instance(store, OWN, wasmtime.Instance(store, self._module, [self._memory]))
            stack, work = (linker.get(store, OWN, name) for name in ("__stack_pointer", "thread_pool_work"))
            assert isinstance(stack, wasmtime.Global)
            assert isinstance(work, wasmtime.Func)
            stack.set_value(store, self._stack_top)
            ready.set()
            work(store, self._pool, self._thread, 0)
        except (wasmtime.Trap, wasmtime.WasmtimeError) as error:
            failed.append(str(error))
            self._memory.store_word(poisoned, 1)
            ready.set()
        finally:
            store.close()
