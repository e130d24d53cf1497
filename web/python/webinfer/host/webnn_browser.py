"""WebNN in a browser: its own where it gives a context, else the one of static/webnn.js in this very interpreter."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import js
from pyodide.ffi import JsException, create_proxy, to_js

from webinfer.errors import BackendUnavailableError, KernelError, OutOfMemoryError
from webinfer.host.immediate import ImmediateFuture
from webinfer.host.kernels_browser import options

# What `load(device=…)` asks for, as the options of a context.
WISHES: dict[str, dict[str, Any]] = {
    "": {},
    "low-power": {"powerPreference": "low-power"},
    "sustained": {"accelerated": True},
    "high-performance": {"powerPreference": "high-performance", "accelerated": True},
}


async def open_webnn(device: str = "") -> BrowserWebNn:
    """A context for this kind of device.

    Raises:  BackendUnavailableError with the reason
    """
    wish = options(**WISHES[device])
    offered, reason = getattr(js.navigator, "ml", None), "navigator.ml is missing"
    own = getattr(offered, "providedBy", None)
    if offered is not None:
        try:
            context, reading = await offered.createContext(wish), getattr(offered, "reading", None)
            return BrowserWebNn(context, str(own or "the browser's WebNN"), device, reading)
        except JsException as error:
            reason = str(error)
    provide = getattr(getattr(js, "webinfer", None), "webnn", None)
    if own or provide is None:
        raise BackendUnavailableError(f"webnn: {reason}; use a browser with WebNN, or the site's engine worker")
    try:
        ml = await provide()
        return BrowserWebNn(await ml.createContext(wish), str(ml.providedBy), device, ml.reading)
    except JsException as error:
        raise BackendUnavailableError(f"webnn: {error}; use another backend") from error


class BrowserWebNn:
    """One context (host.interface.WebNn)."""

    def __init__(self, context: Any, provider: str, device: str, reading: Any) -> None:
        self._context, self._reading = context, reading
        self._arrays: dict[int, Any] = {}  # on the way into tensors, by their bytes
        self._listed: tuple[Sequence[Any], Any] = (), None  # what was read last, and the same as a list of JavaScript's
        kind = "accelerated" if getattr(context, "accelerated", False) else "on the processor"
        self.origin = f"{provider}, {kind}{f', for device={device!r}' if device else ''}"
        self.limits: Mapping[str, Any] = json.loads(js.JSON.stringify(context.opSupportLimits()))
        self.lost = ""
        context.lost.then(self._note)

    def _note(self, info: Any) -> None:
        self.lost = str(getattr(info, "message", "")) or "no reason was told"

    def now_ms(self) -> float:
        """Milliseconds of a monotonic clock."""
        return float(js.performance.now())

    def builder(self) -> BrowserBuilder:
        """A new MLGraphBuilder."""
        return BrowserBuilder(js.MLGraphBuilder.new(self._context))

    async def build(self, builder: BrowserBuilder, outputs: Mapping[str, Any]) -> Any:
        """The graph of these operands, by name."""
        try:
            return await builder.builder.build(options(**outputs))
        except JsException as error:
            raise _typed(error) from error

    async def tensor(self, dtype: str, shape: Sequence[int], writable: bool) -> Any:
        """A new tensor, to be written or to be read."""
        kind = {"dataType": dtype, "shape": list(shape), "writable": writable, "readable": not writable}
        try:
            return await self._context.createTensor(_plain(kind))
        except JsException as error:
            raise _typed(error) from error

    def write(self, tensor: Any, data: Any) -> None:
        """Copies bytes into a tensor."""
        view = memoryview(data).cast("B")
        array = self._arrays.get(view.nbytes)
        if array is None:
            array = self._arrays[view.nbytes] = js.Uint8Array.new(view.nbytes)
        array.assign(view)
        try:
            self._context.writeTensor(tensor, array)
        except JsException as error:
            raise _typed(error) from error

    def named(self, tensors: Mapping[str, Any]) -> Any:
        """Tensors by name, as an object of JavaScript's."""
        return options(**tensors)

    def dispatch(self, graph: Any, inputs: Any, outputs: Any) -> None:
        """Runs a graph; the browser queues it."""
        try:
            self._context.dispatch(graph, inputs, outputs)
        except JsException as error:
            raise _typed(error) from error

    async def read(self, tensors: Sequence[Any]) -> list[memoryview]:
        """Copies of these tensors' bytes. Ours come by a call, at once where they can: promises cost Python more."""
        try:
            if self._reading is None:
                promises = [self._context.readTensor(tensor) for tensor in tensors]
                return [(await promise).to_memoryview() for promise in promises]
            if self._listed[0] is not tensors:
                self._listed = tensors, to_js(tensors)
            number = next(_numbers)
            found = self._reading(self._context, self._listed[1], number, _callback())
            if found is not None:
                return [array.to_memoryview() for array in found]
            answer = _answers[number] = ImmediateFuture()
        except JsException as error:
            raise _typed(error) from error
        data, problem = await answer
        if data is None:
            raise _problem(problem)
        result: list[memoryview] = data
        return result

    def free(self, part: Any) -> None:
        """Destroys a tensor or a graph."""
        part.destroy()


class BrowserBuilder:
    """An MLGraphBuilder."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def input(self, name: str, dtype: str, shape: Sequence[int]) -> Any:
        """A new input."""
        return self.builder.input(name, _plain({"dataType": dtype, "shape": list(shape)}))

    def constant(self, dtype: str, shape: Sequence[int], data: memoryview) -> Any:
        """A new constant of these bytes."""
        buffer = to_js(data.cast("B")).buffer
        return self.builder.constant(_plain({"dataType": dtype, "shape": list(shape)}), buffer)

    def call(self, method: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """The result of a method."""
        try:
            return getattr(self.builder, method)(*map(_plain, arguments), _plain(dict(named)))
        except JsException as error:
            raise KernelError(f"WebNN rejects {method} although its limits allow it: {error}") from error


def _plain(value: Any) -> Any:
    """Lists and dictionaries as JavaScript's own."""
    return to_js(value, dict_converter=js.Object.fromEntries) if isinstance(value, dict | list) else value


def _typed(error: JsException) -> Exception:
    return _problem(str(error))


def _problem(text: str) -> Exception:
    return OutOfMemoryError(f"webnn: {text}") if "memory" in text else KernelError(f"webnn: {text}")


_numbers = itertools.count(1)
_answers: dict[int, ImmediateFuture] = {}  # of reads that are under way


@functools.cache
def _callback() -> Any:
    return create_proxy(_arrived)


def _arrived(number: int, buffers: Any, problem: str) -> None:
    answer = _answers.pop(number)
    if not answer.done():
        answer.set_result((None if buffers is None else [b.to_memoryview() for b in buffers], problem))
