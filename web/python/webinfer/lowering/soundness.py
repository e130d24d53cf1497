"""What every backend asks before it lowers a graph, and what is said of a node that a lowering fails on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from webinfer.errors import REPORT, CompilerError, OutOfMemoryError, ShapeError, WebinferError
from webinfer.graph.ir import Graph, Node
from webinfer.graph.printer import safe_name
from webinfer.graph.trace import AskedAboutSpareError
from webinfer.graph.verify import verify_writes


def check_graph(graph: Graph) -> None:
    """Nothing, if each value of the graph is written before it is read, and each output is written.

    Raises:  CompilerError naming the value: what reads files and rewrites graphs has made a broken one
    """
    try:
        verify_writes(graph)  # 3 µs a node
    except ShapeError as error:
        raise CompilerError(f"{safe_name(graph.name)} cannot be compiled: {error}; {REPORT}") from error


@contextmanager
def named_failures(node: Node, backend: str) -> Iterator[None]:
    """Inside, an error that nobody foresaw becomes one that names the node: another backend may take the graph.

    Raises:  CompilerError; OutOfMemoryError
    """
    try:
        yield
    except (WebinferError, AskedAboutSpareError):  # the caller tries again without room for caches
        raise
    except MemoryError as error:
        told = str(error) or "no memory"
        raise OutOfMemoryError(f"{node.label}: {node.op.name} on {backend}: {told}; use a smaller model") from error
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        raise CompilerError(f"{safe_name(node.label)}: {node.op.name} on {backend}: {told}; {REPORT}") from error
