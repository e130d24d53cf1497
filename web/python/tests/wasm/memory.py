"""Kernels called one by one: arrays in, arrays out, and bytes that nothing may touch."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from tests.ops.case_graphs import run

from webinfer.host.interface import Kernels
from webinfer.host.native import NativeHost

Array = np.ndarray[Any, np.dtype[Any]]
GUARD = 64  # bytes before and after every block
PATTERN = 0xA5


@cache
def _kernels(isa: str) -> Kernels:
    kernels: Kernels = run(NativeHost().kernels(isa))
    return kernels


class Memory:
    """The memory of one kernel instance, filled from the bottom."""

    def __init__(self, isa: str) -> None:
        self.kernels = _kernels(isa)
        self._top = (self.kernels.heap_base + 63) // 64 * 64

    def put(self, array: Array) -> int:
        """The address of a copy of the array."""
        address = self.room(array.nbytes)
        self.kernels.write(address, np.ascontiguousarray(array).tobytes())
        return address

    def room(self, nbytes: int) -> int:
        """The address of bytes for a result, with guards around them."""
        address = self._top + GUARD
        self._top = (address + nbytes + GUARD + 63) // 64 * 64
        self.kernels.grow(self._top)
        self.kernels.write(address - GUARD, bytes([PATTERN]) * (nbytes + 2 * GUARD))
        return address

    def get(self, address: int, like: Array) -> Array:
        """The result as an array of that shape and type; its guards must be as they were."""
        data = bytes(self.kernels.read(address - GUARD, like.nbytes + 2 * GUARD))
        guards = data[:GUARD] + data[GUARD + like.nbytes :]
        assert guards == bytes([PATTERN]) * (2 * GUARD), "a kernel wrote outside its result"
        return np.frombuffer(data[GUARD : GUARD + like.nbytes], like.dtype).reshape(like.shape).copy()

    def unary(self, name: str, x: Array, *constants: float) -> Array:
        """What an elementwise float32 kernel makes of the array."""
        source, target = self.put(x), self.room(x.nbytes)
        a, b = (*constants, 0.0, 0.0)[:2]
        self.kernels.call(f"f32_{name}", source, target, a, b, 0, x.size)
        return self.get(target, x)

    def binary(self, name: str, x: Array, y: Array) -> Array:
        """What an elementwise float32 kernel makes of two arrays of one shape."""
        table = self.put(np.array([1, x.size, 1, 1], np.int32))
        refs, target = (self.put(x), self.put(y)), self.room(x.nbytes)
        self.kernels.call(f"f32_{name}", *refs, target, table, -np.inf, np.inf, 0, x.size)
        return self.get(target, x)
