"""A sum with a product by one number is one step, with the bits of both."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import BUILDS, Target
from tests.passes.building import Build

from webinfer.backends import reference, wasm
from webinfer.graph.ir import Graph, Value
from webinfer.host.native import NativeHost
from webinfer.ops import elementwise as ew
from webinfer.ops.activation import Activation

SHAPE = (2, 3, 7)
KERNEL = "f32_scaled_add"


def _graph(shape: tuple[int, ...] = SHAPE, swap: bool = False, both: bool = False, **attrs: Activation) -> Graph:
    b = Build()
    x, y = b.input("x", *shape), b.input("y", *SHAPE)
    sides: list[Value | None] = [y, b.number(0.2)]
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


@pytest.mark.parametrize("given", [{"shape": (7,)}, {"both": True}], ids=["broadcast", "two readers"])
def test_others_are_two_steps(given: dict[str, object]) -> None:
    executor = run(wasm.build(_graph(**given), NativeHost()))  # type: ignore[arg-type]
    assert [row.kernel for row in executor.rows()] == ["f32_mul", "f32_add"]
