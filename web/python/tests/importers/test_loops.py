"""Loops with a known course are unrolled, branches on data select; others are refused in bounded time."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
from tests.importers.litert import computed, judged
from tests.importers.tflite_writer import Writer

from webinfer.errors import LimitError, ModelFormatError, UnsupportedOpError
from webinfer.importers import read_model

Body = Callable[[Writer], None]


def _with_subgraphs(main: Body, *others: Body) -> bytes:
    """A model of several subgraphs; each function fills the one that is current."""
    w = Writer()
    main(w)
    for fill in others:
        w.begin_subgraph()
        fill(w)
    return w.finish()


def _counted(limit: int, step: int = 1, condition: int = 1, body: int = 2) -> list[Body]:
    """y = x * 1.5^n by a loop `while i < limit: i += step`."""

    def main(w: Writer) -> None:
        x, start = w.input("x", (2, 3)), w.constant("start", np.array(0, np.int32))
        count, y = w.tensor("count", (), "int32"), w.tensor("y", (2, 3))
        w.node("WHILE", [start, x], [count, y], cond_subgraph_index=condition, body_subgraph_index=body)
        w.graph.outputs = [y]

    def test(w: Writer) -> None:
        i, _ = w.input("i", (), "int32"), w.input("v", (2, 3))
        w.node("LESS", [i, w.constant("limit", np.array(limit, np.int32))], [less := w.tensor("less", (), "bool")])
        w.graph.outputs = [less]

    def turn(w: Writer) -> None:
        i, v = w.input("i", (), "int32"), w.input("v", (2, 3))
        more, grown = w.tensor("more", (), "int32"), w.tensor("grown", (2, 3))
        w.node("ADD", [i, w.constant("step", np.array(step, np.int32))], [more])
        w.node("MUL", [v, w.constant("factor", np.array(1.5, np.float32))], [grown])
        w.graph.outputs = [more, grown]

    return [main, test, turn]


def test_a_counted_loop_is_unrolled() -> None:
    data = _with_subgraphs(*_counted(5))
    graph = read_model(data, "loop")
    assert [node.op.name for node in graph.nodes] == ["mul"] * 5
    assert graph.outputs[0].name == "y"
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    np.testing.assert_allclose(computed(graph, [x])[0], judged(data, [x])[0], rtol=1e-6)


def test_a_loop_that_never_turns_hands_its_input_on() -> None:
    graph = read_model(_with_subgraphs(*_counted(0)), "loop")
    assert [node.op.name for node in graph.nodes] == ["identity"]
    assert graph.outputs[0].name == "y"


@pytest.mark.parametrize(("step", "limit_s"), [(-1, 10), (0, 0.5)])
def test_an_endless_loop_is_refused_in_time(step: int, limit_s: float) -> None:
    """One that stands still is seen after its first turn."""
    start, text = time.process_time(), "a loop that never ends" if step == 0 else "turns of a loop|operators to read"
    with pytest.raises((UnsupportedOpError, LimitError), match=text):
        read_model(_with_subgraphs(*_counted(5, step=step)), "endless")
    assert time.process_time() - start < limit_s


def test_a_loop_that_ends_on_data_is_refused() -> None:
    main, _, turn = _counted(5)

    def test(w: Writer) -> None:
        _, v = w.input("i", (), "int32"), w.input("v", (2, 3))
        w.node("REDUCE_MAX", [v, w.constant("axes", [0, 1])], [most := w.tensor("most", ())])
        limit = w.constant("limit", np.array(9, np.float32))
        w.node("LESS", [most, limit], [less := w.tensor("less", (), "bool")])
        w.graph.outputs = [less]

    with pytest.raises(UnsupportedOpError, match="WHILE: a loop whose end depends on data"):
        read_model(_with_subgraphs(main, test, turn))


def test_what_a_body_lacks_is_listed() -> None:
    main, test, _ = _counted(5)

    def turn(w: Writer) -> None:
        i, v = w.input("i", (), "int32"), w.input("v", (2, 3))
        w.node("SKIP_GRAM", [v], [u := w.tensor("u", (2, 3))])
        w.custom("Strange", [u], [s := w.tensor("s", (2, 3))])
        w.graph.outputs = [i, s]

    with pytest.raises(UnsupportedOpError) as caught:
        read_model(_with_subgraphs(main, test, turn))
    assert caught.value.problems == [
        "WHILE: subgraph 2: SKIP_GRAM: not supported (operator 0) (operator 0)",
        "WHILE: subgraph 2: Strange: a custom operator; register_operator can add it (operator 1) (operator 0)",
    ]


@pytest.mark.parametrize("index", [-1, 3, 2**31 - 1])
def test_a_subgraph_that_is_not_there_is_refused(index: int) -> None:
    with pytest.raises(ModelFormatError, match="operator 0 WHILE: body_subgraph_index"):
        read_model(_with_subgraphs(*_counted(5, body=index)))


def test_a_loop_in_itself_is_refused() -> None:
    def recursive(w: Writer) -> None:
        i, v = w.input("i", (), "int32"), w.input("v", (2, 3))
        count, y = w.tensor("count", (), "int32"), w.tensor("y", (2, 3))
        w.node("WHILE", [i, v], [count, y], cond_subgraph_index=1, body_subgraph_index=2)
        w.graph.outputs = [count, y]

    main, test, _ = _counted(5)
    with pytest.raises(LimitError, match="depth of loops"):
        read_model(_with_subgraphs(main, test, recursive))


def test_a_state_of_another_size_is_refused() -> None:
    main, test, _ = _counted(5)

    def turn(w: Writer) -> None:
        w.graph.outputs = [w.input("i", (), "int32")]
        w.input("v", (2, 3))

    with pytest.raises(ModelFormatError, match="its body gives 1 values for a state of 2"):
        read_model(_with_subgraphs(main, test, turn))


def _branching(constant: bool | list[bool] | None) -> bytes:
    def main(w: Writer) -> None:
        x, y = w.input("x", (3,)), w.tensor("y", (3,))
        if constant is None:
            choice = w.input("choice", (1,), "bool")
        else:
            choice = w.constant("choice", np.array(constant if isinstance(constant, list) else [constant], bool))
        w.node("IF", [choice, x], [y], then_subgraph_index=1, else_subgraph_index=2)
        w.graph.outputs = [y]

    def side(op: str) -> Body:
        def fill(w: Writer) -> None:
            v, r = w.input("v", (3,)), w.tensor("r", (3,))
            w.node(op, [v], [r])
            w.graph.outputs = [r]

        return fill

    return _with_subgraphs(main, side("NEG"), side("ABS"))


def test_a_branch_on_a_constant_of_two_elements_is_refused() -> None:
    with pytest.raises(ModelFormatError, match="needs one bool"):
        read_model(_branching([True, False]))


@pytest.mark.parametrize("choice", [True, False])
def test_a_known_branch_is_taken(choice: bool) -> None:
    graph = read_model(_branching(choice))
    assert [node.op.name for node in graph.nodes] == ["neg" if choice else "abs"]


@pytest.mark.parametrize("choice", [True, False])
def test_a_branch_on_data_selects(choice: bool) -> None:
    data = _branching(None)
    feeds = [np.array([1, -2, 3], np.float32), np.array([choice])]
    np.testing.assert_array_equal(computed(read_model(data), feeds)[0], judged(data, feeds)[0])
