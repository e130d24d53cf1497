"""What every backend asks before it lowers a graph."""

from __future__ import annotations

from webinfer.errors import REPORT, CompilerError, ShapeError
from webinfer.graph.ir import Graph
from webinfer.graph.printer import safe_name
from webinfer.graph.verify import verify_writes


def check_graph(graph: Graph) -> None:
    """Nothing, if each value of the graph is written before it is read, and each output is written.

    Raises:  CompilerError naming the value: what reads files and rewrites graphs has made a broken one
    """
    try:
        verify_writes(graph)  # 3 µs a node
    except ShapeError as error:
        raise CompilerError(f"{safe_name(graph.name)} cannot be compiled: {error}; {REPORT}") from error
