"""Products of batches of matrices that are both data: tiles of any size, transposed or broadcast."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import Target as RingTarget
from tests.webgpu.chained import Chain
from tests.webgpu.devices import HARDWARE, SOFTWARE
from tests.webgpu.disguised import disguised
from tests.webgpu.fused_blocks import outputs_of
from tests.webgpu.planned import shaders

from webinfer.backends import reference, webgpu
from webinfer.backends.webgpu.schedule import make_schedule
from webinfer.graph.ir import Graph
from webinfer.ops.activation import Activation
from webinfer.ops.matmul import MatmulAttrs

RNG = np.random.default_rng(36)


def product(a: tuple[int, ...], b: tuple[int, ...], bias: int = 0, **attrs: object) -> Graph:
    c = Chain(*a)
    c.op("matmul", c.x, c.signed(*b), *([c.signed(bias)] if bias else []), attrs=MatmulAttrs(**attrs))  # type: ignore[arg-type]
    return c.graph()


@pytest.mark.parametrize(
    ("a", "b", "attrs"),
    [
        ((3, 70, 36), (3, 36, 40), {}),
        ((3, 70, 36), (3, 40, 36), {"transpose_b": True}),
        ((3, 36, 72), (3, 36, 40), {"transpose_a": True}),
        ((4, 67, 33), (4, 33, 35), {}),
        ((4, 67, 33), (4, 35, 33), {"transpose_b": True}),
        ((4, 33, 67), (4, 35, 33), {"transpose_a": True, "transpose_b": True}),
        ((2, 1, 33, 20), (5, 20, 24), {"activation": Activation.RELU}),
        ((1, 200, 130), (200, 64), {"transpose_a": True, "bias": 64, "activation": Activation.RELU6}),
        ((90, 150), (90, 34), {"transpose_a": True, "bias": 34}),
        ((52, 65, 34), (52, 67, 34), {"transpose_b": True}),
        ((104, 36, 72), (104, 36, 40), {"transpose_a": True}),
    ],
)
def test_tiles_compute_batches_of_products(a: tuple[int, ...], b: tuple[int, ...], attrs: dict[str, object]) -> None:
    RingTarget("webgpu").demand()
    graph = product(a, b, **attrs)  # type: ignore[arg-type]
    assert shaders(graph) == ["matmul_tiled"]
    assert shaders(graph, SOFTWARE) == ["matmul_any"]
    data = RNG.uniform(-1, 1, a).astype(np.float32)
    want, got = (run(outputs_of(backend, graph, disguised(), data)) for backend in (reference, webgpu))
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def test_infinities_of_one_matrix_stay_in_it() -> None:
    RingTarget("webgpu").demand()
    graph, data = product((3, 40, 17), (3, 17, 33)), RNG.uniform(-1, 1, (3, 40, 17)).astype(np.float32)
    data[1, 39] = np.inf
    want, got = (run(outputs_of(backend, graph, disguised(), data)) for backend in (reference, webgpu))
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def test_many_tiles_are_large_and_few_long_sums_are_shared() -> None:
    (step,) = make_schedule(product((12, 512, 64), (12, 64, 512)), HARDWARE).run
    assert step.dispatch.groups == (12 * 8 * 8, 1, 1)
    (step,) = make_schedule(product((2, 100, 64), (2, 64, 100)), HARDWARE).run
    assert step.dispatch.groups == (2 * 4 * 4, 1, 1)
    assert shaders(product((3, 20, 640), (3, 640, 24))) == ["matmul_split"]
    assert shaders(product((30, 7, 64), (30, 64, 24))) == ["matmul_split"]
