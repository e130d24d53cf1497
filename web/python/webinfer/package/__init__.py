"""Compiled models on disk: a `.webinfer` file, or one `.wasm` that any WebAssembly engine runs without webinfer.

`compiling` loads a model on stand-ins that note what they are asked for (`recording`), `pruning` leaves of the kernels'
module (`module`) what the plan calls, `container` is the file's form, `reading` makes a session of it,
`standalone` and `command` write the `.wasm`. web/player runs packages in pages without Python.
"""

from typing import TYPE_CHECKING

from webinfer.lazy import lazy_names

if TYPE_CHECKING:
    from webinfer.package.compiling import compile_model
    from webinfer.package.standalone import compile_wasm

__all__ = ["compile_model", "compile_wasm"]
# What compiles comes when it is asked for: who runs packages does without the backends' compilers.
__getattr__ = lazy_names(__name__, {"compile_model": ".compiling", "compile_wasm": ".standalone"})
