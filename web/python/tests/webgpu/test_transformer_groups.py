"""What transformers are made of, in fewer dispatches: queries, keys and values as one product, gelu and sums behind
products. What is joined, and that it is right.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import Target as RingTarget
from tests.webgpu.chained import Chain
from tests.webgpu.devices import HARDWARE, LIMITS, SOFTWARE
from tests.webgpu.disguised import disguised
from tests.webgpu.fused_blocks import outputs_of
from tests.webgpu.planned import shaders

from webinfer.backends import reference, webgpu
from webinfer.backends.webgpu.dispatch import Target
from webinfer.backends.webgpu.float16 import in_float16
from webinfer.backends.webgpu.lowerings.attention_tiles import TILES, WIDE_TILES, AttentionTile, sizes_of, tuning_key
from webinfer.backends.webgpu.schedule import make_schedule
from webinfer.backends.webgpu.tuning import shapes_of
from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Graph, Node, TensorType, Value
from webinfer.ops import OPS
from webinfer.ops.attention import AttentionAttrs
from webinfer.ops.conv import Conv2dAttrs
from webinfer.ops.matmul import MatmulAttrs
from webinfer.ops.movement import ReshapeAttrs, SliceAttrs, TransposeAttrs

RNG = np.random.default_rng(36)
INSIDE = (True,) * 4


def heads_of(c: Chain, x: Value, heads: int, depth: int, bias: bool = True, transpose_b: bool = False) -> Value:
    """A product of x and constant weights, as heads."""
    k, n = x.type.shape[-1], heads * depth
    w = c.signed(n, k) if transpose_b else c.signed(k, n)
    y = c.op("matmul", x, w, *([c.signed(n)] if bias else []), attrs=MatmulAttrs(False, transpose_b))
    return c.op("reshape", y, attrs=ReshapeAttrs((*y.type.shape[:-1], heads, depth)))


def attend(c: Chain, q: Value, k: Value, v: Value) -> Value:
    return c.op("attention", q, k, v, attrs=AttentionAttrs(0.4, INSIDE))


def check(graph: Graph, tolerance: float = 2e-5) -> None:
    """The graph gives on webgpu what it gives on the reference."""
    RingTarget("webgpu").demand()
    data = RNG.uniform(-1, 1, graph.inputs[0].type.shape).astype(np.float32)
    want, got = (run(outputs_of(backend, graph, disguised(), data)) for backend in (reference, webgpu))
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("lead", "heads", "groups", "depth", "width", "turned"),
    [
        ((1, 19), 3, 3, 8, 8, False),
        ((2, 33), 4, 2, 12, 20, False),
        ((2, 5), 2, 2, 4, 4, True),
    ],
)
def test_queries_keys_and_values_of_one_tensor_are_one_product(
    lead: tuple[int, int], heads: int, groups: int, depth: int, width: int, turned: bool
) -> None:
    c = Chain(*lead, 24)
    q = heads_of(c, c.x, heads, depth, transpose_b=turned)
    k = heads_of(c, c.x, groups, depth, bias=False, transpose_b=turned)
    v = heads_of(c, c.x, groups, width, transpose_b=turned)
    attend(c, q, k, v)
    graph = c.graph()
    assert len(shaders(graph)) == len(shaders(graph, SOFTWARE)) == 2
    check(graph)


def test_keys_and_values_of_another_tensor_are_one_product() -> None:
    c = Chain(1, 21, 16)
    other = c.op("relu", c.x)
    k, v = heads_of(c, other, 2, 8), heads_of(c, other, 2, 8)
    attend(c, heads_of(c, c.x, 2, 8), k, v)
    assert len(shaders(c.graph())) == 4
    check(c.graph())


def test_products_that_something_else_reads_stay_apart() -> None:
    c = Chain(1, 21, 16)
    q, k, v = (heads_of(c, c.x, 2, 8) for _ in range(3))
    attend(c, q, k, v)
    assert len(shaders(c.graph())) == 2
    assert len(shaders(c.graph(k))) == 4
    odd = Chain(1, 21, 16)
    attend(odd, *(heads_of(odd, odd.x, 2, 6) for _ in range(3)))
    assert len(shaders(odd.graph())) == 4, "rows are not whole quads"
    check(odd.graph())


def part_of(c: Chain, x: Value, axis: int, at: int, *shape: int) -> Value:
    """The elements of x at one position of an axis, in this shape."""
    sizes = tuple(1 if i == axis else n for i, n in enumerate(x.type.shape))
    starts = tuple(at if i == axis else 0 for i in range(len(sizes)))
    return c.reshape(c.op("slice", x, attrs=SliceAttrs(starts, sizes, (1,) * len(sizes))), *shape)


@pytest.mark.parametrize("target", [HARDWARE, SOFTWARE])
def test_slices_of_one_product_are_read_where_they_lie(target: Target) -> None:
    b, n, heads, depth = 2, 19, 3, 8
    c = Chain(b, n, 3 * heads * depth)
    whole = c.reshape(c.op("relu", c.x), b, n, 3, heads, depth)
    attend(c, *(part_of(c, whole, 2, i, b, n, heads, depth) for i in range(3)))
    assert shaders(c.graph(), target)[1:] == ["attention"]
    check(c.graph())


def test_rows_of_a_batch_alone_and_heads_around_rows_are_read_where_they_lie() -> None:
    n, heads, depth = 21, 2, 12
    c = Chain(n, 1, 2, heads * depth)
    keys, values = (part_of(c, c.op("relu", c.x), 2, i, 1, n, heads, depth) for i in range(2))
    attend(c, c.signed(1, 5, heads, depth), keys, values)
    around = Chain(3, 2, heads, n, depth)
    parts = (part_of(around, around.op("relu", around.x), 0, i, 2, heads, n, depth) for i in range(3))
    around.op("attention", *parts, attrs=AttentionAttrs(0.4))
    for graph in (c.graph(), around.graph()):
        assert "strided_copy" not in " ".join(shaders(graph))
        check(graph)


@pytest.mark.parametrize("what", ["steps", "read twice", "odd first element", "heads across"])
def test_slices_that_attention_cannot_read_are_copied(what: str) -> None:
    n, heads, depth = 9, 2, 8
    c = Chain(1, 2 * n + 1, heads * depth)
    x, starts = c.op("relu", c.x), (0, 1, 0)
    part = c.op("slice", x, attrs=SliceAttrs(starts, (1, n, heads * depth), (1, 2 if what == "steps" else 1, 1)))
    if what == "odd first element":
        wide = Chain(1, n, heads * depth + 4)
        c, x = wide, wide.op("relu", wide.x)
        part = c.op("slice", x, attrs=SliceAttrs((0, 0, 1), (1, n, heads * depth), (1, 1, 1)))
    if what == "heads across":
        part = c.op("transpose", c.reshape(part, 1, heads, n, depth), attrs=TransposeAttrs((0, 2, 1, 3)))
        part = c.reshape(part, 1, n, heads * depth)
    rows = c.reshape(part, 1, n, heads, depth)
    attend(c, c.signed(1, 5, heads, depth), rows, c.signed(1, n, heads, depth))
    graph = c.graph(part) if what == "read twice" else c.graph()
    assert any("strided" in shader for shader in shaders(graph))
    check(c.graph())


@pytest.mark.parametrize("curve", ["gelu", "gelu_tanh"])
@pytest.mark.parametrize("shape", [(1, 24), (3, 5, 24), (150, 24), (70, 23)])
def test_gelu_is_part_of_the_product_before_it(curve: str, shape: tuple[int, ...]) -> None:
    c = Chain(*shape)
    c.op(curve, c.op("matmul", c.x, c.signed(shape[-1], 20), c.signed(20), attrs=MatmulAttrs()))
    for target in (HARDWARE, SOFTWARE):
        assert len(shaders(c.graph(), target)) == 1
    check(c.graph())


def test_gelu_is_part_of_a_convolution_with_its_residual() -> None:
    c = Chain(1, 9, 7, 12)
    same = Conv2dAttrs((1, 1), (1, 1, 1, 1))
    c.op("gelu", c.op("conv2d", c.x, c.signed(12, 3, 3, 12), c.signed(12), c.x, attrs=same))
    assert len(shaders(c.graph())) == 1
    check(c.graph())


@pytest.mark.parametrize("shape", [(1, 24), (3, 5, 24), (150, 24), (13, 6)])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_sum_is_part_of_the_product_before_it(shape: tuple[int, ...], swapped: bool) -> None:
    c = Chain(*shape)
    y = c.op("matmul", c.x, c.signed(shape[-1], shape[-1]), c.signed(shape[-1]), attrs=MatmulAttrs())
    c.op("add", *((c.x, y) if swapped else (y, c.x)))
    assert len(shaders(c.graph())) == 1
    check(c.graph())


def test_a_sum_is_part_of_a_product_of_batches() -> None:
    c = Chain(3, 8, 8)
    c.op("add", c.op("matmul", c.x, c.op("relu", c.x), attrs=MatmulAttrs()), c.x)
    assert len(shaders(c.graph())) == 2
    check(c.graph())


SMALL_TILES = [tile for tile in (*TILES, *WIDE_TILES) if tile.rows * tile.keys <= 2048]


@pytest.mark.parametrize("tile", SMALL_TILES, ids=lambda tile: tile.name)
def test_every_tile_of_attention_is_right_at_sizes_that_it_does_not_divide(tile: AttentionTile) -> None:
    RingTarget("webgpu").demand()
    c = Chain(2, 37, 3, 140 if tile.slice else 20)
    attrs = AttentionAttrs(0.1 if tile.slice else 0.7, (True, True, True, False))
    c.op("attention", c.x, c.op("neg", c.x), c.op("square", c.x), attrs=attrs)
    graph = c.graph()
    node: Node = graph.nodes[-1]
    assert tile.fits(sizes_of(node), HARDWARE) or tile.nbytes(sizes_of(node)) > 16384
    data = RNG.uniform(-2, 2, c.x.type.shape).astype(np.float32)
    want = run(outputs_of(reference, graph, disguised(), data))
    got = run(outputs_of(webgpu, graph, disguised(), data, tuned={tuning_key(node): tile.name}))
    np.testing.assert_allclose(got, want, rtol=3e-5, atol=3e-5)


@pytest.mark.parametrize("width", [132, 160, 192, 256])
def test_devices_of_the_least_limits_have_tiles_for_rows_of_256(width: int) -> None:
    least = Target({**LIMITS, "maxComputeWorkgroupStorageSize": 16384, "maxComputeInvocationsPerWorkgroup": 256})
    c = Chain(1, 512, 8, width)
    c.op("attention", c.x, c.op("neg", c.x), c.op("square", c.x), attrs=AttentionAttrs(0.1, (True,) * 4))
    (step,) = [step for step in make_schedule(c.graph(), least).run if step.dispatch.shader == "attention_wide"]
    tile = next(tile for tile in WIDE_TILES if tile.name == step.dispatch.why)
    assert tile.nbytes(sizes_of(c.graph().nodes[-1])) <= 16384
    assert tile.tx * tile.ty >= 64, "more than a corner of a core is at work"


def test_a_tuner_times_the_joined_product_and_the_attention() -> None:
    c = Chain(1, 130, 64)
    attend(c, *(heads_of(c, c.x, 4, 16) for _ in range(3)))
    graph = c.graph()
    shapes = shapes_of(graph, HARDWARE, graph.fixed_values())
    products = [shape for shape in shapes.values() if shape.nodes[0].op.name == "matmul"]
    assert [shape.nodes[0].output.type.shape for shape in products] == [(1, 130, 192)]
    assert all(shape.places == [(len(graph.nodes) - 1,)] for shape in shapes.values())
    name = shapes[tuning_key(graph.nodes[-1])].names[-1]
    target = Target(LIMITS, tuned={tuning_key(graph.nodes[-1]): name})
    assert make_schedule(graph, target).run[-1].dispatch.why == name


@pytest.mark.parametrize("low", [-np.inf, np.finfo(np.float32).min, -1e9])
@pytest.mark.parametrize("window", [1000, 20])
def test_blocks_that_a_mask_hides_are_left_out_and_nothing_else(low: float, window: int) -> None:
    c = Chain(1, 2, 150, 8)
    i, j = np.arange(150)[:, None], np.arange(150)[None]
    mask = np.where((j > i) | (j <= i - window) | (i == 70), low, 0.25 * (j % 3)).astype(np.float32)
    if low != np.finfo(np.float32).min:  # by it a row that is hidden is the mean of all values
        mask[70, 149] = 0
    data = Constant(memoryview(mask.tobytes()), DType.FLOAT32)
    given = Value("mask", TensorType((1, 1, 150, 150)), data)
    c.op("attention", c.x, c.op("neg", c.x), c.op("square", c.x), given, attrs=AttentionAttrs(0.7))
    assert make_schedule(c.graph(), HARDWARE).run[-1].dispatch.variables["skips"]
    check(c.graph())


def test_attention_between_float16_products_stays_float16_and_its_mask_does_not() -> None:
    c = Chain(1, 24, 16)
    first = c.op("matmul", c.x, c.signed(16, 16), attrs=MatmulAttrs())
    q, k, v = (heads_of(c, first, 2, 8) for _ in range(3))
    mask = c.op("reduce_max", c.x, attrs=OPS["reduce_max"].attrs((2,), True))
    mask = c.op("reshape", mask, attrs=ReshapeAttrs((1, 1, 1, 24)))
    y = c.op("attention", q, k, v, mask, attrs=AttentionAttrs(0.4, INSIDE))
    c.op(
        "relu",
        c.op("matmul", c.op("reshape", y, attrs=ReshapeAttrs((1, 24, 16))), c.signed(16, 16), attrs=MatmulAttrs()),
    )
    graph = c.graph()
    narrow, _ = in_float16(graph)
    node = next(node for node in narrow.nodes if node.op.name == "attention")
    kinds = [value.type.dtype for value in (*node.inputs, *node.outputs) if value is not None]
    assert kinds == [DType.FLOAT16] * 3 + [DType.FLOAT32, DType.FLOAT16]
    assert len(shaders(narrow)) == len(shaders(graph)) == 6
    RingTarget("webgpu").demand()
    data = RNG.uniform(-1, 1, c.x.type.shape).astype(np.float32)
    want, got = (
        run(outputs_of(backend, one, disguised(), data)) for backend, one in ((reference, graph), (webgpu, narrow))
    )
    np.testing.assert_allclose(got, want, rtol=0.01, atol=0.05)
