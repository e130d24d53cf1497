"""Running sums and the largest elements along one axis."""

from __future__ import annotations

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.lowerings.cast import compute_dtype, convert, converted
from webinfer.backends.wasm.lowerings.elementwise import I64, SHORT, U64, WIDENED, refuse
from webinfer.backends.wasm.lowerings.reduce import lines_of
from webinfer.graph.ir import Node, Op
from webinfer.ops import scan as ops


def cumulative_sum(node: Node, builder: Builder) -> None:
    """One step in the type of x, widened where it has no kernel."""
    x, y, a = node.required_input(0), node.output, node.attrs
    dtype = compute_dtype(x)
    wide = I64 if dtype is U64 else WIDENED.get(dtype, dtype)
    outer, r, inner = lines_of(x.type.shape, a.axis)
    source = builder.ref(x) if dtype is U64 else converted(builder, x, wide)
    target = builder.ref(y) if wide.itemsize == dtype.itemsize else builder.scratch(y.type.size * wide.itemsize)
    builder.step(
        f"{SHORT[wide]}_cumulative_sum",
        x=source, y=target, r=r, inner=inner, exclusive=int(a.exclusive), reversed=int(a.reversed),
        units=outer * inner,
    )  # fmt: skip
    if wide.itemsize != dtype.itemsize:
        convert(builder, target, wide, builder.ref(y), dtype, y.type.size)


def top_k(node: Node, builder: Builder) -> None:
    """One step over rows."""
    x, (values, positions) = node.required_input(0), node.outputs
    dtype, k = compute_dtype(x), node.attrs.k
    wide = WIDENED.get(dtype, dtype)
    if wide is U64:
        raise refuse(node.op, dtype)
    rows, r, _ = lines_of(x.type.shape, x.type.rank - 1)
    best = builder.ref(values) if wide is dtype else builder.scratch(values.type.size * wide.itemsize)
    source = converted(builder, x, wide)
    builder.step(f"{SHORT[wide]}_top_k", x=source, values=best, positions=builder.ref(positions), r=r, k=k, units=rows)
    if wide is not dtype:
        convert(builder, best, wide, builder.ref(values), dtype, values.type.size)


LOWERINGS: dict[Op, Lower] = {ops.CUMULATIVE_SUM: cumulative_sum, ops.TOP_K: top_k}
