"""Every step is refused that would write past the end of its block."""

from __future__ import annotations

import struct

import pytest

from webinfer.backends.wasm.builder import Builder
from webinfer.backends.wasm.kernel_table import KERNELS
from webinfer.backends.wasm.lowerings.constants import expand_constant
from webinfer.errors import KernelError
from webinfer.graph.ir import Graph
from webinfer.plan.blocks import Block, Kind, Ref

# Kernels whose results depend on data, or are scattered: their extent is not told yet. None may be added.
UNTOLD = {
    "b16_scatter_elements", "b32_scatter_elements", "b32_transpose", "b64_scatter_elements", "b8_scatter_elements",
    "b8_scatter_nd", "f32_pack_sparse_weights", "f32_posenet_decode", "f32_scatter_nd_add", "f32_ssd_decode",
    "f32_weighted_nms", "i32_scatter_nd_add", "u8_image_to_f32",
}  # fmt: skip


def block(nbytes: int) -> Ref:
    return Ref(Block("a block", nbytes, Kind.ARENA))


def builder() -> Builder:
    return Builder(Graph("g", [], [], []), "simd128", None, expand_constant)


def test_every_kernel_tells_what_it_writes() -> None:
    assert {name for name, kernel in KERNELS.items() if kernel.writes is None} == UNTOLD


@pytest.mark.parametrize(
    ("kernel", "nbytes"),
    [("f32_abs", 40), ("i32_abs", 40), ("i64_abs", 80), ("f32_to_u8", 10), ("u8_to_f32", 40), ("f32_is_nan", 10)],
)
def test_a_result_that_is_larger_than_its_block(kernel: str, nbytes: int) -> None:
    args = {name: 0.0 for name, kind in KERNELS[kernel].args.items() if kind == "f32"}
    builder().step(kernel, args, x=block(80), y=block(nbytes), units=10)
    builder().step(kernel, dict(args), x=block(80), y=block(nbytes + 4) + 4, units=10)
    with pytest.raises(KernelError, match=f"{kernel} would write {nbytes} bytes from byte 0 .*which has {nbytes - 1}"):
        builder().step(kernel, dict(args), x=block(80), y=block(nbytes - 1), units=10)
    with pytest.raises(KernelError, match=f"{nbytes} bytes from byte 4 "):
        builder().step(kernel, dict(args), x=block(80), y=block(nbytes) + 4, units=10)


@pytest.mark.parametrize(("strides", "reached"), [((3, 1), 6), ((10, 2), 15), ((0, 1), 3), ((-1, 4), 9)])
def test_a_copy_reaches_as_far_as_its_nest(strides: tuple[int, int], reached: int) -> None:
    b = builder()
    nest = b.table("nest", struct.pack("<7i", 2, 2, 3, 3, 1, *strides))
    b.step("b32_copy", x=block(24), y=block(4 * reached), nest=nest, units=6)
    with pytest.raises(KernelError, match=f"b32_copy would write {4 * reached} bytes"):
        b.step("b32_copy", x=block(24), y=block(4 * reached - 1), nest=nest, units=6)
