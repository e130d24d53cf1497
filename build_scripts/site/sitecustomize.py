"""Defers modules of the standard library in the interpreter of the memory snapshot, which runs this first.

A deferred module is there and empty, so it costs no memory; the first use of a name loads it. None of these is used
on the way to a result, but what is imported imports them.
"""

import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

DEFERRED = frozenset(
    """
    asyncio.sslproto asyncio.staggered asyncio.trsock bz2 compression.zstd html html.entities importlib.metadata
    ipaddress locale lzma ssl
    """.split()
)


class DeferredLoader:
    """Leaves a module empty until it is asked for a name; then `loader` fills it."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> None:
        """None: the import system makes the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Puts a `__getattr__` into the module, and the real loader into its spec."""
        spec, loader = module.__spec__, self._loader
        assert spec is not None
        module.__loader__ = spec.loader = loader

        def load(name: str) -> Any:
            if name.startswith("__") and name != "__all__":  # the import system asks whether there is one
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            del module.__dict__["__getattr__"]
            loader.exec_module(module)
            return getattr(module, name)

        module.__dict__["__getattr__"] = load


class DeferredFinder:
    """Finds the modules of DEFERRED before the import system's own finder does."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The spec of a module that is to be deferred, else None."""
        spec = PathFinder.find_spec(name, path) if name in DEFERRED else None
        if spec is not None:
            spec.loader = DeferredLoader(spec.loader)  # type: ignore[assignment]  # no Loader by name: its class would be imported
        return spec


sys.meta_path.insert(0, DeferredFinder)
