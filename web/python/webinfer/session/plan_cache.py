"""Models with what tasks put behind them, and compiled models that are kept from one visit to the next."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from webinfer.backends.wasm.stored_plan import unseal
from webinfer.flags import debug
from webinfer.graph.deferred import DeferredGraph
from webinfer.graph.ir import Graph, Origin, Value
from webinfer.host.interface import Host


@dataclass(frozen=True, slots=True)
class Extended:
    """A source of `webinfer.load`: a model, and what a task puts behind it.

    `extend` changes the graph that was read, always in the same way: plans are kept under its name.
    """

    model: Any
    name: str = ""
    extend: Callable[[Graph], None] = lambda graph: None


def place_of(sha256: str, extension: str = "") -> str:
    """The name under which the plan of a model, with an extension of this name, is kept."""
    return f"plan-{sha256[:32]}{extension and '-'}{extension}"


async def open_graph(data: memoryview, name: str, host: Host, read: Callable[[], Graph], extension: str = "") -> Graph:
    """The graph that `read` returns; if this very engine kept a plan of it, its nodes are not read yet."""
    identity = host.identity()
    if not identity:
        return read()
    origin = Origin(place_of(hashlib.sha256(data).hexdigest(), extension))
    found = await host.recall_bytes(origin.name)
    plan = origin.kept = unseal(found, identity)
    debug(
        1, f"{name}: {'the' if plan else 'another engine’s or a damaged' if found else 'no'} plan of an earlier visit"
    )
    if plan is not None:
        inputs, outputs = ([Value(p.name, p.type) for p in side] for side in (plan.layout.inputs, plan.layout.outputs))
        return DeferredGraph(name, inputs, outputs, read, origin)
    graph = read()
    graph.origin = origin
    return graph
