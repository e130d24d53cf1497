"""Builds a graph with the browser's MLGraphBuilder and runs it: tensors in, one dispatch, tensors out."""

from __future__ import annotations

import statistics
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from webinfer.backends.base import Executor, MemoryReport, PlanRow, shapes_text
from webinfer.backends.webnn.emitter import Emitter, type_of
from webinfer.backends.webnn.lowerings import LOWERINGS, UNSUPPORTED
from webinfer.errors import ClosedError, DeviceLostError, InputError, UnsupportedOpError
from webinfer.graph.ir import Graph, Node, Value
from webinfer.host.interface import WebNn
from webinfer.lowering.soundness import check_graph, named_failures
from webinfer.tensor import Tensor


async def build(graph: Graph, ml: WebNn) -> WebNnExecutor:
    """The graph, built by the browser.

    Raises:  UnsupportedOpError listing every node that the context does not support
    """
    check_graph(graph)
    emitter, methods = Emitter(ml), list[list[str]]()
    for value in graph.inputs:
        emitter.input(value)
    problems, refused = list[str](), list[Node]()
    for node in graph.nodes:
        lowering = LOWERINGS.get(node.op)
        try:
            if lowering is None:
                raise UnsupportedOpError([UNSUPPORTED.get(node.op, "a custom operator")])
            with named_failures(node, "webnn"):
                methods.append(emitter.lower(node, lowering))
        except UnsupportedOpError as error:
            problems += [f"{node.label}: {node.op.name} on webnn: {problem}" for problem in error.problems]
            refused.append(node)
            for value in node.outputs:  # stand in for what the node would have made, so that the others are looked at
                emitter.input(value)
    if problems:
        raise UnsupportedOpError(problems, refused)
    outputs = {value.name: emitter.operand(value).handle for value in graph.outputs}
    executor = WebNnExecutor(graph, ml, await ml.build(emitter.builder, outputs), methods)
    await executor.open()
    return executor


class WebNnExecutor(Executor):
    """A graph of the browser, with tensors for its inputs and outputs."""

    backend = "webnn"

    def __init__(self, graph: Graph, ml: WebNn, built: Any, methods: Sequence[Sequence[str]]) -> None:
        self.graph, self._ml, self._built, self._methods = graph, ml, built, methods
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, Any] = {}
        self._results: list[Any] = []  # the tensors of the outputs, in their order
        self._named: tuple[Any, Any] = (None, None)  # both as a dispatch takes them

    async def open(self) -> None:
        """Makes the tensors, which every run uses."""
        for v in self.graph.inputs:
            self._inputs[v.name] = await self._ml.tensor(type_of(v.type), v.type.shape, True)
        for v in self.graph.outputs:
            self._outputs[v.name] = await self._ml.tensor(type_of(v.type), v.type.shape, False)
        self._results = [self._outputs[v.name] for v in self.graph.outputs]
        self._named = self._ml.named(self._inputs), self._ml.named(self._outputs)

    @property
    def lost(self) -> str:
        """Why the context is gone; "" while it works."""
        return self._ml.lost

    async def run(self, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        """The outputs by name."""
        self._submit(inputs)
        data = await self._ml.read(self._results)
        return {
            v.name: Tensor(bytes_, v.type.shape, v.type.dtype, v.type.quant)
            for v, bytes_ in zip(self.graph.outputs, data, strict=True)
        }

    def _submit(self, inputs: Mapping[str, Any]) -> None:
        if self._built is None:
            raise ClosedError(f"the session of {self.graph.name!r} is closed; load the model again")
        if self.lost:
            raise DeviceLostError(f"the WebNN context was lost: {self.lost}")
        for name, data in inputs.items():
            self._ml.write(self._inputs[name], data)
        self._ml.dispatch(self._built, *self._named)

    def rows(self) -> Sequence[PlanRow]:
        """The plan: for each node the builder's methods that it became."""
        rows = []
        for i, (node, methods) in enumerate(zip(self.graph.nodes, self._methods, strict=True)):
            cost, names = node.cost(), " ".join(methods) or "nothing"
            rows.append(
                PlanRow(i, node.label, node.op.name, "webnn", names, shapes_text(node), cost.flops, cost.bytes,
                        self._ml.origin)
            )  # fmt: skip
        return rows

    def memory(self) -> MemoryReport:
        """Bytes of the constants; what the browser takes for the rest it does not tell."""
        constants = {v: v.type.nbytes for n in self.graph.nodes for v in n.inputs if v is not None and v.is_constant}
        return MemoryReport(sum(constants.values()), 0, 0)

    async def probe(self, inputs: Mapping[str, memoryview]) -> AsyncIterator[tuple[Node, Value, Tensor]]:
        """The outputs alone: the browser shows nothing between them."""
        results = await self.run(inputs)
        for node in self.graph.nodes:
            for value in node.outputs:
                if value in self.graph.outputs:
                    yield node, value, results[value.name]

    async def profile(self, inputs: Mapping[str, memoryview], rounds: int) -> list[float]:
        """Not to be had: the browser tells no times of single operators."""
        raise InputError("WebNN does not report times of single steps; profile the model on the backend below it")

    async def pass_ms(self, inputs: Mapping[str, memoryview], repeats: int) -> float:
        """Milliseconds of a dispatch, the median of `repeats`."""
        times = []
        for _ in range(repeats):
            begin = self._ml.now_ms()
            self._submit(inputs)
            await self._ml.read([*self._outputs.values()][:1])
            times.append(self._ml.now_ms() - begin)
        return statistics.median(times)

    def close(self) -> None:
        """Frees graph and tensors; a second call does nothing."""
        if self._built is not None:
            for part in (self._built, *self._inputs.values(), *self._outputs.values()):
                self._ml.free(part)
            self._built = None
