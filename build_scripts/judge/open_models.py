"""ONNX models with open sizes: an encoder, a decoder whose cache grows, a network of pictures."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

WIDTH, HEADS, WORDS, LONGEST = 32, 4, 50, 256


class Model:
    """Nodes and constants, added by name; random numbers of a fixed seed."""

    def __init__(self, seed: int = 0) -> None:
        self._draw, self.nodes, self.constants = np.random.default_rng(seed), list[Any](), dict[str, Any]()

    def add(self, op: str, inputs: list[str], output: str, **attrs: Any) -> str:
        """A node; the name of its output."""
        self.nodes.append(helper.make_node(op, inputs, [output], **attrs))
        return output

    def weight(self, name: str, *shape: int) -> str:
        """Random weights, as large as keeps results near 1; their name."""
        self.constants[name] = (self._draw.normal(size=shape) / np.sqrt(shape[0])).astype("f4")
        return name

    def number(self, name: str, value: Any, kind: Any = np.int64) -> str:
        """A constant of this value; its name."""
        self.constants[name] = np.array(value, kind)
        return name

    def saved(self, inputs: dict[str, tuple[Any, list[Any]]], outputs: list[str]) -> bytes:
        """The model's file. `inputs` are types and shapes by name; a name in a shape is an open size."""
        infos = [helper.make_tensor_value_info(name, *kind) for name, kind in inputs.items()]
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        tensors = [numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        graph = helper.make_graph(self.nodes, "g", infos, ends, tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        return bytes(model.SerializeToString())


def _attention(m: Model, x: str, mask: str, past: bool, tag: str) -> str:
    """A layer of attention with its residual; with `past`, keys and values follow those of inputs."""
    m.add("LayerNormalization", [x, "ones", "zeros"], f"{tag}n", axis=-1)
    for part in "qkv":
        m.add("MatMul", [f"{tag}n", m.weight(f"{tag}w{part}", WIDTH, WIDTH)], f"{tag}{part}1")
        m.add("Reshape", [f"{tag}{part}1", "heads"], f"{tag}{part}2")
        m.add("Transpose", [f"{tag}{part}2"], f"{tag}{part}3", perm=[0, 2, 1, 3])
        if past and part != "q":
            m.add("Concat", [f"{tag}past_{part}", f"{tag}{part}3"], f"{tag}next_{part}", axis=2)
    keys, values = (f"{tag}next_k", f"{tag}next_v") if past else (f"{tag}k3", f"{tag}v3")
    m.add("Transpose", [keys], f"{tag}kt", perm=[0, 1, 3, 2])
    m.add("MatMul", [f"{tag}q3", f"{tag}kt"], f"{tag}s1")
    m.add("Mul", [f"{tag}s1", "scale"], f"{tag}s2")
    m.add("Add", [f"{tag}s2", mask], f"{tag}s3")
    m.add("Softmax", [f"{tag}s3"], f"{tag}p", axis=-1)
    m.add("MatMul", [f"{tag}p", values], f"{tag}o1")
    m.add("Transpose", [f"{tag}o1"], f"{tag}o2", perm=[0, 2, 1, 3])
    m.add("Reshape", [f"{tag}o2", "joined"], f"{tag}o3")
    m.add("MatMul", [f"{tag}o3", m.weight(f"{tag}wo", WIDTH, WIDTH)], f"{tag}o4")
    m.add("Add", [x, f"{tag}o4"], f"{tag}a")
    m.add("MatMul", [f"{tag}a", m.weight(f"{tag}up", WIDTH, 2 * WIDTH)], f"{tag}f1")
    m.add("Relu", [f"{tag}f1"], f"{tag}f2")
    m.add("MatMul", [f"{tag}f2", m.weight(f"{tag}down", 2 * WIDTH, WIDTH)], f"{tag}f3")
    return m.add("Add", [f"{tag}a", f"{tag}f3"], f"{tag}y")


def _start(m: Model) -> None:
    m.constants |= {"ones": np.ones(WIDTH, "f4"), "zeros": np.zeros(WIDTH, "f4")}
    m.number("heads", [0, 0, HEADS, WIDTH // HEADS])
    m.number("joined", [0, 0, WIDTH])
    m.number("scale", (HEADS / WIDTH) ** 0.5, np.float32)
    m.number("none", 0.0, np.float32)
    m.number("hidden", -1e9, np.float32)
    m.weight("words", WORDS, WIDTH)
    m.weight("places", LONGEST, WIDTH)
    for i in range(3):
        m.number(f"i{i}", i)
        m.number(f"axis{i}", [i])


def encoder() -> bytes:
    """y [batch, tokens, WIDTH] of ids and mask [batch, tokens]: places are cut from a table, the mask is expanded."""
    m = Model()
    _start(m)
    m.add("Shape", ["ids"], "shape")
    m.add("Gather", ["shape", "axis1"], "tokens")
    m.add("Slice", ["places", "axis0", "tokens", "axis0"], "own_places")
    m.add("Gather", ["words", "ids"], "x0")
    m.add("Add", ["x0", "own_places"], "x1")
    m.add("Unsqueeze", ["mask", m.number("both", [1, 2])], "m1")
    m.add("Cast", ["m1"], "m2", to=TensorProto.FLOAT)
    m.add("Sub", [m.number("one", 1.0, np.float32), "m2"], "m3")
    m.add("Mul", ["m3", "hidden"], "m4")
    x = _attention(m, "x1", "m4", False, "a_")
    y = _attention(m, x, "m4", False, "b_")
    kind = (TensorProto.INT64, ["batch", "tokens"])
    return m.saved({"ids": kind, "mask": kind}, [y])


def decoder() -> bytes:
    """Logits and longer keys and values of ids [1, new] and the keys and values before [1, HEADS, past, …]."""
    m = Model()
    _start(m)
    m.add("Shape", ["ids"], "shape")
    m.add("Gather", ["shape", "i1"], "new")
    m.add("Shape", ["a_past_k"], "past_shape")
    m.add("Gather", ["past_shape", "i2"], "past")
    m.add("Add", ["past", "new"], "total")
    m.add("Range", ["past", "total", "i1"], "own")
    m.add("Range", ["i0", "total", "i1"], "every")
    m.add("Gather", ["words", "ids"], "x0")
    m.add("Gather", ["places", "own"], "p0")
    m.add("Add", ["x0", "p0"], "x1")
    m.add("Unsqueeze", ["own", "axis1"], "rows")
    m.add("LessOrEqual", ["every", "rows"], "seen")
    m.add("Where", ["seen", "none", "hidden"], "mask")
    x = _attention(m, "x1", "mask", True, "a_")
    x = _attention(m, x, "mask", True, "b_")
    m.add("MatMul", [x, m.weight("head", WIDTH, WORDS)], "logits")
    cache = (TensorProto.FLOAT, [1, HEADS, "past", WIDTH // HEADS])
    pasts = {f"{tag}_past_{part}": cache for tag in "ab" for part in "kv"}
    return m.saved(
        {"ids": (TensorProto.INT64, [1, "new"]), **pasts}, ["logits", *(n.replace("past", "next") for n in pasts)]
    )


def pictures() -> bytes:
    """Maps of x [1, 3, height, width]: windows and pools, a smaller map brought back to the larger one's size."""
    m = Model()

    def conv(x: str, out: int, channels: int, size: int, name: str, **attrs: Any) -> str:
        m.constants[f"{name}_w"] = (m._draw.normal(size=(out, channels, size, size)) / size**2).astype("f4")
        pad = size // 2
        m.add("Conv", [x, f"{name}_w"], f"{name}_c", pads=[pad] * 4, **attrs)
        return m.add("Relu", [f"{name}_c"], name)

    a = conv("x", 8, 3, 3, "a", strides=[2, 2])
    b = conv(a, 16, 8, 3, "b")
    m.add("MaxPool", [b], "pooled", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    c = conv("pooled", 16, 16, 3, "c")
    m.add("Resize", [c, "", m.number("twice", [1, 1, 2, 2], np.float32)], "grown", mode="nearest",
          coordinate_transformation_mode="asymmetric", nearest_mode="floor")  # fmt: skip
    m.add("Shape", [b], "shape")
    m.add("Slice", ["shape", m.number("two", [2]), m.number("four", [4])], "wanted")
    m.add("Slice", ["grown", m.number("start", [0, 0]), "wanted", m.number("axes", [2, 3])], "cut")
    m.add("Concat", [b, "cut"], "both", axis=1)
    d = conv("both", 4, 32, 1, "d")
    m.add("GlobalAveragePool", [d], "mean")
    m.add("Mul", [d, "mean"], "scaled")
    m.add("Transpose", ["scaled"], "last", perm=[0, 2, 3, 1])
    m.add("Reshape", ["last", m.number("flat", [0, -1, 4])], "y")
    return m.saved({"x": (TensorProto.FLOAT, [1, 3, "height", "width"])}, ["y"])
