"""The reference backend: what every operator means, in plain NumPy.

Slow and obvious on purpose: every other backend is compared with it, and it with nothing of ours.
Floats are computed in float64 and rounded once; quantised tensors in exact integers. It is the only
room of the engine that may import NumPy, and it runs nothing on devices.
"""

from webinfer.backends.base import Backend, BuildOptions
from webinfer.backends.reference.executor import ReferenceExecutor, build
from webinfer.backends.reference.lowerings import LOWERINGS, UNSUPPORTED
from webinfer.graph.ir import Graph
from webinfer.host.interface import Host

__all__ = ["BACKEND", "LOWERINGS", "UNSUPPORTED", "ReferenceExecutor", "build"]


class ReferenceBackend(Backend):
    """Interprets graphs in NumPy."""

    async def build(self, graph: Graph, host: Host, options: BuildOptions) -> ReferenceExecutor:
        """The graph, ready to be interpreted."""
        return await build(graph, host)


BACKEND = ReferenceBackend()
