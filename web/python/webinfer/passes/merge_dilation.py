"""A convolution between SPACE_TO_BATCH and BATCH_TO_SPACE is a dilated one: how older writers say dilation.

The importer says those operators as pad, reshape, transpose, reshape and as reshape, transpose, reshape,
slice; this pass knows these two chains.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from webinfer.graph.ir import Graph, Node, Op, Value
from webinfer.graph.queries import remove
from webinfer.ops import conv
from webinfer.ops import movement as mv

_TO_BATCH, _TO_SPACE = (2, 4, 0, 1, 3, 5), (2, 3, 0, 4, 1, 5)
_NONE = (0, 0, 0, 0)


@dataclass(slots=True)
class _Chain:
    """The image at the far end of a chain, the block size, what is padded or cropped there, and the nodes."""

    image: Value
    block: tuple[int, int]
    pads: tuple[int, int, int, int]
    nodes: list[Node]


def merge_dilation(graph: Graph) -> int:
    """Number of convolutions that became dilated. What leads to them is left as dead code."""
    producers = graph.producers()
    readers = {value: nodes[0] for value, nodes in graph.consumers().items() if len(nodes) == 1}
    outputs = set(graph.outputs)
    places = {node: i for i, node in enumerate(graph.nodes)}
    merged: set[Node] = set()
    count = 0
    for node in list(graph.nodes):
        if node.op not in (conv.CONV2D, conv.DEPTHWISE_CONV2D) or node.attrs.pads != _NONE or node in merged:
            continue
        if node.attrs.stride != (1, 1) or node.attrs.dilation != (1, 1) or len(node.inputs) > 3:
            continue
        before, after = _to_batch(node.inputs[0], producers), _to_space(node.output, readers, outputs)
        if before is None or after is None or before.block != after.block:
            continue
        pads = _left_over(before.pads, after.pads)
        if pads is None:
            continue
        attrs = dataclasses.replace(node.attrs, dilation=before.block, pads=pads)
        fused = Node(node.op, [before.image, *node.inputs[1:]], [after.image], attrs, node.label)
        if tuple(v.type for v in fused.outputs) != fused.op.infer(
            [None if v is None else v.type for v in fused.inputs], attrs
        ):
            continue
        graph.nodes[places[after.nodes[-1]]] = fused
        merged.update((node, *after.nodes[:-1]))  # the chain before it may have other readers
        count += 1
    remove(graph, merged)
    return count


def _left_over(pads: tuple[int, ...], crops: tuple[int, ...]) -> tuple[int, int, int, int] | None:
    """The pads less the rows and columns that are cropped again; None if more is cropped than was added."""
    top, bottom, left, right = (pad - crop for pad, crop in zip(pads, crops, strict=True))
    fits = min(top, bottom, left, right) >= 0 and not crops[0] and not crops[2]
    return (top, bottom, left, right) if fits else None


def _step(value: Value | None, op: Op, producers: dict[Value, Node]) -> Node | None:
    node = producers.get(value) if value is not None else None
    return node if node is not None and node.op is op else None


def _to_batch(value: Value | None, producers: dict[Value, Node]) -> _Chain | None:
    """The chain that ends in `value`: [N, H, W, C] → [BH*BW*N, H/BH, W/BW, C]."""
    last = _step(value, mv.RESHAPE, producers)
    turn = _step(last.inputs[0], mv.TRANSPOSE, producers) if last is not None else None
    first = _step(turn.inputs[0], mv.RESHAPE, producers) if turn is not None else None
    if last is None or turn is None or first is None or turn.attrs.perm != _TO_BATCH:
        return None
    image, split, wanted = first.inputs[0], first.output.type.shape, last.output.type.shape
    if image is None or image.type.rank != 4 or len(split) != 6 or len(wanted) != 4:
        return None
    n, h, bh, w, bw, c = split
    if image.type.shape != (n, h * bh, w * bw, c) or wanted != (n * bh * bw, h, w, c):
        return None
    pad = _step(image, mv.PAD, producers)
    if pad is None or not _pads_pixels_with_zero(pad) or pad.inputs[0] is None:
        return _Chain(image, (bh, bw), _NONE, [first, turn, last])
    edges = (pad.attrs.before[1], pad.attrs.after[1], pad.attrs.before[2], pad.attrs.after[2])
    return _Chain(pad.inputs[0], (bh, bw), edges, [pad, first, turn, last])


def _pads_pixels_with_zero(pad: Node) -> bool:
    a, source = pad.attrs, pad.inputs[0]
    quant = source.type.quant if source is not None else None
    zero = quant.zero_points[0] if quant is not None else 0
    return bool(a.mode == "constant" and a.value == zero and not any((*a.before[::3], *a.after[::3])))


def _next(value: Value, op: Op, readers: dict[Value, Node], outputs: set[Value]) -> Node | None:
    node = readers.get(value)
    return node if node is not None and node.op is op and value not in outputs else None


def _to_space(value: Value, readers: dict[Value, Node], outputs: set[Value]) -> _Chain | None:
    """The chain that begins with `value`: [BH*BW*N, H, W, C] → [N, H*BH, W*BW, C]; pads are what it crops."""
    first = _next(value, mv.RESHAPE, readers, outputs)
    turn = _next(first.output, mv.TRANSPOSE, readers, outputs) if first is not None else None
    last = _next(turn.output, mv.RESHAPE, readers, outputs) if turn is not None else None
    if first is None or turn is None or last is None or turn.attrs.perm != _TO_SPACE:
        return None
    split, whole = first.output.type.shape, last.output.type.shape
    if len(split) != 6 or value.type.rank != 4:
        return None
    bh, bw, n, h, w, c = split
    if value.type.shape != (bh * bw * n, h, w, c) or whole != (n, h * bh, w * bw, c):
        return None
    crop = _next(last.output, mv.SLICE, readers, outputs)
    if crop is None or set(crop.attrs.steps) != {1}:
        return _Chain(last.output, (bh, bw), _NONE, [first, turn, last])
    starts, sizes = crop.attrs.starts, crop.attrs.sizes
    if (starts[0], starts[3], sizes[0], sizes[3]) != (0, 0, n, c):
        return _Chain(last.output, (bh, bw), _NONE, [first, turn, last])
    edges = (starts[1], whole[1] - starts[1] - sizes[1], starts[2], whole[2] - starts[2] - sizes[2])
    return _Chain(crop.output, (bh, bw), edges, [first, turn, last, crop])
