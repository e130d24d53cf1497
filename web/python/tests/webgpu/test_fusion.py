"""Depthwise and 1x1 convolutions in one dispatch: what is fused, how work is cut, and that it is right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import Target as RingTarget
from tests.webgpu.devices import HARDWARE, LIMITS, SOFTWARE
from tests.webgpu.disguised import disguised
from tests.webgpu.fused_blocks import RNG, block, graph_of, image, outputs_of, weights

from webinfer.backends import reference, webgpu
from webinfer.backends.webgpu.dispatch import Target
from webinfer.backends.webgpu.fused_groups import find_fusions
from webinfer.backends.webgpu.fusion import SEPARATE
from webinfer.backends.webgpu.schedule import make_schedule
from webinfer.graph.ir import Graph, apply
from webinfer.ops import OPS
from webinfer.ops.activation import Activation
from webinfer.ops.movement import ConcatAttrs
from webinfer.ops.pool import Pool2dAttrs

HALVED = Pool2dAttrs((2, 2), (2, 2))
PADDED_BEHIND, PADDED_BEFORE = (Pool2dAttrs((3, 3), (2, 2), pads) for pads in ((0, 1, 0, 1), (1, 0, 1, 0)))
# Label -> (shape of x, what `block` is given besides).
BLOCKS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "residual": ((2, 9, 7, 24), {"co": 28}),
    "pooled residual": ((1, 12, 10, 20), {"co": 32, "stride": 2, "pool": HALVED}),
    "pooled residual, odd channels": ((1, 10, 12, 42), {"co": 51, "stride": 2, "pool": HALVED}),
    "pooled residual, padded behind": ((2, 12, 10, 20), {"co": 32, "stride": 2, "pool": PADDED_BEHIND}),
    "pooled residual, padded before": ((2, 12, 10, 20), {"co": 32, "stride": 2, "pool": PADDED_BEFORE}),
    "5x5, relu6, one pixel": ((1, 1, 1, 64), {"co": 6, "window": 5, "activation": Activation.RELU6}),
    "odd everything": ((2, 5, 7, 13), {"co": 7}),
    "silu inside": ((2, 9, 7, 24), {"co": 28, "activation": Activation.SILU}),
    "prelu inside": ((2, 9, 7, 24), {"co": 28, "activation": Activation.PRELU}),
    "prelu inside, odd channels": ((1, 9, 7, 13), {"co": 16, "activation": Activation.PRELU}),
    "stride 2, fewer channels": ((1, 17, 15, 96), {"co": 16, "stride": 2}),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_fused_blocks_are_right_however_they_are_cut(name: str) -> None:
    RingTarget("webgpu").demand()
    host = disguised()
    shape, options = BLOCKS[name]
    x = image(*shape)
    graph = graph_of(x, block(x, **options))
    data = RNG.uniform(-1, 1, x.type.shape).astype(np.float32)
    want = run(outputs_of(reference, graph, host, data))
    ((fusion, _),) = find_fusions(graph, HARDWARE).values()
    for choice in fusion.candidates(HARDWARE)[::3]:
        got = run(outputs_of(webgpu, graph, host, data, tuned={fusion.key: choice}))
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4, err_msg=choice)


def test_a_block_is_one_dispatch_unless_the_tuner_says_otherwise() -> None:
    x = image(1, 12, 10, 20)
    graph = graph_of(x, block(x, 32, stride=2, pool=HALVED))
    ((fusion, share),) = find_fusions(graph, HARDWARE).values()
    assert len(make_schedule(graph, HARDWARE).run) == 1
    assert fusion.candidates(HARDWARE)[0] == share.name
    assert fusion.candidates(HARDWARE)[-1] == SEPARATE
    apart = Target(LIMITS, tuned={fusion.key: SEPARATE})
    assert len(make_schedule(graph, apart).run) == 3
    assert len(make_schedule(graph, SOFTWARE).run) == 3


def test_a_result_that_others_read_is_stored() -> None:
    x = image(1, 8, 8, 8)
    nodes = block(x, 8)
    both = Graph("g", [x], [nodes[0].output, nodes[-1].output], nodes)
    assert len(make_schedule(both, HARDWARE).run) == 2
    nodes[0].attrs = replace(nodes[0].attrs, activation=Activation.TANH)
    assert len(make_schedule(graph_of(x, nodes), HARDWARE).run) == 2, "some curves are not computed on the way"


def test_a_block_that_would_bind_too_many_buffers_stays_apart() -> None:
    x = image(1, 8, 8, 8)
    nodes = block(x, 8, activation=Activation.PRELU)
    nodes[-1].inputs = [*nodes[-1].inputs, weights(8)]
    nodes[-1].attrs = replace(nodes[-1].attrs, activation=Activation.PRELU)
    few, many = (Target({**LIMITS, "maxStorageBuffersPerShaderStage": most}) for most in (8, 9))
    assert len(make_schedule(graph_of(x, nodes), few).run) == 2
    assert len(make_schedule(graph_of(x, nodes), many).run) == 1


def test_a_fused_result_does_not_share_a_buffer_with_what_it_reads() -> None:
    x = image(1, 8, 8, 16)
    first = block(x, 16)
    second = block(first[-1].output, 16)
    whole = apply(OPS["concat"], [first[-1].output, second[-1].output], ConcatAttrs(1), "concat")
    schedule = make_schedule(graph_of(x, [*first, *second, whole]), HARDWARE)
    for step in schedule.run:
        written = step.regions[-1].block
        assert all(region.block is not written for region in step.regions[:-1])


def test_every_stored_result_of_a_fused_graph_can_be_looked_at() -> None:
    RingTarget("webgpu").demand()
    x = image(1, 8, 8, 8)
    graph = graph_of(x, block(x, 8))
    data = memoryview(RNG.uniform(-1, 1, x.type.shape).astype(np.float32).tobytes())

    host = disguised()

    async def labels() -> list[str]:
        executor = await webgpu.build(graph, host)
        try:
            return [node.label async for node, _, _ in executor.probe({"x": data})]
        finally:
            executor.close()

    assert run(labels()) == ["pointwise"]


def test_the_plan_counts_the_work_of_fused_nodes() -> None:
    RingTarget("webgpu").demand()
    x = image(1, 8, 8, 8)
    executor = run(webgpu.build(graph_of(x, block(x, 8)), disguised()))
    (row,) = executor.rows()
    executor.close()
    assert row.flops == 2 * 64 * 8 * (9 + 8)
