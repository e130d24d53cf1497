"""A sum with a product by one number, or with what a depthwise convolution makes, is one step with the bits of both."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import BUILDS, Target
from tests.passes.building import Build

from webinfer.backends import reference, wasm
from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Graph, TensorType, Value
from webinfer.host.native import NativeHost
from webinfer.ops import conv
from webinfer.ops import elementwise as ew
from webinfer.ops.activation import Activation

SHAPE = (2, 3, 7)
KERNEL = "f32_scaled_add"
GATED = (1, 5, 3, 8)


def _graph(
    shape: tuple[int, ...] = SHAPE,
    swap: bool = False,
    both: bool = False,
    gate: tuple[int, ...] = (),
    **attrs: Activation,
) -> Graph:
    """A sum with a product with 0.2, or with a gate."""
    b = Build()
    x, y = b.input("x", *shape), b.input("y", *(shape if gate else SHAPE))
    sides: list[Value | None] = [y, b.input("g", *gate) if gate else b.number(0.2)]
    product = b.node(ew.MUL, sides[::-1] if swap else sides, ew.BinaryAttrs(), "p")
    total = b.node(ew.ADD, [product, x] if swap else [x, product], ew.BinaryAttrs(**attrs), "s")
    return b.output(*([total, product] if both else [total]))


@pytest.mark.parametrize(
    "given", [{}, {"swap": True}, {"activation": Activation.RELU}], ids=["plain", "the other way round", "relu"]
)
@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_one_step_gives_the_bits_of_two(target: Target, given: dict[str, object]) -> None:
    target.demand()
    rng, graph = np.random.default_rng(5), _graph(**given)  # type: ignore[arg-type]
    arrays = {name: rng.normal(size=SHAPE).astype(np.float32) for name in "xy"}
    arrays["x"][0, 0, 1], arrays["y"][1, 2, 6] = np.inf, np.nan
    inputs = {name: memoryview(array).cast("B") for name, array in arrays.items()}
    want = run(run(reference.build(graph, NativeHost())).run(inputs))["s"].numpy()
    executor = run(wasm.build(graph, NativeHost(), **dict(target.options)))
    assert [row.kernel for row in executor.rows()] == [KERNEL]
    np.testing.assert_array_equal(run(executor.run(inputs))["s"].numpy(), want)


@pytest.mark.parametrize("given", [{}, {"swap": True, "activation": Activation.RELU6}], ids=["plain", "relu6"])
@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_a_gate_of_channels_and_a_sum_are_one_step(target: Target, given: dict[str, object]) -> None:
    target.demand()
    rng, graph = np.random.default_rng(5), _graph(GATED, gate=(1, 1, 1, 8), **given)  # type: ignore[arg-type]
    arrays = {v.name: rng.normal(size=v.type.shape).astype(np.float32) for v in graph.inputs}
    arrays["x"][0, 0, 1, 3], arrays["y"][0, 4, 2, 7], arrays["g"][0, 0, 0, 2] = np.inf, np.nan, np.inf
    inputs = {name: memoryview(array).cast("B") for name, array in arrays.items()}
    want = run(run(reference.build(graph, NativeHost())).run(inputs))["s"].numpy()
    executor = run(wasm.build(graph, NativeHost(), **dict(target.options)))
    assert [row.kernel for row in executor.rows()] == [f"{KERNEL}_channels"]
    np.testing.assert_array_equal(run(executor.run(inputs))["s"].numpy(), want)


@pytest.mark.parametrize(
    "given",
    [
        {"shape": (7,)},
        {"both": True},
        {"shape": (2, 5, 3, 8), "gate": (2, 1, 1, 8)},
        {"shape": (1, 5, 3, 6), "gate": (1, 1, 1, 6)},
    ],
    ids=["broadcast", "two readers", "a gate an image", "six channels"],
)
def test_others_are_two_steps(given: dict[str, object]) -> None:
    executor = run(wasm.build(_graph(**given), NativeHost()))  # type: ignore[arg-type]
    assert [row.kernel for row in executor.rows()] == ["f32_mul", "f32_add"]


def _block(c: int, k: int, residual: bool, factor: float | None, both: bool, **attrs: Activation) -> Graph:
    """x + depthwise(x + residual) * factor; with `both` the convolution has another reader."""
    b, rng = Build(), np.random.default_rng(7)

    def constant(*shape: int) -> Value:
        data = rng.normal(size=shape).astype(np.float32)
        return Value("c", TensorType(shape), Constant(memoryview(data).cast("B"), DType.FLOAT32))

    x, y = b.input("x", 1, 9, 11, c), b.input("y", 1, 9, 11, c)
    slopes = constant(c) if attrs.get("activation") is Activation.PRELU else None
    given = [x, constant(1, k, k, c), constant(c), y if residual else None, slopes]
    made = b.node(conv.DEPTHWISE_CONV2D, given, conv.Conv2dAttrs(pads=(k // 2,) * 4, **attrs), "d")
    side = b.node(ew.MUL, [b.number(factor), made], ew.BinaryAttrs(), "m") if factor else made
    total = b.node(ew.ADD, [x, side], ew.BinaryAttrs(), "s")
    return b.output(*([total, made] if both else [total]))


@pytest.mark.parametrize("c", [4, 7])
@pytest.mark.parametrize(
    ("k", "residual", "factor", "activation"),
    [
        (3, False, None, Activation.PRELU), (3, True, 0.2, Activation.NONE), (3, False, -1.5, Activation.RELU6),
        (5, False, None, Activation.RELU), (5, True, 0.2, Activation.NONE),
    ],
)  # fmt: skip
@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_a_depthwise_convolution_ends_with_the_sum(
    target: Target, k: int, residual: bool, factor: float | None, activation: Activation, c: int
) -> None:
    target.demand()
    rng, scalar = np.random.default_rng(5), str(dict(target.options)["isa"]).startswith("scalar")
    arrays = {name: rng.normal(size=(1, 9, 11, c)).astype(np.float32) for name in "xy"}
    arrays["x"][0, 0, 1, 2], arrays["y"][0, 8, 10, 3] = np.inf, np.nan
    inputs = {name: memoryview(array).cast("B") for name, array in arrays.items()}
    graph, apart = (_block(c, k, residual, factor, both, activation=activation) for both in (False, True))
    one, two = (wasm.build(g, NativeHost(), **dict(target.options)) for g in (graph, apart))
    executor = run(one)
    assert len(executor.rows()) == (2 if scalar else 1)
    got, want = (run(e.run(inputs))["s"].numpy() for e in (executor, run(two)))
    np.testing.assert_array_equal(got, want)
    told = run(run(reference.build(graph, NativeHost())).run(inputs))["s"].numpy()
    np.testing.assert_allclose(got, told, rtol=1e-5, atol=1e-5)


def test_a_curve_behind_a_depthwise_convolution_is_a_step_of_its_own() -> None:
    executor = run(wasm.build(_block(4, 3, False, None, False, activation=Activation.SILU), NativeHost()))
    assert [row.kernel for row in executor.rows()] == ["f32_depthwise_nhwc_3x3_s1", "f32_add"]
