"""WebNN in a browser: its own where it gives a context, else the one of static/webnn.js in this very interpreter."""

from __future__ import annotations

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
            return BrowserWebNn(await offered.createContext(wish), str(own or "the browser's WebNN"), device)
        except JsException as error:
            reason = str(error)
    provide = getattr(getattr(js, "webinfer", None), "webnn", None)
    if own or provide is None:
        raise BackendUnavailableError(f"webnn: {reason}; use a browser with WebNN, or the site's engine worker")
    try:
        ml = await provide()
        return BrowserWebNn(await ml.createContext(wish), str(ml.providedBy), device)
    except JsException as error:
        raise BackendUnavailableError(f"webnn: {error}; use another backend") from error


class BrowserWebNn:
    """One context (host.interface.WebNn)."""

    def __init__(self, context: Any, provider: str, device: str) -> None:
        self._context = context
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
        """Copies bytes into a tensor, straight out of Python's memory."""
        proxy = create_proxy(memoryview(data))
        view = proxy.getBuffer("u8")
        try:
            self._context.writeTensor(tensor, view.data)
        except JsException as error:
            raise _typed(error) from error
        finally:
            view.release()
            proxy.destroy()

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
        """Copies of these tensors' bytes; whoever waits goes on in the turn in which the last one is there."""
        answer = ImmediateFuture()

        def found(buffers: Any) -> None:
            if not answer.done():
                answer.set_result([buffer.to_memoryview() for buffer in buffers])

        def failed(error: JsException) -> None:
            if not answer.done():
                answer.set_exception(_typed(error))

        js.Promise.all(to_js([self._context.readTensor(tensor) for tensor in tensors])).then(found, failed)
        result: list[memoryview] = await answer
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
            raise KernelError(f"WebNN refuses {method} though its limits allow it: {error}") from error


def _plain(value: Any) -> Any:
    """Lists and dictionaries as JavaScript's own."""
    return to_js(value, dict_converter=js.Object.fromEntries) if isinstance(value, dict | list) else value


def _typed(error: JsException) -> Exception:
    text = str(error)
    return OutOfMemoryError(f"webnn: {text}") if "memory" in text else KernelError(f"webnn: {text}")
