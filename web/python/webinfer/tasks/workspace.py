"""Kernel memory beside the model's: images, tensors and results of pre- and post-processing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webinfer.host.interface import Kernels
from webinfer.plan.blocks import ALIGNMENT, SPARE


class Workspace:
    """Named areas of one kernel instance; an area grows when more is asked of it."""

    def __init__(self, kernels: Kernels) -> None:
        self.kernels = kernels
        self._areas: dict[str, tuple[int, int]] = {}  # name -> (address, bytes)
        self._top = _align(kernels.heap_base)

    def area(self, name: str, nbytes: int) -> int:
        """The address of an area of at least this many bytes; its contents are undefined if it grew."""
        address, have = self._areas.get(name, (0, 0))
        if have < nbytes:
            address = self._top
            self.kernels.grow(address + nbytes + SPARE)
            self._areas[name] = (address, nbytes)
            self._top = _align(address + nbytes + SPARE)
        return address

    def put(self, name: str, data: Any, nbytes: int) -> int:
        """The address of an area that holds a copy of the data."""
        address = self.area(name, nbytes)
        self.kernels.write(address, data)
        return address

    def call(self, kernel: str, args: Sequence[int | float], units: int) -> Any:
        """Calls a kernel that can be split, over all its units."""
        return self.kernels.call(kernel, *args, 0, units)

    def close(self) -> None:
        """Lets the memory go."""
        self.kernels.close()


def _align(address: int) -> int:
    return (address + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
