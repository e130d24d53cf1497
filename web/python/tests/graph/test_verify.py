"""The rules of a graph, each broken once."""

from __future__ import annotations

import pytest

from webinfer.dtypes import DType
from webinfer.errors import ShapeError
from webinfer.graph.ir import Constant, Graph, Node, Quantization, TensorType, Value, apply
from webinfer.graph.verify import verify
from webinfer.ops import elementwise as ew
from webinfer.ops import movement


def _sound() -> Graph:
    x = Value("x", TensorType((2, 3)))
    constant = Value("c", TensorType((3,)), Constant(memoryview(bytes(6)), DType.FLOAT16))
    first = apply(ew.ADD, [x, constant], ew.BinaryAttrs(), name="sum")
    second = apply(ew.ABS, [first.output], ew.UnaryAttrs(), name="abs")
    return Graph("sound", [x], [second.output], [first, second])


def _broken(graph: Graph, words: str) -> None:
    with pytest.raises(ShapeError, match=words):
        verify(graph)


def test_a_sound_graph_is_left_alone() -> None:
    verify(_sound())


def test_wrong_order() -> None:
    graph = _sound()
    graph.nodes.reverse()
    _broken(graph, "abs abs reads sum .* written later or never")


def test_two_writers() -> None:
    graph = _sound()
    graph.nodes.append(Node(ew.ABS, [graph.inputs[0]], [graph.outputs[0]], ew.UnaryAttrs(), "again"))
    _broken(graph, "abs again writes abs .* written before")


def test_written_input() -> None:
    graph = _sound()
    graph.nodes.append(Node(ew.ABS, [graph.outputs[0]], [graph.inputs[0]], ew.UnaryAttrs(), "back"))
    _broken(graph, "writes x")


def test_written_constant() -> None:
    graph = _sound()
    constant = Value("c", TensorType((2, 3)), Constant(memoryview(bytes(24)), DType.FLOAT32))
    graph.nodes.append(Node(ew.ABS, [graph.inputs[0]], [constant], ew.UnaryAttrs(), "n"))
    _broken(graph, "writes c .* constant")


def test_unwritten_output() -> None:
    graph = _sound()
    graph.outputs.append(Value("lost", TensorType((1,))))
    _broken(graph, "graph output lost .* not written by any node")


def test_two_outputs_or_inputs_of_one_name() -> None:
    graph = _sound()
    graph.outputs.append(graph.outputs[0])
    _broken(graph, "a graph output is listed twice")
    graph.outputs[1] = Value("abs", TensorType((2, 3)), Constant(memoryview(bytes(24)), DType.FLOAT32))
    _broken(graph, "two graph outputs have the name abs")
    graph = _sound()
    graph.inputs.append(Value("x", TensorType(())))
    _broken(graph, "two graph inputs have the name x")


def test_input_listed_twice_or_constant() -> None:
    graph = _sound()
    graph.inputs.append(graph.inputs[0])
    _broken(graph, "listed twice")
    graph = _sound()
    graph.inputs.append(Value("c", TensorType(()), Constant(memoryview(bytes(4)), DType.FLOAT32)))
    _broken(graph, "is a constant")


def test_type_that_inference_does_not_give() -> None:
    graph = _sound()
    graph.nodes[0].output.type = TensorType((2, 4))
    _broken(graph, r"add sum is typed float32\[2x4\]; its inputs make float32\[2x3\]")


def test_attributes_of_another_operator() -> None:
    graph = _sound()
    graph.nodes[1].attrs = movement.TileAttrs((1, 1))
    _broken(graph, "abs abs has TileAttrs, needs UnaryAttrs")


def test_constant_of_the_wrong_length() -> None:
    graph = _sound()
    constant = graph.nodes[0].inputs[1]
    assert constant is not None
    constant.constant = Constant(memoryview(bytes(7)), DType.FLOAT16)
    _broken(graph, "constant c .* has 7 bytes, needs 6")


def test_names_in_messages_are_neutralised() -> None:
    graph = _sound()
    graph.outputs.append(Value("<b>\u202e", TensorType((1,))))
    _broken(graph, "graph output {3c}b{3e}{202e} ")


def test_inputs_of_a_node_are_asked_for_by_position() -> None:
    x, slope = Value("x", TensorType((2,))), Value("slope", TensorType((2,)))
    node = Node(ew.ABS, [x, None, slope], [], ew.UnaryAttrs(), "n")
    assert [node.optional_input(i) for i in range(4)] == [x, None, slope, None]
    assert node.required_input(2) is slope
    with pytest.raises(AssertionError, match="n: input 1 is missing"):
        node.required_input(1)


def test_element_types_that_break_a_rule_of_the_operator() -> None:
    graph = _sound()
    graph.nodes[0].attrs = ew.BinaryAttrs(out_type=(DType.INT8, Quantization((0.1,), (0,))))
    graph.nodes[0].output.type = TensorType((2, 3), DType.INT8, Quantization((0.1,), (0,)))
    _broken(graph, "add sum: add: the result is int8.*, needs float32 without a scale beside x float32")
