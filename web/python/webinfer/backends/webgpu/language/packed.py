"""Products with weights that an ONNX file packs in 4 or 8 bits: as those of GGUF's blocks, made of its tensors at load.

What a decoder computes around them joins them: an RMS norm before one row, SwiGLU or a sum behind, and products of the
same tensor, each with a result of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from webinfer.backends.webgpu.dispatch import (
    Derived,
    Dispatch,
    FusedGroup,
    Source,
    Target,
    groups_for,
    read,
    read_given,
)
from webinfer.backends.webgpu.language.products import Ends, Layout, Matrix, norms_a_row, product
from webinfer.backends.webgpu.lowerings.conversion import plain_cast
from webinfer.backends.webgpu.lowerings.epilogue import destination
from webinfer.backends.webgpu.lowerings.movement import copy_dispatch
from webinfer.codegen.elements import Element
from webinfer.codegen.prelude import u32
from webinfer.codegen.templates import Variable
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Graph, Node, Value
from webinfer.ops import elementwise as ew
from webinfer.ops.activation import Activation
from webinfer.ops.packed_matmul import PACKED_MATMUL
from webinfer.ops.strides import StridedCopy

BLOCK = 32  # weights that a shader opens at a time
MOST = 3  # products of one dispatch: queries, keys and values


def lies_in_blocks(node: Node) -> bool:
    """Whether the shaders of blocks can read its weights: whole blocks of constants."""
    x, w, scales = (node.required_input(i) for i in range(3))
    zeros = node.optional_input(3)
    parts = [part for part in (w, scales, zeros) if part is not None]
    is_known = all(part.is_constant for part in parts)
    whole = node.attrs.block % BLOCK == 0 and x.type.shape[-1] % BLOCK == 0
    return is_known and whole and scales.type.dtype in (DType.FLOAT32, DType.FLOAT16)


def packed_matmul(node: Node, target: Target) -> list[Dispatch]:
    """One product by itself."""
    return _products([node], target, Ends(node.output)) if lies_in_blocks(node) else _words_apart(node, target)


def _words_apart(node: Node, target: Target) -> list[Dispatch]:
    """matmul_packed.wgsl: words of weights, those of neighbouring channels beside each other."""
    x, w, scales = (node.required_input(i) for i in range(3))
    zeros, bias, a = node.optional_input(3), node.optional_input(4), node.attrs
    (co, row), k = w.type.shape, x.type.shape[-1]
    if a.block * a.bits % 32 or not w.is_constant:
        raise UnsupportedOpError([f"weights of {a.bits} bits in blocks of {a.block}; blocks need whole words, known"])
    words = row // 4
    copy = StridedCopy(0, (words, co), 0, (1, words), 0, (co, 1))

    def make(derived: Derived) -> Sequence[Dispatch]:
        return [copy_dispatch(w, derived, copy, target, zeros=True, bits=Element.BITS32)]

    weights = Derived(("words", w), (words, co), make, DType.UINT32)
    rows = x.type.size // k
    variables: dict[str, Variable] = {
        "bits": a.bits, "quads": k % 4 == 0, "has_zeros": zeros is not None, "has_bias": bias is not None
    }  # fmt: skip
    params = u32(pixels=rows, k=k, co=co, words=words, block=a.block, blocks=scales.type.shape[1])
    groups = groups_for(-(-rows // 4) * -(-co // 32), target, 1)
    place, after = destination(node.output, target, single=True)
    bindings = (read("x", x), read("w", weights), *read_given(scales=scales, zeros=zeros, bias=bias), place)
    why = f"weights stay in {a.bits} bits, eight share a sum"
    return [Dispatch("matmul_packed", variables, bindings, params, groups, why), *after]


def _products(
    nodes: Sequence[Node], target: Target, ends: Ends, norm: Node | None = None, residual: Value | None = None
) -> list[Dispatch]:
    node, a = nodes[0], nodes[0].attrs
    has_zeros = node.optional_input(3) is not None
    words = a.block * a.bits // 32 + 1 + has_zeros  # of a block
    blocks = node.required_input(2).type.shape[1]
    form: dict[str, Variable] = {
        "layout": Layout.PACKED, "block_bytes": 4 * words, "floats": True, "minimum": int(has_zeros), "fifth": 0,
        "aligned": True, "matrices": len(nodes), "bits": a.bits, "block": a.block,
    }  # fmt: skip
    matrices = [
        Matrix(_in_blocks(each, words, target), each.required_input(1).type.shape[0], each.optional_input(4))
        for each in nodes
    ]
    text = f"weights stay in {a.bits} bits, {a.block} with a scale"
    x, given = (norm or node).required_input(0), {"residual": residual}
    return product(x, matrices, (form, 4 * words * blocks, text), target, ends, given, norm)


def _in_blocks(node: Node, words: int, target: Target) -> Derived:
    """The weights as _blocks.wgsl has them "packed": scale, zero and whole numbers of a block side by side."""
    w, scales, zeros, a = node.required_input(1), node.required_input(2), node.optional_input(3), node.attrs
    (n, blocks), inner = scales.type.shape, a.block * a.bits // 32
    row, head = blocks * words, words - inner

    def make(derived: Derived) -> Sequence[Dispatch]:
        packed = StridedCopy(0, (n, blocks, inner), 0, (blocks * inner, inner, 1), head, (row, words, 1))
        found = [copy_dispatch(w, derived, packed, target, zeros=True, bits=Element.BITS32)]
        for place, part in enumerate((scales, zeros)):
            if part is not None:
                copy = StridedCopy(0, (n, blocks), 0, (blocks, 1), place, (row, words))
                found.append(copy_dispatch(_in_float32(part, target), derived, copy, target, bits=Element.BITS32))
        return found

    return Derived(("blocks", w, scales, zeros), (n * row,), make, DType.UINT32)


def _in_float32(part: Value, target: Target) -> Source:
    if part.type.dtype is DType.FLOAT32:
        return part

    def make(derived: Derived) -> Sequence[Dispatch]:
        return [plain_cast(part, derived, part.type.size, target)]

    return Derived(("float32", part), part.type.shape, make)


# ---- groups


def packed_groups(graph: Graph, target: Target) -> dict[Node, FusedGroup]:
    """The products with what they compute besides, by the node that comes last."""
    makers, readers = graph.producers(), graph.consumers()
    order = {node: i for i, node in enumerate(graph.nodes)}
    packed = [node for node in graph.nodes if node.op is PACKED_MATMUL and lies_in_blocks(node)]
    single = {
        node.output: node
        for node in graph.nodes
        if len(readers.get(node.output, ())) == 1 and node.output not in graph.outputs
    }
    found, taken = dict[Node, FusedGroup](), set[Node]()

    def group(last: Node, products: list[Node], inner: list[Node], ends: Ends, residual: Value | None = None) -> None:
        norm = _norm_before(products[0], makers, readers, graph)
        absorbed = [*([norm] if norm else ()), *(node for node in (*products, *inner) if node is not last)]
        inputs = [v for node in absorbed for v in node.inputs if v is not None]
        lower = partial(_products, products, ends=ends, norm=norm, residual=residual)
        found[last] = FusedGroup(tuple(absorbed), tuple(inputs), lower)
        taken.update((last, *products, *inner))

    for node in graph.nodes:
        if node.op is ew.MUL and (gates := _gates(node, single)) is not None:
            gate, up, silu = gates
            group(node, [gate, up], [silu], Ends(node.output, gated=True))
        elif node.op is ew.ADD and (summed := _summed(node, single, order)) is not None:
            group(node, [summed[0]], [], Ends(node.output), summed[1])
    for node in packed:
        if node not in taken:
            alike = [one for one in packed if one not in taken and _alike(one, node)][: _most(node, target)]
            joined = _before_readers(alike, readers, order)
            apart = tuple(one.output for one in joined) if len(joined) > 1 else ()
            group(joined[-1], joined, [], Ends(node.output, apart=apart))
    return found


def _most(node: Node, target: Target) -> int:
    """How many products such as this one can be one dispatch: each binds weights, a result and perhaps a bias."""
    shared, each = 2, 2 + (node.optional_input(4) is not None)  # x, and the scale of a norm
    return min(MOST, max(1, (target.limit("maxStorageBuffersPerShaderStage") - shared) // each))


def _alike(one: Node, other: Node) -> bool:
    """Whether two products are of the same rows, and their weights lie alike."""
    given = [[each.optional_input(i) is None for i in (3, 4)] for each in (one, other)]
    whole = all(each.output.type.shape[-1] % 4 == 0 for each in (one, other))
    return one is other or (
        one.inputs[0] is other.inputs[0] and one.attrs == other.attrs and given[0] == given[1] and whole
    )


def _before_readers(
    nodes: Sequence[Node], readers: Mapping[Value, Sequence[Node]], order: Mapping[Node, int]
) -> list[Node]:
    """As many of these products as can run when the last of them does: nobody reads the others before."""
    found = [nodes[0]]
    for node in nodes[1:]:
        if any(order[reader] < order[node] for one in found for reader in readers.get(one.output, ())):
            break
        found.append(node)
    return found


def _gates(node: Node, single: Mapping[Value, Node]) -> tuple[Node, Node, Node] | None:
    """The products and the activation of a SwiGLU: gate, what it gates, and the gate's SiLU."""
    for i in (0, 1):
        silu, up = single.get(node.required_input(i)), single.get(node.required_input(1 - i))
        if silu is None or up is None or silu.op is not ew.SILU or silu.attrs.a != 1 or not _may_join(up):
            continue
        gate = single.get(silu.required_input(0))
        fits = gate is not None and _may_join(gate) and gate is not up and _alike(gate, up)
        plain = node.attrs.activation is Activation.NONE and up.optional_input(4) is None
        if fits and plain and node.output.type == up.output.type:
            assert gate is not None
            return gate, up, silu
    return None


def _summed(node: Node, single: Mapping[Value, Node], order: Mapping[Node, int]) -> tuple[Node, Value] | None:
    """The product and the residual of a sum; of two products the one that runs later takes it."""
    sides = [(single.get(node.required_input(i)), node.required_input(1 - i)) for i in (0, 1)]
    found = [(one, other) for one, other in sides if one is not None and _may_join(one)]
    found = [row for row in found if row[1].type == node.output.type == row[0].output.type]
    if not found or node.attrs.activation is not Activation.NONE:
        return None
    return max(found, key=lambda row: order[row[0]])


def _may_join(node: Node) -> bool:
    return node.op is PACKED_MATMUL and lies_in_blocks(node)


def _norm_before(
    node: Node, makers: Mapping[Value, Node], readers: Mapping[Value, Sequence[Node]], graph: Graph
) -> Node | None:
    """The RMS norm of one row whose readers are all such products, each of which can compute it."""
    x = node.required_input(0)
    norm = makers.get(x)
    if norm is None or x in graph.outputs or norm.required_input(0).type != x.type or not norms_a_row(norm):
        return None
    return norm if all(_may_join(one) and one.inputs.count(x) == 1 for one in readers[x]) else None
