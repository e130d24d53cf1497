"""The dispatch of nodes that backends.webgpu.fused_groups found: a depthwise convolution with its 1x1 convolution."""

from __future__ import annotations

import math

from webinfer.backends.webgpu.dispatch import Binding, Dispatch, Target, groups_for, read, read_given
from webinfer.backends.webgpu.fusion import Fusion, Share
from webinfer.backends.webgpu.lowerings.conv import conv_columns, image_params
from webinfer.backends.webgpu.lowerings.epilogue import Residual, destination, float_weights, product
from webinfer.codegen.prelude import Param, f32, i32, u32
from webinfer.codegen.templates import Variable
from webinfer.graph.ir import Node
from webinfer.ops.activation import Activation
from webinfer.ops.registry import LARGEST


def depthwise_pointwise(fusion: Fusion, share: Share, target: Target) -> list[Dispatch]:
    """depthwise_pointwise.wgsl: the depthwise results stay in workgroup memory, where the 1x1 reads them."""
    inner, node, y = fusion.depthwise, fusion.pointwise, fusion.pointwise.output
    x, d = inner.required_input(0), float_weights(inner.required_input(1), target)
    _, kh, kw, c = inner.required_input(1).type.shape
    co = y.type.shape[3]
    p = product(node, target, float16_weights=True)
    bias, slope = inner.optional_input(2), inner.optional_input(4)
    low, high = inner.attrs.activation.bounds or (-math.inf, math.inf)
    clamped = math.isfinite(low) or math.isfinite(high)
    variables: dict[str, Variable] = p.variables | {
        "workgroup": share.workgroup, "pixels": 4 * share.groups, "quads": share.quads, "slices": share.slices,
        "channels": c, "channel_quads": c % 4 == 0, "kh": kh, "kw": kw, "co_quads": co % 4 == 0,
        "has_e": bias is not None, "clamped": clamped, "curved": inner.attrs.activation is Activation.SILU,
        "sloped": slope is not None,
    }  # fmt: skip
    rows, co4 = y.type.size // co, -(-co // 4)
    sizes = u32(pixels=rows, co4=co4, co=co)
    bounds = f32(e_low=max(low, -LARGEST), e_high=min(high, LARGEST)) if clamped else ()
    extras, numbers = list(p.bindings), p.params
    if fusion.pool is not None:
        variables |= _pool_variables(fusion.pool)
        extras = [_pooled(b, fusion.pool) for b in extras]
        numbers = (*numbers, *_pool_params(fusion.pool))
    place, after = destination(y, target, single=bool(co % 4))
    weights = conv_columns(p.w, node.required_input(1).type.shape, 1, target)
    own = [read("x", x), read("d", d), *read_given(e=bias, f=slope)]
    params = (*sizes, *image_params(x, y, inner.attrs), *bounds, *numbers)
    groups = groups_for(-(-rows // (4 * share.groups)) * -(-co4 // share.quads), target, 1)
    pool = ", pooled residual" if fusion.pool is not None else ""
    why = f"with {inner.op.name} {kh}x{kw}{pool}: {share.name}"
    bindings = (*own, read("w", weights), *extras, place)
    return [*p.before, Dispatch("depthwise_pointwise", variables, bindings, params, groups, why), *after]


def _pooled(binding: Binding, pool: Node) -> Binding:
    return read("residual", pool.required_input(0)) if binding.slot.name == "residual" else binding


def _pool_variables(pool: Node) -> dict[str, Variable]:
    kh, kw = pool.attrs.window
    quads = pool.output.type.shape[3] % 4 == 0
    return {"residual": Residual.POOLED, "pool_kh": kh, "pool_kw": kw, "pool_quads": quads}


def _pool_params(pool: Node) -> tuple[Param, ...]:
    _, ih, iw, _ = pool.required_input(0).type.shape
    a = pool.attrs
    return (
        *u32(pool_ih=ih, pool_iw=iw, pool_stride_h=a.stride[0], pool_stride_w=a.stride[1]),
        *i32(pool_top=a.pads[0], pool_left=a.pads[2]),
        *f32(lowest=-math.inf),
    )
