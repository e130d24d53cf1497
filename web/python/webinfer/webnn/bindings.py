"""Functions that JavaScript calls: strings and bytes in, JSON out. {"error": …} becomes a TypeError there."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from typing import Any

from webinfer.errors import BackendUnavailableError, InputError, WebinferError
from webinfer.graph.ir import Graph
from webinfer.host.interface import Host
from webinfer.webnn.builder import Builder, accepted, nbytes_of
from webinfer.webnn.compiling import Compiled, compiled, run_mixed
from webinfer.webnn.limits import limits
from webinfer.webnn.signatures import signature


def _answer(work: Callable[[], Any]) -> str:
    try:
        return json.dumps(work())
    except WebinferError as error:
        return json.dumps({"error": str(error)})


def _number(value: Any) -> Any:
    """A number that JSON cannot carry comes as a text: an infinity, NaN, or a whole number of any size."""
    if not isinstance(value, str):
        return value
    return int(value[:-1]) if value.endswith("n") else float(value.replace("Infinity", "inf"))


class WebnnBindings:
    """The builders and graphs of a page or worker, by number."""

    def __init__(self, host: Host) -> None:
        self._host, self._numbers = host, itertools.count(1)
        self._hosts: dict[int, Host] = {}  # of contexts on a device of the page, by number
        self._builders: dict[int, Builder] = {}
        self._graphs: dict[int, Graph] = {}

    def limits(self, kind: str) -> str:
        """What `opSupportLimits` says."""
        return json.dumps(limits(kind))

    def tensor_bytes(self, dtype: str, shape: str, constant: bool) -> str:
        """Bytes of a tensor."""

        def nbytes() -> int:
            if not constant:
                accepted(dtype)
            return nbytes_of(dtype, json.loads(shape))

        return _answer(nbytes)

    # ---- builders

    def builder(self) -> int:
        """The number of a new builder."""
        number = next(self._numbers)
        self._builders[number] = Builder()
        return number

    def drop(self, number: int) -> None:
        """Forgets a builder."""
        self._builders.pop(number, None)

    def input(self, number: int, name: str, dtype: str, shape: str) -> str:
        """A new input."""
        return _answer(lambda: self._builders[number].input(name, dtype, json.loads(shape)))

    def constant(self, number: int, dtype: str, shape: str, data: Any) -> str:
        """A new constant; `data` is a typed array of bytes."""
        return _answer(lambda: self._builders[number].constant(dtype, json.loads(shape), data.to_bytes()))

    def scalar(self, number: int, dtype: str, value: str) -> str:
        """A new constant without axes; the number is JSON."""
        return _answer(lambda: self._builders[number].scalar(dtype, _number(json.loads(value))))

    def call(self, number: int, name: str, arguments: str) -> str:
        """The results of a method."""

        def work() -> Any:
            given = json.loads(arguments)
            for key in ("minValue", "maxValue", "value"):
                if key in given:
                    given[key] = _number(given[key])
                    if isinstance(given[key], float) and math.isnan(given[key]) and key != "value":
                        raise InputError(f"{key} is not a number")
            return [signature(name).result == "outputs", *self._builders[number].call(name, given)]

        return _answer(work)

    def finish(self, number: int, outputs: str) -> str:
        """Ends a builder: the number of its graph; names, element types and shapes of its inputs and outputs."""

        def work() -> Any:
            graph = self._builders[number].graph(json.loads(outputs))
            place = next(self._numbers)
            self._graphs[place] = graph
            self.drop(number)
            ends = (
                {v.name: [v.type.dtype.value, list(v.type.shape)] for v in e} for e in (graph.inputs, graph.outputs)
            )
            return [place, *ends]

        return _answer(work)

    # ---- contexts and graphs

    async def context(self, options: str, given: Any = None) -> tuple[str, Any, int]:
        """Where a context runs, "cpu" or "gpu", the GPU's device as gpu_device.js made it, and the context's number.

        `given` is a GPUDevice of the page, or None. A device type that is asked for is taken even if it is slow: what
        "gpu" is on a software adapter. Without one the processor runs what the GPU would not run faster.
        """
        asked = json.loads(options)
        wanted, host, number = asked.get("deviceType"), self._host, next(self._numbers)
        if given is not None:
            own: Any = type(host)(host.assets)  # type: ignore[attr-defined,call-arg]  # only pages have devices to give
            own.use_gpu(given)
            self._hosts[number] = host = own
        elif wanted == "cpu" or (wanted is None and asked.get("accelerated") is False):
            return "cpu", None, number
        try:
            device = await host.gpu()
        except BackendUnavailableError:
            if given is not None:
                raise
            return "cpu", None, number
        if device.software and given is None and wanted != "gpu":
            return "cpu", None, number
        return "gpu", device.handle, number

    def leave(self, number: int) -> None:
        """Forgets a context."""
        self._hosts.pop(number, None)

    async def compile(self, number: int, kind: str, context: int) -> Compiled:
        """A graph, compiled for a context."""
        return await compiled(self._graphs.pop(number), self._hosts.get(context, self._host), kind)

    def facts(self, found: Compiled) -> str:
        """How a compiled graph runs."""
        return json.dumps(found.facts)

    def run_here(self, found: Compiled) -> None:
        """Runs a graph on the threads of its kernels; its inputs lie in place, and its outputs stay there."""
        executor: Any = found.executor
        executor.execute()

    def names(self, found: Compiled) -> str:
        """The outputs' names of a graph that needs Python, as JSON."""
        return json.dumps([] if found.graph is None else [value.name for value in found.graph.outputs])

    def close(self, found: Compiled) -> None:
        """Frees what a compiled graph holds here."""
        if found.executor is not None:
            found.executor.close()

    async def run(self, found: Compiled, names: str, *data: Any) -> list[memoryview]:
        """The outputs of a graph that needs Python, in the order of `names`."""
        inputs = {name: memoryview(array.to_bytes()) for name, array in zip(json.loads(names), data, strict=True)}
        results = await run_mixed(found, inputs)
        return [results[name] for name in json.loads(self.names(found))]


def open_bindings() -> WebnnBindings:
    """The bindings of this page or worker, which has told the engine where its files are."""
    from webinfer.host import current

    return WebnnBindings(current())
