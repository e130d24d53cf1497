"""What computes each operator. The reference has every one of them."""

from __future__ import annotations

from webinfer.backends.reference import (
    conv,
    detection,
    elementwise,
    gather,
    landmarks,
    movement,
    pattern,
    pool,
    pose,
    reduce,
)
from webinfer.backends.reference.arrays import Compute
from webinfer.graph.ir import Op

LOWERINGS: dict[Op, Compute] = {
    **conv.LOWERINGS,
    **detection.LOWERINGS,
    **elementwise.LOWERINGS,
    **gather.LOWERINGS,
    **landmarks.LOWERINGS,
    **movement.LOWERINGS,
    **pattern.LOWERINGS,
    **pool.LOWERINGS,
    **pose.LOWERINGS,
    **reduce.LOWERINGS,
}
UNSUPPORTED: dict[Op, str] = {}
