"""Group norms, which exporters write as layer norms of images with their channels first: three dispatches."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import Target as RingTarget
from tests.webgpu.chained import Chain
from tests.webgpu.devices import MODERN, SOFTWARE
from tests.webgpu.disguised import disguised
from tests.webgpu.fused_blocks import outputs_of
from tests.webgpu.planned import shaders

from webinfer.backends import reference, webgpu
from webinfer.graph.ir import Graph, Value
from webinfer.ops import OPS
from webinfer.ops.activation import Activation
from webinfer.ops.elementwise import BinaryAttrs
from webinfer.ops.movement import ReshapeAttrs, TransposeAttrs
from webinfer.ops.normalization import LayerNormAttrs

RNG = np.random.default_rng(36)
FUSED = ["moments", "group_moments", "group_norm"]


def group_norm(
    shape: tuple[int, ...],
    groups: int,
    *,
    rows: str = "scale bias",
    ending: str = "",
    activation: Activation = Activation.NONE,
    centred: bool = True,
    steepness: float = 1.0,
) -> tuple[Graph, list[Value]]:
    """The norm of an image [N, ..., C], and the values on the way."""
    c, rank, channels = Chain(*shape), len(shape), shape[-1]
    first = c.op("transpose", c.x, attrs=TransposeAttrs((0, rank - 1, *range(1, rank - 1))))
    flat = c.op("reshape", first, attrs=ReshapeAttrs((shape[0], groups, int(np.prod(shape[1:])) // groups)))
    norm = c.op("layer_norm", flat, attrs=LayerNormAttrs(1, 1e-3, centred))
    y = c.op("reshape", norm, attrs=ReshapeAttrs(first.type.shape))
    inner = [first, norm, y]
    row = (1, channels, *[1] * (rank - 2))
    if "scale" in rows:
        y = c.op("mul", y, c.signed(*row), attrs=BinaryAttrs())
    if "bias" in rows:
        y = c.op("add", y, c.signed(*row), attrs=BinaryAttrs(activation))
    if ending:
        y = c.op(ending, y, attrs=OPS[ending].attrs(steepness))
    c.op("transpose", y, attrs=TransposeAttrs((0, *range(2, rank), 1)))
    return c.graph(), inner


@pytest.mark.parametrize(
    ("shape", "groups", "how"),
    [
        ((1, 16, 16, 40), 4, {"ending": "silu"}),
        ((2, 9, 11, 24), 8, {}),
        ((3, 70, 8), 2, {"rows": "scale"}),
        ((1, 8, 9, 12), 1, {"rows": "bias", "activation": Activation.RELU}),
        ((1, 65, 64, 20), 20, {"rows": ""}),
        ((1, 4, 6, 5, 36), 12, {"ending": "silu", "rows": "bias"}),
        ((2, 17, 15, 320), 32, {"ending": "silu"}),
    ],
)
def test_the_norm_of_groups_of_channels_is_three_dispatches(
    shape: tuple[int, ...], groups: int, how: dict[str, str]
) -> None:
    RingTarget("webgpu").demand()
    graph, _ = group_norm(shape, groups, **how)  # type: ignore[arg-type]
    assert shaders(graph) == shaders(graph, MODERN) == FUSED
    data = RNG.uniform(-1, 5, shape).astype(np.float32)
    want, got = (run(outputs_of(backend, graph, disguised(), data)) for backend in (reference, webgpu))
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def test_few_long_rows_are_shared_by_several_workgroups() -> None:
    RingTarget("webgpu").demand()
    c = Chain(3, 1 << 14)
    c.op("layer_norm", c.x, attrs=LayerNormAttrs(1, 1e-3))
    graph = c.graph()
    assert shaders(graph) == FUSED
    data = (3 + RNG.uniform(-1, 5, (3, 1 << 14))).astype(np.float32)
    want, got = (run(outputs_of(backend, graph, disguised(), data)) for backend in (reference, webgpu))
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("shape", "how"), [((3, 1 << 13), {}), ((200, 1 << 14), {}), ((3, 1 << 14), {"centred": False})]
)
def test_other_rows_have_a_workgroup_each(shape: tuple[int, int], how: dict[str, bool]) -> None:
    c = Chain(*shape)
    c.op("layer_norm", c.x, attrs=LayerNormAttrs(1, 1e-3, **how))
    assert shaders(c.graph()) == ["layer_norm"]
    scaled = Chain(3, 1 << 14)
    scaled.op("layer_norm", scaled.x, scaled.signed(1 << 14), attrs=LayerNormAttrs(1, 1e-3))
    assert shaders(scaled.graph()) == ["layer_norm"], "a row of factors is as long"


def test_a_large_mean_takes_nothing_from_the_deviation() -> None:
    RingTarget("webgpu").demand()
    graph, _ = group_norm((1, 20, 20, 8), 2)
    data = (1000 + RNG.uniform(-1, 1, (1, 20, 20, 8))).astype(np.float32)
    want, got = (run(outputs_of(backend, graph, disguised(), data)) for backend in (reference, webgpu))
    np.testing.assert_allclose(got, want, atol=2e-3)


def test_norms_of_which_something_else_is_read_or_that_are_others_stay_apart() -> None:
    assert "group_norm" not in shaders(group_norm((1, 16, 16, 40), 4, centred=False)[0])
    assert "group_norm" not in shaders(group_norm((1, 16, 16, 42), 7)[0]), "channels are not whole quads"
    assert "group_norm" not in shaders(group_norm((1, 16, 16, 40), 4, ending="silu", steepness=2.0)[0])
    assert "group_norm" not in shaders(group_norm((1, 16, 16, 40), 4)[0], SOFTWARE)
    for place in range(3):
        graph, inner = group_norm((1, 16, 16, 40), 4)
        graph.outputs.append(inner[place])
        assert "group_norm" not in shaders(graph)
