"""Small models of zero-shot tasks, with open sizes as exporters leave them, and their tokenizer."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WORDS = ("[PAD]", "[UNK]", "red", "green", "blue", "a", "photo", "says")
TOKENIZER = json.dumps({
    "added_tokens": [], "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"},
    "post_processor": None,
    "model": {"type": "WordLevel", "unk_token": "[UNK]", "vocab": {word: i for i, word in enumerate(WORDS)}},
}).encode()  # fmt: skip
VECTORS = np.zeros((len(WORDS), 3), np.float32)
VECTORS[2:5] = np.eye(3)
SCALE = 4.0
TOKENS = ["texts", "tokens"]


def bytes_of(
    nodes: list[onnx.NodeProto], inputs: dict[str, tuple[int, list[Any]]], outputs: dict[str, list[Any]],
    **kept: Any,
) -> bytes:  # fmt: skip
    """An ONNX file with these nodes and constants."""
    given = [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()]
    told = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()]
    constants = [numpy_helper.from_array(np.asarray(value), name) for name, value in kept.items()]
    graph = helper.make_graph(nodes, "small", given, told, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def _reads(mask: str) -> list[onnx.NodeProto]:
    """text_embeds: the sum of what stands in VECTORS for each token, of length 1."""
    node = helper.make_node
    return [
        node("Gather", ["vectors", "input_ids"], ["found"]),
        node("Cast", [mask], ["real"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["real", "last"], ["column"]),
        node("Mul", ["found", "column"], ["counted"]),
        node("ReduceSum", ["counted", "first"], ["sum"], keepdims=0),
        node("LpNormalization", ["sum"], ["text_embeds"], axis=1),
    ]


def _sees() -> list[onnx.NodeProto]:
    """image_embeds: the mean of each colour, of length 1."""
    node = helper.make_node
    mean = node("ReduceMean", ["pixel_values"], ["mean"], axes=[2, 3], keepdims=0)
    return [mean, node("LpNormalization", ["mean"], ["image_embeds"], axis=1)]


PIXELS: tuple[int, list[Any]] = (TensorProto.FLOAT, ["images", "channels", "height", "width"])
IDS: tuple[int, list[Any]] = (TensorProto.INT64, TOKENS)
KEPT = {"vectors": VECTORS, "last": np.array([2]), "first": np.array([1])}


def clip(bias: float | None = None) -> bytes:
    """A model that compares as CLIP does, or with a `bias` as SigLIP, which takes no mask."""
    node = helper.make_node
    nodes = [
        *_reads("input_ids" if bias is not None else "attention_mask"), *_sees(),
        node("Transpose", ["text_embeds"], ["turned"], perm=[1, 0]),
        node("MatMul", ["image_embeds", "turned"], ["cosines"]),
        node("Mul", ["cosines", "scale"], ["logits_per_image" if bias is None else "scaled"]),
        *([] if bias is None else [node("Add", ["scaled", "bias"], ["logits_per_image"])]),
    ]  # fmt: skip
    inputs = {"input_ids": IDS, "pixel_values": PIXELS} | ({"attention_mask": IDS} if bias is None else {})
    outputs: dict[str, list[Any]] = {
        "logits_per_image": ["images", "texts"], "text_embeds": ["texts", 3], "image_embeds": ["images", 3],
    }  # fmt: skip
    kept = KEPT | {"scale": np.float32(SCALE)} | ({} if bias is None else {"bias": np.float32(bias)})
    return bytes_of(nodes, inputs, outputs, **kept)


def halves() -> tuple[bytes, bytes]:
    """The half of `clip` that sees, and the one that reads."""
    sees = bytes_of(_sees(), {"pixel_values": PIXELS}, {"image_embeds": ["images", 3]})
    reads = bytes_of(
        _reads("attention_mask"), {"input_ids": IDS, "attention_mask": IDS}, {"text_embeds": ["texts", 3]}, **KEPT
    )
    return sees, reads


def entails() -> bytes:
    """Logits of entailment and contradiction: how much of each word's vector a text and a sentence have."""
    nodes = [*_reads("attention_mask")[:-1], helper.make_node("MatMul", ["sum", "classes"], ["logits"])]
    classes = np.array([[2, 0], [1, 1], [0.5, 2]], np.float32)
    inputs = {"input_ids": IDS, "attention_mask": IDS}
    return bytes_of(nodes, inputs, {"logits": ["texts", 2]}, **KEPT, classes=classes)
