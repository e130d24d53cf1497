"""The WASM backend: a graph becomes one binary program that the kernel module runs in one call.

`backend` is what the registry finds, `lowerings` turns nodes into steps, `builder` collects them, `executor` compiles
them and knows no operator, `loaded_plan` runs what was compiled, `stored_plan` brings it into the plan cache and back.
Talks to the kernels only through host.interface.Kernels.
"""

from importlib import import_module
from typing import Any

_MODULES = {"BACKEND": "backend", "WasmExecutor": "executor", "build": "compilation"}


def __getattr__(name: str) -> Any:
    """What compiles comes when it is asked for: who runs packages does without lowerings."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"webinfer.backends.wasm.{_MODULES[name]}"), name)
