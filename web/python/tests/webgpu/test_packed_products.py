"""Products with weights packed in 4 or 8 bits: what a decoder computes around them joins them, and all is right."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import Target as RingTarget
from tests.webgpu.chained import Chain
from tests.webgpu.disguised import disguised
from tests.webgpu.planned import shaders

from webinfer.backends import reference, webgpu
from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Graph, TensorType, Value
from webinfer.ops.activation import Activation
from webinfer.ops.elementwise import BinaryAttrs, CastAttrs, UnaryAttrs
from webinfer.ops.movement import SliceAttrs
from webinfer.ops.normalization import LayerNormAttrs
from webinfer.ops.packed_matmul import PackedMatmulAttrs

RNG = np.random.default_rng(41)
K = 96
ROW, ROWS = (1, 1, K), (1, 37, K)
RMS = LayerNormAttrs(1, 1e-5, False)


def part(*shape: int, dtype: DType) -> Value:
    data = RNG.uniform(0.5, 2, shape).astype("f2" if dtype is DType.FLOAT16 else "f4")
    return Value("part", TensorType(shape, dtype), Constant(memoryview(data.tobytes()), dtype))


def packed(
    c: Chain, x: Value, n: int, bits: int = 4, block: int = 32, zeros: bool = False, bias: bool = False
) -> Value:
    """A product of x and n columns of weights; what lies beside these has the type of x."""
    k = x.type.shape[-1]
    blocks = -(-k // block)
    data = RNG.integers(0, 256, (n, blocks * block * bits // 8), dtype=np.uint8)
    w = Value("w", TensorType(data.shape, DType.UINT8), Constant(memoryview(data.tobytes()), DType.UINT8))
    shapes = ((n, blocks), (n, blocks) if zeros else None, (n,) if bias else None)
    given = [None if shape is None else part(*shape, dtype=x.type.dtype) for shape in shapes]
    return c.op("packed_matmul", x, w, *given, attrs=PackedMatmulAttrs(bits, block))


def check(graph: Graph, tolerance: float = 1e-5) -> None:
    """All outputs of the graph are on webgpu what they are on the reference."""
    RingTarget("webgpu").demand()
    host, data = disguised(), memoryview(RNG.uniform(-1, 1, graph.inputs[0].type.shape).astype(np.float32).tobytes())

    async def outputs_of(backend: object) -> list[np.ndarray[object, np.dtype[np.float32]]]:
        executor = await backend.build(graph, host)  # type: ignore[attr-defined]
        try:
            return [tensor.numpy().astype("f4") for tensor in (await executor.run({"x": data})).values()]
        finally:
            executor.close()

    want, got = run(outputs_of(reference)), run(outputs_of(webgpu))
    assert len(want) == len(got) == len(graph.outputs)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * np.abs(other).max())


@pytest.mark.parametrize("form", [(4, 32, True), (4, 64, False), (8, 32, False), (8, 96, True)], ids=str)
@pytest.mark.parametrize("shape", [ROW, ROWS], ids=str)
def test_products_of_one_tensor_are_one_dispatch_with_a_result_each(
    shape: tuple[int, ...], form: tuple[int, int, bool]
) -> None:
    c = Chain(*shape)
    results = [packed(c, c.x, n, *form, bias=form[2]) for n in (64, 12, 20)]
    graph = c.graph(*results[:2])
    few = form[2]  # with a bias each, three products take more bindings than every device has
    assert shaders(graph) == ["block_product_row" if shape == ROW else "block_product"] * (2 if few else 1)
    check(graph)


def test_a_product_that_is_read_before_the_next_one_stays_apart() -> None:
    c = Chain(*ROW)
    first = packed(c, c.x, K)
    c.op("tanh", first)
    second = packed(c, c.x, K)
    packed(c, c.nodes[1].output, 8)
    graph = c.graph(second)
    assert shaders(graph).count("block_product_row") == 3
    check(graph)


def test_columns_that_are_no_quads_stay_apart() -> None:
    c = Chain(*ROW)
    results = [packed(c, c.x, n) for n in (8, 6)]
    assert shaders(c.graph(results[0])) == ["block_product_row"] * 2
    check(c.graph(results[0]))


@pytest.mark.parametrize(("shape", "more"), [(ROW, 0), (ROWS, 1)], ids=str)
def test_the_norm_of_one_row_and_what_follows_join_the_products(shape: tuple[int, ...], more: int) -> None:
    """A block of a decoder but for its attention: of many rows the norm is a dispatch of its own."""
    c = Chain(*shape)
    normed = c.op("layer_norm", c.x, c.given(K), None, attrs=RMS)
    gate, up = packed(c, normed, 64), packed(c, normed, 64)
    swiglu = c.op("mul", c.op("silu", gate, attrs=UnaryAttrs(1.0)), up, attrs=BinaryAttrs())
    c.op("add", c.x, packed(c, swiglu, K), attrs=BinaryAttrs())
    graph = c.graph()
    assert len(shaders(graph)) == 2 + more
    check(graph)


def test_a_sum_with_an_activation_or_another_shape_is_a_step_of_its_own() -> None:
    c = Chain(*ROW)
    first = c.op("add", packed(c, c.x, K), c.x, attrs=BinaryAttrs(Activation.RELU))
    c.op("add", packed(c, first, K), c.given(1, 3, K), attrs=BinaryAttrs())
    graph = c.graph()
    assert len(shaders(graph)) == 4
    check(graph)


def test_a_norm_that_something_else_reads_is_computed_by_itself() -> None:
    c = Chain(*ROW)
    normed = c.op("layer_norm", c.x, c.given(K), None, attrs=RMS)
    c.op("add", normed, packed(c, normed, K), attrs=BinaryAttrs())
    graph = c.graph()
    assert shaders(graph)[0] != "block_product_row"
    check(graph)


@pytest.mark.parametrize("shape", [ROW, ROWS], ids=str)
def test_a_block_in_float16_takes_the_same_kernels(shape: tuple[int, ...]) -> None:
    """Results are stored in quads, but for those of gates, which are cast."""
    c = Chain(*shape)
    x = c.op("cast", c.x, attrs=CastAttrs(DType.FLOAT16))
    q, k, v = (packed(c, x, n, zeros=True) for n in (K, 12, 8))
    gate, up = packed(c, q, 64), packed(c, q, 64)
    swiglu = c.op("mul", c.op("silu", gate, attrs=UnaryAttrs(1.0)), up, attrs=BinaryAttrs())
    c.op("add", packed(c, c.op("slice", swiglu, attrs=SliceAttrs((0, 0, 0), (*shape[:2], 32), (1,) * 3)), K), x)
    graph = c.graph(k, v)
    kernel = "block_product_row" if shape == ROW else "block_product"
    assert [name for name in shaders(graph) if name.startswith("block")] == [kernel] * 3
    check(graph, 4e-3)
