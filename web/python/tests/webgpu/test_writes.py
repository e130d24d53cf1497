"""A dispatch that would write more or less than its tensor, or other elements, is refused when it is scheduled."""

from __future__ import annotations

import dataclasses

import pytest
from tests.webgpu.devices import HARDWARE
from tests.webgpu.test_lowered_cases import shader_folder

from webinfer.backends.webgpu.dispatch import Dispatch, Scratch, read, write
from webinfer.backends.webgpu.lowerings import LOWERINGS
from webinfer.backends.webgpu.schedule import make_schedule
from webinfer.backends.webgpu.writes import EXTENTS, check_writes, written
from webinfer.codegen.elements import Element
from webinfer.codegen.prelude import u32
from webinfer.dtypes import DType
from webinfer.errors import KernelError
from webinfer.graph.ir import Graph, TensorType, Value, apply
from webinfer.ops import OPS
from webinfer.ops.movement import ConcatAttrs


def elementwise(count: int, y: Scratch, element: Element | None = None) -> Dispatch:
    """A dispatch that writes so many elements."""
    x = Scratch((10,))
    return Dispatch("elementwise_unary", {}, (read("x", x), write("y", y, element)), u32(count=count), (1, 1, 1))


def test_a_tensor_is_written_in_full_and_no_further() -> None:
    check_writes(elementwise(10, Scratch((10,))))
    check_writes(elementwise(10, Scratch((10,)), Element.BITS32))
    with pytest.raises(KernelError, match=r"elementwise_unary would write 13 elements of 4 bytes to .*, which has 40"):
        check_writes(elementwise(13, Scratch((10,))))
    with pytest.raises(KernelError, match="would write 9 elements"):
        check_writes(elementwise(9, Scratch((10,))))


@pytest.mark.parametrize(("dtype", "element"), [(DType.INT8, Element.F32), (DType.FLOAT32, Element.U8)])
def test_elements_of_another_size_are_refused(dtype: DType, element: Element) -> None:
    with pytest.raises(KernelError, match=f"would write 10 elements of .* which has {10 * dtype.itemsize} bytes"):
        check_writes(elementwise(10, Scratch((10,), dtype), element))


def test_a_shader_that_does_not_tell_what_it_writes_is_refused() -> None:
    untold = dataclasses.replace(elementwise(10, Scratch((10,))), params=())
    with pytest.raises(KernelError, match="elementwise_unary does not tell how many elements of 'y' it writes"):
        written(untold)


def test_a_lowering_that_mistakes_a_shape_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    op = OPS["abs"]
    x = Value("x", TensorType((12,), DType.FLOAT32))
    node = apply(op, [x], op.cases[0].attrs, "mistaken")
    lower = LOWERINGS[op]

    def mistaken(node: object, target: object) -> list[Dispatch]:
        return [dataclasses.replace(d, params=u32(count=48)) for d in lower(node, target)]  # type: ignore[arg-type]

    monkeypatch.setitem(LOWERINGS, op, mistaken)
    with pytest.raises(KernelError, match="would write 48 elements of 4 bytes to"):
        make_schedule(Graph("g", [x], node.outputs, [node]), HARDWARE)


def test_every_row_of_the_table_is_a_shader() -> None:
    files = {path.name.removesuffix(".wgsl") for path in shader_folder().rglob("*.wgsl")}  # type: ignore[attr-defined]
    assert {name.partition(".")[0] for name in EXTENTS} <= files


def test_parts_of_a_tensor_may_be_written_one_by_one() -> None:
    x = Value("x", TensorType((2, 3, 4)))
    node = apply(OPS["concat"], [x] * 8, ConcatAttrs(2), "concat")
    schedule = make_schedule(Graph("g", [x], node.outputs, [node]), HARDWARE)
    assert [step.dispatch.shader for step in schedule.run] == ["concat_parts"] * 2
