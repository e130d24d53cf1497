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
from webinfer.backends.webgpu.lowerings.group_norm import GroupNorm
from webinfer.codegen.prelude import f32, u32
from webinfer.codegen.templates import Variable
from webinfer.graph.ir import Node
from webinfer.ops.activation import Activation
from webinfer.ops.normalization import rows_of

# Quads of a row that an invocation keeps: by default, where 2 took 1.15 times as long, and at most: with 8 rows of
# 8,200 to 16,000 took 2.8 times (H100, 2026-11-28).
FEW_READS, MAX_READS = 4, 16
LONG_ROW = 256  # invocations for rows that would be more: 128 took up to 1.9 times as long (H100, 2026-11-28)
# Elements of a row from which several workgroups share it, where most of the GPU would idle: 32 rows of 40,960 took an
# H100 68 us with a workgroup each (Dawn, 2026-11-28).
SHARED_ROW = 1 << 14


def _layer_norm(node: Node, target: Target) -> list[Dispatch]:
    """layer_norm.wgsl: a workgroup a row. Few long rows are images of four channels, whose group norm is shared."""
    x, y, a = node.required_input(0), node.output, node.attrs
    scale, bias = node.optional_input(1), node.optional_input(2)
    rows, depth = rows_of(x.type, a)
    plain = scale is None and bias is None and a.centred and isinstance(rows, int)
    if plain and depth >= SHARED_ROW and depth % 4 == 0 and rows * 2 <= target.cores and not target.software:
        return [*GroupNorm(x, y, None, None, 1, a.epsilon, Activation.NONE).of_images(rows, depth // 4, 4, target)]
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
