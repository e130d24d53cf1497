"""What is told of a pass, or of a reader of files, that breaks a graph."""

from __future__ import annotations

import asyncio
from importlib import import_module

import pytest
from tests.passes.building import Build

from webinfer import flags
from webinfer.errors import CompilerError
from webinfer.graph.ir import Graph
from webinfer.host.native import NativeHost
from webinfer.ops import elementwise as ew
from webinfer.passes.pipeline import optimize


def _graph() -> Graph:
    b = Build()
    first = b.node(ew.ABS, [b.input("x", 2)], ew.UnaryAttrs(), "first")
    return b.output(b.node(ew.NEG, [first], ew.UnaryAttrs(), "y"), first)


def _loses_the_last(graph: Graph) -> int:
    graph.nodes.pop()
    return 1


def test_a_pass_that_loses_an_output_is_found_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        CompilerError, match=r"g is broken after the passes: graph output y .* not written by any node; .* bug"
    ):
        optimize(_graph(), (_loses_the_last,))
    monkeypatch.setattr(flags, "debug_level", lambda: 5)
    with pytest.raises(CompilerError, match="g is broken after _loses_the_last: "):
        optimize(_graph(), (_loses_the_last, _loses_the_last))


@pytest.mark.parametrize("backend", ["reference", "wasm", "webgpu"])
def test_no_backend_compiles_a_graph_that_does_not_write_its_output(backend: str) -> None:
    graph = _graph()
    _loses_the_last(graph)
    with pytest.raises(CompilerError, match=r"g cannot be compiled: graph output y .* is not written by any node"):
        asyncio.run(import_module(f"webinfer.backends.{backend}").build(graph, NativeHost()))
