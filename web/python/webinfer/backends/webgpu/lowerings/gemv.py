"""Products of few rows and long sums: a workgroup shares each sum. One shader for matrix products and convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from webinfer.backends.webgpu.dispatch import (
    Dispatch,
    Source,
    Target,
    groups_for,
    read,
    workgroup_reduction,
    workgroup_reduction_text,
)
from webinfer.backends.webgpu.lowerings.epilogue import Product, destination
from webinfer.backends.webgpu.lowerings.tiled import TiledShape
from webinfer.backends.webgpu.lowerings.variants import Gemv
from webinfer.codegen.prelude import Param, u32
from webinfer.codegen.templates import Variable
from webinfer.graph.ir import Node


def gemv_product(
    node: Node, p: Product, weights: Source, shape: TiledShape, gemv: Gemv, windows: Sequence[Param], target: Target
) -> list[Dispatch]:
    """conv2d_gemv.wgsl: `gemv` says how many rows a workgroup computes with how many invocations.

    `windows` are the image parameters of a convolution that is not pointwise, else empty.

    Shapes:  weights [co, window * ci]
    """
    place, after = destination(node.output, target, single=bool(shape.co % 4))
    (kh, kw), co4 = shape.window, -(-shape.co // 4)
    variables: dict[str, Variable] = p.variables | workgroup_reduction(target) | {
        "workgroup": gemv.workgroup, "rows": gemv.rows, "kw": kw, "taps": kh * kw, "pointwise": shape.pointwise,
        "co_quads": shape.co % 4 == 0,
    }  # fmt: skip
    params = (*u32(pixels=shape.rows, ci4=shape.ci // 4, co4=co4, co=shape.co), *windows, *p.params)
    groups = groups_for(-(-shape.rows // gemv.rows) * co4, target, 1)
    bindings = (read("x", node.required_input(0)), read("w", weights, p.element), *p.bindings, place)
    why = f"{gemv.workgroup} share each sum, {workgroup_reduction_text(target)}"
    return [*p.before, Dispatch("conv2d_gemv", variables, bindings, params, groups, why), *after]
