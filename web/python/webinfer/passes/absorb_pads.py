"""Padding of an image with what a window would pad with anyway moves into the window's own pads.

Zeros that lengthen the rows of a product go too, with the weights that they would be multiplied by.
"""

from __future__ import annotations

import dataclasses
import math
import struct

from webinfer.graph.ir import Constant, Graph, Node, Value, apply
from webinfer.ops import conv, matmul, movement, pool
from webinfer.ops import elementwise as ew
from webinfer.ops.activation import Activation

_NOT_NEGATIVE = (Activation.RELU, Activation.RELU6, Activation.SIGMOID)
_NOT_NEGATIVE_OPS = (ew.RELU, ew.RELU6, ew.SIGMOID, ew.ABS, ew.SQUARE)
_MAX_PAD = 65536  # kernels count in 32 bits, and a padding that large is no padding
_LOWEST = -3e38  # as writers say minus infinity


def absorb_pads(graph: Graph) -> int:
    """Number of windows and products that took over a padding. A PAD nobody reads is left as dead code."""
    producers = graph.producers()
    count = _shorten_products(graph, producers)
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


def _shorten_products(graph: Graph, producers: dict[Value, Node]) -> int:
    """Number of products whose rows lost the zeros at their ends."""
    made, count = list[Node](), 0
    for node in graph.nodes:
        rows = producers.get(node.required_input(0)) if node.op is matmul.MATMUL else None
        reshaped = rows is not None and rows.op is movement.RESHAPE
        pad = producers.get(rows.required_input(0)) if rows is not None and reshaped else rows
        if rows is not None and pad is not None and pad.op is movement.PAD and _lengthens_rows(pad, rows.output):
            x, weights = pad.required_input(0), _rows_of(node, pad)
            if weights is not None:
                if reshaped:
                    shape = (*rows.output.type.shape[:-1], x.type.shape[-1])
                    made.append(apply(movement.RESHAPE, [x], movement.ReshapeAttrs(shape), rows.label))
                    x = made[-1].output
                node.inputs[:2] = [x, weights]
                count += 1
        made.append(node)
    graph.nodes = made
    return count


def _lengthens_rows(pad: Node, rows: Value) -> bool:
    """Whether a padding adds float zeros at the ends of rows, and nothing else."""
    a = pad.attrs
    others = any((*a.before[:-1], *a.after[:-1])) or min(a.before[-1], a.after[-1]) < 0
    same = pad.output.type.shape[-1:] == rows.type.shape[-1:] and rows.type.dtype.is_float
    return a.mode == "constant" and a.value == 0 and same and not others and pad.required_input(0).type.size > 0


def _rows_of(node: Node, pad: Node) -> Value | None:
    """The product's weights without the rows that meet zeros; None where they are not such rows of finite numbers."""
    w = node.required_input(1)
    held, first, count = w.constant, pad.attrs.before[-1], pad.required_input(0).type.shape[-1]
    if held is None or held.sparsity is not None or not isinstance(held.data, memoryview) or w.type.rank != 2:
        return None
    if node.attrs.transpose_a or node.attrs.transpose_b or held.stored.letter not in "ef" or w.type.quant is not None:
        return None
    step, data = w.type.shape[1] * held.stored.itemsize, held.data.cast("B")
    start, end = first * step, (first + count) * step
    if not all(
        math.isfinite(n)
        for part in (data[:start], data[end:])
        for (n,) in struct.iter_unpack(f"<{held.stored.letter}", part)
    ):
        return None
    type = dataclasses.replace(w.type, shape=(count, w.type.shape[1]))
    return Value(w.name, type, Constant(data[start:end], held.stored))


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
