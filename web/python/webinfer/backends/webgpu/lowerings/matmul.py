"""Matrix products: one right operand for all of x makes them 1x1 convolutions, everything else are batches."""

from __future__ import annotations

import math
from collections.abc import Sequence

from webinfer.backends.webgpu.dispatch import (
    WORKGROUP,
    Binding,
    Dispatch,
    Source,
    Target,
    check_turns,
    groups_for,
    read,
    write,
)
from webinfer.backends.webgpu.lowerings.conversion import dequantize_dispatch, is_quantized, real_weights
from webinfer.backends.webgpu.lowerings.epilogue import (
    Product,
    destination,
    packed_columns,
    product,
    stays_bytes,
)
from webinfer.backends.webgpu.lowerings.gemv import gemv_product
from webinfer.backends.webgpu.lowerings.geometry import merged
from webinfer.backends.webgpu.lowerings.packed_product import packed_product
from webinfer.backends.webgpu.lowerings.short import with_short_data
from webinfer.backends.webgpu.lowerings.tiled import TiledShape, finished, tiled_product
from webinfer.backends.webgpu.lowerings.variants import (
    GEMVS,
    MATRIX_TILES,
    SMALL_SHARE,
    TILES,
    MatrixTile,
    choose,
    reads_float16,
)
from webinfer.codegen.elements import Element
from webinfer.codegen.prelude import Access, Param, Slot, i32, u32, u32x8
from webinfer.codegen.templates import Variable
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node, TensorType, Value
from webinfer.lowering.affine import zero_of
from webinfer.ops.matmul import MATMUL, MatmulAttrs, matrix_sizes
from webinfer.ops.strides import StridedCopy

# Products of one element of a batch that eight invocations share: alone 48 took 5.7 times as long (H100, 2026-11-28).
LONG_SUM = 32
# Elements of a result that would leave most of a device idle with an invocation for each four. A guess: no graph of 277
# has more.
FEW_ELEMENTS = 1 << 18
# Workgroups, below which invocations should share sums instead: with 32, 2 and 6 tiles of 64 took 0.6 of the time
# (H100, wgpu, 2026-11-28), which Chromium was not asked about.
FEW_TILES = 8
MANY_TILES = 3  # of 64x64 for two cores, from which they beat those of 32x32: 13 products by 4 tiles on an H100
# Rows, columns, or products of a sum that tiles would mostly leave empty: with 4 five graphs took 0.8 to 3.3 times as
# long (H100, 2026-11-28).
SMALL = 8
SLICE = 16  # products of a sum in workgroup memory: 8 took 1.07 to 1.41 times as long, 32 up to 2.07 (H100, 2026-11-28)


def _matmul(node: Node, target: Target) -> list[Dispatch]:
    """The kernels of a 1x1 convolution where all rows of x meet one matrix (see variants), else matmul_any.wgsl."""
    x, y, a = node.required_input(0), node.required_input(1), node.attrs
    m, k, n = matrix_sizes([x.type, y.type], a)
    shared = math.prod(y.type.shape[:-2]) == 1 and not a.transpose_a
    if not shared or k == 0:
        return _batches(node, target)
    rows, n4 = math.prod(x.type.shape[:-2]) * m, -(-n // 4)
    packed = packed_product(node, (rows, k, n), target) if a.transpose_b else None
    if packed is not None:
        return [packed]
    variant = choose(node, target)
    p = product(node, target, float16_weights=reads_float16(variant, node))
    weights = p.w
    if variant in GEMVS:
        if not a.transpose_b:
            weights = packed_columns(p.w, StridedCopy(0, (n, k), 0, (1, n), 0, (k, 1)), (n, k), "rows", target)
        return gemv_product(node, p, weights, TiledShape(rows, (1, 1), k, n, True), GEMVS[variant], (), target)
    if a.transpose_b or n % 4:  # else b lies as kernels read it
        strides = (1, k) if a.transpose_b else (n, 1)
        copy = StridedCopy(0, (k, n), 0, strides, 0, (n4 * 4, 1))
        weights = packed_columns(p.w, copy, (k, n4 * 4), ("matrix", a.transpose_b), target)
    if variant in MATRIX_TILES:
        return _by_matrices(node, p, weights, (rows, k, n), MATRIX_TILES[variant], target)
    if variant in TILES:
        return tiled_product(node, p, weights, TiledShape(rows, (1, 1), k, n, True), TILES[variant], (), target)
    place, after = destination(node.output, target, single=bool(n % 4))
    bindings = (read("x", x), read("w", weights, p.element), *p.bindings, place)
    flat = (
        *u32(ih=1, iw=rows, oh=1, ow=rows, stride_h=1, stride_w=1, dilation_h=1, dilation_w=1),
        *i32(pad_top=0, pad_left=0),
    )
    if variant == "any":
        check_turns(k, target, "a sum of products in loops")
        variables = p.variables | {
            "workgroup": WORKGROUP,
            "kh": 1,
            "kw": 1,
            "og_quads": n % 4 == 0,
            "transposed": False,
        }
        params = (*u32(pixels=rows, groups=1, ci=k, cg=k, og=n, og4=n4), *flat, *p.params)
        main = Dispatch("conv2d_any", variables, bindings, params, groups_for(rows * n4, target), "odd inner size")
        return [*p.before, main, *after]
    return [*p.before, _matmul_quads(variant, p, bindings, (rows, k, n), flat, target), *after]


def _by_matrices(
    node: Node, p: Product, weights: Source, shape: tuple[int, int, int], tile: MatrixTile, target: Target
) -> list[Dispatch]:
    """conv2d_1x1_matrices.wgsl."""
    (rows, k, n), x = shape, node.required_input(0)
    place, after = destination(node.output, target, single=bool(n % 4))
    split, narrow = tile.split(rows, k, n, target), x.type.dtype is DType.FLOAT16
    variables: dict[str, Variable] = p.variables | {
        "down": tile.down, "across": tile.across, "high": tile.high, "wide": tile.wide, "depth": tile.depth,
        "co_quads": n % 4 == 0, "subgroup_matrices": True, "split": split, "narrow": narrow,
    }  # fmt: skip
    operands = (
        Binding(Slot("x", Element.U32 if narrow else Element.F32, Access.READ, single=True), x),
        Binding(Slot("weights", Element.U32, Access.READ, single=True), weights),
    )
    sizes = u32(pixels=rows, co4=-(-n // 4), co=n, sum=k)
    groups = groups_for(-(-rows // tile.rows) * -(-n // tile.columns) * split, target, 1)
    why = f"{tile.rows} by {tile.columns} of 16x16 matrices"
    made = Dispatch("conv2d_1x1_matrices", variables, operands, sizes, groups, why)
    return [*p.before, *finished(made, p, (split, rows, n), place, target), *after]


def _matmul_quads(
    variant: str,
    p: Product,
    bindings: tuple[Binding, ...],
    shape: tuple[int, int, int],
    flat: tuple[Param, ...],
    target: Target,
) -> Dispatch:
    """conv2d_split_k, conv2d_1x1_4x8 or conv2d_1x1_vec4: the inner size comes in whole quads."""
    rows, k, n = shape
    n4 = -(-n // 4)
    sizes = u32(pixels=rows, ci4=k // 4, co4=n4, co=n)
    if variant == "split_k":
        variables = p.variables | {"kw": 1, "taps": 1, "co_quads": n % 4 == 0}
        groups = groups_for(-(-rows // 4) * -(-n4 // 8), target, 1)
        return Dispatch("conv2d_split_k", variables, bindings, (*sizes, *flat, *p.params), groups, "eight share a sum")
    if variant == "4x8":
        groups = groups_for(-(-rows // 4) * (n4 // 2), target)
        variables = p.variables | {"workgroup": WORKGROUP}
        return Dispatch("conv2d_1x1_4x8", variables, bindings, (*sizes, *p.params), groups, "many rows")
    tile = int(variant.removeprefix("vec4_"))
    check_turns(k // 4, target, "a sum of products in loops")
    variables = p.variables | {"workgroup": WORKGROUP, "tile": tile, "co_quads": n % 4 == 0}
    groups = groups_for(-(-rows // tile) * n4, target)
    return Dispatch("conv2d_1x1_vec4", variables, bindings, (*sizes, *p.params), groups, f"{tile} rows")


def _batches(node: Node, target: Target) -> list[Dispatch]:
    """Batches of matrices, or a transposed left operand: matmul_tiled.wgsl; matmul_split.wgsl for few long sums, and
    matmul_any.wgsl for few products, integers, and on the processor.
    """
    x, y, out, a = node.required_input(0), node.required_input(1), node.output, node.attrs
    m, k, n = matrix_sizes([x.type, y.type], a)
    p = product(node, target)
    if is_quantized(x) and len(y.type.quant.scales) > 1 and any(y.type.quant.zero_points):  # type: ignore[union-attr]
        raise UnsupportedOpError(["matmul of batches with a zero point for each column"])
    sizes, (x_batch, y_batch) = merged(out.type.shape[:-2], x.type.shape[:-2], y.type.shape[:-2])
    # `merged` gives strides over the batch axes alone: one step is a whole matrix.
    params = (
        *u32(count=out.type.size, m=m, n=n, k=k),
        *u32x8(size=sizes, a_batch=[s * m * k for s in x_batch], b_batch=[s * k * n for s in y_batch]),
        *u32(a_row=1 if a.transpose_a else k, a_step=m if a.transpose_a else 1),
        *u32(b_column=k if a.transpose_b else 1, b_step=1 if a.transpose_b else n),
        *i32(b_zero=zero_of(y.type) if is_quantized(y) else 0),
        *p.params,
    )
    operands = (read("x", x), read("b", y), *p.bindings)
    real = all(v.type.dtype.is_float for v in (x, y, out)) and not is_quantized(x) and not target.software
    batches = out.type.size // (m * n)
    if real and all(size >= SMALL for size in (m, n, k)) and batches * -(-m // 32) * -(-n // 32) >= FEW_TILES:
        side, per_rows, per_columns = _tile_of(batches, m, n, target)
        tiled = p.variables | {
            "workgroup": side * side // (per_rows * per_columns), "rank": len(sizes), "rows": side, "columns": side,
            "depth": SLICE, "unroll": SLICE if per_rows * per_columns > SMALL_SHARE else 1, "per_rows": per_rows,
            "per_columns": per_columns, "x_along": not a.transpose_a, "b_along": a.transpose_b,
            "x_quads": (m if a.transpose_a else k) % 4 == 0, "b_quads": (k if a.transpose_b else n) % 4 == 0,
            "n_quads": n % 4 == 0,
        }  # fmt: skip
        place, after = destination(out, target, single=bool(n % 4))
        groups = groups_for(batches * -(-m // side) * -(-n // side), target, 1)
        why = f"batches, {side}x{side} a workgroup"
        return [*p.before, Dispatch("matmul_tiled", tiled, (*operands, place), params, groups, why), *after]
    bindings = (*operands, write("y", out))
    single = all(v.type.dtype is DType.FLOAT32 for v in (x, y, out))
    if real and single and n % 4 == 0 and k >= LONG_SUM and out.type.size <= FEW_ELEMENTS:
        columns = not a.transpose_b
        groups = groups_for(-(-out.type.size // 32), target, 1)
        split = p.variables | {"rank": len(sizes), "columns": columns}
        return [Dispatch("matmul_split", split, bindings, params, groups, "batches, eight share a sum")]
    check_turns(4 * (k + 1 + len(sizes)), target, "a sum of products in loops")
    variables = p.variables | {"workgroup": WORKGROUP, "rank": len(sizes)}
    groups = groups_for(-(-out.type.size // 4), target)
    return [Dispatch("matmul_any", variables, bindings, params, groups, "batches")]


def _tile_of(batches: int, m: int, n: int, target: Target) -> tuple[int, int, int]:
    """Rows and columns of a workgroup of matmul_tiled, and rows and columns of an invocation."""
    many = 2 * batches * -(-m // 64) * -(-n // 64) >= MANY_TILES * target.cores
    return (64, 8, 8) if many and m > 32 and n > 32 else (32, 4, 4)


_by_type = with_short_data(real_weights(_matmul))


def matmul(node: Node, target: Target) -> Sequence[Dispatch]:
    """A product; weights that stay bytes in memory are widened as they are read, others are made real at load."""
    return (_matmul if stays_bytes(node) else _by_type)(node, target)


def stored_matmul(node: Node, target: Target) -> list[Dispatch]:
    """A product of bytes that gives floats: of the data's real numbers, with weights that stay bytes where they can."""
    x, a = node.required_input(0), node.attrs
    real = Value(x.name, TensorType(x.type.shape))
    attrs = MatmulAttrs(False, a.transpose_b, a.activation)
    inner = Node(MATMUL, [real, *node.inputs[1:]], node.outputs, attrs, node.label)
    return [dequantize_dispatch(x, real, target), *matmul(inner, target)]
