"""softmax(q kT * scale + mask) v becomes one node, with the transposes before and behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from webinfer.graph.ir import Graph, Node, Op, Value, apply
from webinfer.ops import attention as att
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul as mm
from webinfer.ops import movement as mv
from webinfer.ops import softmax as sm
from webinfer.ops.activation import Activation
from webinfer.ops.strides import row_major
from webinfer.passes.readers import MAX_WALK, producer_of, remove, scalar_constant, single_producers

Writers = Mapping[Value, Node]
Axes = tuple[tuple[int, int], ...]  # (size, elements from one to the next)


@dataclass(frozen=True, slots=True)
class _Found:
    """What an attention is made of. `q`, `k`, `v` as products read them, k with its last axes swapped if `turned`."""

    q: Value
    k: Value
    v: Value
    mask: Value | None
    scale: float
    turned: bool
    clear_nan: bool


def fuse_attention(graph: Graph) -> int:
    """Number of attentions; what nobody reads any more stays."""
    writers, mergeable = graph.producers(), single_producers(graph)
    behind = {node.inputs[0]: node for node in graph.nodes if node.op is mv.TRANSPOSE}
    nodes: list[Node] = []
    gone: set[Node] = set()
    count = 0
    for node in graph.nodes:
        found = _found(node, writers)
        made = _made(node, found, writers, behind if node.output in mergeable else {}) if found is not None else None
        if made is None:
            nodes.append(node)
            continue
        count += 1
        nodes += made
        if made[-1].output is not node.output:
            gone.add(behind[node.output])
    graph.nodes = nodes
    remove(graph, gone)
    return count


def _found(node: Node, writers: Writers) -> _Found | None:
    """The attention that ends in this product."""
    if not _is_plain(node) or node.attrs.transpose_a or node.attrs.transpose_b:
        return None
    weights, clear_nan = node.required_input(0), False
    chosen = producer_of(weights, writers, ew.WHERE)
    if chosen is not None and scalar_constant(chosen.inputs[1]) == 0.0:
        test = producer_of(chosen.inputs[0], writers, ew.IS_NAN)
        weights, clear_nan = chosen.required_input(2), True
        if test is None or test.inputs[0] is not weights:
            return None
    softmax = producer_of(weights, writers, sm.SOFTMAX)
    if softmax is None or softmax.attrs.axis != weights.type.rank - 1 or softmax.attrs.out_type is not None:
        return None
    logits, scale = _scaled(softmax.required_input(0), writers)
    mask = None
    total = producer_of(logits, writers, ew.ADD)
    if total is not None and scale == 1.0 and total.attrs.activation is Activation.NONE:
        for first, second in (total.inputs, total.inputs[::-1]):
            assert first is not None
            inner, factor = _scaled(first, writers)
            if producer_of(inner, writers, mm.MATMUL) is not None:
                logits, mask, scale = inner, second, factor
                break
    scores = producer_of(logits, writers, mm.MATMUL)
    if scores is None or not _is_plain(scores) or scores.attrs.transpose_a:
        return None
    if mask is not None and (total is None or total.output.type != logits.type or softmax.attrs.beta != 1.0):
        return None
    q, k, v = scores.required_input(0), scores.required_input(1), node.required_input(1)
    scale *= softmax.attrs.beta
    return _Found(q, k, v, mask, scale, not scores.attrs.transpose_b, clear_nan)


def _is_plain(node: Node) -> bool:
    """Whether it is a product of two tensors of one rank, and nothing else."""
    if node.op is not mm.MATMUL or node.attrs.activation is not Activation.NONE or node.optional_input(2) is not None:
        return False
    a, b = node.required_input(0).type, node.required_input(1).type
    return a.dtype.is_float and a.rank == b.rank and a.rank in (3, 4) and a.shape[:-2] == b.shape[:-2]


def _scaled(value: Value, writers: Writers) -> tuple[Value, float]:
    """What the value is a multiple of, and how much."""
    node = producer_of(value, writers, ew.MUL, ew.DIV, ew.LINEAR)
    if node is None:
        return value, 1.0
    if node.op is ew.LINEAR:
        return (node.required_input(0), node.attrs.a) if node.attrs.b == 0 else (value, 1.0)
    if node.attrs.activation is not Activation.NONE:
        return value, 1.0
    for x, other in (node.inputs, node.inputs[::-1])[: 1 if node.op is ew.DIV else 2]:
        number = scalar_constant(other)
        if number and x is not None and x.type == value.type:
            return x, 1 / number if node.op is ew.DIV else number
    return value, 1.0


def _made(node: Node, found: _Found, writers: Writers, behind: Mapping[Value | None, Node]) -> list[Node] | None:
    """The nodes that take the place of the last product; the attention is the last of them."""
    *lead, n, _ = found.q.type.shape
    b, h = (1, *lead)[-2:]
    keys, width = found.v.type.shape[-2:]
    depth = found.q.type.shape[-1]
    if max(depth, width) > att.MAX_WIDTH or not all((*found.q.type.shape, keys, width)):
        return None
    made: list[Node] = []

    def add(op: Op, value: Value, attrs: object) -> Value:
        made.append(apply(op, [value], attrs, f"{node.label}/{op.name}"))
        return made[-1].output

    scale, operands, inner = found.scale, list[Value](), list[bool]()
    shapes = ((found.q, n, depth, False), (found.k, keys, depth, found.turned), (found.v, keys, width, False))
    for value, rows, size, turned in shapes:
        source, times, inside = _source(value, (b, h, rows, size), turned, writers, scalable=value is not found.v)
        if source is None:  # no way back to rows: a step turns them
            swapped = mv.TransposeAttrs((*range(len(lead)), len(lead) + 1, len(lead)))
            source = add(mv.TRANSPOSE, value, swapped)
        shape = (b, rows, h, size) if inside else (b, h, rows, size)
        if source.type.shape != shape:
            source = add(mv.RESHAPE, source, mv.ReshapeAttrs(shape))
        scale *= times
        operands.append(source)
        inner.append(inside)
    if found.mask is not None:
        mask = found.mask
        full = ((1,) * (4 - mask.type.rank) + mask.type.shape)[-4:]
        if mask.type.rank > len(lead) + 2 or full[-1] != keys:
            return None
        operands.append(mask if mask.type.rank == 4 else add(mv.RESHAPE, mask, mv.ReshapeAttrs(full)))
    after = behind.get(node.output)
    turned_back = after is not None and len(lead) == 2 and after.attrs.perm == (0, 2, 1, 3)
    attrs = att.AttentionAttrs(scale, (inner[0], inner[1], inner[2], turned_back), found.clear_nan)
    fused = apply(att.ATTENTION, operands, attrs, node.label)
    target = after.output if turned_back and after is not None else node.output
    if fused.output.type == target.type:
        fused.outputs = [target]
        return [*made, fused]
    made += [fused, Node(mv.RESHAPE, [fused.output], [target], mv.ReshapeAttrs(target.type.shape), node.label)]
    return made


def _source(
    value: Value, shape: tuple[int, int, int, int], turned: bool, writers: Writers, scalable: bool
) -> tuple[Value | None, float, bool]:
    """The earliest tensor that holds the rows, what it is multiplied by on the way, and whether heads lie inside rows.

    None if the value itself holds columns and so does everything before it.
    """
    b, h, rows, size = shape
    around: Axes = ((b, h * rows * size), (h, rows * size), (rows, size), (size, 1))
    inside: Axes = ((b, h * rows * size), (h, size), (rows, h * size), (size, 1))
    start: Axes = ((b, h * rows * size), (h, rows * size), (rows, 1), (size, rows)) if turned else around
    best: tuple[Value | None, float, bool] = (None, 1.0, False)
    for found, axes, times in _way_back(value, start, writers, scalable):
        for wanted, is_inside in ((around, False), (inside, True)):
            if all(n == 1 or step == other for (n, step), (_, other) in zip(axes, wanted, strict=True)):
                best = found, times, is_inside
                break
    return best


def _way_back(value: Value, axes: Axes, writers: Writers, scalable: bool) -> Iterator[tuple[Value, Axes, float]]:
    """The value and those that it is a move of, or a multiple: each with the axes as they lie there, and the factor."""
    times = 1.0
    for _ in range(MAX_WALK):
        yield value, axes, times
        node = producer_of(value, writers, mv.RESHAPE, mv.TRANSPOSE)
        if node is not None and node.op is mv.TRANSPOSE:
            moved = _before(axes, node)
            if moved is None:
                return
            axes = moved
        if node is None:
            source, factor = _scaled(value, writers) if scalable else (value, 1.0)
            if source is value:
                return
            value, times = source, times * factor
        else:
            value = node.required_input(0)


def _before(axes: Axes, node: Node) -> Axes | None:
    """The axes as they lie in a transpose's operand, if each of them runs along one of its axes."""
    shape, strides = node.output.type.shape, row_major(node.output.type.shape)
    source = row_major(node.required_input(0).type.shape)
    moved = []
    for size, step in axes:
        if size == 1:
            moved.append((size, 0))
            continue
        places = [
            i for i, stride in enumerate(strides)
            if shape[i] > 1 and not step % stride and (size - 1) * (step // stride) < shape[i]
        ]  # fmt: skip
        if not places:
            return None
        at = places[-1] if len(places) == 1 else max(places, key=lambda i: strides[i])
        moved.append((size, step // strides[at] * source[node.attrs.perm[at]]))
    return tuple(moved)
