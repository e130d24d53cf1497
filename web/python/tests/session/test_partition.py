import math

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.session.graphs import diamond

from webinfer.backends import reference, wasm
from webinfer.dtypes import DType
from webinfer.errors import UnsupportedOpError
from webinfer.graph.ir import Graph, TensorType, Value, apply
from webinfer.graph.verify import verify
from webinfer.host.native import NativeHost
from webinfer.ops import OPS
from webinfer.ops.elementwise import UnaryAttrs
from webinfer.session.partition import PartitionedExecutor, cut


def test_a_graph_without_refusals_is_one_piece() -> None:
    pieces = cut(diamond(), [])
    assert [p.home for p in pieces] == [True]
    assert len(pieces[0].graph.nodes) == 4


def test_a_refused_branch_is_a_piece_between_two() -> None:
    graph = diamond()
    pieces = cut(graph, [graph.nodes[2]])
    assert [([n.label for n in p.graph.nodes], p.home) for p in pieces] == [
        (["first", "left"], True),
        (["right"], False),
        (["joined"], True),
    ]
    for piece in pieces:
        verify(piece.graph)


def test_a_refused_first_node_makes_the_preferred_backend_wait() -> None:
    graph = diamond()
    assert [p.home for p in cut(graph, [graph.nodes[0]])] == [False, True]


def test_pieces_hand_over_what_later_ones_and_the_caller_need() -> None:
    graph = diamond()
    first = cut(graph, [graph.nodes[2]])[0].graph
    assert {v.name for v in first.outputs} == {"first", "left"}


def test_values_with_one_name_are_told_apart() -> None:
    graph = diamond()
    for node in graph.nodes[1:3]:
        node.output.name = "same"
    cut(graph, [graph.nodes[2]])
    assert len({v.name for node in graph.nodes for v in node.outputs}) == 4


def test_a_name_made_for_a_value_is_no_other_values() -> None:
    graph = diamond()
    for node, name in zip(graph.nodes[1:3], ("same", "same (2)"), strict=True):
        node.output.name = name
    graph.nodes[3].output.name = "same"
    cut(graph, [graph.nodes[2]])
    assert len({v.name for node in graph.nodes for v in node.outputs}) == 4


def test_an_input_with_the_name_of_an_output_is_read_as_it_was_given() -> None:
    graph, host = diamond(), NativeHost()
    graph.outputs[1].name = graph.inputs[0].name
    graph.nodes[2].inputs[0] = graph.inputs[0]  # the later piece reads the input, beside an output of the first
    graph.nodes[3].inputs[0] = graph.inputs[0]
    pieces = cut(graph, [graph.nodes[2]])
    executor = PartitionedExecutor(graph, [(piece, run(reference.build(piece.graph, host))) for piece in pieces], {})
    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(2, 6)
    outputs = run(executor.run({"x": memoryview(x.tobytes())}))
    np.testing.assert_allclose(outputs["joined"].numpy(), x + np.exp(x), rtol=1e-6)
    executor.close()


def test_two_backends_together_give_the_whole_result() -> None:
    graph, host = diamond(), NativeHost()
    pieces = cut(graph, [graph.nodes[2]])
    parts = [(piece, run((reference if piece.home else wasm).build(piece.graph, host))) for piece in pieces]
    executor = PartitionedExecutor(graph, parts, {"right": "the reference lacks it"})
    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(2, 6)
    outputs = run(executor.run({"x": memoryview(x.tobytes())}))
    np.testing.assert_allclose(outputs["joined"].numpy(), -abs(x) + np.exp(abs(x)), rtol=1e-6)
    np.testing.assert_array_equal(outputs["first"].numpy(), abs(x))
    rows = executor.rows()
    assert [r.backend for r in rows] == ["reference", "reference", "wasm", "reference"]
    assert rows[2].why == "the reference lacks it"
    assert executor.backend == "reference+wasm"
    assert all(math.isfinite(t) for t in run(executor.profile({"x": memoryview(x.tobytes())}, 1)))
    executor.close()


def test_a_pass_of_all_pieces_takes_as_long_as_they_take_together(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, host = diamond(), NativeHost()
    pieces = cut(graph, [graph.nodes[2]])
    parts = [(piece, run((reference if piece.home else wasm).build(piece.graph, host))) for piece in pieces]

    async def two(inputs: object, repeats: int) -> float:
        return 2.0

    for _, executor in parts:
        monkeypatch.setattr(type(executor), "pass_ms", lambda self, inputs, repeats: two(inputs, repeats))
    executor = PartitionedExecutor(graph, parts, {})
    assert run(executor.pass_ms({"x": memoryview(bytes(48))}, 1)) == 2.0 * len(parts)
    executor.close()


@pytest.mark.parametrize("name", ["exp", "sigmoid", "erf"])
def test_a_function_of_real_numbers_is_refused_for_integers(name: str) -> None:
    x = Value("x", TensorType((4,), DType.INT32))
    node = apply(OPS[name], [x], UnaryAttrs(), "y")
    with pytest.raises(UnsupportedOpError, match=name):
        run(wasm.build(Graph("g", [x], [node.output], [node]), NativeHost()))
