"""softmax(q kT * scale + mask) v becomes one node, with its scores' cap and the transposes around it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from webinfer.dtypes import DType
from webinfer.graph.ir import Graph, Node, Op, Value, apply
from webinfer.graph.queries import producer_of
from webinfer.ops import attention as att
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul as mm
from webinfer.ops import movement as mv
from webinfer.ops import softmax as sm
from webinfer.ops.strides import moved_axes, row_major
from webinfer.rewrite.facts import Facts, is_plain
from webinfer.rewrite.matcher import rewrite, rule
from webinfer.rewrite.patterns import MAX_WALK, Match, Number, Scalar, Variable, add, kind

Axes = tuple[tuple[int, int], ...]  # (size, elements from one to the next)

Q, K, V, MASK, SCALE, CAP = *map(Variable, ("q", "k", "v", "mask")), Scalar("scale"), Scalar("cap")
matmul, softmax, reshape, transpose, where, is_nan, tanh, cast, attention = map(
    kind, (mm.MATMUL, sm.SOFTMAX, mv.RESHAPE, mv.TRANSPOSE, ew.WHERE, ew.IS_NAN, ew.TANH, ew.CAST, att.ATTENTION)
)


def _is_plain(node: Node) -> bool:
    """Whether it is a product of two tensors of one rank."""
    a, b = node.required_input(0).type, node.required_input(1).type
    fits = a.dtype.is_float and a.rank == b.rank and a.rank in (3, 4) and a.shape[:-2] == b.shape[:-2]
    return fits and not node.attrs.transpose_a


def _is_last_product(node: Node) -> bool:
    return _is_plain(node) and not node.attrs.transpose_b


def _is_along_keys(node: Node) -> bool:
    return node.attrs.axis == node.output.type.rank - 1 and node.attrs.out_type is None


def _needs_no_factor(node: Node) -> bool:
    return _is_along_keys(node) and node.attrs.beta == 1.0


def _widens(node: Node) -> bool:
    """Whether it is the cast before a softmax in float32, as PyTorch has it, or between that and the one behind."""
    return (node.required_input(0).type.dtype, node.output.type.dtype) == (DType.FLOAT16, DType.FLOAT32)


def _narrows(node: Node) -> bool:
    return (node.required_input(0).type.dtype, node.output.type.dtype) == (DType.FLOAT32, DType.FLOAT16)


def _fits(match: Match) -> bool:
    """Whether all is of one shape and type, and the attention is not empty or wider than its kernels."""
    q, v = match.value("q").type.shape, match.value("v").type.shape
    same = match.node("scores").output.type.shape == match.node("softmax").output.type.shape
    same = same and len({match.value(name).type.dtype for name in ("q", "v", "mask") if name in match.bound}) == 1
    if "cap" in match.bound and (match.number("cap") <= 0 or match.node("softmax").attrs.beta != 1.0):
        return False
    return same and max(q[-1], v[-1]) <= att.MAX_WIDTH and all((*q, *v[-2:]))


def _fused(match: Match) -> list[Node] | None:
    """The nodes that take the place of the last product; the attention is the last of them, or before a reshape."""
    q, k, v = (match.value(name) for name in "qkv")
    root, made = match.root, list[Node]()
    *lead, n, depth = q.type.shape
    b, h = (1, *lead)[-2:]
    keys, width = v.type.shape[-2:]

    def step(op: Op, value: Value, attrs: object) -> Value:
        made.append(apply(op, [value], attrs, f"{root.label}/{op.name}"))
        return made[-1].output

    columns = not match.node("scores").attrs.transpose_b
    scale, operands, inner = match.number("scale") * match.node("softmax").attrs.beta, list[Value](), list[bool]()
    for value, rows, size, turned in ((q, n, depth, False), (k, keys, depth, columns), (v, keys, width, False)):
        source, times, inside = _source(value, (b, h, rows, size), turned, match.facts, scalable=value is not v)
        if source is None:  # no way back to rows: a step turns them
            source = step(mv.TRANSPOSE, value, mv.TransposeAttrs((*range(len(lead)), len(lead) + 1, len(lead))))
        shape = (b, rows, h, size) if inside else (b, h, rows, size)
        operands.append(source if source.type.shape == shape else step(mv.RESHAPE, source, mv.ReshapeAttrs(shape)))
        scale *= times
        inner.append(inside)
    if "mask" in match.bound:
        mask = match.value("mask")
        full = ((1,) * (4 - mask.type.rank) + mask.type.shape)[-4:]
        if mask.type.rank > len(lead) + 2 or full[-1] != keys:
            return None
        operands.append(mask if mask.type.rank == 4 else step(mv.RESHAPE, mask, mv.ReshapeAttrs(full)))
    cap = match.number("cap") if "cap" in match.bound else 0.0  # of scores that are products * scale / cap until then
    lies = inner[0], inner[1], inner[2], False
    attrs = att.AttentionAttrs(scale * (cap or 1.0), lies, "weights" in match.bound, cap)
    made.append(apply(att.ATTENTION, operands, attrs, root.label))
    if made[-1].output.type != root.output.type:
        made.append(Node(mv.RESHAPE, [made[-1].output], [], mv.ReshapeAttrs(root.output.type.shape), root.label))
    made[-1].outputs = root.outputs
    return made


def _biases_first(match: Match) -> list[Node] | None:
    """The sum of two biases, which scores got while their keys were places of a picture, added to the scores."""
    root, places = match.root, match.node("by places")
    scores = places.required_input(0)
    if scores.type != root.output.type:
        return None
    total = apply(ew.ADD, [match.value("one"), match.value("other")], ew.BinaryAttrs(), root.label)
    if total.output.type != places.output.type:
        return None
    turned = apply(mv.RESHAPE, [total.output], mv.ReshapeAttrs(scores.type.shape), root.label)
    return [total, turned, Node(ew.ADD, [scores, turned.output], root.outputs, ew.BinaryAttrs(), root.label)]


def _in_parts(match: Match) -> list[Node] | None:
    """The attention that adds up its mask by itself, from a part for the rows of a picture and one for its columns.

    A picture of 64 by 64 places has 805 MB of such masks for 12 heads; the parts have 25. Columns are quads: of others,
    such as windows of 14 by 14, masks are small, and each key would cost a load more.
    """
    node, mask = match.root, match.root.required_input(3)
    total = _before_reshapes(mask, match.facts)
    if total is None or total.op is not ew.ADD or not is_plain(total) or match.facts.is_known(total.output):
        return None
    *lead, rows, columns = total.output.type.shape
    if not lead or rows == 1 or columns % 4 or rows * columns != mask.type.shape[-1]:
        return None
    for i in (0, 1):
        first, second = total.required_input(i), total.required_input(1 - i)
        if (first.type.shape, second.type.shape) == ((*lead, rows, 1), (*lead, 1, columns)):
            made = [
                apply(mv.RESHAPE, [part], mv.ReshapeAttrs((*mask.type.shape[:3], size)), f"{node.label}/bias")
                for part, size in ((first, rows), (second, columns))
            ]
            inputs = [*node.inputs[:3], *(part.output for part in made)]
            return [*made, Node(node.op, inputs, node.outputs, node.attrs, node.label)]
    return None


def _grouped(match: Match) -> list[Node] | None:
    """The attention whose heads share keys and values, where the file repeats these for each head of the queries."""
    node = match.root
    k, v = (_unrepeated(node.required_input(i), 2 if node.attrs.inner[i] else 1, match.facts) for i in (1, 2))
    if k is None or v is None or k[1] != v[1]:
        return None
    made, shared = list[Node](), list[Value]()
    for value, _, shape in (k, v):
        if value.type.shape != shape:
            made.append(apply(mv.RESHAPE, [value], mv.ReshapeAttrs(shape), f"{node.label}/shared"))
            value = made[-1].output
        shared.append(value)
    inputs = [node.inputs[0], *shared, *node.inputs[3:]]
    return [*made, Node(node.op, inputs, node.outputs, node.attrs, node.label)]


def _unrepeated(value: Value, heads: int, facts: Facts) -> tuple[Value, int, tuple[int, ...]] | None:
    """What keys or values repeat, how often, and the shape with fewer heads; None if nothing is repeated."""
    node = facts.writers.get(value)
    wide = producer_of(node.required_input(0), facts.writers, mv.EXPAND) if node and node.op is mv.RESHAPE else None
    if wide is None or wide.output.type.rank != 5:
        return None
    source, shape = wide.required_input(0), wide.output.type.shape
    before, (few, times), behind = shape[:heads], shape[heads : heads + 2], shape[heads + 2 :]
    wanted = (*before, few, *behind)
    if source.type.shape != (*before, few, 1, *behind) or value.type.shape != (*before, few * times, *behind):
        return None
    while source.type.shape != wanted and (node := producer_of(source, facts.writers, mv.RESHAPE)) is not None:
        source = node.required_input(0)
    return source, times, wanted


def _before_reshapes(value: Value, facts: Facts) -> Node | None:
    """What writes the value, in another shape."""
    node = facts.writers.get(value)
    while node is not None and node.op is mv.RESHAPE:
        node = facts.writers.get(node.required_input(0))
    return node


def _turned_back(match: Match) -> list[Node]:
    """The attention that writes its heads inside rows."""
    before = match.node("attention")
    attrs, y = dataclasses.replace(before.attrs, inner=(*before.attrs.inner[:3], True)), match.root.output
    turned = apply(att.ATTENTION, before.inputs, attrs, before.label)
    if turned.output.type == y.type:
        turned.outputs = match.root.outputs
        return [turned]
    return [turned, Node(mv.RESHAPE, [turned.output], match.root.outputs, mv.ReshapeAttrs(y.type.shape), before.label)]


def _has_heads_around(node: Node) -> bool:
    return not node.attrs.inner[3]


def _swaps_heads(node: Node) -> bool:
    """Whether it puts rows before heads, and leaves the elements last; a batch alone may lie anywhere."""
    perm, alone = node.attrs.perm, node.required_input(0).type.shape[0] == 1
    return [axis for axis in perm if axis or not alone] == ([2, 1, 3] if alone else [0, 2, 1, 3])


PRODUCTS = matmul(Q, K, name="scores", when=_is_plain) * SCALE
SCORES = PRODUCTS | tanh(PRODUCTS) * CAP
MASKED = add(SCORES, MASK)
NARROW = softmax(SCORES, name="softmax", when=_is_along_keys) | softmax(MASKED, name="softmax", when=_needs_no_factor)
WIDE = softmax(cast(SCORES, when=_widens), name="softmax", when=_is_along_keys) | softmax(
    cast(MASKED, when=_widens), name="softmax", when=_needs_no_factor
)
WEIGHTS = NARROW | cast(WIDE, when=_narrows) | cast(cast(NARROW, when=_widens), when=_narrows)
ONE, OTHER = Variable("one"), Variable("other")
BY_PLACES = add(add(reshape(SCORES, name="by places", once=True), ONE, once=True), OTHER, once=True)
CLEARED = Variable("weights", WEIGHTS)  # without keys they are NaN
RULES = (
    rule("biases of scores by places", reshape(BY_PLACES), _biases_first),
    rule("attention", matmul(WEIGHTS, V, when=_is_last_product), _fused, _fits),
    rule(
        "attention that may have no keys",
        matmul(where(is_nan(CLEARED), Number(0.0), CLEARED), V, when=_is_last_product), _fused, _fits,
    ),
    rule(
        "heads turned back",
        transpose(attention(..., name="attention", once=True, when=_has_heads_around), when=_swaps_heads), _turned_back,
    ),
)  # fmt: skip

PARTS = (
    rule("a mask in parts", attention(Q, K, V, MASK), _in_parts),
    rule("heads that share keys and values", attention(...), _grouped),
)


def fuse_attention(graph: Graph) -> int:
    """Number of attentions, and of transposes and masks that they took over."""
    return rewrite(graph, RULES) + rewrite(graph, PARTS)


def _source(
    value: Value, shape: tuple[int, int, int, int], turned: bool, facts: Facts, scalable: bool
) -> tuple[Value | None, float, bool]:
    """The earliest tensor that holds the rows, what it is multiplied by on the way, and whether heads lie inside rows.

    None if the value itself holds columns and so does everything before it.
    """
    b, h, rows, size = shape
    around: Axes = ((b, h * rows * size), (h, rows * size), (rows, size), (size, 1))
    inside: Axes = ((b, h * rows * size), (h, size), (rows, h * size), (size, 1))
    start: Axes = ((b, h * rows * size), (h, rows * size), (rows, 1), (size, rows)) if turned else around
    best: tuple[Value | None, float, bool] = (None, 1.0, False)
    for found, axes, times in _way_back(value, start, facts, scalable):
        for wanted, is_inside in ((around, False), (inside, True)):
            if all(n == 1 or step == other for (n, step), (_, other) in zip(axes, wanted, strict=True)):
                best = found, times, is_inside
                break
    return best


def _way_back(value: Value, axes: Axes, facts: Facts, scalable: bool) -> Iterator[tuple[Value, Axes, float]]:
    """The value and those that it is a move of, or a multiple: each with the axes as they lie there, and the factor."""
    times = 1.0
    for _ in range(MAX_WALK):
        yield value, axes, times
        node = producer_of(value, facts.writers, mv.RESHAPE, mv.TRANSPOSE)
        if node is not None and node.op is mv.TRANSPOSE:
            moved = _before(axes, node)
            if moved is None:
                return
            axes = moved
        if node is None:
            scale, factors = (facts.factors(value, 1.0) if scalable else None) or (1.0, [])
            sources = [source for source, power in factors if power == 1 and source.type == value.type]
            if len(factors) != 1 or not sources or not scale:
                return
            value, times = sources[0], times * scale
        else:
            value = node.required_input(0)


def _before(axes: Axes, node: Node) -> Axes | None:
    """The axes as they lie in a transpose's operand, if each of them runs along one of its axes."""
    source = row_major(node.required_input(0).type.shape)
    return moved_axes(axes, node.output.type.shape, [source[axis] for axis in node.attrs.perm])
