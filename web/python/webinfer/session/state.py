"""What lives in a session from run to run: a model's variables, fed to every run and taken from its results."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from webinfer.errors import InputError
from webinfer.graph.ir import Graph, State, Value
from webinfer.session.loop_lock import LoopLock
from webinfer.tensor import Tensor


def open_inputs(graph: Graph) -> list[Value]:
    """The inputs that callers give: all but the state."""
    kept = {state.input for state in graph.states}
    return [value for value in graph.inputs if value.name not in kept]


def open_outputs(graph: Graph) -> list[Value]:
    """The outputs that callers get: all but the state."""
    kept = {state.output for state in graph.states}
    return [value for value in graph.outputs if value.name not in kept]


class Variables:
    """The values of a model's variables by name. Sessions of several signatures of one model share them."""

    def __init__(self) -> None:
        self.loop_lock = LoopLock()  # of all sessions that share them
        self.renew_locks()
        self.loop_lock.guarding(self)
        self._values: dict[str, Tensor] = {}
        self._first: dict[str, Tensor] = {}

    def renew_locks(self) -> None:
        """Replaces its lock by a released one."""
        self.lock = asyncio.Lock()  # who runs with variables holds it

    def add(self, states: Sequence[State]) -> None:
        """Takes over variables with their first values; those of another shape that no run has changed begin anew."""
        for state in states:
            before = self._first.get(state.name)
            if state.initial is not None and (before is None or before.shape != state.type.shape):
                first = Tensor(state.initial, state.type.shape, state.type.dtype, state.type.quant)
                self._first[state.name] = first
                if self._values.get(state.name, before) is before:
                    self._values[state.name] = first

    def reset(self) -> None:
        """Every variable holds its first value again; those that have none hold nothing."""
        self._values = dict(self._first)

    def tensors(self) -> dict[str, Tensor]:
        """A copy of every variable that holds a value."""
        return {name: Tensor(t.tobytes(), t.shape, t.dtype, t.quant) for name, t in self._values.items()}

    def feed(self, states: Sequence[State], model: str) -> dict[str, memoryview]:
        """The inputs of a graph that are its state.

        Raises:  InputError naming a variable to which nothing was assigned yet, or whose value has another shape
        """
        fed = {}
        for state in states:
            if state.input:
                value = self._values.get(state.name)
                if value is None:
                    raise InputError(
                        f"variable {state.name!r} of {model!r} holds nothing yet; first run the signature that sets it"
                    )
                if value.shape != state.type.shape:
                    raise InputError(
                        f"variable {state.name!r} of {model!r} holds {value.shape}, inputs of these sizes need "
                        f"{state.type.shape}; call reset() to start over"
                    )
                fed[state.input] = value.flat().cast("B")
        return fed

    def take(self, states: Sequence[State], results: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The results without the state, which is kept for the next run."""
        self._values |= {state.name: results[state.output] for state in states if state.output}
        kept = {state.output for state in states}
        return {name: tensor for name, tensor in results.items() if name not in kept}

    @asynccontextmanager
    async def untouched(self) -> AsyncIterator[None]:
        """Trial runs inside leave every variable as it was; nobody else runs with variables meanwhile."""
        async with self.lock:
            before = dict(self._values)
            try:
                yield
            finally:
                self._values = before


async def on_host(results: Mapping[str, Any], states: Sequence[State]) -> dict[str, Tensor]:
    """The state among results that stay on a GPU, read back; their buffers are given back."""
    found: dict[str, Tensor] = {}
    for state in states:
        if state.output:
            found[state.output] = await results[state.output].read()
            results[state.output].close()
    return found
