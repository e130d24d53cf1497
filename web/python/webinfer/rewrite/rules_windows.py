"""What stands around a window moves into it: pads, crops, and the blocks that older writers say dilation by."""

from __future__ import annotations

import dataclasses
import math
import struct

from webinfer.errors import ShapeError
from webinfer.graph.ir import Constant, Graph, Node, Value, apply
from webinfer.ops import conv, matmul, movement, pool
from webinfer.ops import elementwise as ew
from webinfer.ops.activation import Activation
from webinfer.rewrite.matcher import changed, rewrite, rule
from webinfer.rewrite.patterns import Match, Variable, kind

NOT_NEGATIVE = (Activation.RELU, Activation.RELU6, Activation.SIGMOID)
NOT_NEGATIVE_OPS = (ew.RELU, ew.RELU6, ew.SIGMOID, ew.ABS, ew.SQUARE)
MAX_PAD = 65536  # kernels count in 32 bits, and a padding that large is not a padding
LOWEST = -3e38  # as writers say minus infinity
# Axes of SpaceToBatch and BatchToSpace as reshapes and transposes.
TO_BATCH, TO_SPACE = (2, 4, 0, 1, 3, 5), (2, 3, 0, 4, 1, 5)
NONE = (0, 0, 0, 0)  # no padding

IMAGE = Variable("image")
convolution = kind(conv.CONV2D, conv.DEPTHWISE_CONV2D)
maximum, product = kind(pool.MAX_POOL2D), kind(matmul.MATMUL)
pad, reshape, transpose, cut = map(kind, (movement.PAD, movement.RESHAPE, movement.TRANSPOSE, movement.SLICE))


# ---- pads


def _pads_pixels(node: Node) -> bool:
    """Whether only height and width of an NHWC image are padded, with a constant."""
    a = node.attrs
    return a.mode == "constant" and len(a.before) == 4 and not any((*a.before[::3], *a.after[::3]))


def _pads_zeros(node: Node) -> bool:
    """Whether the padding of pixels is the real number zero."""
    quant = node.required_input(0).type.quant
    zero = 0 if quant is None else quant.zero_points[0]
    return _pads_pixels(node) and bool(node.attrs.value == zero)


def _edges(node: Node) -> tuple[int, int, int, int]:
    """Top, bottom, left and right of a padding of pixels."""
    (_, top, left, _), (_, bottom, right, _) = node.attrs.before, node.attrs.after
    return top, bottom, left, right


def _absorbed(match: Match) -> list[Node] | None:
    """The window with the padding as its own."""
    node, before = match.root, match.node("pad")
    top, bottom, left, right = (own + more for own, more in zip(node.attrs.pads, _edges(before), strict=True))
    if max(top, bottom, left, right) > MAX_PAD:
        return None
    if node.op is pool.MAX_POOL2D:
        reach = [(k - 1) * d + 1 for k, d in zip(node.attrs.window, node.attrs.dilation, strict=True)]
        if max(top, bottom) >= reach[0] or max(left, right) >= reach[1] or not _never_wins(match, before):
            return None  # a window of padding only, which a maximum must not see
    return changed(match, node, [before.inputs[0], *node.inputs[1:]], pads=(top, bottom, left, right))


def _never_wins(match: Match, node: Node) -> bool:
    """Whether the padding never exceeds a pixel, so that a maximum does not see it."""
    source, value = node.required_input(0), node.attrs.value
    if not source.type.dtype.is_float:
        return bool(value <= source.type.dtype.range[0])
    writer = match.facts.writers.get(source)
    if value <= LOWEST or value > 0 or writer is None:
        return bool(value <= LOWEST)
    activation: Activation = getattr(writer.attrs, "activation", Activation.NONE)
    return writer.op in NOT_NEGATIVE_OPS or activation in NOT_NEGATIVE


# ---- zeros that lengthen the rows of a product, and the weights that they would be multiplied by


def _lengthens_rows(node: Node) -> bool:
    """Whether a padding adds float zeros at the ends of rows, and nothing else."""
    a, x = node.attrs, node.required_input(0).type
    others = any((*a.before[:-1], *a.after[:-1])) or min(a.before[-1], a.after[-1]) < 0
    return a.mode == "constant" and a.value == 0 and x.dtype.is_float and not others and x.size > 0


def _shortened(match: Match) -> list[Node] | None:
    node, before, rows = match.root, match.node("pad"), match.root.required_input(0)
    x, weights = before.required_input(0), _rows_of(node, before)
    if weights is None or before.output.type.shape[-1:] != rows.type.shape[-1:]:
        return None
    made = list[Node]()
    if rows is not before.output:
        shape = (*rows.type.shape[:-1], x.type.shape[-1])
        made.append(apply(movement.RESHAPE, [x], movement.ReshapeAttrs(shape), match.node("rows").label))
        x = made[-1].output
    return [*made, *changed(match, node, [x, weights, *node.inputs[2:]])]


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


# ---- dilation as a convolution between SPACE_TO_BATCH and BATCH_TO_SPACE


def _is_dense(node: Node) -> bool:
    """Whether a convolution has neither pads nor steps, and nothing but a bias behind it."""
    a = node.attrs
    return a.pads == NONE and a.stride == a.dilation == (1, 1) and len(node.inputs) <= 3


def _dilated(match: Match) -> list[Node] | None:
    """The dilated convolution, where both chains have the same blocks."""
    node, image, whole = match.node("convolution"), match.value("image"), match.root.output
    split, merged = match.node("split").output.type.shape, match.node("merged").output.type.shape
    x, y = node.required_input(0).type.shape, node.output.type.shape
    if not len(split) == len(merged) == 6 or not image.type.rank == len(x) == whole.type.rank == 4:
        return None
    (n, h, bh, w, bw, c), (mh, mw, _, oh, ow, co) = split, merged
    fits = (n, h * bh, w * bw, c) == image.type.shape and x == (n * bh * bw, h, w, c)
    fits = fits and merged == (bh, bw, n, *y[1:]) and whole.type.shape == (n, oh * mh, ow * mw, co)
    return _typed(changed(match, node, [image, *node.inputs[1:]], dilation=(bh, bw))) if fits else None


def _typed(nodes: list[Node]) -> list[Node] | None:
    """The last node, if its result is what it infers."""
    node = nodes[-1]
    try:
        types = node.op.infer([None if v is None else v.type for v in node.inputs], node.attrs)
    except ShapeError:
        return None
    return nodes if types == (node.output.type,) else None


def _is_dilated(node: Node) -> bool:
    return node.attrs.dilation != (1, 1) and node.attrs.stride == (1, 1) and len(node.inputs) <= 3


def _cropped(match: Match) -> list[Node] | None:
    """The convolution without the rows and columns that were padded only to be cropped again."""
    node, a = match.node("convolution"), match.root.attrs
    (n, h, w, c), (_, height, width, _) = node.output.type.shape, a.sizes
    top, bottom, left, right = node.attrs.pads
    pads = (top, bottom - (h - height), left, right - (w - width))
    whole = not any(a.starts) and (a.sizes[0], a.sizes[3], {*a.steps}) == (n, c, {1})
    return _typed(changed(match, node, pads=pads)) if whole and min(pads) >= 0 else None


BLOCKS = reshape(transpose(reshape(IMAGE, name="split"), when=lambda node: node.attrs.perm == TO_BATCH))
DENSE = convolution(BLOCKS, ..., name="convolution", once=True, curved=True, when=_is_dense)
SPACE = transpose(reshape(DENSE, name="merged", once=True), once=True, when=lambda node: node.attrs.perm == TO_SPACE)
ROWS = pad(..., name="pad", when=_lengthens_rows)
DILATIONS = (
    rule("dilation", reshape(SPACE), _dilated),
    rule(
        "pads of a dilation",
        convolution(pad(..., name="pad", when=_pads_zeros), ..., curved=True, when=_is_dilated),
        _absorbed,
    ),
    rule(
        "crops of a dilation",
        cut(convolution(..., name="convolution", once=True, curved=True, when=_is_dilated)),
        _cropped,
    ),
)
PADS = (
    rule("pad of a convolution", convolution(pad(..., name="pad", when=_pads_zeros), ..., curved=True), _absorbed),
    rule("pad of a maximum", maximum(pad(..., name="pad", when=_pads_pixels), curved=True), _absorbed),
    rule("zeros of rows", product(ROWS | reshape(ROWS, name="rows"), ..., curved=True), _shortened),
)


def merge_dilation(graph: Graph) -> int:
    """Number of convolutions that became dilated, and of their pads and crops that moved into them."""
    return rewrite(graph, DILATIONS)


def absorb_pads(graph: Graph) -> int:
    """Number of windows and products that took over a padding."""
    return rewrite(graph, PADS)
