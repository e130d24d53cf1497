"""Concatenations whose parts are moved together: how many dispatches they are, and that each part is in its place."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import Target as RingTarget
from tests.webgpu.devices import HARDWARE
from tests.webgpu.disguised import disguised
from tests.webgpu.fused_blocks import RNG, graph_of, image, outputs_of

from webinfer.backends import reference, webgpu
from webinfer.backends.webgpu.schedule import make_schedule
from webinfer.graph.ir import Graph, Node, Value, apply
from webinfer.ops import OPS
from webinfer.ops.elementwise import UnaryAttrs
from webinfer.ops.movement import ConcatAttrs, SliceAttrs

# Label -> (shape of x, along which axis, sizes of the parts, one of them x itself, dispatches of the concatenation).
CASES: dict[str, tuple[tuple[int, ...], int, tuple[int, ...], int]] = {
    "four elements at a time": ((1, 3, 5, 8), 3, (4, 8), 1),
    "one at a time": ((2, 3, 5, 7), 3, (3, 7, 1), 1),
    "in the middle": ((2, 6, 5, 3), 1, (2, 6, 1), 1),
    "eight parts": ((1, 4, 4, 8), 3, (4, 8, 4, 8, 4, 4, 8, 4), 2),
    "some in place": ((64, 4), 0, (16, 64, 32, 64), 1),
}


def joined(x: Value, axis: int, sizes: tuple[int, ...]) -> Graph:
    """Roots of beginnings of x, and x itself where all of it is asked for, one behind the other."""
    nodes: list[Node] = []
    parts = []
    for size in sizes:
        part = x
        if size != x.type.shape[axis]:
            shape = tuple(size if i == axis else n for i, n in enumerate(x.type.shape))
            zeros, ones = (0,) * len(shape), (1,) * len(shape)
            nodes.append(apply(OPS["slice"], [x], SliceAttrs(zeros, shape, ones), "slice"))
            nodes.append(apply(OPS["abs"], [nodes[-1].output], UnaryAttrs(), "abs"))
            part = nodes[-1].output
        parts.append(part)
    nodes.append(apply(OPS["concat"], parts, ConcatAttrs(axis), "concat"))
    return graph_of(x, nodes)


@pytest.mark.parametrize("name", CASES)
def test_parts_that_are_not_in_place_are_moved_together(name: str) -> None:
    RingTarget("webgpu").demand()
    shape, axis, sizes, dispatches = CASES[name]
    graph = joined(image(*shape), axis, sizes)
    last = len(graph.nodes) - 1
    moves = [step.dispatch.shader for step in make_schedule(graph, HARDWARE).run if step.node == last]
    assert moves == ["concat_parts"] * dispatches
    data, host = RNG.uniform(-2, 2, shape).astype(np.float32), disguised()
    want, got = (run(outputs_of(backend, graph, host, data)) for backend in (reference, webgpu))
    np.testing.assert_array_equal(got, want)
