"""How each operator becomes steps of the program: one table row an operator.

A lowering picks kernels and their arguments; it computes nothing and looks at no bytes. What has no
row stands in `UNSUPPORTED` with the reason.
"""

from webinfer.backends.wasm.builder import Builder, Lower
from webinfer.backends.wasm.lowerings import (
    attention,
    cast,
    conv,
    described,
    detection,
    dynamic_range,
    elementwise,
    landmarks,
    language,
    movement,
    normalization,
    one_hot,
    packed_matmul,
    pool,
    pose,
    quantized,
    quantized_conv,
    recurrent,
    reduce,
    resize,
    scan,
    scatter,
    softmax,
    suppression,
)
from webinfer.backends.wasm.lowerings.float_weights import with_float_weights
from webinfer.graph.ir import Node, Op
from webinfer.lowering.affine import is_quantized
from webinfer.ops import OPS

_PLAIN: dict[Op, Lower] = {
    **described.LOWERINGS,
    **attention.LOWERINGS,
    **cast.LOWERINGS,
    **{op: with_float_weights(lower) for op, lower in conv.LOWERINGS.items()},
    **detection.LOWERINGS,
    **dynamic_range.LOWERINGS,
    **elementwise.LOWERINGS,
    **landmarks.LOWERINGS,
    **language.LOWERINGS,
    **movement.LOWERINGS,
    **packed_matmul.LOWERINGS,
    **normalization.LOWERINGS,
    **one_hot.LOWERINGS,
    **pool.LOWERINGS,
    **pose.LOWERINGS,
    **quantized.PLAIN,
    **quantized_conv.PLAIN,
    **recurrent.LOWERINGS,
    **reduce.LOWERINGS,
    **resize.LOWERINGS,
    **scan.LOWERINGS,
    **scatter.LOWERINGS,
    **softmax.LOWERINGS,
    **suppression.LOWERINGS,
}
_QUANTIZED: dict[Op, Lower] = {**quantized.QUANTIZED, **quantized_conv.QUANTIZED}


def _by_type(plain: Lower, stored: Lower) -> Lower:
    """Integers that stand for real numbers take the second way."""

    def lower(node: Node, builder: Builder) -> None:
        (stored if is_quantized(node) else plain)(node, builder)

    return lower


LOWERINGS: dict[Op, Lower] = {
    op: _by_type(_PLAIN[op], _QUANTIZED[op]) if op in _QUANTIZED else _PLAIN[op]
    for _, op in sorted(OPS.items())
    if op in _PLAIN
}
UNSUPPORTED: dict[Op, str] = {op: "no kernel yet" for _, op in sorted(OPS.items()) if op not in LOWERINGS}

__all__ = ["LOWERINGS", "UNSUPPORTED"]
