"""A WebAssembly memory that several instances of this process import, each on a thread of its own."""

from __future__ import annotations

import ctypes
from typing import Any

import wasmtime


class SharedMemory(wasmtime.SharedMemory):  # type: ignore[misc]
    """A shared memory with the methods of `wasmtime.Memory`, which take a store that does not matter here."""

    def _as_extern(self) -> Any:
        """As in wasmtime, whose own (50.0.1) passes a pointer to the pointer, which ctypes refuses."""
        from wasmtime import _ffi as ffi

        union = ffi.wasmtime_extern_union(sharedmemory=self.ptr())
        return ffi.wasmtime_extern_t(ffi.WASMTIME_EXTERN_SHAREDMEMORY, union)

    def data_len(self, store: Any = None) -> int:
        """Bytes of it now."""
        return int(super().data_len())

    def data_ptr(self, store: Any = None) -> Any:
        """Where it begins in the process."""
        return super().data_ptr()

    def grow(self, store: Any, pages: int) -> int:
        """Adds so many pages; how many there were before. Raises WasmtimeError where it cannot."""
        return int(super().grow(pages))

    def store_word(self, address: int, value: int) -> None:
        """Writes one 32-bit word, which no thread sees half."""
        base = ctypes.cast(self.data_ptr(), ctypes.c_void_p).value
        assert base is not None
        ctypes.c_uint32.from_address(base + address).value = value
