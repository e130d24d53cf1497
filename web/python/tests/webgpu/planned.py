"""What a graph is planned as, and the attributes of means."""

from __future__ import annotations

from typing import Any

from tests.webgpu.devices import HARDWARE

from webinfer.backends.webgpu.schedule import make_schedule
from webinfer.graph.ir import Graph
from webinfer.ops import OPS


def shaders(graph: Graph, target: Any = HARDWARE) -> list[str]:
    return [step.dispatch.shader for step in make_schedule(graph, target).run]


def means(*axes: int) -> Any:
    return OPS["reduce_mean"].attrs(axes, True)
