"""A context of WebNN for tests in CPython: our own builder, and graphs that run on the processor."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from webinfer.backends import registry
from webinfer.backends.base import BuildOptions
from webinfer.host.native import NativeHost
from webinfer.passes.pipeline import optimize
from webinfer.webnn.builder import Builder
from webinfer.webnn.limits import limits
from webinfer.webnn.signatures import signature


class Calls:
    """A builder that takes arguments by position, as the browser's does."""

    def __init__(self) -> None:
        self.builder, self.called = Builder(), list[str]()

    def input(self, name: str, dtype: str, shape: Sequence[int]) -> str:
        return self.builder.input(name, dtype, list(shape))[0]

    def constant(self, dtype: str, shape: Sequence[int], data: memoryview) -> str:
        return self.builder.constant(dtype, list(shape), bytes(data.cast("B")))[0]

    def call(self, method: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> str:
        self.called.append(method)
        names = [name for name, _ in signature(method).arguments]
        (result,) = self.builder.call(method, {**dict(zip(names, arguments, strict=True)), **named})
        return result[0]


class StandIn:
    """host.interface.WebNn without a browser. `without` leaves methods, or types of inputs, out of its limits."""

    origin, lost = "the test's own", ""

    def __init__(self, without: Sequence[str] = ()) -> None:
        self.limits: dict[str, Any] = {name: row for name, row in limits("cpu").items() if name not in without}
        self.builders: list[Calls] = []

    def now_ms(self) -> float:
        return time.perf_counter() * 1000

    def builder(self) -> Calls:
        self.builders.append(Calls())
        return self.builders[-1]

    async def build(self, builder: Calls, outputs: Mapping[str, str]) -> Any:
        graph = builder.builder.graph(outputs)
        optimize(graph)
        return await registry.open_backend("wasm").build(graph, NativeHost(), BuildOptions(threads=1, tuning_ms=0))

    async def tensor(self, dtype: str, shape: Sequence[int], writable: bool) -> list[Any]:
        return [b""]

    def write(self, tensor: list[Any], data: Any) -> None:
        tensor[0] = memoryview(bytes(data))

    def named(self, tensors: Mapping[str, list[Any]]) -> Mapping[str, list[Any]]:
        return tensors

    def dispatch(self, graph: Any, inputs: Mapping[str, list[Any]], outputs: Mapping[str, list[Any]]) -> None:
        kernels = graph.kernels
        for name, tensor in inputs.items():
            kernels.write(graph.input_address(name), tensor[0])
        graph.execute()
        for place in graph.layout.outputs:
            outputs[place.name][0] = kernels.read(place.address, place.type.nbytes)

    async def read(self, tensors: Sequence[list[Any]]) -> list[memoryview]:
        return [tensor[0] for tensor in tensors]

    def free(self, part: Any) -> None:
        if hasattr(part, "close"):
            part.close()
