"""8-bit weights as the kernels take them: panels of eight outputs, with the numbers that belong to each output."""

from __future__ import annotations

from webinfer.backends.wasm.builder import Builder
from webinfer.backends.wasm.lowerings.affine import byte_zero, floats, integers
from webinfer.backends.wasm.lowerings.each_product import Batch, each_product
from webinfer.dtypes import DType, all_to_f32
from webinfer.graph.ir import Node, Value
from webinfer.kernel_constants import Q8_COLUMNS, Q8_HEAD_BYTES
from webinfer.lazy_dataclass import dataclass
from webinfer.lowering.affine import is_stored, scale_of, zeros_of
from webinfer.plan.blocks import Arguments, Ref


@dataclass(frozen=True, slots=True)
class Weights:
    """How a weight tensor is read by q8_pack_weights: sizes, strides and first element, all in elements."""

    co: int
    taps: int
    ci: int
    out_stride: int
    tap_stride: int
    ci_stride: int
    first: int = 0
    first_out: int = 0  # of bias and scales
    order: tuple[int, ...] = ()  # of the taps in a panel, if not theirs
    dense: bool = True  # or one filter a channel

    @property
    def packed_bytes(self) -> int:
        """Bytes of the packed form."""
        pairs = 2 * -(-self.taps * self.ci // 4)
        return -(-self.co // Q8_COLUMNS) * (Q8_HEAD_BYTES + pairs * 4 * Q8_COLUMNS)


def bias_of(node: Node) -> Value | None:
    """The bias that is packed with the weights: that of a product that gives floats is not."""
    return node.optional_input(2) if is_stored(node.output.type) else None


def is_known(node: Node, builder: Builder) -> bool:
    """Whether weights and bias are known at load."""
    bias = bias_of(node)
    return builder.is_fixed(node.required_input(1)) and (bias is None or builder.is_fixed(bias))


def source_of(w: Value, builder: Builder, fixed: bool) -> Ref:
    """Where the weights lie as the file has them, where that will do."""
    plain = w.constant is not None and w.constant.sparsity is None and fixed
    return builder.weights(w) if plain else builder.ref(w)


def factors(node: Node, builder: Builder, weights: Weights) -> tuple[Ref, Ref]:
    """What each output's sums are multiplied by, and the zero point of its weights."""
    x, w, y = node.required_input(0), node.required_input(1), node.output
    assert w.type.quant is not None
    scale_x, scale_y = scale_of(x.type), scale_of(y.type) if is_stored(y.type) else 1.0
    total = max(weights.first_out + weights.co, len(w.type.quant.scales))
    own = slice(weights.first_out, weights.first_out + weights.co)
    products = all_to_f32([scale_x * s for s in all_to_f32(w.type.quant.scales)])
    steps = all_to_f32([product / scale_y for product in products])
    scales = floats(builder, (steps * total if len(steps) == 1 else steps)[own])
    return scales, integers(builder, zeros_of(w.type, total)[own])


ONE = Batch((), (), ())  # weights of one product, which most nodes have


def pack(node: Node, builder: Builder, weights: Weights, batch: Batch = ONE) -> Ref:
    """Panels of the weights with their biases and factors: packed at load, or every time if they can change.

    Those of a batch of matrices lie one after the other. The bias of a product that gives floats is
    not among them.
    """
    x, w, bias = node.required_input(0), node.required_input(1), bias_of(node)
    fixed = is_known(node, builder)
    scales, zeros = factors(node, builder, weights)
    key = ("q8", w, bias, weights, scales, zeros, byte_zero(x.type), batch)
    nbytes = batch.count * weights.packed_bytes
    target, is_new = builder.packed(key, nbytes) if fixed else (builder.scratch(nbytes), True)
    if is_new:
        put = builder.prepare if fixed else builder.step
        order = integers(builder, weights.order) if weights.order else None
        source = source_of(w, builder, fixed) + weights.first
        places: Arguments = {
            "zeros": zeros, "w_signed": int(w.type.dtype is DType.INT8), "co": weights.co, "taps": weights.taps,
            "ci": weights.ci, "co_step": weights.out_stride, "tap_step": weights.tap_stride,
            "ci_step": weights.ci_stride,
        }  # fmt: skip
        paired = None
        if fixed and weights.dense and not batch.shape:
            paired = builder.scratch(4 + 4 * -(-weights.co // Q8_COLUMNS))
            put("q8_weigh_pairs", places, w=source, y=paired)
        inner: Arguments = {
            "bias": None if bias is None else builder.ref(bias) + 4 * weights.first_out, "scales": scales,
            "order": order, "paired": paired, "x_zero": byte_zero(x.type), "dense": int(weights.dense),
        }  # fmt: skip
        each_product(
            builder, batch, "q8_pack_weights", {"b": "w", "c": "zeros", "d": "scales", "e": "bias", "y": "y"},
            {"b": (source, weights.co * weights.taps * weights.ci), "y": (target, weights.packed_bytes)},
            places, inner, units=-(-weights.co // Q8_COLUMNS), put=put,
        )  # fmt: skip
    return target
