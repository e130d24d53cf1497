"""Padding of an image with what a window would pad with anyway moves into the window's own pads."""

from __future__ import annotations

import dataclasses

from webinfer.graph.ir import Graph, Node, Value
from webinfer.ops import conv, movement, pool
from webinfer.ops import elementwise as ew
from webinfer.ops.activation import Activation

_NOT_NEGATIVE = (Activation.RELU, Activation.RELU6, Activation.SIGMOID)
_NOT_NEGATIVE_OPS = (ew.RELU, ew.RELU6, ew.SIGMOID, ew.ABS, ew.SQUARE)
_MAX_PAD = 65536  # kernels count in 32 bits, and a padding that large is no padding
_LOWEST = -3e38  # as writers say minus infinity


def absorb_pads(graph: Graph) -> int:
    """Number of convolutions and poolings that took over a padding. A PAD nobody reads is left as dead code."""
    producers = graph.producers()
    count = 0
    for node in graph.nodes:
        padded = node.inputs[0] if node.inputs else None
        pad = producers.get(padded) if padded is not None else None
        if pad is None or pad.op is not movement.PAD or not _pads_pixels(pad):
            continue
        if node.op in (conv.CONV2D, conv.DEPTHWISE_CONV2D):
            fits = _is_zero(pad)
        elif node.op is pool.MAX_POOL2D:
            fits = _never_wins(pad, producers) and _within_window(node, pad)
        else:
            continue
        if fits and max(_sum(node, pad)) <= _MAX_PAD:
            node.inputs[0] = pad.inputs[0]
            node.attrs = dataclasses.replace(node.attrs, pads=_sum(node, pad))
            count += 1
    return count


def _pads_pixels(pad: Node) -> bool:
    """Whether only height and width of an NHWC image are padded, with a constant."""
    a = pad.attrs
    return a.mode == "constant" and len(a.before) == 4 and not any((a.before[0], a.after[0], a.before[3], a.after[3]))


def _sum(node: Node, pad: Node) -> tuple[int, int, int, int]:
    top, bottom, left, right = node.attrs.pads
    before, after = pad.attrs.before, pad.attrs.after
    return (top + before[1], bottom + after[1], left + before[2], right + after[2])


def _is_zero(pad: Node) -> bool:
    """Whether the padding is the real number zero."""
    source = pad.inputs[0]
    assert source is not None
    quant = source.type.quant
    zero = 0 if quant is None else quant.zero_points[0]
    return bool(pad.attrs.value == zero)


def _never_wins(pad: Node, producers: dict[Value, Node]) -> bool:
    """Whether the padding never exceeds a pixel, so that a maximum does not see it."""
    source = pad.inputs[0]
    assert source is not None
    if not source.type.dtype.is_float:
        return bool(pad.attrs.value <= source.type.dtype.range[0])
    if pad.attrs.value <= _LOWEST:
        return True
    writer = producers.get(source)
    if pad.attrs.value > 0 or writer is None:
        return False
    activation: Activation = getattr(writer.attrs, "activation", Activation.NONE)
    return writer.op in _NOT_NEGATIVE_OPS or activation in _NOT_NEGATIVE


def _within_window(node: Node, pad: Node) -> bool:
    """Whether no window would hold padding only, which a maximum must not see."""
    top, bottom, left, right = _sum(node, pad)
    reach = [(k - 1) * d + 1 for k, d in zip(node.attrs.window, node.attrs.dilation, strict=True)]
    return bool(max(top, bottom) < reach[0] and max(left, right) < reach[1])
