"""Kernel instances with threads in the browser: one shared memory, workers that walk the program with thread 0.

The pool itself is C: kernels_wasm/include/thread_pool.h; a worker is web/static/engine/thread_worker.js.
"""

from __future__ import annotations

import asyncio
from typing import Any

import js
from pyodide.ffi import create_proxy

from webinfer.errors import BackendUnavailableError, KernelError
from webinfer.host.kernels_browser import BrowserKernels, compiled, instance, new_memory, options
from webinfer.host.prefetch import prefetched
from webinfer.kernel_constants import (
    MEMORY_MAX_BYTES,
    MEMORY_STACK_BYTES,
    THREAD_POOL_BYTES,
    THREAD_POOL_MAX_NAPS_WORD,
    THREAD_POOL_NAP_MS,
    THREAD_POOL_POISONED_WORD,
)

MAX_BYTES = (MEMORY_MAX_BYTES, 2**31, 2**30, 2**29)  # what a shared memory may grow to; some devices refuse much
DEADLINE_MS = 10_000  # without an answer from a thread
START_SECONDS = 10.0


async def open_thread_pool(url: str, worker_url: str, isa: str, threads: int) -> ThreadPoolKernels:
    """A new instance of the threaded build at `url` with `threads` - 1 workers, all of them ready.

    Raises:  BackendUnavailableError if memory, module or a worker is not available
    """
    module, spare = await asyncio.gather(compiled(url), prefetched(worker_url))
    try:
        memory = new_memory(MAX_BYTES, shared=True)
        kernels = ThreadPoolKernels(isa, await instance(url, module, memory), memory, threads)
    except BaseException:
        if spare is not None:
            spare.terminate()
        raise
    kernels.prepare(module, worker_url)
    try:
        await kernels.start_workers(spare)
    except BaseException:
        kernels.close()
        raise
    return kernels


def _new_worker(url: str, name: str) -> Any:
    """A worker: the page's where it is ours, for in Firefox a worker that starts another may stand still for ever."""
    by_page = getattr(getattr(js, "webinfer", None), "startThread", None)
    return by_page(url, name) if by_page is not None else js.Worker.new(url, options(type="module", name=name))


class ThreadPoolKernels(BrowserKernels):
    """One instance with worker threads (host.interface.Kernels).

    A thread that stays silent for DEADLINE_MS ends the run in a KernelError; close the instance then and open another.
    """

    def __init__(self, isa: str, exports: Any, memory: Any, threads: int) -> None:
        super().__init__(isa, exports, memory)
        self.threads = threads
        self._workers: list[Any] = []
        self._pool = (self.heap_base + 63) // 64 * 64
        self._stacks = self._pool + THREAD_POOL_BYTES
        self.heap_base = self._stacks + (threads - 1) * MEMORY_STACK_BYTES
        self._module: Any = None
        self._worker_url = ""
        self.grow(self.heap_base)

    def prepare(self, module: Any, worker_url: str) -> None:
        """Notes the compiled module and the URL of the workers' script, before `start_workers`."""
        self._module, self._worker_url = module, worker_url

    async def start_workers(self, spare: Any | None = None) -> None:
        """Starts the workers of a fresh pool, the first of them the `spare` one, and waits until each has entered it.

        Raises:  BackendUnavailableError if one does not within START_SECONDS
        """
        self._words().fill(0, self._pool // 4, (self._pool + THREAD_POOL_BYTES) // 4)
        self._words()[self._pool // 4 + THREAD_POOL_MAX_NAPS_WORD] = DEADLINE_MS // THREAD_POOL_NAP_MS
        waiting = [self._start_worker(thread, spare if thread == 1 else None) for thread in range(1, self.threads)]
        try:
            await asyncio.wait_for(asyncio.gather(*waiting), START_SECONDS)
        except (TimeoutError, RuntimeError) as error:
            raise BackendUnavailableError(
                f"kernel threads do not start: {str(error) or 'no answer'}; use threads=1"
            ) from error

    def _start_worker(self, thread: int, spare: Any | None) -> asyncio.Future[None]:
        worker = spare or _new_worker(self._worker_url, f"kernels {thread}")
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def on_message(event: Any) -> None:
            event.preventDefault()  # an error ends this thread, not the engine
            if answer.done():
                return
            told = getattr(event, "data", None) or event
            if getattr(told, "type", "") == "ready":
                answer.set_result(None)
            else:
                message = getattr(told, "message", None) or f"{self._worker_url} cannot be loaded"
                answer.set_exception(RuntimeError(str(message)))

        listener = create_proxy(on_message)
        worker.addEventListener("message", listener)
        worker.addEventListener("error", listener)
        self._workers.append((worker, listener))
        stack_top = self._stacks + thread * MEMORY_STACK_BYTES
        message = options(pool=self._pool, thread=thread, jobs=0, stackTop=stack_top)
        message.poisoned = self._pool // 4 + THREAD_POOL_POISONED_WORD
        message.module, message.memory = self._module, self._memory
        worker.postMessage(message)
        return answer

    def _words(self) -> Any:
        return js.Uint32Array.new(self._memory.buffer)

    def run(self, program: int, first: int, count: int) -> None:
        """Runs `count` records, from number `first`, of the program at address `program`, on all threads.

        Raises:  KernelError if one traps or a thread does not answer within the deadline
        """
        self._answered(-self.call("thread_pool_run", self._pool, program, first, count, self.threads))

    def run_turns(self, turns: int, count: int) -> int:
        """Runs the next turns of a loop, on all threads.

        Raises:  as `run`
        """
        return self._answered(int(self.call("run_turns", self._pool, turns, count, self.threads)))

    def _answered(self, done: int) -> int:
        if done < 0:
            self._end_workers()
            raise KernelError(
                f"a kernel thread failed or did not answer within {DEADLINE_MS} ms; the next run starts new ones"
            )
        return done

    def _end_workers(self) -> None:
        for worker, listener in self._workers:
            worker.terminate()
            listener.destroy()
        self._workers.clear()

    def close(self) -> None:
        """Ends the threads and drops the instance and its memory; a second call does nothing."""
        self._end_workers()
        super().close()
