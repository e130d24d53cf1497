"""The signatures of the WASM kernels, as the kernels' build wrote them.

The build makes them of kernels_wasm/kernels.toml and of what operators describe: the module `kernel_signatures`, which
lies beside this one in wheels and in build/generated of a checkout. They are read at the first look-up, so that the
engine can be imported before anything is built.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import ModuleType

from webinfer.errors import BackendUnavailableError
from webinfer.plan.program import Kernel

BESIDE = "kernel_signatures"
PACKAGE = "webinfer.backends.wasm"


class KernelTable(Mapping[str, Kernel]):
    """Name → signature of every kernel, in the order of their ids.

    Raises:  BackendUnavailableError at the first look-up in a checkout whose kernels have not been built
    """

    @cached_property
    def _built(self) -> ModuleType:
        if importlib.util.find_spec(f"{PACKAGE}.{BESIDE}") is not None:
            return importlib.import_module(f"{PACKAGE}.{BESIDE}")
        file = Path(__file__).resolve().parents[5] / "build" / "generated" / f"{BESIDE}.py"
        spec = importlib.util.spec_from_file_location(f"{PACKAGE}.{BESIDE}", file)
        if spec is None or spec.loader is None or not file.is_file():
            raise BackendUnavailableError(
                "the WASM kernels have not been built; run `python3 -m build_scripts build kernels` in the checkout"
            )
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    @cached_property
    def _rows(self) -> dict[str, Kernel]:
        return {kernel.name: kernel for kernel in self._built.KERNELS}

    @property
    def abi(self) -> int:
        """A digest of signatures and shared constants: a program runs on the kernels that have the same one."""
        return int(self._built.ABI)

    def __getitem__(self, name: str) -> Kernel:
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


KERNELS = KernelTable()
