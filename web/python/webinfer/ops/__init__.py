"""The operators: attributes, shape inference, cost, tolerance and test cases, declared once.

One file per family. Knows nothing of formats, backends or devices; imports only graph and the leaves.
"""

from webinfer.ops import (
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
from webinfer.ops.registry import OPS

__all__ = [
    "OPS",
    "attention",
    "conv",
    "detection",
    "dynamic_range",
    "elementwise",
    "gather",
    "landmarks",
    "language",
    "matmul",
    "movement",
    "normalization",
    "packed_matmul",
    "pattern",
    "pool",
    "pose",
    "recurrent",
    "reduce",
    "resize",
    "rotary",
    "scan",
    "softmax",
    "stored_matmul",
    "suppression",
]
