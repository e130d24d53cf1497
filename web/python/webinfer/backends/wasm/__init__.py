"""The WASM backend: a graph becomes one binary program that the kernel module runs in one call.

`backend` is what the registry finds, `lowerings` turns nodes into steps, `builder` collects them, `executor` compiles
them and knows no operator, `loaded_plan` runs what was compiled, `stored_plan` brings it into the plan cache and back.
Talks to the kernels only through host.interface.Kernels.
"""

from webinfer.lazy import lazy_names

# What compiles comes when it is asked for: who runs packages does without lowerings.
__getattr__ = lazy_names(__name__, {"BACKEND": ".backend", "WasmExecutor": ".executor", "build": ".compilation"})
