"""Products of 16x16 matrices by the device itself, in float16: where they are chosen, and what they compute."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import Target as RingTarget
from tests.webgpu.chained import Chain
from tests.webgpu.devices import HARDWARE
from tests.webgpu.fused_blocks import outputs_of

from webinfer.backends import reference, webgpu
from webinfer.backends.webgpu.dispatch import Dispatch, Target
from webinfer.backends.webgpu.float16 import in_float16
from webinfer.backends.webgpu.pipelines import pipeline_of
from webinfer.backends.webgpu.schedule import make_schedule
from webinfer.graph.ir import Graph
from webinfer.host.gpu import MATRICES, WANTED_FEATURES
from webinfer.host.native import NativeHost
from webinfer.ops.activation import Activation
from webinfer.ops.matmul import MatmulAttrs

ABLE = replace(HARDWARE, features=HARDWARE.features | {*WANTED_FEATURES, MATRICES})
RNG = np.random.default_rng(46)


def product(rows: int, inner: int, columns: int, bias: bool = True, **attrs: object) -> Graph:
    c = Chain(rows, inner)
    w = c.signed(columns, inner) if attrs.get("transpose_b") else c.signed(inner, columns)
    c.op("matmul", c.x, w, *([c.signed(columns)] if bias else []), attrs=MatmulAttrs(**attrs))  # type: ignore[arg-type]
    return c.graph()


def dispatches(graph: Graph, target: Target = ABLE) -> list[Dispatch]:
    schedule = make_schedule(in_float16(graph)[0], target)
    return [step.dispatch for step in schedule.run]


@pytest.mark.parametrize(
    ("sizes", "attrs", "found"),
    [
        ((4096, 4096, 4096), {}, ["conv2d_1x1_matrices"]),
        ((197, 768, 3072), {"activation": Activation.RELU}, ["conv2d_1x1_matrices"]),
        ((197, 768, 768), {"transpose_b": True}, ["conv2d_1x1_matrices", "product_parts"]),
        ((33, 36, 50), {"bias": False}, ["conv2d_1x1_matrices"]),
    ],
)
def test_float16_goes_to_the_devices_own_products(
    sizes: tuple[int, int, int], attrs: dict[str, object], found: list[str]
) -> None:
    made = dispatches(product(*sizes, **attrs))  # type: ignore[arg-type]
    assert [one.shader for one in made] == found
    enabled = [line for line in pipeline_of(made[0]).code.splitlines() if line.startswith("enable ")]
    assert enabled == ["enable f16;", "enable subgroups;", "enable chromium_experimental_subgroup_matrix;"]


def test_long_sums_of_few_results_are_shared_by_workgroups() -> None:
    first, _ = dispatches(product(197, 3072, 768))
    assert first.variables["split"] == 5  # of 96 slices each takes 20, the last one 16
    assert dispatches(product(1500, 2048, 2048))[0].variables["split"] == 1


@pytest.mark.parametrize(
    ("sizes", "target"),
    [
        ((197, 768, 768), HARDWARE),
        ((197, 768, 768), replace(ABLE, features=ABLE.features - {MATRICES})),
        ((16, 768, 768), ABLE),
        ((197, 768, 16), ABLE),
        ((197, 770, 768), ABLE),
    ],
)
def test_others_do_not(sizes: tuple[int, int, int], target: Target) -> None:
    assert "conv2d_1x1_matrices" not in [one.shader for one in dispatches(product(*sizes), target)]


def test_float32_does_not() -> None:
    schedule = make_schedule(product(197, 768, 768), ABLE)
    assert "conv2d_1x1_matrices" not in [step.dispatch.shader for step in schedule.run]


@pytest.mark.parametrize("sizes", [(197, 768, 768), (70, 100, 90), (33, 36, 50), (300, 2048, 64)])
def test_they_compute_what_the_reference_does(sizes: tuple[int, int, int]) -> None:
    RingTarget("webgpu").demand()
    host = NativeHost()
    if MATRICES not in run(host.gpu()).features:
        pytest.skip("needs a GPU and a browser or driver that offer subgroup matrices of 16x16 float16")
    graph = product(*sizes, activation=Activation.RELU6)
    data = RNG.uniform(-1, 1, sizes[:2]).astype(np.float32)
    want = run(outputs_of(reference, graph, host, data))
    got = run(outputs_of(webgpu, graph, host, data, float16=True))
    np.testing.assert_allclose(got, want, atol=2e-3 * np.abs(want).max())
