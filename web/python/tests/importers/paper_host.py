"""A host whose kernels compute nothing: graphs are lowered, planned and laid out, every address is checked."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from webinfer.errors import BackendUnavailableError, OutOfMemoryError
from webinfer.graph.ir import Graph
from webinfer.host.interface import Host

MOST_BYTES = 64 * 2**20


class _PaperKernels:
    isa, threads, heap_base, notes_load = "simd128", 1, 65536, False

    def __init__(self, abi: int) -> None:
        self._abi, self._size = abi, 65536

    def size(self) -> int:
        return self._size

    def grow(self, nbytes: int) -> None:
        if nbytes > MOST_BYTES:
            raise OutOfMemoryError(f"{nbytes} bytes of kernel memory are more than the {MOST_BYTES} of this test")
        self._size = max(self._size, nbytes)

    def write(self, address: int, data: Any) -> None:
        pieces = data if isinstance(data, list) else [data]
        nbytes = sum(memoryview(piece).nbytes for piece in pieces)
        assert self.heap_base <= address <= address + nbytes <= self._size, "a write outside the memory"

    def call(self, name: str, *args: int | float) -> int:
        assert name == "abi"
        return self._abi

    def run(self, program: int, first: int, count: int) -> None:
        assert self.heap_base <= program < self._size, "a program outside the memory"

    def close(self) -> None:
        """Nothing to let go."""


class _PaperHost:
    knows_cores, settles_later = True, False

    def __init__(self, abi: int) -> None:
        self._abi = abi

    async def kernels(self, isa: str | None = None, threads: int | None = 1) -> _PaperKernels:
        return _PaperKernels(self._abi)


def plan(graph: Graph) -> None:
    """Nothing, if the wasm backend lowers and lays out the graph.

    Raises:  the backend's typed errors; AssertionError if it would write outside the memory.
    """
    from webinfer.backends import wasm
    from webinfer.backends.wasm.kernel_table import KERNELS

    asyncio.run(wasm.build(graph, cast(Host, _PaperHost(KERNELS.abi)))).close()


def can_plan() -> bool:
    """Whether the kernels' signatures, which their build writes, are there."""
    from webinfer.backends.wasm.kernel_table import KERNELS

    try:
        return bool(KERNELS)
    except BackendUnavailableError:
        return False
