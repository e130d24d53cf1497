"""Compiled models on disk: a `.webinfer` file, or one `.wasm` that any WebAssembly engine runs without webinfer.

`compiling` loads a model on stand-ins that note what they are asked for (`recording`), `pruning` leaves of the kernels'
module (`module`) what the plan calls, `container` is the file's form, `reading` makes a session of it,
`standalone` and `command` write the `.wasm`. web/player runs packages in pages without Python.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from webinfer.package.compiling import compile_model
    from webinfer.package.standalone import compile_wasm

__all__ = ["compile_model", "compile_wasm"]
_HOMES = {"compile_model": "webinfer.package.compiling", "compile_wasm": "webinfer.package.standalone"}


def __getattr__(name: str) -> Any:
    """What compiles comes when it is asked for: who runs packages does without the backends' compilers."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
