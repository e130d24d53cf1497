"""Graphs built in Python: what the builder accepts, refuses and makes."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
import pytest
from tests.custom.one_node import noise
from tests.ops.case_graphs import run

import webinfer
from webinfer.errors import InputError, LimitError, ShapeError
from webinfer.graph.printer import print_graph


def small() -> webinfer.GraphBuilder:
    g = webinfer.GraphBuilder("small")
    x = g.input("x", (1, 6, 6, 2))
    y = g.node("conv2d", x, noise(4, 3, 3, 2), [0.5, 1, 2, 3], pads=[1, 1, 1, 1], name="first")
    g.output(g.node("relu6", y), "y")
    return g


def test_a_built_graph_is_printed_as_an_imported_one() -> None:
    assert print_graph(small().graph()) == (
        "graph small(%x: float32[1x6x6x2]) {\n"
        "  %first = conv2d(%x, const [4x3x3x2], const [4]{0.5, 1, 2, 3}) pads=1,1,1,1 -> float32[1x6x6x4]\n"
        "  %y = relu6(%first) -> float32[1x6x6x4]\n"
        "  return %y\n"
        "}\n"
    )


@pytest.mark.parametrize("backend", ["wasm", "reference"])
def test_one_builder_makes_many_sessions(backend: str) -> None:
    g, x = small(), noise(1, 6, 6, 2)
    with run(webinfer.load(g, backend=backend)) as first, run(webinfer.load(g, backend="reference")) as second:
        assert first.name == "small"
        assert [r.op for r in first.plan().rows] == ["conv2d"]  # the activation is fused as in any graph
        got, want = (run(s.run(x))["y"].numpy() for s in (first, second))
    np.testing.assert_allclose(got, want, atol=1e-5)


def test_numbers_buffers_and_tensors_are_constants() -> None:
    g = webinfer.GraphBuilder()
    x = g.input("x", [4])
    for other in (
        2, 0.5, [1, 2, 3, 4.5], array("f", [1, 2, 3, 4]), np.float32([1]),
        webinfer.Tensor(bytes(16), (4,), webinfer.DType.FLOAT32),
    ):  # fmt: skip
        x = g.node("add", x, other)
    assert x.type.shape == (4,)
    assert g.constant(bytes(range(4)), (2, 2), "uint8").type.shape == (2, 2)
    assert g.constant([1, 2], dtype="int64").numbers() == (1, 2)
    data = np.float32([1, 2])
    kept = g.constant(data)
    data[:] = 0
    assert kept.numbers() == (1, 2)


def test_operators_with_several_outputs_give_a_list() -> None:
    g = webinfer.GraphBuilder()
    values, places = g.node("top_k", g.input("x", (2, 5)), k=3)
    g.output(values, "values")
    g.output(places, "places")
    with run(webinfer.load(g, backend="reference")) as session:
        found = run(session.run(noise(2, 5)))
    assert {name: t.shape for name, t in found.items()} == {"values": (2, 3), "places": (2, 3)}


def test_inputs_constants_and_values_twice_may_be_outputs() -> None:
    g = webinfer.GraphBuilder()
    x = g.input("x", (3,))
    y = g.node("neg", x)
    for name, value in (("same", x), ("y", y), ("again", y), ("fixed", g.constant([7.0]))):
        g.output(value, name)
    with run(webinfer.load(g, backend="wasm")) as session:
        found = {name: t.tolist() for name, t in run(session.run(np.float32([1, 2, 3]))).items()}
    assert found == {"same": [1, 2, 3], "y": [-1, -2, -3], "again": [-1, -2, -3], "fixed": [7]}


def _input(g: webinfer.GraphBuilder) -> Any:
    return g.input("x", (1, 4, 4, 2))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda g: g.node("blur", _input(g)), InputError, r"no operator blur; see webinfer\.operators"),
        (lambda g: g.node("relu", _input(g), size=1), InputError, "relu has no attribute size"),
        (lambda g: g.node("reshape", _input(g)), InputError, "reshape needs the attribute shape"),
        (lambda g: g.node("cast", _input(g), dtype="float8"), InputError, "dtype is 'float8', must be one of float32"),
        (lambda g: g.node("concat", _input(g), axis=1.5), InputError, "axis is 1.5, needs int"),
        (lambda g: g.node("conv2d", _input(g)), ShapeError, "conv2d"),
        (lambda g: g.node("conv2d", _input(g), noise(1, 3, 3, 5)), ShapeError, "conv2d"),
        (lambda g: g.node("conv2d", _input(g), noise(1, 3, 3, 2), pads=(1,)), ShapeError, "do not fit"),
        (lambda g: g.node("relu", object()), InputError, "constant"),
        (lambda g: g.input("x", (1, -1)), ShapeError, "sizes are whole numbers from 1"),
        (lambda g: g.input("x", (1, 2.5)), ShapeError, "sizes are whole numbers from 1"),
        (lambda g: g.input("x", 4), InputError, "'x' cannot be float32 of shape 4"),
        (lambda g: g.input("x", (4,), "float"), InputError, "cannot be float of shape"),
        (lambda g: g.input("x", (1 << 20, 1 << 20)), LimitError, "tensor x in bytes"),
        (lambda g: (_input(g), _input(g)), InputError, "already has an input 'x'"),
        (lambda g: g.constant([1, 2], (3,)), InputError, "has 8 bytes, needs 12"),
        (lambda g: g.constant(["a"]), InputError, "no flat constant"),
        (lambda g: g.graph(), ShapeError, "has no output"),
        (
            lambda g: g.output(webinfer.GraphBuilder().input("z", (2,)), "y") or g.graph(),
            ShapeError,
            "written later or",
        ),
    ],
)
def test_what_makes_no_graph_is_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make(webinfer.GraphBuilder("g"))


def test_sizes_cannot_be_bound_again() -> None:
    with pytest.raises(InputError, match="'small' was built with its shapes"):
        run(webinfer.load(small(), backend="wasm", shapes={"x": (1, 8, 8, 2)}))
