"""Loops on adapters that end them."""

from __future__ import annotations

import pytest
from tests.webgpu.devices import HARDWARE, SOFTWARE

from webinfer.backends.webgpu import dispatch as dispatch_module
from webinfer.backends.webgpu import lowerings
from webinfer.backends.webgpu.lowerings.described import lower
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, TensorType, Value, apply
from webinfer.ops import OPS
from webinfer.ops.conv import Conv2dAttrs
from webinfer.ops.matmul import MatmulAttrs
from webinfer.ops.pool import Pool2dAttrs
from webinfer.ops.reduce import ArgAttrs, ReduceAttrs


def scatter(updates: int, width: int) -> Node:
    """Rows of this width that are added to a tensor, each at a position of two numbers."""
    x, at = TensorType((1, 3549, width)), TensorType((updates, 2), DType.INT32)
    types = (x, at, TensorType((updates, width)))
    values = [Value(name, type) for name, type in zip(("x", "at", "updates"), types, strict=True)]
    return apply(OPS["scatter_nd"], values, OPS["scatter_nd"].attrs(True))


def test_loops_that_lavapipe_would_end_are_refused_there() -> None:
    """A YOLOX of 7,098 updates lost two of four elements without a word."""
    assert len(lower(scatter(7098, 3), HARDWARE)) == 1
    with pytest.raises(UnsupportedOpError, match="loops of 85180; adapters on the processor end"):
        lower(scatter(7098, 3), SOFTWARE)


@pytest.mark.parametrize(("updates", "width"), [(5000, 3), (7098, 4)])
def test_shorter_loops_run(updates: int, width: int) -> None:
    """Four elements that lie together share one loop."""
    assert len(lower(scatter(updates, width), SOFTWARE)) == 1


@pytest.mark.parametrize(
    ("name", "attrs", "shape", "each", "shared"),
    [
        ("arg_max", ArgAttrs(0), (20_000, 5), "arg_extreme", "arg_extreme_workgroup"),
        ("reduce_max", ReduceAttrs((0, 2)), (4000, 80, 8, 4), "reduce_each", "reduce_part"),
    ],
)
def test_long_lines_are_shared_by_workgroups_where_loops_end(
    name: str, attrs: object, shape: tuple[int, ...], each: str, shared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both were wrong on lavapipe."""
    node = apply(OPS[name], [Value("x", TensorType(shape))], attrs)
    assert {dispatch.shader for dispatch in lowerings.lower(node, SOFTWARE)} == {shared}
    monkeypatch.setattr(dispatch_module, "MAX_TURNS", 1 << 20)
    assert {dispatch.shader for dispatch in lowerings.lower(node, SOFTWARE)} == {each}


@pytest.mark.parametrize(
    ("name", "attrs", "shapes"),
    [
        ("conv2d", Conv2dAttrs(), ((1, 3, 3, 8190), (3, 3, 3, 8190), (3,))),
        ("depthwise_conv2d", Conv2dAttrs(), ((1, 150, 150, 5), (1, 150, 150, 5), (5,))),
        ("depthwise_conv2d", Conv2dAttrs(), ((1, 300, 300, 8), (1, 300, 300, 8), (8,))),
        ("matmul", MatmulAttrs(), ((3, 300_000), (300_000, 5))),
        ("matmul", MatmulAttrs(), ((2, 3, 20_000), (2, 20_000, 5))),
        ("average_pool2d", Pool2dAttrs((260, 260)), ((1, 260, 260, 5),)),
        ("max_pool_with_argmax2d", Pool2dAttrs((260, 260)), ((1, 260, 260, 5),)),
    ],
)
def test_sums_that_lavapipe_would_end_are_refused_there(name: str, attrs: object, shapes: tuple) -> None:  # type: ignore[type-arg]
    values = [Value(f"x{i}", TensorType(shape)) for i, shape in enumerate(shapes)]
    node = apply(OPS[name], values, attrs)
    assert lowerings.lower(node, HARDWARE)
    with pytest.raises(UnsupportedOpError, match="adapters on the processor end loops after 65535"):
        lowerings.lower(node, SOFTWARE)
