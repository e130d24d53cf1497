"""How each operator becomes dispatches: `LOWERINGS` and `UNSUPPORTED` together name every operator.

A lowering returns data (shader, variables, bindings, parameters, workgroups) and touches no device. The files are named
after the families of ops/; what several of them share lies in conversion (element types), geometry (shapes), epilogue,
tiled, gemv and packed_product (products), variants (which kernel computes a product).
"""

from collections.abc import Sequence

from webinfer.backends.webgpu.dispatch import Dispatch, Lower, Target
from webinfer.backends.webgpu.lowerings import (
    attention,
    conv,
    conv_transpose,
    described,
    detection,
    dynamic_range,
    elementwise,
    landmarks,
    matmul,
    movement,
    normalization,
    pool,
    pose,
    recurrent,
    reduce,
    resize,
    scan,
    softmax,
    suppression,
)
from webinfer.graph.ir import Node, Op
from webinfer.ops import OPS
from webinfer.ops.reduce import REDUCTIONS


def _late(node: Node, target: Target) -> Sequence[Dispatch]:
    """What language models are made of, which is a late part."""
    from webinfer.backends.webgpu import language

    return language.LOWERINGS[node.op.name](node, target)


_BY_NAME: dict[str, Lower] = {
    **described.LOWERINGS,
    **elementwise.LOWERINGS,
    **{op.name: reduce.reduce for op in REDUCTIONS},
    "arg_max": reduce.arg_extreme,
    "arg_min": reduce.arg_extreme,
    "attention": attention.attention,
    "average_pool2d": pool.pool2d,
    "block_matmul": _late,
    "block_rows": _late,
    "cached_attention": _late,
    "concat": movement.concat,
    "conv2d": conv.conv2d,
    "conv_transpose2d": conv_transpose.conv_transpose2d,
    "cumulative_sum": scan.cumulative_sum,
    "depth_to_space": movement.strided,
    "depthwise_conv2d": conv.depthwise_conv2d,
    "detection_postprocess": suppression.detection_postprocess,
    "expand": movement.strided,
    "l2_pool2d": pool.pool2d,
    "landmarks_to_transform_matrix": landmarks.landmarks_to_transform_matrix,
    "layer_norm": normalization.layer_norm,
    "log_softmax": softmax.softmax,
    "matmul": matmul.matmul,
    "max_pool2d": pool.pool2d,
    "max_pool_with_argmax2d": pool.max_pool_with_argmax2d,
    "non_max_suppression": suppression.non_max_suppression,
    "packed_matmul": _late,
    "posenet_decoder": pose.posenet_decoder,
    "recurrent": recurrent.recurrent,
    "reshape": movement.reshape,
    "resize_bilinear": resize.resize_bilinear,
    "reverse": movement.strided,
    "round_rows": dynamic_range.round_rows,
    "sample": _late,
    "slice": movement.strided,
    "softmax": softmax.softmax,
    "space_to_depth": movement.strided,
    "ssd_detections": detection.ssd_detections,
    "stored_matmul": matmul.stored_matmul,
    "tile": movement.strided,
    "top_k": scan.top_k,
    "transpose": movement.strided,
}

LOWERINGS: dict[Op, Lower] = {OPS[name]: lower for name, lower in sorted(_BY_NAME.items())}
UNSUPPORTED: dict[Op, str] = {op: "no shader yet" for _, op in sorted(OPS.items()) if op not in LOWERINGS}


def lower(node: Node, target: Target) -> list[Dispatch]:
    """A node's dispatches; also those of one that stands for several and is in no graph (fused_groups.py)."""
    return list(LOWERINGS[node.op](node, target))
