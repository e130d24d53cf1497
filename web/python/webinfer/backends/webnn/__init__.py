"""The WebNN backend: graphs go to the browser's `navigator.ml`, its own or the one of static/webnn.js.

`lowerings` says which calls of MLGraphBuilder an operator becomes, `emitter` makes them and holds them to the context's
`opSupportLimits`, `executor` runs the graph that comes back. Talks to the browser only through host.interface.WebNn.
"""

from webinfer.backends.base import Backend, BuildOptions
from webinfer.backends.webnn.executor import WebNnExecutor, build
from webinfer.backends.webnn.lowerings import LOWERINGS, UNSUPPORTED
from webinfer.graph.ir import Graph
from webinfer.host.interface import Host

__all__ = ["BACKEND", "LOWERINGS", "UNSUPPORTED"]


class WebNnBackend(Backend):
    """Builds graphs with MLGraphBuilder."""

    async def build(self, graph: Graph, host: Host, options: BuildOptions) -> WebNnExecutor:
        """The graph, built by the browser for the device that the options ask for."""
        return await build(graph, await host.webnn(options.device))


BACKEND = WebNnBackend()
