"""Every step is refused that would write past the end of its block."""

from __future__ import annotations

import struct

import pytest

from webinfer.backends.wasm.builder import SKIP, Builder
from webinfer.backends.wasm.kernel_table import KERNELS
from webinfer.backends.wasm.lowerings.constants import expand_constant
from webinfer.dtypes import DType
from webinfer.errors import KernelError
from webinfer.graph.ir import Graph, TensorType, Value, apply
from webinfer.ops.movement import CONCAT, ConcatAttrs
from webinfer.plan.blocks import Block, Kind, Ref


def block(nbytes: int) -> Ref:
    return Ref(Block("a block", nbytes, Kind.ARENA))


def builder() -> Builder:
    return Builder(Graph("g", [], [], []), "simd128", None, expand_constant)


def test_every_kernel_tells_what_it_writes() -> None:
    assert [name for name, kernel in KERNELS.items() if kernel.writes is None] == [SKIP]  # which writes nothing


@pytest.mark.parametrize(
    ("kernel", "nbytes"),
    [("f32_abs", 40), ("i32_abs", 40), ("i64_abs", 80), ("f32_to_u8", 10), ("u8_to_f32", 40), ("f32_is_nan", 10)],
)
def test_a_result_that_is_larger_than_its_block(kernel: str, nbytes: int) -> None:
    args = {name: 0.0 for name, kind in KERNELS[kernel].args.items() if kind == "f32"}
    builder().step(kernel, args, x=block(80), y=block(nbytes), units=10)
    builder().step(kernel, dict(args), x=block(80), y=block(nbytes + 4) + 4, units=10)
    with pytest.raises(
        KernelError, match=f"{kernel} would write {nbytes} bytes from byte 0 .*where the tensor has {nbytes - 1}"
    ):
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


def test_a_part_of_a_concat_ends_before_the_next_part() -> None:
    whole = block(80)
    part = Ref(whole.block, 16, 56)
    args = {name: 0.0 for name, kind in KERNELS["f32_abs"].args.items() if kind == "f32"}
    builder().step("f32_abs", args, x=block(40), y=part, units=10)
    with pytest.raises(KernelError, match="would write 44 bytes from byte 16 of 'a block', where the tensor has 40"):
        builder().step("f32_abs", dict(args), x=block(80), y=part, units=11)


def test_parts_of_a_concat_know_where_they_end() -> None:
    x = [Value(f"x{i}", TensorType((n, 4), DType.FLOAT32)) for i, n in enumerate((3, 5))]
    y = apply(CONCAT, x, ConcatAttrs(0))
    b = Builder(Graph("g", x, y.outputs, [y]), "simd128", None, expand_constant)
    assert [(r.offset, r.room) for r in map(b.ref, [*x, y.output])] == [(0, 48), (48, 80), (0, 128)]
