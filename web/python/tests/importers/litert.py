"""What LiteRT computes of a model, and what the reference backend does of a graph."""

from __future__ import annotations

import asyncio
from typing import cast

from ai_edge_litert.interpreter import Interpreter
from tests.importers.tflite_writer import Array

from webinfer.backends.reference import build
from webinfer.graph.ir import Graph
from webinfer.host.interface import Host
from webinfer.session.state import open_inputs, open_outputs


def judged(data: bytes, arrays: list[Array]) -> list[Array]:
    """What LiteRT computes as users run it, with its default delegate."""
    interpreter = Interpreter(model_content=data, num_threads=1)
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]).copy() for detail in interpreter.get_output_details()]


def computed(graph: Graph, arrays: list[Array]) -> list[Array]:
    """What the reference backend computes."""

    async def run() -> list[Array]:
        executor = await build(graph, cast(Host, None))
        feeds = {
            v.name: memoryview(a).cast("B") if a.size else memoryview(b"")
            for v, a in zip(open_inputs(graph), arrays, strict=True)
        }
        feeds |= {s.input: s.initial for s in graph.states if s.initial is not None}
        results = await executor.run(feeds)
        return [results[v.name].numpy() for v in open_outputs(graph)]

    return asyncio.run(run())
