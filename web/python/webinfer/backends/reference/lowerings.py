"""What computes each operator, by operator. The reference has every one of them."""

from __future__ import annotations

from webinfer.backends.reference import (
    attention,
    conv,
    detection,
    dynamic_range,
    elementwise,
    gather,
    landmarks,
    language,
    matmul,
    movement,
    normalization,
    packed_matmul,
    pattern,
    pool,
    pose,
    recurrent,
    reduce,
    resize,
    rotary,
    scan,
    softmax,
    stored_matmul,
    suppression,
)
from webinfer.backends.reference.arrays import Compute
from webinfer.graph.ir import Op

LOWERINGS: dict[Op, Compute] = {
    **attention.LOWERINGS,
    **conv.LOWERINGS,
    **detection.LOWERINGS,
    **dynamic_range.LOWERINGS,
    **elementwise.LOWERINGS,
    **gather.LOWERINGS,
    **landmarks.LOWERINGS,
    **language.LOWERINGS,
    **matmul.LOWERINGS,
    **movement.LOWERINGS,
    **packed_matmul.LOWERINGS,
    **normalization.LOWERINGS,
    **pattern.LOWERINGS,
    **pool.LOWERINGS,
    **pose.LOWERINGS,
    **recurrent.LOWERINGS,
    **reduce.LOWERINGS,
    **resize.LOWERINGS,
    **rotary.LOWERINGS,
    **scan.LOWERINGS,
    **softmax.LOWERINGS,
    **stored_matmul.LOWERINGS,
    **suppression.LOWERINGS,
}
UNSUPPORTED: dict[Op, str] = {}
