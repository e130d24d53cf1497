"""The WebGPU backend: graphs become dispatches, dispatches become one recorded submit.

`lowerings` says what runs, `schedule` on which blocks, `memory` and `placement` where they lie,
`executor` loads and replays, `tuning` chooses kernels by timing, `compilation` builds with what is known.
Knows no model format and no other backend; the device is the host's.
"""

from webinfer.backends.webgpu.compilation import build
from webinfer.backends.webgpu.executor import WebGpuExecutor
from webinfer.backends.webgpu.lowerings import LOWERINGS, UNSUPPORTED

__all__ = ["LOWERINGS", "UNSUPPORTED", "WebGpuExecutor", "build"]
