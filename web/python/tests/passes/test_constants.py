"""Constants: float16 ones absorbed, equal ones shared."""

from __future__ import annotations

from tests.passes.building import Build, Q, lines, rewritten

from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Sparsity, TensorType, Value
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul
from webinfer.passes.dequantize_constants import dequantize_constants
from webinfer.passes.share_constants import share_constants

TO_FLOAT = ew.CastAttrs(DType.FLOAT32)


def test_float16_constant_becomes_a_float32_value_stored_as_float16() -> None:
    b = Build()
    x = b.input("x", 2, 3)
    half = b.constant(4, 3, dtype=DType.FLOAT16)
    weights = b.node(ew.DEQUANTIZE, [half], TO_FLOAT, "w")
    graph = b.output(b.node(matmul.MATMUL, [x, weights], matmul.MatmulAttrs(transpose_b=True), "y"))
    assert rewritten(dequantize_constants, graph, 1) == lines(
        "%y = matmul(%x, const float16 [4x3]) transpose_b -> float32[2x4]",
        "return %y",
    )
    assert weights.constant is not None
    assert half.constant is not None
    assert weights.constant.data is half.constant.data
    assert weights.type == TensorType((4, 3))


def test_sparse_storage_survives() -> None:
    b = Build()
    layout = Sparsity((0, 1), (), (("dense", 4), ("csr", memoryview(bytes(5)), memoryview(b""))))
    half = Value("s", TensorType((4, 3), DType.FLOAT16), Constant(memoryview(b""), DType.FLOAT16, layout))
    weights = b.node(ew.DEQUANTIZE, [half], TO_FLOAT, "w")
    graph = b.output(b.node(ew.ABS, [weights], ew.UnaryAttrs(), "y"))
    assert rewritten(dequantize_constants, graph, 1) == lines(
        "%y = abs(const sparse float16 [4x3]) -> float32[4x3]", "return %y"
    )


def test_computed_float16_and_quantised_constants_stay() -> None:
    b = Build()
    x = b.input("x", 3, dtype=DType.FLOAT16)
    first = b.node(ew.DEQUANTIZE, [x], TO_FLOAT, "a")
    second = b.node(ew.DEQUANTIZE, [b.constant(3, dtype=DType.INT8, quant=Q)], TO_FLOAT, "b")
    graph = b.output(b.node(ew.ADD, [first, second], ew.BinaryAttrs(), "y"))
    assert rewritten(dequantize_constants, graph, 0).count("dequantize") == 2


def test_dequantised_output_of_the_graph_stays() -> None:
    b = Build()
    graph = b.output(b.node(ew.DEQUANTIZE, [b.constant(3, dtype=DType.FLOAT16)], TO_FLOAT, "y"))
    assert rewritten(dequantize_constants, graph, 0) == lines(
        "%y = dequantize(const float16 [3]{0, 0, 0}) dtype=float32 -> float32[3]", "return %y"
    )


def test_tensors_that_share_a_buffer_become_one_value() -> None:
    b = Build()
    x = b.input("x", 2)
    data = memoryview(bytes(8))
    first, second, longer = (
        Value(name, TensorType(shape), Constant(data, DType.FLOAT32))
        for name, shape in (("p", (2,)), ("q", (2,)), ("r", (1, 2)))
    )
    total = b.node(ew.ADD, [x, first], ew.BinaryAttrs(), "a")
    total = b.node(ew.ADD, [total, second], ew.BinaryAttrs(), "b")
    graph = b.output(b.node(ew.ADD, [total, longer], ew.BinaryAttrs(), "c"))
    rewritten(share_constants, graph, 1)
    assert graph.nodes[0].inputs[1] is graph.nodes[1].inputs[1] is first
    assert graph.nodes[2].inputs[1] is longer, "another shape is another value"


def test_what_is_made_of_equal_values_in_the_same_way_is_made_once() -> None:
    b = Build()
    x, y = b.input("x", 4), b.input("y", 4)
    sums = [
        b.node(ew.ADD, [x, Value("one", TensorType(()), Constant(memoryview(b"\0\0\x80?"), DType.FLOAT32))],
            ew.BinaryAttrs(), f"sum {i}")
        for i in range(2)
    ]  # fmt: skip
    other = b.node(ew.ADD, [y, sums[0]], ew.BinaryAttrs(), "other")
    third = b.node(ew.ADD, [y, sums[1]], ew.BinaryAttrs(), "third")
    graph = b.output(b.node(ew.MUL, [other, third], ew.BinaryAttrs(), "product"))
    rewritten(share_constants, graph, 3)  # the constant, and both sums
    assert [node.op for node in graph.nodes] == [ew.ADD, ew.ADD, ew.MUL]


def test_an_output_of_the_graph_stays_its_own_value() -> None:
    b = Build()
    x = b.input("x", 4)
    graph = b.output(*(b.node(ew.ABS, [x], ew.UnaryAttrs(), name) for name in "ab"))
    rewritten(share_constants, graph, 0)
