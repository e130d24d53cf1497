"""The reference backend: what every operator means, in plain NumPy.

Slow and obvious on purpose: every other backend is compared with it, and it with nothing of ours.
Floats are computed in float64 and rounded once; quantised tensors in exact integers. It is the only
room of the engine that may import NumPy, and it runs nothing on devices.
"""

from webinfer.backends.reference.executor import ReferenceExecutor, build
from webinfer.backends.reference.lowerings import LOWERINGS, UNSUPPORTED

__all__ = ["LOWERINGS", "UNSUPPORTED", "ReferenceExecutor", "build"]
