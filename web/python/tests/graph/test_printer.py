"""The IR as text: complete enough to test by, safe to show."""

from __future__ import annotations

import struct

from webinfer.dtypes import DType
from webinfer.graph.ir import Constant, Graph, Quantization, Sparsity, TensorType, Value, apply
from webinfer.graph.printer import print_graph, safe_name
from webinfer.ops import conv, movement
from webinfer.ops import elementwise as ew
from webinfer.ops.activation import Activation


def _constant(shape: tuple[int, ...], dtype: DType = DType.FLOAT32, stored: DType | None = None) -> Value:
    stored = stored or dtype
    size = TensorType(shape).size * stored.itemsize
    return Value("weights", TensorType(shape, dtype), Constant(memoryview(bytes(size)), stored))


def test_a_graph_reads_as_code() -> None:
    x = Value("input", TensorType((1, 128, 128, 3)))
    weights = _constant((24, 5, 5, 3), stored=DType.FLOAT16)
    attrs = conv.Conv2dAttrs(stride=(2, 2), pads=(1, 2, 1, 2), activation=Activation.RELU)
    node = apply(conv.CONV2D, [x, weights, _constant((24,))], attrs, name="conv")
    graph = Graph("blazeface", [x], [node.output], [node])
    assert print_graph(graph) == (
        "graph blazeface(%input: float32[1x128x128x3]) {\n"
        "  %conv = conv2d(%input, const float16 [24x5x5x3], const [24]) stride=2x2 pads=1,2,1,2 relu"
        " -> float32[1x64x64x24]\n"
        "  return %conv\n"
        "}\n"
    )


def test_absent_inputs_flags_scalars_and_small_constants_are_shown() -> None:
    x = Value("x", TensorType((1, 4, 4, 2)))
    residual = Value("r", TensorType((1, 4, 4, 2)))
    first = apply(conv.CONV2D, [x, _constant((2, 1, 1, 2)), None, residual, None], conv.Conv2dAttrs(), name="y")
    data = memoryview(struct.pack("<2f", 0.5, -2.0))
    factors = Value("f", TensorType((2,)), Constant(data, DType.FLOAT32))
    second = apply(ew.MUL, [first.output, factors], ew.BinaryAttrs(), name="z")
    third = apply(ew.LEAKY_RELU, [second.output], ew.UnaryAttrs(a=0.1), name="w")
    graph = Graph("g", [x, residual], [third.output, factors], [first, second, third])
    assert print_graph(graph).splitlines()[1:-1] == [
        "  %y = conv2d(%x, const [2x1x1x2]{0, 0, 0, 0}, none, %r) -> float32[1x4x4x2]",
        "  %z = mul(%y, const [2]{0.5, -2}) -> float32[1x4x4x2]",
        "  %w = leaky_relu(%z) a=0.1 -> float32[1x4x4x2]",
        "  return %w, const [2]{0.5, -2}",
    ]


def test_scales_and_sparse_storage_are_shown() -> None:
    quant = Quantization((0.5,), (3,))
    x = Value("x", TensorType((1, 2), DType.INT8, quant))
    layout = Sparsity((0, 1), (), (("dense", 8), ("csr", memoryview(b"\0" * 9), memoryview(b""))))
    sparse = Value("s", TensorType((8, 9)), Constant(memoryview(b""), DType.FLOAT32, layout))
    node = apply(ew.DEQUANTIZE, [x], ew.CastAttrs(DType.FLOAT32), name="y")
    flat = apply(movement.RESHAPE, [sparse], movement.ReshapeAttrs((72,)), name="flat")
    graph = Graph("g", [x], [node.output, flat.output], [node, flat])
    assert print_graph(graph).splitlines()[:3] == [
        "graph g(%x: int8[1x2]*0.5) {",
        "  %y = dequantize(%x) dtype=float32 -> float32[1x2]",
        "  %flat = reshape(const sparse [8x9]) shape=72 -> float32[72]",
    ]


def test_equal_names_are_told_apart() -> None:
    x = Value("t", TensorType((2,)))
    first = apply(ew.ABS, [x], ew.UnaryAttrs(), name="t")
    second = apply(ew.NEG, [first.output], ew.UnaryAttrs(), name="t")
    text = print_graph(Graph("g", [x], [second.output], [first, second]))
    assert "%t.2 = abs(%t)" in text
    assert "%t.3 = neg(%t.2)" in text


def test_names_from_files_are_neutralised() -> None:
    assert safe_name("model/conv_1:0") == "model/conv_1:0"
    assert safe_name("</script>") == "{3c}/script{3e}"
    assert safe_name("a\u202eb\n\0'\"`$") == "a{202e}b{a}{0}{27}{22}{60}{24}"
    assert safe_name("ä") == "{e4}"
    assert len(safe_name("x" * 100_000)) == 40
    assert safe_name("x" * 41).endswith("~")
    graph = Graph("evil\n}", [Value("a\u2066", TensorType(()))], [], [])
    assert print_graph(graph) == "graph evil{a}{7d}(%a{2066}: float32[scalar]) {\n  return \n}\n"


def test_long_lists_are_cut() -> None:
    x = Value("x", TensorType((100,)))
    node = apply(movement.RESHAPE, [x], movement.ReshapeAttrs((1,) * 20 + (100,)), name="y")
    assert "shape=" + "1x" * 16 + "and 5 more" in print_graph(Graph("g", [x], [node.output], [node]))
