"""Silus that products carry in their epilogue: which are carried, and that the results stay right."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import Target as RingTarget
from tests.webgpu.devices import HARDWARE, SOFTWARE
from tests.webgpu.disguised import disguised
from tests.webgpu.fused_blocks import RNG, block, image, outputs_of, weights
from tests.webgpu.fused_blocks import graph_of as plain_graph

from webinfer.backends import reference, webgpu
from webinfer.backends.webgpu.lowerings.variants import candidates, tuning_key
from webinfer.backends.webgpu.schedule import make_schedule
from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Graph, Node, TensorType, Value, apply
from webinfer.ops import OPS
from webinfer.ops.activation import Activation
from webinfer.ops.conv import Conv2dAttrs, ConvTranspose2dAttrs
from webinfer.ops.elementwise import UnaryAttrs
from webinfer.ops.matmul import MatmulAttrs
from webinfer.rewrite.rules_epilogues import fuse_activation

SAME = (1, 1, 1, 1)


def silu(x: Value, a: float = 1.0) -> Node:
    return apply(OPS["silu"], [x], UnaryAttrs(a), "silu")


def graph_of(x: Value, nodes: list[Node]) -> Graph:
    """The graph as the passes leave it."""
    graph = plain_graph(x, nodes)
    fuse_activation(graph)
    return graph


def product(op: str, x: Value, *w: int, attrs: Any) -> Node:
    bias = weights(w[3] if op == "depthwise_conv2d" else w[0] if op != "matmul" else w[-1])
    return apply(OPS[op], [x, weights(*w), bias], attrs, op)


PRODUCTS: dict[str, tuple[tuple[int, ...], Any]] = {
    "1x1": ((1, 24, 24, 32), lambda x: product("conv2d", x, 48, 1, 1, 32, attrs=Conv2dAttrs())),
    "few pixels": ((1, 5, 5, 64), lambda x: product("conv2d", x, 32, 1, 1, 64, attrs=Conv2dAttrs())),
    "one pixel": ((1, 1, 1, 64), lambda x: product("conv2d", x, 32, 1, 1, 64, attrs=Conv2dAttrs())),
    "3x3": ((2, 9, 7, 12), lambda x: product("conv2d", x, 16, 3, 3, 12, attrs=Conv2dAttrs(pads=SAME))),
    "odd channels": ((1, 9, 7, 5), lambda x: product("conv2d", x, 7, 3, 3, 5, attrs=Conv2dAttrs(pads=SAME))),
    "picture": ((1, 16, 16, 3), lambda x: product("conv2d", x, 16, 3, 3, 3, attrs=Conv2dAttrs((2, 2), SAME))),
    "depthwise": ((1, 9, 7, 16), lambda x: product("depthwise_conv2d", x, 1, 3, 3, 16, attrs=Conv2dAttrs(pads=SAME))),
    "transposed": ((1, 6, 5, 8), lambda x: product(
        "conv_transpose2d", x, 12, 2, 2, 8, attrs=ConvTranspose2dAttrs((2, 2)))),
    "matrix": ((40, 24), lambda x: product("matmul", x, 24, 20, attrs=MatmulAttrs())),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_and_its_silu_are_one_dispatch(name: str) -> None:
    RingTarget("webgpu").demand()
    shape, made = PRODUCTS[name]
    x, host = image(*shape), disguised()
    node = made(x)
    graph = graph_of(x, [node, silu(node.output)])
    for target in (HARDWARE, SOFTWARE):
        assert len(make_schedule(graph, target).run) == len(make_schedule(graph_of(x, [node]), target).run)
    data = RNG.uniform(-2, 2, shape).astype(np.float32)
    want, got = (run(outputs_of(backend, graph, host, data)) for backend in (reference, webgpu))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_a_fused_block_carries_it_too() -> None:
    RingTarget("webgpu").demand()
    x, host = image(1, 8, 8, 16), disguised()
    nodes = block(x, 24)
    nodes[-1].attrs = replace(nodes[-1].attrs, activation=Activation.NONE)
    graph = graph_of(x, [*nodes, silu(nodes[-1].output)])
    assert [step.dispatch.shader for step in make_schedule(graph, HARDWARE).run] == ["depthwise_pointwise"]
    data = RNG.uniform(-2, 2, x.type.shape).astype(np.float32)
    want, got = (run(outputs_of(backend, graph, host, data)) for backend in (reference, webgpu))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_what_others_read_and_other_curves_are_apart() -> None:
    x = image(1, 8, 8, 16)
    node = PRODUCTS["depthwise"][1](x)
    after = silu(node.output)
    both = Graph("g", [x], [node.output, after.output], [node, after])
    assert fuse_activation(both) == 0
    assert len(make_schedule(both, HARDWARE).run) == 2
    assert len(make_schedule(graph_of(x, [node, silu(node.output, 1.702)]), HARDWARE).run) == 2
    node.attrs = replace(node.attrs, activation=Activation.RELU)
    assert len(make_schedule(graph_of(x, [node, silu(node.output)]), HARDWARE).run) == 2


def test_the_kernel_that_was_tuned_for_the_product_is_taken() -> None:
    x = image(1, 24, 24, 32)
    node = PRODUCTS["1x1"][1](x)
    whole, alone = graph_of(x, [node, silu(node.output)]), graph_of(x, [node])
    kernels = set()
    for name in candidates(node, HARDWARE):
        tuned = replace(HARDWARE, tuned={tuning_key(node): name})
        (step,), (plain,) = make_schedule(whole, tuned).run, make_schedule(alone, tuned).run
        assert step.dispatch.shader == plain.dispatch.shader
        kernels.add(step.dispatch.shader)
    assert len(kernels) > 1


CLAMPS = (Activation.NONE, Activation.RELU, Activation.RELU6, Activation.RELU_N1_TO_1)


@pytest.mark.parametrize("activation", CLAMPS)
def test_clamps_share_a_shader_that_keeps_what_is_no_number_and_infinities_within_bounds(
    activation: Activation,
) -> None:
    RingTarget("webgpu").demand()
    values = [np.nan, np.inf, -np.inf, 7.0, -7.0, 0.5, -0.5, 3.4e38]
    data = np.array(values * 8, np.float32).reshape(1, 4, 4, 4)
    x = image(1, 4, 4, 4)
    ones = Value("w", TensorType((1, 1, 1, 4)), Constant(memoryview(struct.pack("<4f", 1, 1, 1, 1)), DType.FLOAT32))

    def clamped(kind: Activation) -> Graph:
        return plain_graph(x, [apply(OPS["depthwise_conv2d"], [x, ones], Conv2dAttrs(activation=kind), "clamped")])

    got, want = (run(outputs_of(backend, clamped(activation), disguised(), data)) for backend in (webgpu, reference))
    np.testing.assert_array_equal(got, want)
    steps = [make_schedule(clamped(kind), HARDWARE).run[0] for kind in (activation, Activation.NONE)]
    assert steps[0].pipeline == steps[1].pipeline
