"""Which nodes one dispatch computes together: a row for each kind, the earlier ones first.

Only the schedule knows: the graph stays as it is, and the inner values are never stored. The dispatches themselves are
in `lowerings`. Chains of elementwise nodes are in `chains`: they are not a pattern, but grow as far as a dispatch can.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from webinfer.backends.webgpu.dispatch import Dispatch, FusedGroup, Target
from webinfer.backends.webgpu.fusion import MAX_PRODUCTS, Fusion, Share
from webinfer.backends.webgpu.lowerings import lower
from webinfer.backends.webgpu.lowerings.attention import NAMES, JoinedAttention, attention_of, rows_inside
from webinfer.backends.webgpu.lowerings.epilogue import Curve, Late, with_epilogue, with_prologue
from webinfer.backends.webgpu.lowerings.fused import depthwise_pointwise
from webinfer.backends.webgpu.lowerings.group_norm import ACTIVATIONS, GroupNorm
from webinfer.backends.webgpu.lowerings.moments import columns_of, moments
from webinfer.backends.webgpu.lowerings.squeeze import GROUP, squeeze
from webinfer.backends.webgpu.lowerings.variants import GEMVS, TILES, choose, is_pointwise
from webinfer.dtypes import DType
from webinfer.graph.ir import Graph, Node
from webinfer.graph.queries import scalar_constant
from webinfer.lazy_dataclass import dataclass
from webinfer.ops import conv, matmul, movement, normalization, pool, reduce
from webinfer.ops import elementwise as ew
from webinfer.ops.activation import Activation
from webinfer.ops.attention import ATTENTION
from webinfer.rewrite.facts import Facts
from webinfer.rewrite.matcher import places
from webinfer.rewrite.patterns import ANY, Match, Maybe, Pattern, Variable, add, kind, mul, sub

# Of a product behind a mean: beyond, more than one workgroup should share it. A guess: 2,048 to 262,144 changed no
# graph of 277.
MOST_WEIGHTS = 1 << 15
KERNELS = frozenset({"split_k", *TILES, *GEMVS})  # that multiply what they read

X, Y, FACTORS, ADDEND, OTHER = map(Variable, ("x", "y", "factors", "addend", "other"))
conv2d, depthwise, max_pool = map(kind, (conv.CONV2D, conv.DEPTHWISE_CONV2D, pool.MAX_POOL2D))
product, gelu = kind(conv.CONV2D, conv.DEPTHWISE_CONV2D, matmul.MATMUL), kind(ew.GELU, ew.GELU_TANH)
attention, matrix_product, reshape = map(kind, (ATTENTION, matmul.MATMUL, movement.RESHAPE))
transpose, cut = kind(movement.TRANSPOSE), kind(movement.SLICE)
layer_norm, silu = kind(normalization.LAYER_NORM), kind(ew.SILU)
global_mean = kind(pool.AVERAGE_POOL2D, reduce.REDUCE_MEAN)
mean, square, squared_difference = map(kind, (reduce.REDUCE_MEAN, ew.SQUARE, ew.SQUARED_DIFFERENCE))
ending = kind(ew.ADD, ew.MAXIMUM, ew.MINIMUM)


@dataclass(frozen=True, slots=True)
class Row:
    """A kind of group: its pattern, and what makes its dispatches, or None where it cannot or need not.

    `software`: worth it where a dispatch costs little. `early`: its last node reads nothing later than its nodes did;
    others are not for graphs of parts or with values that nodes change in place.
    """

    pattern: Pattern
    make: Callable[[Match, Target], Callable[[Target], Sequence[Dispatch]] | None]
    software: bool = False
    early: bool = False


def find_groups(graph: Graph, target: Target, taken: set[Node]) -> dict[Node, FusedGroup]:
    """The groups of a graph by their last nodes; `taken` are nodes of other groups, and learns of these."""
    facts, found = Facts(graph), dict[Node, FusedGroup]()
    for row in ROWS:
        if (row.early or not (graph.parts or graph.resident)) and (row.software or not target.software):
            found |= places(facts, row.pattern, functools.partial(_group, row, target), taken)
    return found


def _group(row: Row, target: Target, match: Match) -> FusedGroup | None:
    lowered = row.make(match, target)
    if lowered is None:
        return None
    made = {node.output for node in match.inner}
    inputs = dict.fromkeys(v for node in match.inner for v in node.inputs if v is not None and v not in made)
    if isinstance(lowered, JoinedAttention):
        return FusedGroup(match.inner, tuple(inputs), lowered, lowered.product, lowered.constants)
    return FusedGroup(match.inner, tuple(inputs), lowered)


def is_float32(node: Node) -> bool:
    """Whether all that a node reads and writes is float32, and not quantised."""
    values = [v for v in (*node.inputs, *node.outputs) if v is not None]
    return all(v.type.dtype is DType.FLOAT32 and v.type.quant is None for v in values)


def is_real(node: Node) -> bool:
    """The same of float16 too."""
    values = [v for v in (*node.inputs, *node.outputs) if v is not None]
    return all(v.type.dtype.is_float and v.type.quant is None for v in values)


# ---- a depthwise convolution, the 1x1 convolution of its result, and the pooling that this one adds as its residual


def find_fusions(graph: Graph, target: Target) -> dict[Node, tuple[Fusion, Share]]:
    """The pairs of convolutions of a graph by their last node, with the share of a workgroup."""
    if target.software:
        return {}
    return places(Facts(graph), PAIR, functools.partial(_pair, target=target), set())


def _pair(match: Match, target: Target) -> tuple[Fusion, Share] | None:
    fusion = Fusion(match.node("depthwise"), match.root, match.bound.get("pool"))
    if match.root.output.type.size * fusion.channels > MAX_PRODUCTS:
        return None
    share = fusion.share(target)
    return None if share is None else (fusion, share)


def _pair_lowered(match: Match, target: Target) -> Callable[[Target], Sequence[Dispatch]] | None:
    found = _pair(match, target)
    return None if found is None else functools.partial(depthwise_pointwise, *found)


def _is_dense_point(node: Node) -> bool:
    return node.attrs.groups == 1 and is_pointwise(node) and is_real(node)


def _is_plain_depthwise(node: Node) -> bool:
    same_channels = node.required_input(0).type.shape[3] == node.output.type.shape[3]
    activation: Activation = node.attrs.activation
    ends = activation.bounds is not None or activation in (Activation.SILU, Activation.PRELU)
    return same_channels and ends and is_real(node) and node.optional_input(3) is None


def _is_plain_pool(node: Node) -> bool:
    return is_real(node) and node.attrs.dilation == (1, 1)


# ---- squeeze and excitation: the mean of an image, or of a sum of two, and the one or two small products behind it


def _squeezed(match: Match, target: Target) -> Callable[[Target], Sequence[Dispatch]] | None:
    if target.limit("maxComputeInvocationsPerWorkgroup") < GROUP:
        return None
    images = (match.value("x"), match.value("y")) if "sum" in match.bound else (match.value("x"),)
    products = (match.node("product"), match.root) if "product" in match.bound else (match.root,)
    return functools.partial(squeeze, images, match.node("mean"), products)


def _adds_images(node: Node) -> bool:
    return is_float32(node) and all(v is not None and v.type.shape == node.output.type.shape for v in node.inputs)


def _is_global_mean(node: Node) -> bool:
    shape = node.required_input(0).type.shape
    if not is_float32(node) or len(shape) != 4 or shape[3] % 4 or shape[3] > 4 * GROUP or not math.prod(shape[:3]):
        return False
    if node.op is reduce.REDUCE_MEAN:
        return sorted(node.attrs.axes) == [1, 2] and node.output.type.shape == (shape[0], 1, 1, shape[3])
    a = node.attrs
    whole = a.window == shape[1:3] and node.output.type.shape[1:3] == (1, 1) and not any(a.pads)
    return whole and a.dilation == (1, 1)


def _is_small(node: Node) -> bool:
    """Whether it is a product of one pixel an image, with constant weights, that a workgroup computes quickly."""
    w, a = node.required_input(1), node.attrs
    plain = is_float32(node) and node.optional_input(3) is None and a.activation is not Activation.PRELU
    return plain and w.is_constant and w.type.shape[1:3] == (1, 1) and w.type.size <= MOST_WEIGHTS and (
        a.groups == 1 and w.type.shape[3] % 4 == 0 and not any(a.pads) and node.output.type.shape[1:3] == (1, 1)
    )  # fmt: skip


def _is_inner(node: Node) -> bool:
    """Whether another product may follow it in one dispatch."""
    return _is_small(node) and node.attrs.activation.bounds is not None and node.output.type.shape[3] % 4 == 0


# ---- what a product does behind its activation: a sum, or a bound; of a matrix product also a sum before it


def _epilogue(match: Match, target: Target) -> Callable[[Target], Sequence[Dispatch]] | None:
    node, before, other = match.root, match.node("product"), match.value("other")
    x, w, bias, residual, slope = (before.optional_input(i) for i in range(5))
    if other is before.output:
        return None
    if node.op is not ew.ADD:
        bound = scalar_constant(other) if other.type.quant is None and node.output.type == before.output.type else None
        if bound is None or not math.isfinite(bound) or other.type.dtype is not DType.FLOAT32:
            return None
        kind = Late.LARGER if node.op is ew.MAXIMUM else Late.SMALLER
        return functools.partial(lower, with_epilogue(before, before.inputs, node, late=kind, bound=bound))
    alike, plain = other.type == before.output.type == node.output.type, before.attrs.activation is Activation.NONE
    if not alike or residual is not None or (plain and before.op is not matmul.MATMUL):
        return None  # what is added before the activation is a convolution's own input since the passes
    inputs = [x, w, bias, other, *([] if slope is None else [slope])]
    return functools.partial(lower, with_epilogue(before, inputs, node, late=Late.NO if plain else Late.SUM))


# ---- gelu behind a product


def _curve(match: Match, target: Target) -> Callable[[Target], Sequence[Dispatch]] | None:
    node, before = match.root, match.node("product")
    curve = Curve.GELU if node.op is ew.GELU else Curve.GELU_TANH
    return functools.partial(lower, with_epilogue(before, before.inputs, node, curve=curve))


# ---- queries, keys and values that are products of one tensor


def _joined(match: Match, target: Target) -> Callable[[Target], Sequence[Dispatch]] | None:
    node = match.root
    found = {i: match.node(name) for i, name in enumerate(NAMES) if name in match.bound}
    if not is_real(node) or not all(is_real(one) and _is_movable(one, match.facts) for one in found.values()):
        return None
    first = next(iter(found.values()))
    for i, one in found.items():
        heads, shape = node.required_input(i).type.shape, one.output.type.shape
        whole = shape[-1] == heads[2] * heads[3] and not heads[3] % 4 and math.prod(shape[:-1]) == heads[0] * heads[1]
        alike = one.attrs == first.attrs and _types(one) == _types(first)
        if not (node.attrs.inner[i] and whole and alike):
            return None
    return JoinedAttention(node, found)


def _types(one: Node) -> tuple[DType, DType]:
    return one.required_input(1).type.dtype, one.output.type.dtype


def _is_movable(one: Node, facts: Facts) -> bool:
    """Whether the weights and the bias of a matrix product are known at load, and can be moved without growing."""
    w, bias = one.required_input(1), one.optional_input(2)
    if w.type.rank != 2 or one.attrs.transpose_a or one.attrs.exact:
        return False
    stored = w.constant
    if stored is not None and (stored.sparsity is not None or stored.stored.itemsize < w.type.dtype.itemsize):
        return False
    return facts.is_known(w) and facts.is_known(bias)


# ---- queries, keys or values that are slices of one tensor: they are read where they lie


def _over_parts(match: Match, target: Target) -> Callable[[Target], Sequence[Dispatch]] | None:
    node, inside = match.root, {}
    for i, name in enumerate(NAMES):
        part = match.bound.get(f"{name} part")
        if part is not None:
            rows = rows_inside(node, i, part)
            if rows is None or target.placed_shape(rows[0]) != rows[0].type.shape:
                return None
            inside[i] = rows
    return functools.partial(attention_of, node, inside) if inside and is_real(node) else None


# ---- factors of channels, and a summand, before a 1x1 convolution: the end of squeeze and excitation


def _prologue(match: Match, target: Target) -> Callable[[Target], Sequence[Dispatch]] | None:
    x, factors, scaled = match.value("x"), match.value("factors"), match.node("scaled").output.type
    addend = match.value("addend") if "sum" in match.bound else None
    shape = scaled.shape
    if len(shape) != 4 or shape[0] != 1 or shape[3] % 4 or x.type.shape != shape or x is factors:
        return None
    fits = factors.type.shape == (1, 1, 1, shape[3]) and (
        addend is None or addend.type == match.node("sum").output.type
    )
    if not fits or choose(match.root, target) not in KERNELS:
        return None
    return functools.partial(lower, with_prologue(match.root, x, factors, addend))


def _is_single_point(node: Node) -> bool:
    return is_float32(node) and node.attrs.groups == 1 and is_pointwise(node)


# ---- a mean, and the mean of the squared differences from it


def _moments(match: Match, target: Target) -> Callable[[Target], Sequence[Dispatch]] | None:
    node, first, x, facts = match.root, match.node("mean"), match.value("x"), match.facts
    differences = [inner for inner in match.inner if inner is not first]
    # Where axes are not kept, a mean that fits x again is not that of the same elements.
    if first.attrs.axes != node.attrs.axes or not first.attrs.keep_dims or columns_of(x, node.attrs.axes) is None:
        return None
    private = all(
        reader in differences or reader is node for inner in differences for reader in facts.readers[inner.output]
    ) and not any(inner.output in facts.outputs for inner in differences)
    at = facts.order
    if not private or any(r not in differences and at[r] <= at[node] for r in facts.readers[first.output]):
        return None
    return functools.partial(moments, x, first.output, node)


# ---- the norm of groups of channels, which exporters write as a layer norm of an image with its channels first


def _group_norm(match: Match, target: Target) -> Callable[[Target], Sequence[Dispatch]] | None:
    x, root, norm = match.value("x"), match.root, match.node("norm")
    rank, shape = x.type.rank, x.type.shape
    to_front, to_back = (0, rank - 1, *range(1, rank - 1)), (0, *range(2, rank), 1)
    turns = match.node("first").attrs.perm == to_front and root.attrs.perm == to_back
    groups = norm.output.type.shape[1]
    channels = shape[-1]
    whole = norm.output.type.shape == (shape[0], groups, math.prod(shape[1:]) // groups) and channels % groups == 0
    factors, addend = (match.value(name) if name in match.bound else None for name in ("factors", "addend"))
    fit = all(row is None or _is_channels(row.type.shape, rank, channels) for row in (factors, addend))
    ending = match.node("sum").attrs.activation if "sum" in match.bound else Activation.NONE
    if "silu" in match.bound:
        if ending is not Activation.NONE:
            return None
        ending = Activation.SILU
    moments_fit = channels % 4 == 0 and norm.attrs.centred and columns_of(x, range(1, rank - 1)) is not None
    if not (turns and whole and fit and moments_fit and ending in ACTIVATIONS and norm.attrs.axes == 1):
        return None
    return GroupNorm(x, root.output, factors, addend, groups, norm.attrs.epsilon, ending)


def _is_channels(shape: tuple[int, ...], rank: int, channels: int) -> bool:
    """Whether it has a number for each channel of an image with its channels first."""
    return shape[-(rank - 1) :] == (channels, *[1] * (rank - 2)) and math.prod(shape) == channels


def _is_plain_silu(node: Node) -> bool:
    return bool(node.attrs.a == 1)


def _has_no_rows(node: Node) -> bool:
    return is_float32(node) and node.optional_input(1) is None and node.optional_input(2) is None


POOL = max_pool(..., name="pool", once=True, when=_is_plain_pool)
DEPTHWISE = depthwise(..., name="depthwise", once=True, curved=True, when=_is_plain_depthwise)
PAIR = conv2d(DEPTHWISE, ANY, ANY, Maybe(POOL), ..., curved=True, when=_is_dense_point)
SUM = add(X, Y, name="sum", once=True, when=_adds_images)
MEAN = global_mean(SUM | X, name="mean", once=True, when=_is_global_mean)
INNER = conv2d(MEAN, ..., name="product", once=True, curved=True, when=_is_inner)
PRODUCT = product(..., name="product", once=True, curved=True, when=is_real)
HEADS = {name: reshape(matrix_product(X, ..., name=name, once=True), name=f"{name} heads", once=True) for name in NAMES}
PARTS = [
    Maybe(
        reshape(cut(..., name=f"{name} part", once=True), name=f"{name} heads", once=True)
        | cut(..., name=f"{name} part", once=True)
    )
    for name in NAMES
]
STRAIGHT = product(..., name="product", once=True, when=is_real)
SCALED = mul(X, FACTORS, name="scaled", once=True, when=is_float32)
MOVED = add(SCALED, ADDEND, name="sum", once=True, when=is_float32)
CENTRE = Variable("centre", mean(X, name="mean", when=is_float32))
CENTRED = Variable("centred", sub(X, CENTRE, name="difference") | sub(CENTRE, X, name="difference"))
SQUARES = squared_difference(X, CENTRE, name="squares") | square(CENTRED, name="squares")
CHANNELS_FIRST = reshape(transpose(X, name="first", once=True), name="groups", once=True)
NORM = reshape(layer_norm(CHANNELS_FIRST, ..., name="norm", once=True, when=_has_no_rows), name="image", once=True)
FACTORED = mul(NORM, FACTORS, name="scaled", once=True, when=is_float32) | NORM
SHIFTED = add(FACTORED, ADDEND, name="sum", once=True, curved=True, when=is_float32) | FACTORED
ENDED = silu(SHIFTED, name="silu", once=True, when=_is_plain_silu) | SHIFTED
ROWS = (
    Row(PAIR, _pair_lowered, early=True),
    Row(conv2d(INNER, ..., curved=True, when=_is_small), _squeezed),
    Row(conv2d(MEAN, ..., curved=True, when=_is_small), _squeezed),
    Row(attention(HEADS["q"], HEADS["k"], HEADS["v"], ...), _joined, software=True),
    Row(attention(ANY, HEADS["k"], HEADS["v"], ...), _joined, software=True),
    Row(attention(*PARTS, ...), _over_parts, software=True),
    Row(gelu(STRAIGHT), _curve, software=True, early=True),
    Row(ending(PRODUCT, OTHER), _epilogue, software=True),
    Row(conv2d(SCALED | MOVED, ..., curved=True, when=_is_single_point), _prologue),
    Row(transpose(ENDED, when=is_float32), _group_norm),
    Row(mean(SQUARES | mul(CENTRED, CENTRED, name="squares"), when=is_float32), _moments, software=True),
)
