"""Small graphs of tasks that are made for what comes: for pictures of one size, for recordings of one kind."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Generic, TypeVar

from webinfer.authoring.builder import GraphBuilder
from webinfer.host.interface import Host
from webinfer.session.loading import load
from webinfer.session.session import Session
from webinfer.tensor import Tensor

Kind = TypeVar("Kind", bound=Hashable)


class LastPlan(Generic[Kind]):
    """Runs the graph that `build` makes for a kind of input, on wasm; it is made anew when the kind changes."""

    def __init__(self, host: Host, build: Callable[[Kind], GraphBuilder]) -> None:
        self._host, self._build = host, build
        self._made: tuple[Kind, Session] | None = None

    async def run(self, kind: Kind, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        """The graph's outputs."""
        if self._made is None or self._made[0] != kind:
            fresh = await load(self._build(kind), backend="wasm", host=self._host)
            self.close()
            self._made = kind, fresh
        return await self._made[1].run(inputs)

    def close(self) -> None:
        """Lets the memory go; a second call does nothing."""
        if self._made is not None:
            self._made[1].close()
            self._made = None
