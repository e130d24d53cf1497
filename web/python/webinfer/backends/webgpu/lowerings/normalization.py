"""Layer norm and RMS norm."""

from __future__ import annotations

from webinfer.backends.webgpu.dispatch import (
    WORKGROUP,
    Dispatch,
    Target,
    groups_for,
    read,
    read_given,
    workgroup_reduction,
    workgroup_reduction_text,
    write,
)
from webinfer.backends.webgpu.lowerings.conversion import in_words
from webinfer.codegen.prelude import f32, u32
from webinfer.codegen.templates import Variable
from webinfer.graph.ir import Node
from webinfer.ops.normalization import rows_of

FEW_READS, MAX_READS = 4, 8  # quads of a row that an invocation keeps: by default, and at most
LONG_ROW = 256  # invocations for rows that would be more


def _layer_norm(node: Node, target: Target) -> list[Dispatch]:
    """layer_norm.wgsl: a workgroup a row."""
    x, y, a = node.required_input(0), node.output, node.attrs
    scale, bias = node.optional_input(1), node.optional_input(2)
    rows, depth = rows_of(x.type, a)
    quads = depth // 4
    most = min(LONG_ROW, target.limit("maxComputeInvocationsPerWorkgroup"))
    workgroup = WORKGROUP if quads <= FEW_READS * WORKGROUP else most
    reads = -(-quads // workgroup) if depth % 4 == 0 and quads <= MAX_READS * workgroup else 0
    variables: dict[str, Variable] = {
        "workgroup": workgroup, "reads": reads, "centred": a.centred, "scaled": scale is not None,
        "shifted": bias is not None, **workgroup_reduction(target),
    }  # fmt: skip
    bindings = (read("x", x), *read_given(scale=scale, bias=bias), write("y", y, single=not reads))
    params = (*u32(rows=rows, depth=depth), *f32(epsilon=a.epsilon))
    why = f"a workgroup a row, {workgroup_reduction_text(target)}"
    return [Dispatch("layer_norm", variables, bindings, params, groups_for(rows, target, 1), why)]


layer_norm = in_words(_layer_norm)
