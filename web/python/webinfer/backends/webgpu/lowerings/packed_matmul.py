"""Float products whose weights stay packed in 4 or 8 bits."""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.backends.webgpu.dispatch import Derived, Dispatch, Target, groups_for, read, read_given
from webinfer.backends.webgpu.lowerings.epilogue import destination
from webinfer.backends.webgpu.lowerings.movement import copy_dispatch
from webinfer.codegen.elements import Element
from webinfer.codegen.prelude import u32
from webinfer.codegen.templates import Variable
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Node
from webinfer.ops.strides import StridedCopy


def packed_matmul(node: Node, target: Target) -> list[Dispatch]:
    """A product of blocks; else matmul_packed.wgsl, whose words of neighbouring channels lie beside each other."""
    x, w, scales = (node.required_input(i) for i in range(3))
    zeros, bias, a = node.optional_input(3), node.optional_input(4), node.attrs
    (co, row), k = w.type.shape, x.type.shape[-1]
    from webinfer.backends.webgpu.language import packed  # a late part

    if packed.lies_in_blocks(node):
        return packed.packed_matmul(node, target)
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
