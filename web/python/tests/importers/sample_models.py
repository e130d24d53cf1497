"""Small models that between them hold every kind of structure that a TFLite file can have."""

from __future__ import annotations

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from tests.importers.tflite_writer import Array, Writer

_RNG = np.random.default_rng(3)


def _real(*shape: int) -> Array:
    return _RNG.uniform(-1, 1, shape).astype(np.float32)


def residual() -> bytes:
    """Float16 weights, a widened skip, pads, a head that is reshaped and joined; with a signature and metadata."""
    w = Writer()
    x = w.input("image", (1, 8, 8, 3), shape_signature=[1, -1, -1, 3])
    weights = w.tensor("weights", (4, 3, 3, 3))
    w.node("DEQUANTIZE", [w.constant("half", _real(4, 3, 3, 3).astype(np.float16))], [weights])
    stem = w.tensor("stem", (1, 4, 4, 4))
    w.node(
        "CONV_2D",
        [x, weights, w.constant("bias", _real(4))],
        [stem],
        padding=0,
        stride_w=2,
        stride_h=2,
        fused_activation_function=1,
    )
    depth = w.tensor("depth", (1, 4, 4, 4))
    w.node(
        "DEPTHWISE_CONV_2D",
        [stem, w.constant("taps", _real(1, 3, 3, 4)), -1],
        [depth],
        padding=0,
        stride_w=1,
        stride_h=1,
    )
    wide = w.tensor("wide", (1, 4, 4, 6))
    w.node("CONV_2D", [depth, w.constant("mix", _real(6, 1, 1, 4)), -1], [wide], padding=1, stride_w=1, stride_h=1)
    skip, total, out = w.tensor("skip", (1, 4, 4, 6)), w.tensor("sum", (1, 4, 4, 6)), w.tensor("sum/relu", (1, 4, 4, 6))
    w.node("PAD", [stem, w.constant("edges", [[0, 0], [0, 0], [0, 0], [0, 2]])], [skip])
    w.node("ADD", [skip, wide], [total])
    w.node("RELU", [total], [out])
    flat, pooled = w.tensor("flat", (1, 96)), w.tensor("pooled", (1, 2, 2, 6))
    w.node("MAX_POOL_2D", [out], [pooled], padding=1, stride_w=2, stride_h=2, filter_width=2, filter_height=2)
    w.node("RESHAPE", [out, w.constant("shape", [1, -1])], [flat], new_shape=[1, 96])
    row, joined = w.tensor("row", (1, 24)), w.tensor("joined", (1, 120))
    w.node("RESHAPE", [pooled, w.constant("shape2", [1, 24])], [row])
    w.node("CONCATENATION", [flat, row], [joined], axis=-1)
    _describe(w, x, joined)
    return w.finish(joined)


def _describe(w: Writer, x: int, y: int) -> None:
    signature, entry = schema.SignatureDefT(), schema.MetadataT()
    signature.signatureKey, signature.subgraphIndex = "serving_default", 0
    signature.inputs, signature.outputs = [schema.TensorMapT()], [schema.TensorMapT()]
    signature.inputs[0].name, signature.inputs[0].tensorIndex = "image", x
    signature.outputs[0].name, signature.outputs[0].tensorIndex = "joined", y
    entry.name, entry.buffer = "min_runtime_version", w.buffer(b"1.5.0")
    w.model.signatureDefs, w.model.metadata, w.model.metadataBuffer = [signature], [entry], [entry.buffer]


def quantized() -> bytes:
    """An int8 network with scales for each channel, then uint8 and float again."""
    w = Writer()
    x = w.input("pixels", (1, 6, 6, 2), "int8", (0.02, -3))
    taps = w.constant("taps", _RNG.integers(-127, 128, (4, 3, 3, 2)).astype(np.int8), ([0.01, 0.02, 0.03, 0.04], 0, 0))
    conv = w.tensor("conv", (1, 3, 3, 4), "int8", (0.05, 4))
    bias = w.constant("bias", _RNG.integers(-99, 99, 4).astype(np.int32), ([2e-4, 4e-4, 6e-4, 8e-4], 0, 0))
    w.node("CONV_2D", [x, taps, bias], [conv], padding=0, stride_w=2, stride_h=2, fused_activation_function=3)
    mean = w.tensor("mean", (1, 4), "int8", (0.04, 1))
    w.node("MEAN", [conv, w.constant("axes", [1, 2])], [mean])
    dense = w.tensor("dense", (1, 5), "int8", (0.1, 0))
    rows = w.constant("rows", _RNG.integers(-127, 128, (5, 4)).astype(np.int8), (0.02, 0))
    w.node("FULLY_CONNECTED", [mean, rows, -1], [dense])
    soft, real = w.tensor("soft", (1, 5), "int8", (1 / 256, -128)), w.tensor("real", (1, 5))
    w.node("SOFTMAX", [dense], [soft], beta=1.0)
    w.node("DEQUANTIZE", [soft], [real])
    return w.finish(real)


def sparse() -> bytes:
    """Weights stored as rows with indices, made dense and used by a layer."""
    w = Writer()
    x = w.input("x", (2, 8))
    packed = w.tensor("packed", (4, 8))
    tensor = w.graph.tensors[packed]
    tensor.buffer, tensor.sparsity = w.buffer(_real(5).tobytes()), csr((4, 8), [0, 2, 2, 4, 5], [1, 6, 0, 3, 7])
    dense, y = w.tensor("weights", (4, 8)), w.tensor("y", (2, 4))
    w.node("DENSIFY", [packed], [dense])
    w.node("FULLY_CONNECTED", [x, dense, -1], [y])
    return w.finish(y)


def csr(shape: tuple[int, ...], segments: list[int], indices: list[int]) -> schema.SparsityParametersT:
    """Dense rows, sparse columns."""
    layout = schema.SparsityParametersT()
    layout.traversalOrder, layout.blockMap, layout.dimMetadata = list(range(len(shape))), [], []
    for size in shape[:-1]:
        level = schema.DimensionMetadataT()
        level.format, level.denseSize = 0, size
        layout.dimMetadata.append(level)
    level = schema.DimensionMetadataT()
    level.format = 1
    level.arraySegmentsType, level.arraySegments = schema.SparseIndexVector.Uint8Vector, schema.Uint8VectorT()
    level.arrayIndicesType, level.arrayIndices = schema.SparseIndexVector.Uint16Vector, schema.Uint16VectorT()
    level.arraySegments.values, level.arrayIndices.values = segments, indices
    layout.dimMetadata.append(level)
    return layout


def shapes() -> bytes:
    """A shape that is computed: SHAPE, STRIDED_SLICE, PACK, RESHAPE; then slices and an LSTM."""
    w = Writer()
    x = w.input("words", (2, 3, 4), shape_signature=[-1, -1, 4])
    full, batch, packed = (
        w.tensor("full", (3,), "int32"),
        w.tensor("batch", (), "int32"),
        w.tensor("packed", (2,), "int32"),
    )
    w.node("SHAPE", [x], [full], out_type=2)
    zero, one = w.constant("zero", [0]), w.constant("one", [1])
    w.node("STRIDED_SLICE", [full, zero, one, one], [batch], shrink_axis_mask=1)
    w.node("PACK", [batch, w.constant("rest", np.array(-1, np.int32))], [packed], values_count=2)
    gates = [w.constant(f"gate{i}", _real(3, 4)) for i in range(4)]
    loops = [w.constant(f"loop{i}", _real(3, 3)) for i in range(4)]
    biases = [w.constant(f"bias{i}", _real(3)) for i in range(4)]
    states = [w.tensor(f"state{i}", (2, 3), is_variable=True) for i in range(2)]
    hidden, y = w.tensor("hidden", (2, 3, 3)), w.tensor("y", (2, 9))
    inputs = [x, *gates, *loops, -1, -1, -1, *biases, -1, -1, *states]
    w.node("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [hidden], fused_activation_function=4)
    w.node("RESHAPE", [hidden, packed], [y])
    return w.finish(y)


# {"output_height": 3, "output_width": 4} as a FlexBuffer
SIZE_3_4 = b"output_height\0output_width\0\x02\x1c\x0f\x02\x01\x02\x03\x04\x04\x04\x04\x24\x01"


def custom() -> bytes:
    """Custom operators with a FlexBuffer and with a raw struct as options."""
    w = Writer()
    x, matrix = w.input("x", (1, 5, 6, 2)), w.input("matrix", (1, 4, 4))
    part, y = w.tensor("part", (1, 3, 4, 2)), w.tensor("y", (1, 6, 8, 3))
    w.custom("TransformTensorBilinear", [x, matrix], [part], SIZE_3_4, version=2)
    options = np.array([1, 2, 2], "<i4").tobytes()
    w.custom(
        "Convolution2DTransposeBias",
        [part, w.constant("w", _real(3, 2, 2, 2)), w.constant("b", _real(3))],
        [y],
        options,
    )
    return w.finish(y)


def loop() -> bytes:
    """A counted loop of three turns around a product."""
    w = Writer()
    x, start = w.input("x", (2, 3)), w.constant("start", np.array(0, np.int32))
    count, y = w.tensor("count", (), "int32"), w.tensor("y", (2, 3))
    w.node("WHILE", [start, x], [count, y], cond_subgraph_index=1, body_subgraph_index=2)
    w.graph.outputs = [y]
    w.begin_subgraph()
    i, _ = w.input("i", (), "int32"), w.input("v", (2, 3))
    w.node("LESS", [i, w.constant("limit", np.array(3, np.int32))], [less := w.tensor("less", (), "bool")])
    w.graph.outputs = [less]
    w.begin_subgraph()
    i, v = w.input("i", (), "int32"), w.input("v", (2, 3))
    more, grown = w.tensor("more", (), "int32"), w.tensor("grown", (2, 3))
    w.node("ADD", [i, w.constant("step", np.array(1, np.int32))], [more])
    w.node("FULLY_CONNECTED", [v, w.constant("turn", _real(3, 3)), -1], [grown])
    w.graph.outputs = [more, grown]
    return w.finish()


def windows() -> bytes:
    """Convolutions of volumes both ways, windows whose reduction is a subgraph, buckets and bits."""
    w = Writer()
    x = w.input("x", (1, 3, 4, 3, 2))
    c, t = w.tensor("c", (1, 3, 4, 3, 3)), w.tensor("t", (1, 6, 4, 3, 2))
    flat, wide, y = w.tensor("f", (9, 16)), w.tensor("d", (17, 16)), w.tensor("y", (16, 15))
    z, bits = w.tensor("z", (16, 15), "int32"), w.tensor("bits", (16, 15), "int32")
    one = {"padding": 0, "stride_d": 1, "stride_h": 1, "stride_w": 1}
    w.node("CONV_3D", [x, w.constant("k", _real(2, 2, 1, 2, 3)), w.constant("b", _real(3))], [c], **one)
    turned, shape = w.constant("v", _real(2, 1, 2, 2, 3)), w.constant("shape", [1, 6, 4, 3, 2])
    w.node("CONV_3D_TRANSPOSE", [shape, turned, c], [t], **{**one, "stride_d": 2})
    w.node("RESHAPE", [t, w.constant("sizes", [9, 16])], [flat], new_shape=[9, 16])
    w.node("DILATE", [flat, w.constant("apart", [2, 1]), w.constant("zero", 0.0)], [wide])
    options = {"window_dimensions": [2, 2], "window_strides": [1, 1], "padding": [0] * 4}
    options |= {"window_dilations": [1, 1], "base_dilations": [1, 1]}
    w.node("STABLEHLO_REDUCE_WINDOW", [wide, w.constant("first", 0.0)], [y], 1, body_subgraph_index=1, **options)
    w.node("BUCKETIZE", [y], [z], boundaries=[-1.0, 0.5])
    w.node("RIGHT_SHIFT", [z, w.constant("distance", np.full((16, 15), 1, np.int32))], [bits])
    w.graph.outputs = [bits]
    w.begin_subgraph()
    a, b, s = w.input("a", ()), w.input("e", ()), w.tensor("s", ())
    w.node("STABLEHLO_ADD", [a, b], [s])
    w.graph.outputs = [s]
    return w.finish()


SAMPLES = {
    "windows": windows,
    "residual": residual,
    "quantized": quantized,
    "sparse": sparse,
    "shapes": shapes,
    "custom": custom,
    "loop": loop,
}
