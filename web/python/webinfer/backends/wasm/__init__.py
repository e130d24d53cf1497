"""The WASM backend: a graph becomes one binary program that the kernel module runs in one call.

`lowerings` turns nodes into steps, `builder` collects them, `executor` runs the program and knows no
operator. Talks to the kernels only through host.interface.Kernels.
"""

from webinfer.backends.wasm.compilation import build
from webinfer.backends.wasm.executor import WasmExecutor

__all__ = ["WasmExecutor", "build"]
