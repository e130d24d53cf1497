"""Attention: one dispatch for all heads, and one product for what it reads where that is made of one tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from webinfer.backends.webgpu.dispatch import Dispatch, Lower, Scratch, Target, groups_for, read, read_given, write
from webinfer.backends.webgpu.lowerings.attention_tiles import (
    LARGEST,
    AttentionTile,
    Sizes,
    best_tile,
    choose_tile,
    sizes_of,
)
from webinfer.backends.webgpu.lowerings.conversion import in_words
from webinfer.backends.webgpu.lowerings.matmul import matmul
from webinfer.backends.webgpu.lowerings.movement import concat
from webinfer.codegen.prelude import f32, u32
from webinfer.codegen.templates import Variable
from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Node, TensorType, Value
from webinfer.ops.attention import by_heads, mask_strides, strides
from webinfer.ops.matmul import MATMUL
from webinfer.ops.movement import CONCAT, ConcatAttrs
from webinfer.ops.strides import moved_axes, row_major

Rows = tuple[Value, int, tuple[int, int, int]]  # a tensor, the first element of it, from batch to batch, head, row
NAMES = ("q", "k", "v")


def attention_of(node: Node, inside: Mapping[int, Rows], target: Target) -> list[Dispatch]:
    """attention.wgsl; `inside` says where those of q, k and v lie that are part of a larger tensor."""
    a, y, mask, columns = node.attrs, node.output, node.optional_input(3), node.optional_input(4)
    s, tile, quads = sizes_of(node), choose_tile(node, target), has_quads(node)
    last = columns or mask
    variables = _of_tile(tile, s) | {
        "quads": quads, "masked": mask is not None, "clear_nan": a.clear_nan, "capped": a.softcap > 0.0,
        "mask_quads": last is not None and last.type.shape[-1] % 4 == 0, "spread": columns is not None,
        "skips": mask is not None and columns is None and mask.type.shape[2] > 1,
        **({} if tile.slice else {"cached": False}),
    }  # fmt: skip
    steps, bindings = dict[str, int](), []
    for i, name in enumerate(NAMES):
        value = node.required_input(i)
        source, first, lengths = inside.get(i) or (value, 0, strides(target.placed_shape(value), a.inner[i]))
        bindings.append(read(name, source))
        steps |= {f"{name}_first": first} | _steps(name, lengths)
    steps |= _steps("y", strides(y.type.shape, a.inner[3]))
    for name, part in (("mask", mask), ("columns", columns)):
        if part is not None:
            steps |= _steps(name, mask_strides(part.type.shape))
    if columns is not None:
        steps["spread"] = columns.type.shape[-1]
    counts = u32(
        heads=s.batches * s.heads, per_batch=s.heads, share=s.heads // s.groups, queries=s.queries, keys=s.keys,
        d=s.depth, e=s.width, **steps,
    )  # fmt: skip
    ends = (*read_given(mask=mask, columns=columns), write("y", y, single=not quads))
    groups = groups_for(s.batches * s.heads * -(-s.queries // tile.rows), target, 1)
    numbers = f32(scale=a.scale, **({"cap": a.softcap} if a.softcap else {}))
    shader = "attention_wide" if tile.slice else "attention"
    return [Dispatch(shader, variables, (*bindings, *ends), (*counts, *numbers), groups, tile.name)]


def attention_over_cache(node: Node, q: Scratch, target: Target) -> Dispatch:
    """attention.wgsl for a cached attention of several rows, whose keys and values are in the cache already.

    `q` are its queries, turned by their positions.
    """
    a, y = node.attrs, node.output
    place, keys, values = (node.required_input(i) for i in (3, 5, 6))
    groups, capacity, width = values.type.shape
    rows = q.shape[0]
    s = Sizes(1, a.heads, groups, rows, min(capacity, LARGEST), width, width)
    tile = best_tile(s, target)
    variables = _of_tile(tile, s) | {
        "quads": True, "masked": False, "clear_nan": True, "mask_quads": False, "skips": False, "cached": True,
        "spread": False, "capped": False,
    }  # fmt: skip
    of_rows, of_cache = (0, width, a.heads * width), (0, capacity * width, width)
    steps = {f"{name}_first": 0 for name in NAMES}
    for name, lengths in (("q", of_rows), ("k", of_cache), ("v", of_cache), ("y", of_rows)):
        steps |= _steps(name, lengths)
    counts = u32(
        heads=a.heads, per_batch=a.heads, share=a.heads // groups, queries=rows, keys=capacity, d=width, e=width,
        **steps,
    )  # fmt: skip
    bindings = (read("q", q), read("k", keys), read("v", values), read("place", place), write("y", y))
    spread = groups_for(a.heads * -(-rows // tile.rows), target, 1)
    return Dispatch("attention", variables, bindings, (*counts, *f32(scale=a.scale)), spread, f"{tile.name}, cached")


def _of_tile(tile: AttentionTile, s: Sizes) -> dict[str, Variable]:
    unroll_d, unroll_k, ahead = tile.loops(s)
    variables: dict[str, Variable] = {
        "tx": tile.tx, "ty": tile.ty, "per_rows": tile.per_rows, "quads_keys": tile.quads_keys, "d4": s.d4, "e4": s.e4,
        "unroll_d": unroll_d, "unroll_k": unroll_k,
    }  # fmt: skip
    if tile.slice:
        return variables | {"slice": tile.slice, "values": tile.values(s), "ragged": s.d4 % tile.slice > 0}
    return variables | {"ahead": ahead}


def _steps(name: str, lengths: Sequence[int]) -> dict[str, int]:
    return {f"{name}_{part}": step for part, step in zip(("batch", "head", "row"), lengths, strict=True)}


def _attention(node: Node, target: Target) -> list[Dispatch]:
    return attention_of(node, {}, target)


_in_words: Lower = in_words(_attention)


def attention(node: Node, target: Target) -> Sequence[Dispatch]:
    """Attention of any real numbers; float16 is read and stored as it is where rows are whole quads."""
    narrow = has_quads(node) and node.output.type.dtype is DType.FLOAT16
    return (_attention if narrow else _in_words)(node, target)


def has_quads(node: Node) -> bool:
    """Whether the rows of an attention are whole quads."""
    s = sizes_of(node)
    return s.depth % 4 == s.width % 4 == 0


class JoinedAttention:
    """An attention with those of its inputs that are products of one tensor and known weights: as one product.

    `products` are matrix products by the number of the input, which has the heads inside its rows.
    """

    def __init__(self, node: Node, products: Mapping[int, Node]) -> None:
        first = next(iter(products.values()))
        self._node, self._constants = node, list[Node]()
        widths = {i: product.output.type.shape[-1] for i, product in products.items()}
        weights = [product.required_input(1) for product in products.values()]
        biases = [product.optional_input(2) for product in products.values()]
        x = first.required_input(0)
        inputs = [x, self._side_by_side(weights, 0 if first.attrs.transpose_b else 1)]
        if any(bias is not None for bias in biases):
            dtype = next(bias.type.dtype for bias in biases if bias is not None)
            filled = [bias or _zeros(width, dtype) for bias, width in zip(biases, widths.values(), strict=True)]
            inputs.append(self._side_by_side(filled, 0))
        total, s, at = sum(widths.values()), sizes_of(node), 0
        rows = Value("joined", TensorType((*first.output.type.shape[:-1], total), first.output.type.dtype))
        self.product = Node(MATMUL, inputs, [rows], first.attrs, first.label)
        self._rows = dict[int, Rows]()
        for i, width in widths.items():
            depth, length = (s.width if i == 2 else s.depth), s.keys if i else s.queries
            self._rows[i] = rows, at, (length * total, depth, total)
            at += width

    def __call__(self, target: Target) -> list[Dispatch]:
        """The dispatches that make the weights at load, and those of the product and the attention."""
        made = [dispatch for node in self._constants for dispatch in concat(node, target)]
        return [*made, *matmul(self.product, target), *attention_of(self._node, self._rows, target)]

    @property
    def constants(self) -> list[Value]:
        """What the product reads that is made at load."""
        return [node.output for node in self._constants]

    def _side_by_side(self, values: Sequence[Value], axis: int) -> Value:
        shape = list(values[0].type.shape)
        shape[axis] = sum(value.type.shape[axis] for value in values)
        joined = Value("joined constants", TensorType(tuple(shape), values[0].type.dtype))
        self._constants.append(Node(CONCAT, values, [joined], ConcatAttrs(axis), "joined constants"))
        return joined


def rows_inside(node: Node, i: int, part: Node) -> Rows | None:
    """Where input i of an attention lies in the tensor that `part`, a slice of the same elements, is cut out of.

    None if it cannot be read there: its rows are not runs of whole quads.
    """
    x, a, shape = part.required_input(0), part.attrs, node.required_input(i).type.shape
    counts, steps = by_heads(shape, node.attrs.inner[i]), strides(shape, node.attrs.inner[i])
    wider = row_major(x.type.shape)
    moved = moved_axes([*zip(counts, (*steps, 1), strict=True)], part.output.type.shape, wider)
    if moved is None or any(step != 1 for step in a.steps) or moved[3][1] > 1 or not has_quads(node):
        return None
    first, lengths = sum(start * step for start, step in zip(a.starts, wider, strict=True)), [n for _, n in moved[:3]]
    return None if any(n % 4 for n in (first, *lengths)) else (x, first, (lengths[0], lengths[1], lengths[2]))


def _zeros(count: int, dtype: DType) -> Value:
    return Value("zeros", TensorType((count,), dtype), Constant(memoryview(bytes(count * dtype.itemsize)), dtype))
