"""Small models of every format, to be damaged: as few bytes as hold every kind of structure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from tests.importers import sample_models
from tests.importers.gguf_writer import tiny_decoder
from tests.importers.tfjs_writer import (
    calls,
    function,
    functional,
    layer,
    layers_model,
    model,
    node,
    placeholder,
    zipped,
)

from webinfer.importers.formats import FORMATS
from webinfer.ops.language import BlockType


def _onnx(nodes: list[object], inputs: dict[str, list[object]], constants: Mapping[str, object]) -> bytes:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    held = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "sample", values, outputs, held)
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    )
    return bytes(model.SerializeToString())


def onnx_image() -> bytes:
    """A small image network with weights, a residual, a pool and a head."""
    rng = np.random.default_rng(4)
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Conv", ["r", "v"], ["d"], pads=[1, 1, 1, 1], group=4),
        helper.make_node("Add", ["r", "d"], ["s"]),
        helper.make_node("GlobalAveragePool", ["s"], ["p"]),
        helper.make_node("Reshape", ["p", "shape"], ["f"]),
        helper.make_node("Gemm", ["f", "m"], ["g"], transB=1),
        helper.make_node("Softmax", ["g"], ["y"], axis=-1),
    ]
    constants = {
        "w": rng.normal(size=(4, 3, 3, 3)).astype(np.float32), "b": np.ones(4, np.float32),
        "v": rng.normal(size=(4, 1, 3, 3)).astype(np.float32), "shape": np.array([1, -1], np.int64),
        "m": rng.normal(size=(5, 4)).astype(np.float32),
    }  # fmt: skip
    return _onnx(nodes, {"x": [1, 3, 8, 8]}, constants)


def onnx_shapes() -> bytes:
    """Integers that decide on shapes and positions, with a dimension that has only a name."""
    nodes = [
        helper.make_node("Gather", ["x", "rows"], ["g"], axis=1),
        helper.make_node("Transpose", ["g"], ["t"], perm=[0, 2, 1]),
        helper.make_node("Slice", ["t", "starts", "ends"], ["s"]),
        helper.make_node("Concat", ["s", "s"], ["c"], axis=-1),
        helper.make_node("ReduceMean", ["c"], ["y"], axes=[2], keepdims=0),
    ]
    constants = {
        "rows": np.array([2, 0, -1], np.int64), "starts": np.array([0, 1], np.int64),
        "ends": np.array([9, 5], np.int64),
    }  # fmt: skip
    return _onnx(nodes, {"x": [1, 4, 6]}, constants)


def onnx_volumes() -> bytes:
    """Convolutions of volumes both ways, pools, taps that lie elsewhere, and elements put back."""
    rng = np.random.default_rng(4)
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 0, 1, 0, 1, 0], strides=[2, 1, 1], group=2),
        helper.make_node("ConvTranspose", ["c", "v"], ["t"], strides=[2, 1, 2], output_padding=[1, 0, 0]),
        helper.make_node("AveragePool", ["t"], ["p"], kernel_shape=[2, 2, 2], count_include_pad=1, pads=[0, 1, 0] * 2),
        helper.make_node("Mod", ["p", "step"], ["m"], fmod=1),
        helper.make_node("ReduceMean", ["m"], ["image"], axes=[2], keepdims=0),
        helper.make_node("DeformConv", ["image", "k", "moved"], ["d"], kernel_shape=[2, 2], pads=[1, 1, 0, 0]),
        helper.make_node("MaxPool", ["d"], ["l", "places"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("MaxUnpool", ["l", "places"], ["y"], kernel_shape=[2, 2], strides=[2, 2]),
    ]
    constants = {
        "w": rng.normal(size=(4, 1, 2, 2, 1)).astype(np.float32), "b": np.ones(4, np.float32),
        "v": rng.normal(size=(4, 2, 2, 1, 2)).astype(np.float32), "step": np.array([0.7], np.float32),
        "k": rng.normal(size=(3, 2, 2, 2)).astype(np.float32), "moved": rng.normal(size=(1, 8, 4, 7)).astype("f4"),
    }  # fmt: skip
    return _onnx(nodes, {"x": [1, 2, 3, 3, 3]}, constants)


def onnx_words() -> bytes:
    """Words in tables, attention with a mask, a transform of what comes of it, and noise."""
    rng = np.random.default_rng(4)

    def real(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        return rng.normal(size=shape).astype(np.float32)

    near = {"domain": "com.microsoft"}
    nodes = [
        helper.make_node("Cast", ["x"], ["ids"], to=TensorProto.INT32),
        helper.make_node("EmbedLayerNormalization", ["ids", "", "words", "places", "", "scale", "shift", "mask"],
                         ["e", "counts"], **near),
        helper.make_node("Attention", ["e", "w", "", "counts"], ["a"], num_heads=2, **near),
        helper.make_node("FusedGemm", ["row", "v"], ["g"], activation="Relu", **near),
        helper.make_node("Reshape", ["a", "shape"], ["s"]),
        helper.make_node("DFT", ["s"], ["d"], axis=1, onesided=1),
        helper.make_node("RandomNormalLike", ["d"], ["n"], mean=1.0, scale=0.25),
        helper.make_node("Mul", ["d", "n"], ["m"]),
        helper.make_node("ReduceMean", ["m"], ["k"], axes=[1], keepdims=0),
        helper.make_node("Add", ["k", "g"], ["y"]),
    ]  # fmt: skip
    constants = {
        "words": real(9, 8), "places": real(6, 8), "scale": real(8), "shift": real(8), "w": real(8, 24),
        "mask": np.array([[1, 1, 1, 0]], np.int32), "row": real(1, 3), "v": real(3, 2),
        "shape": np.array([1, -1, 1], np.int64),
    }  # fmt: skip
    return _onnx(nodes, {"x": [1, 4]}, constants)


def webnn() -> bytes:
    """A convolution and a softmax as a WebNN description."""
    operands = {
        "x": {"descriptor": {"shape": [1, 2, 4, 4], "dataType": "float32"}},
        "w": {"descriptor": {"shape": [3, 2, 3, 3], "dataType": "float32"}, "constant": True, "data": 0.25},
    }
    operators = [
        {"name": "conv2d", "arguments": [{"input": "x"}, {"filter": "w"}, {"options": {"padding": [1, 1, 1, 1]}}],
            "outputs": "c"},
        {"name": "clamp", "arguments": [{"input": "c"}, {"options": {"minValue": 0.0, "maxValue": 6.0}}],
            "outputs": "r"},
        {"name": "reduceMean", "arguments": [{"input": "r"}, {"options": {"axes": [2, 3]}}], "outputs": "m"},
        {"name": "softmax", "arguments": [{"input": "m"}, {"axis": 1}], "outputs": "y"},
    ]  # fmt: skip
    return json.dumps({"inputs": operands, "operators": operators, "outputs": ["y"]}).encode()


def tfjs_image() -> bytes:
    """A zipped graph model: convolutions with quantised weights, a pool, a product, shapes that are computed."""
    rng = np.random.default_rng(4)
    same = {"padding": "SAME", "strides": [1, 2, 2, 1]}
    nodes = [
        placeholder("x", [-1, 8, 8, 3]),
        node("c", "_FusedConv2D", "x", "w", "bias", fused_ops=["BiasAdd", "Relu6"], **same),
        node("d", "DepthwiseConv2dNative", "c", "v", padding="SAME", strides=[1, 1, 1, 1]),
        node("s", "AddV2", "c", "d"),
        node("p", "MaxPool", "s", ksize=[1, 2, 2, 1], **same),
        node("shape", "Shape", "p", out_type="DT_INT32"),
        node("n", "StridedSlice", "shape", "zero", "one", "one", shrink_axis_mask=1),
        node("sizes", "Pack", "n", "rest", N=2, axis=0),
        node("f", "Reshape", "p", "sizes"),
        node("m", "MatMul", "f", "k", transpose_b=True),
        node("t", "TopKV2", "m", "two", sorted=True),
        node("y", "Softmax", "t"),
        node("z", "GatherV2", "m", "t:1", "axis", batch_dims=1),
    ]
    weights = {
        "w": rng.integers(0, 255, (3, 3, 3, 4)).astype(np.uint8), "v": rng.normal(size=(3, 3, 4, 1)).astype(np.float16),
        "bias": np.ones(4, np.float32), "zero": np.array([0], np.int32), "one": np.array([1], np.int32),
        "rest": np.int32(-1), "k": rng.integers(0, 65535, (5, 16)).astype(np.uint16), "two": np.int32(2),
        "axis": np.int32(1),
    }  # fmt: skip
    quantized: dict[str, dict[str, object]] = {
        "w": {"dtype": "uint8", "scale": 0.01, "min": -1.2}, "v": {"dtype": "float16"},
        "k": {"dtype": "uint16", "scale": 1e-4, "min": -3.0},
    }  # fmt: skip
    tensor = {"name": "x:0", "dtype": "DT_FLOAT", "tensorShape": {"dim": [{"size": str(d)} for d in (1, 8, 8, 3)]}}
    signature = {"inputs": {"x:0": tensor}, "outputs": {"y:0": {"name": "y:0"}, "z:0": {"name": "z:0"}}}
    return zipped(model(nodes, weights, quantized, cuts=(50,), signature=signature))


def tfjs_volumes() -> bytes:
    """A zipped graph model with a convolution and a pool of volumes, and bits."""
    nodes = [
        placeholder("x", [-1, 4, 3, 4, 2]),
        node("c", "Conv3D", "x", "w", padding="SAME", strides=[1, 2, 1, 1, 1], dilations=[1, 1, 1, 2, 1]),
        node("y", "MaxPool3D", "c", ksize=[1, 2, 2, 1, 1], strides=[1, 1, 2, 1, 1], padding="VALID"),
        node("i", "Cast", "y", DstT="DT_INT32"),
        node("z", "BitwiseAnd", "i", "seven"),
    ]
    weights = {"w": np.random.default_rng(4).normal(size=(2, 2, 3, 2, 3)).astype(np.float32), "seven": np.int32(7)}
    return zipped(model(nodes, weights))


def tfjs_control() -> bytes:
    """A zipped graph model with loops of both generations, a list of tensors, a branch and a function."""
    nodes = [
        placeholder("x", [2, 3]),
        node("list", "TensorListFromTensor", "x", "any", element_dtype="DT_FLOAT"),
        *(node(f"{n}_enter", "Enter", start, frame_name="loop") for n, start in (("i", "zero"), ("l", "list"))),
        *(node(f"{n}_merge", "Merge", f"{n}_enter", f"{n}_next") for n in "il"),
        node("less", "Less", "i_merge", "two"),
        node("on", "LoopCond", "less"),
        *(node(f"{n}_switch", "Switch", f"{n}_merge", "on") for n in "il"),
        node("item", "TensorListGetItem", "l_switch:1", "i_switch:1", "any", element_dtype="DT_FLOAT"),
        node("square", "Square", "item"),
        node("set", "TensorListSetItem", "l_switch:1", "i_switch:1", "square"),
        node("more", "AddV2", "i_switch:1", "one"),
        node("i_next", "NextIteration", "more"),
        node("l_next", "NextIteration", "set"),
        node("exit", "Exit", "l_switch"),
        node("stack", "TensorListStack", "exit", "any", element_dtype="DT_FLOAT"),
        node("sum", "Sum", "stack", "both"),
        node("yes", "Greater", "sum", "level"),
        node("way", "Switch", "stack", "yes"),
        node("a", "Neg", "way"),
        node("b", "Abs", "way:1"),
        node("met", "Merge", "a", "b"),
        node("while", "StatelessWhile", "zero", "met", cond=calls("low"), body=calls("step")),
        node("y", "Identity", "while:1"),
    ]
    functions = [
        function("low", ["i", "v"], [node("l", "Less", "i", "two"), node("two", "Const")], {"o": "l:z:0"}),
        function("step", ["i", "v"], [node("one", "Const"), node("j", "AddV2", "i", "one"), node("u", "Tanh", "v")],
                 {"p": "j:z:0", "q": "u:y:0"}),
    ]  # fmt: skip
    weights = {
        "any": np.int32(-1), "zero": np.int32(0), "one": np.int32(1), "two": np.int32(2), "level": np.float32(1),
        "both": np.array([0, 1], np.int32),
    }  # fmt: skip
    return zipped(model(nodes, weights, functions=functions))


def layers_sample() -> bytes:
    """A zipped model of layers: a shared one, a model inside, a recurrent layer in both directions with a mask."""
    rng = np.random.default_rng(4)
    shape = {"x": [None, 6, 6, 2], "i": [None, 3], "w": [None, 4]}
    holders = {name: layer("InputLayer", name, batch_input_shape=sizes) for name, sizes in shape.items()}
    head = functional([holders["i"], layer("Dense", "d", ["i"], units=2, activation="softmax")], ["i"], ["d"])["config"]
    cell = {"units": 2, "activation": "tanh", "recurrent_activation": "hard_sigmoid"}
    layers = [
        holders["x"], holders["w"],
        layer("Conv2D", "c", ["x"], filters=3, kernel_size=[3, 3], padding="same", strides=[2, 2], activation="relu"),
        layer("BatchNormalization", "n", ["c"], axis=[3], center=False, scale=False),
        layer("MaxPooling2D", "p", ["n"], pool_size=[2, 2]), layer("GlobalAveragePooling2D", "g", ["p"]),
        layer("Functional", "m", ["g"], [("t", 0, 0)], **head),
        layer("Embedding", "e", ["w"], input_dim=4, output_dim=3, mask_zero=True),
        layer("Bidirectional", "b", ["e"], layer=layer("LSTM", "l", **cell), merge_mode="sum"),
        layer("Dense", "t", ["b"], units=3, use_bias=False),
        layer("Concatenate", "y", [("m", 1, 0), ("m", 2, 0)], axis=-1),
    ]  # fmt: skip
    sizes = {
        "c/kernel": (3, 3, 2, 3), "c/bias": (3,), "n/moving_mean": (3,), "n/moving_variance": (3,), "d/kernel": (3, 2),
        "d/bias": (2,), "e/embeddings": (4, 3), "t/kernel": (2, 3),
        **{f"b/{way}_l/{n}": s for way in ("forward", "backward")
           for n, s in (("kernel", (3, 8)), ("recurrent_kernel", (2, 8)), ("bias", (8,)))},
    }  # fmt: skip
    weights = {name: rng.uniform(0.1, 1, size).astype(np.float32) for name, size in sizes.items()}
    return zipped(layers_model(functional(layers, ["x", "w"], ["y"]), weights))


def layers_volumes() -> bytes:
    """A zipped model of layers: volumes, pictures in time, cells in a row, attention with names."""
    rng = np.random.default_rng(4)
    holders = [layer("InputLayer", "x", batch_input_shape=[None, 4, 5, 4, 2])]
    cells = [{"class_name": f"{kind}Cell", "config": {"name": kind, "units": 2}} for kind in ("LSTM", "GRU")]
    heads = layer("MultiHeadAttention", "a", ["r"], num_heads=2, key_dim=2)
    heads["inbound_nodes"][0][0][3] = {"value": ["r", 0, 0], "use_causal_mask": True}
    layers = [
        *holders,
        layer("Conv3D", "c", ["x"], filters=2, kernel_size=[2, 2, 1], padding="same", strides=[1, 2, 1]),
        layer("Conv3DTranspose", "t", ["c"], filters=2, kernel_size=[1, 2, 2], strides=[1, 2, 1], padding="same"),
        layer("AveragePooling3D", "p", ["t"], pool_size=[1, 2, 2], padding="same"),
        layer("ConvLSTM2D", "l", ["p"], filters=2, kernel_size=[2, 2], padding="same", return_sequences=True),
        layer("Reshape", "f", ["l"], target_shape=[4, -1]),
        layer("RNN", "r", ["f"], cell={"class_name": "StackedRNNCells", "config": {"cells": cells}},
            return_sequences=True),
        heads,
        layer("AdditiveAttention", "y", ["a", "r"]),
    ]  # fmt: skip
    sizes = {
        "c/kernel": (2, 2, 1, 2, 2), "c/bias": (2,), "t/kernel": (1, 2, 2, 2, 2), "t/bias": (2,),
        "l/kernel": (2, 2, 2, 8), "l/recurrent_kernel": (2, 2, 2, 8), "l/bias": (8,),
        "RNNCell_0/kernel": (12, 8), "RNNCell_0/recurrent_kernel": (2, 8), "RNNCell_0/bias": (8,),
        "RNNCell_1/kernel": (2, 6), "RNNCell_1/recurrent_kernel": (2, 6), "RNNCell_1/bias": (6,), "y/scale": (2,),
        "a/attention_output/kernel": (2, 2, 2), "a/attention_output/bias": (2,),
        **{f"a/{n}/kernel": (2, 2, 2) for n in ("query", "key", "value")},
        **{f"a/{n}/bias": (2, 2) for n in ("query", "key", "value")},
    }  # fmt: skip
    weights = {name: rng.uniform(-1, 1, size).astype(np.float32) for name, size in sizes.items()}
    return zipped(layers_model(functional(layers, ["x"], ["y"]), weights))


# Every format by its name in FORMATS: its samples by theirs.
def tiny_llama() -> bytes:
    """A decoder of one block."""
    return tiny_decoder(blocks=1, width=32, heads=2, groups=1, inner=32, tokens=["a"] * 8)


def tiny_qwen2() -> bytes:
    """The same with biases, an output matrix and other blocks."""
    return tiny_decoder("qwen2", BlockType.Q8_0, ["a"] * 8, False, 1, 32, 2, 1, 32)


SAMPLES: dict[str, dict[str, Callable[[], bytes]]] = {
    "TensorFlow Lite": sample_models.SAMPLES,
    "ONNX": {
        "onnx_image": onnx_image,
        "onnx_shapes": onnx_shapes,
        "onnx_volumes": onnx_volumes,
        "onnx_words": onnx_words,
    },
    "TensorFlow.js": {"tfjs_image": tfjs_image, "tfjs_control": tfjs_control, "tfjs_volumes": tfjs_volumes},
    "TensorFlow.js layers": {"layers": layers_sample, "layers_volumes": layers_volumes},
    "WebNN graphs": {"webnn": webnn},
    "GGUF": {"llama": tiny_llama, "qwen2": tiny_qwen2},
}


def samples(wanted: str | None = None) -> dict[str, bytes]:
    """The samples of every format, or of the one whose name, suffix or reader's folder is `wanted`.

    Raises:  ValueError if there is none
    """
    rows = [
        row
        for row in FORMATS
        if not wanted or wanted == row.name or f".{wanted.lstrip('.')}" in row.suffixes or f".{wanted}." in row.reader
    ]
    found = {name: make() for row in rows for name, make in SAMPLES.get(row.name, {}).items()}
    if not found:
        known = ", ".join(f"{row.name} ({row.suffixes[0]})" for row in FORMATS if row.name in SAMPLES)
        raise ValueError(f"no samples of {wanted!r}; there are {known}")
    return found
