"""Language models: weights stay in the file's blocks, keys and values in their cache."""

from __future__ import annotations

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, Op, Value
from webinfer.kernel_constants import (
    ATTENTION_CACHED_HEAD,
    ATTENTION_CACHED_ROWS,
    BLOCKS_MAX_ROWS,
    BLOCKS_PANEL,
    BLOCKS_WIDE,
    VECTOR_LANES,
)
from webinfer.ops import language as ops
from webinfer.plan.blocks import Arguments, Ref

PARTS = 16  # of one row's work that threads share, at least: there may be fewer groups of heads than threads. A guess
LONG = 128  # keys, from which on threads share one group's. A guess


def _block_matmul(node: Node, builder: Builder) -> None:
    """The activations rounded, once for all products that read them; then one step over panels of weights."""
    x, w, y, type = node.required_input(0), node.required_input(1), node.output, node.attrs.type
    rows, k = x.type.shape
    if rows > BLOCKS_MAX_ROWS:
        raise UnsupportedOpError([f"a product of {rows} rows with blocks; needs 1 to {BLOCKS_MAX_ROWS}"])
    place = builder.optional_ref(node.optional_input(4))
    given = builder.ref(x)
    if not type.is_float:
        given, is_new = builder.shared(("rounded", x, place), 76 * rows * (k // 32))
        if is_new:
            builder.step("q8_block_rows", x=builder.ref(x), place=place, y=given, rows=rows, blocks=k // 32, units=rows)
    builder.step(
        "f32_block_product",
        x=given, w=builder.ref(w), bias=builder.optional_ref(node.optional_input(2)),
        residual=builder.optional_ref(node.optional_input(3)), y=builder.ref(y), place=place, rows=rows, k=k,
        n=w.type.shape[0], type=int(type), units=-(-w.type.shape[0] // (BLOCKS_PANEL if rows == 1 else BLOCKS_WIDE)),
    )  # fmt: skip
    builder.because(f"weights stay in blocks of {type.name}, {builder.isa} build")


def _block_rows(node: Node, builder: Builder) -> None:
    table, ids, y = node.required_input(0), node.required_input(1), node.output
    builder.step(
        "f32_block_rows",
        table=builder.ref(table), ids=builder.ref(ids), y=builder.ref(y), words=table.type.shape[0],
        k=y.type.shape[1], type=int(node.attrs.type), units=ids.type.size,
    )  # fmt: skip


def _cached_attention(node: Node, builder: Builder) -> None:
    """Queries turned, keys and values into the cache, then attention over it; that of one row in parts of its keys."""
    q, k, v, place, speeds, keys, values = map(node.required_input, range(7))
    a, y, kept = node.attrs, node.output, values.type.dtype
    groups, capacity, width = ops.cache_sizes(values.type)
    rows, at = q.type.shape[0], builder.ref(place)
    turned, whole = builder.scratch(q.type.nbytes), capacity * width

    def moved(x: Value, to: Ref, speed: Ref | None, held: int, *steps: int) -> None:
        layout: Arguments = dict(zip(("head_step", "lanes", "block_step", "d_step"), steps, strict=True))
        builder.step(
            "f32_cache_rows", layout,
            x=builder.ref(x), place=at, speeds=speed, y=to, rows=rows, heads=x.type.shape[1] // width, width=width,
            turned=a.turned, adjacent=int(a.adjacent), cached=int(held > 0), capacity=held or rows, units=rows,
        )  # fmt: skip

    def rounded(x: Ref, to: Value, is_values: int) -> None:
        builder.step(
            "i16_cache_rows",
            x=x, place=at, y=builder.ref(to), rows=rows, heads=groups, width=width, capacity=capacity,
            bytes=ops.cache_row_bytes(kept, width), values=is_values, units=rows,
        )  # fmt: skip

    moved(q, turned, builder.ref(speeds), 0, width, 1, a.heads * width, 1)
    if kept is DType.INT16:
        turned_keys = builder.scratch(k.type.nbytes)
        moved(k, turned_keys, builder.ref(speeds), 0, width, 1, groups * width, 1)
        rounded(turned_keys, keys, 0)
        rounded(builder.ref(v), values, 1)
    else:
        moved(k, builder.ref(keys), builder.ref(speeds), capacity, whole, ops.LANES, ops.LANES * width, ops.LANES)
        moved(v, builder.ref(values), None, capacity, whole, 1, width, 1)
    parts = -(-PARTS // groups) if rows == 1 and capacity > LONG else 1
    step = width + ATTENTION_CACHED_HEAD if parts > 1 else width
    found = builder.scratch(4 * a.heads * parts * step) if parts > 1 else builder.ref(y)
    builder.step(
        "i16_cached_attention" if kept is DType.INT16 else "f32_cached_attention",
        q=turned, k=builder.ref(keys), v=builder.ref(values), place=at, y=found, rows=rows, heads=a.heads,
        groups=groups, width=width, capacity=capacity, parts=parts, step=step, scale=a.scale,
        units=groups * parts * -(-rows * a.heads // groups // ATTENTION_CACHED_ROWS),
    )  # fmt: skip
    if parts > 1:
        builder.step(
            "f32_join_parts",
            x=found, place=at, y=builder.ref(y), width=width, capacity=capacity, parts=parts, units=a.heads,
        )  # fmt: skip
    builder.because(f"cache of {kept}, keys in {parts} part{'s' * (parts > 1)}, {builder.isa} build")


def _swiglu(node: Node, builder: Builder) -> None:
    gate, up, y = node.required_input(0), node.required_input(1), node.output
    size = y.type.size
    builder.step(
        "f32_swiglu",
        gate=builder.ref(gate), up=builder.ref(up), y=builder.ref(y), size=size, units=-(-size // VECTOR_LANES),
    )  # fmt: skip


def _sample(node: Node, builder: Builder) -> None:
    x, options, y = node.required_input(0), node.required_input(1), node.output
    n = x.type.size
    builder.step(
        "f32_sample",
        x=builder.ref(x), options=builder.ref(options), y=builder.ref(y), scratch=builder.scratch(8 * n), n=n,
    )  # fmt: skip


LOWERINGS: dict[Op, Lower] = {
    ops.BLOCK_MATMUL: _block_matmul,
    ops.BLOCK_ROWS: _block_rows,
    ops.CACHED_ATTENTION: _cached_attention,
    ops.SAMPLE: _sample,
    ops.SWIGLU: _swiglu,
}
