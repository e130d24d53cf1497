"""Sizes that a file leaves open are bound when it is read; shapes that it computes are computed then."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from tests.importers.litert import computed
from tests.importers.sample_models import residual, shapes
from tests.importers.tflite_writer import Writer

import webinfer
from webinfer.errors import LimitError, ModelFormatError, ShapeError, UnsupportedOpError
from webinfer.graph.printer import print_graph
from webinfer.importers import read_model


def test_open_sizes_are_what_the_file_says_unless_they_are_bound() -> None:
    assert read_model(residual()).inputs[0].type.shape == (1, 8, 8, 3)
    with pytest.raises(ModelFormatError, match="operator 9 RESHAPE"):  # another size would not fit [1, 24]
        read_model(residual(), shapes={"image": (1, 16, 8, 3)})
    graph = read_model(shapes(), shapes={"words": (5, 7, 4)})
    assert graph.inputs[0].type.shape == (5, 7, 4)
    assert graph.outputs[0].type.shape == (5, 21)


@pytest.mark.parametrize("wanted", [(2, 8, 8, 3), (1, 8, 8, 4), (1, 8, 8), (1, -1, 8, 3)], ids=str)
def test_fixed_sizes_cannot_be_bound(wanted: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"allows \(1, any, any, 3\)"):
        read_model(residual(), shapes={"image": wanted})


def test_unknown_inputs_and_absurd_sizes_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"sizes are given for \['picture'\]; the model's inputs are \['image'\]"):
        read_model(residual(), shapes={"picture": (1, 8, 8, 3)})
    with pytest.raises(LimitError, match="input 'image'"):
        read_model(residual(), shapes={"image": (1, 2**20, 2**20, 3)})


def test_without_a_signature_every_size_may_be_bound() -> None:
    w = Writer()
    x, y = w.input("x", (1, 4)), w.tensor("y", (1, 4))
    w.node("ABS", [x], [y])
    assert read_model(w.finish(y), shapes={"x": (3, 9)}).outputs[0].type.shape == (3, 9)


def test_shape_arithmetic_leaves_no_node() -> None:
    """[batch, height / 2, width * channels] computed the way converters write it."""
    w = Writer()
    x = w.input("x", (2, 6, 4, 3))
    names = {}

    def ints(name: str, *shape: int) -> int:
        names[name] = w.tensor(name, shape, "int32")
        return names[name]

    w.node("SHAPE", [x], [ints("shape", 4)], out_type=2)
    one, zero = w.constant("one", np.array(1, np.int32)), w.constant("zero", [0])
    w.node("GATHER", [names["shape"], zero], [ints("batch", 1)], axis=0)
    w.node(
        "STRIDED_SLICE",
        [names["shape"], w.constant("b", [1]), w.constant("e", [2]), w.constant("s", [1])],
        [ints("high", 1)],
    )
    w.node("FLOOR_DIV", [names["high"], w.constant("two", [2])], [ints("half", 1)])
    w.node("SLICE", [names["shape"], w.constant("from", [2]), w.constant("count", [2])], [ints("rest", 2)])
    w.node("REDUCE_PROD", [names["rest"], zero], [ints("row", 1)], keep_dims=True)
    w.node("MUL", [names["row"], one], [ints("same", 1)])
    w.node("MAXIMUM", [names["same"], w.constant("least", [5])], [ints("most", 1)])
    w.node("CONCATENATION", [names["batch"], names["half"], w.constant("free", [-1])], [ints("wanted", 3)], axis=0)
    y = w.tensor("y", (2, 3, 24))
    w.node("RESHAPE", [x, names["wanted"]], [y])
    z = w.tensor("z", (2, 12))
    w.node("RESHAPE", [names["shape"], w.constant("two_rows", [2, 2])], [w.tensor("m", (2, 2), "int32")])
    w.node("FILL", [w.constant("dims", [2, 12]), w.constant("half_", np.array(0.5, np.float32))], [z])
    graph = read_model(w.finish(y, names["most"], z), "g")
    assert print_graph(graph).splitlines()[1:-1] == [
        "  %y = reshape(%x) shape=2x3x24 -> float32[2x3x24]",
        "  %z = expand(const {0.5}) shape=2x12 -> float32[2x12]",
        "  %most = identity(const int32 [1]{12}) -> int32[1]",
        "  return %y, %most, %z",
    ]


def test_rank_and_range() -> None:
    w = Writer()
    x, rank, numbers, y = (
        w.input("x", (4, 1)),
        w.tensor("rank", (), "int32"),
        w.tensor("n", (4,), "int32"),
        w.tensor("y", (4, 4)),
    )
    w.node("RANK", [x], [rank])
    w.node("RANGE", [rank, w.constant("to", np.array(10, np.int32)), rank], [numbers])
    real = w.tensor("real", (4,))
    w.node("CAST", [numbers], [real])
    w.node("ADD", [x, real], [y])
    graph = read_model(w.finish(y, numbers), "g")
    feed = np.zeros((4, 1), np.float32)
    assert computed(graph, [feed])[0][0].tolist() == [2, 4, 6, 8]
    assert computed(graph, [feed])[1].tolist() == [2, 4, 6, 8]


def test_a_shape_that_is_data_is_refused() -> None:
    w = Writer()
    x, shape, y = w.input("x", (4, 3)), w.input("shape", (2,), "int32"), w.tensor("y", (3, 4))
    w.node("RESHAPE", [x, shape], [y])
    with pytest.raises(UnsupportedOpError, match="RESHAPE: input 1 is computed at run time"):
        read_model(w.finish(y))


def test_folding_stops_at_its_budget() -> None:
    """A chain of additions on a constant of a thousand numbers: cheap to write, costly to fold."""
    w = Writer()
    x = w.input("x", (1000,), "int32")
    total = one = w.constant("one", np.ones(1000, np.int32))
    for _ in range(400):
        w.node("ADD", [total, one], [total := w.tensor("t", (1000,), "int32")])
    y = w.tensor("y", (1000,), "int32")
    w.node("ADD", [x, total], [y])
    assert 150 < len(read_model(w.finish(y)).nodes) < 250


def test_a_session_is_loaded_for_the_sizes_asked_for() -> None:
    async def run() -> tuple[int, ...]:
        session = await webinfer.load(shapes(), backend="reference", shapes={"words": (3, 5, 4)})
        with session:
            outputs = await session.run({"words": np.zeros((3, 5, 4), np.float32)})
        return outputs["y"].shape

    assert asyncio.run(run()) == (3, 15)
