"""Float products whose weights stay packed: they become floats a panel at a time, while they are multiplied."""

from __future__ import annotations

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.lowerings import winograd
from webinfer.backends.wasm.lowerings.affine import EIGHT_BIT, flip_of, floats
from webinfer.backends.wasm.lowerings.float_weights import with_float_weights
from webinfer.backends.wasm.lowerings.matmul import matmul
from webinfer.backends.wasm.lowerings.movement import fill, strided_copy
from webinfer.backends.wasm.lowerings.products import activation_args
from webinfer.backends.wasm.lowerings.rows import typical_rows
from webinfer.dtypes import DType, round_to_f32
from webinfer.errors import UnsupportedOpError
from webinfer.graph.dims import has_size
from webinfer.graph.ir import Node, Op, Value
from webinfer.lazy_dataclass import dataclass
from webinfer.lowering.affine import is_scaled_by_column, is_stored, zeros_of
from webinfer.ops import conv as conv_ops
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul as matmul_ops
from webinfer.ops import packed_matmul as ops
from webinfer.ops.activation import Activation
from webinfer.ops.strides import StridedCopy
from webinfer.plan.blocks import Ref
from webinfer.rewrite.facts import Facts

COLUMNS = 8  # outputs of a panel
# Of a convolution whose weights stay bytes: a panel becomes floats once for all of them; one pixel took 1.7 times as
# long (EPYC, 2026-11-27).
LEAST_PIXELS = 8


@dataclass(frozen=True, slots=True)
class Packed:
    """Weights [n, k] as pack_matmul_weights reads them: bits and steps of a group; bytes from one to the next."""

    n: int
    k: int
    bits: int
    group: int
    n_step: int
    k_step: int
    flip: int


def _at_load(builder: Builder, value: Value) -> Ref:
    """Where prepare steps read the value; a constant that nothing else reads then leaves no copy.

    Float16 is not stored as prepare steps read it.
    """
    constant, dtype = value.constant, value.type.dtype
    plain = constant is not None and constant.sparsity is None and constant.stored is dtype is not DType.FLOAT16
    return builder.weights(value) if plain else builder.ref(value)


def _product(
    node: Node, builder: Builder, w: Value, p: Packed, scales: tuple[Ref, Ref, int, int], bias: Value | None,
    activation: Activation, x: Ref | None = None,
) -> None:  # fmt: skip
    """The steps of a product of the node's first input, or `x`, by w.

    `scales` are those of w, and their zero points; and of each 0 if one stands for all.
    """
    x, y = x or builder.ref(node.required_input(0)), node.output
    size = -(-p.n // COLUMNS) * -(-p.k // p.group) * (8 * COLUMNS + p.group * p.bits)
    target, is_new = builder.packed(("packed matmul", w, p, scales), size)
    if is_new:
        builder.prepare(
            "pack_matmul_weights",
            w=_at_load(builder, w), scales=scales[0], zeros=scales[1], y=target, n=p.n,
            k=p.k, bits=p.bits, group=p.group, n_step=p.n_step, k_step=p.k_step, scale_step=scales[2],
            zero_step=scales[3], flip=p.flip,
            units=-(-p.n // COLUMNS),
        )  # fmt: skip
    builder.step(
        "f32_matmul_packed", activation_args(activation),
        x=x, w=target, bias=builder.optional_ref(bias), y=builder.ref(y), rows=y.type.size // p.n, k=p.k,
        n=p.n, bits=p.bits, group=p.group, units=-(-p.n // COLUMNS),
    )  # fmt: skip
    builder.because(f"weights stay in {p.bits} bits, {builder.isa} build")


def packed_matmul(node: Node, builder: Builder) -> None:
    """One step, its weights laid out at load."""
    x, w, scales = (node.required_input(i) for i in range(3))
    zeros, bias, a = node.optional_input(3), node.optional_input(4), node.attrs
    if not all(v is None or builder.is_fixed(v) for v in (w, scales, zeros)):
        raise UnsupportedOpError(["packed weights that are computed"])
    middle = floats(builder, [2.0 ** (a.bits - 1)]) if zeros is None else _at_load(builder, zeros)
    p = Packed(w.type.shape[0], x.type.shape[-1], a.bits, a.block, w.type.shape[1], 1, 0)
    _product(node, builder, w, p, (_at_load(builder, scales), middle, 1, int(zeros is not None)), bias, Activation.NONE)


def float_matmul(node: Node, builder: Builder) -> None:
    """A product of floats with bytes, which stay bytes where all rows meet one matrix with a scale for each column."""
    w, a = node.required_input(1), node.attrs
    _, k, n = matmul_ops.matrix_sizes([None if v is None else v.type for v in node.inputs], a)
    stays = is_stored(w.type) and w.type.dtype in EIGHT_BIT and builder.is_fixed(w) and is_scaled_by_column(w.type, a)
    if stays:
        _product_of_bytes(node, builder, w, n, k, (k, 1) if a.transpose_b else (1, n))
    else:
        with_float_weights(matmul)(node, builder)


def _product_of_bytes(
    node: Node, builder: Builder, w: Value, n: int, k: int, steps: tuple[int, int], x: Ref | None = None
) -> None:
    """A product by bytes with one scale, or one for each of `n` outputs."""
    assert w.type.quant is not None
    scales, flip = w.type.quant.scales, flip_of(w.type)
    zeros = [z + flip for z in zeros_of(w.type, len(scales))]
    tables = floats(builder, list(map(round_to_f32, scales))), floats(builder, list(map(float, zeros)))
    p, by_output = Packed(n, k, 8, k, *steps, flip), int(len(scales) > 1)
    _product(node, builder, w, p, (*tables, by_output, by_output), node.optional_input(2), node.attrs.activation, x)


def find_byte_products(facts: Facts, taken: set[Node]) -> dict[Node, tuple[Node, ...]]:
    """The convolutions that are products by bytes, with the node that would make floats of these."""
    found = dict[Node, tuple[Node, ...]]()
    for node in facts.order:
        if node.op is conv_ops.CONV2D and node not in taken and _is_product(node):
            real = node.required_input(1)
            source = facts.writers.get(real)
            if source is not None and source not in taken and facts.is_inner(real) and _makes_floats(source):
                found[node] = (source,)
    taken.update(*found.values(), found)
    return found


def _makes_floats(node: Node) -> bool:
    """Whether a node dequantises constant bytes with one scale, or one for each output of a convolution."""
    w, y = node.inputs[0], node.output
    if node.op is not ew.DEQUANTIZE or w is None or w.type.quant is None or y.type.dtype is not DType.FLOAT32:
        return False
    return w.is_constant and w.type.dtype in EIGHT_BIT and (len(w.type.quant.scales) == 1 or w.type.quant.axis == 0)


def _is_product(node: Node) -> bool:
    """Whether a convolution is a product of its pixels, or of windows that are few beside its weights, and ends with an
    activation alone.
    """
    a, (n, oh, ow, co) = node.attrs, node.output.type.shape
    alone = a.groups == 1 and not a.exact and not any(v is not None for v in node.inputs[3:])
    if not alone or typical_rows(pixels := n * oh * ow) < LEAST_PIXELS:
        return False
    if _is_pointwise(node):
        return True
    return not has_size((*node.required_input(0).type.shape, pixels)) and pixels <= co and not winograd.fits(node)


def _is_pointwise(node: Node) -> bool:
    _, kh, kw, _ = node.required_input(1).type.shape
    return (kh, kw) == node.attrs.stride == (1, 1) and not any(node.attrs.pads)


def convolution(node: Node, builder: Builder, inner: tuple[Node, ...]) -> None:
    """A convolution as a product, whose weights stay bytes: a quarter of the memory of floats.

    Of single pixels it takes 0.75 to 1.05 of the time of tiles with float weights from 49 pixels on (64 to 1024
    channels, x86-64, November 2026), of one pixel 1.7 of it. Windows are laid side by side first (0.97 to 1.04
    of the time, 7 to 16 pixels high, 256 and 512 channels), which takes memory of the arena: less than floats would
    take, as there are no more of them than outputs.
    """
    co, kh, kw, ci = node.required_input(1).type.shape
    depth, x = kh * kw * ci, None if _is_pointwise(node) else _windows(node, builder)
    _product_of_bytes(node, builder, inner[0].required_input(0), co, depth, (depth, 1), x)


def _windows(node: Node, builder: Builder) -> Ref:
    """What each output pixel's window sees, one row a pixel; zeros outside of the image."""
    x, a = node.required_input(0), node.attrs
    (n, h, w, c), (_, oh, ow, _) = x.type.shape, node.output.type.shape
    _, kh, kw, _ = node.required_input(1).type.shape
    row, source, target = kh * kw * c, builder.ref(x), builder.scratch(4 * n * oh * ow * kh * kw * c)
    if any(a.pads):
        fill(builder, target, DType.FLOAT32, 0.0, n * oh * ow * row)
    for tap in range(kh * kw):
        down, right = tap // kw * a.dilation[0] - a.pads[0], tap % kw * a.dilation[1] - a.pads[2]
        (top, rows), (left, columns) = _inside(down, a.stride[0], h, oh), _inside(right, a.stride[1], w, ow)
        if rows <= 0 or columns <= 0:
            continue
        first = (top * a.stride[0] + down) * w + left * a.stride[1] + right
        part = StridedCopy(
            0, (n, rows, columns, c), first * c, (h * w * c, a.stride[0] * w * c, a.stride[1] * c, 1),
            (top * ow + left) * row + tap * c, (oh * ow * row, ow * row, row, 1),
        )  # fmt: skip
        strided_copy(builder, part, source, target, 4)
    return target


def _inside(shift: int, stride: int, size: int, outputs: int) -> tuple[int, int]:
    """The first output whose element `output * stride + shift` lies in an axis of this size, and how many do."""
    first = max(0, -(shift // stride))
    return first, min(outputs, (size - 1 - shift) // stride + 1) - first


LOWERINGS: dict[Op, Lower] = {matmul_ops.MATMUL: float_matmul, ops.PACKED_MATMUL: packed_matmul}
