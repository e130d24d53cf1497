"""Random small ONNX models whose outputs are hard on passes: also read, one value twice, an input, a constant."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

ACTIVATIONS = ("Relu", "Sigmoid", "Tanh", "HardSwish", "LeakyRelu", "Elu", "Softplus", "Abs", "Exp", "Erf", "Neg")
SAME = ("Identity", "Dropout", "Cast", "Expand", "Reshape", "Slice", "Transpose", "Concat", "Pad", "Tile")
IMAGE = (1, 4, 6, 6)
STEP = 0.05  # of integers that stand for real numbers


class Model:
    """One model: an image goes through a few operators, and some of what they make is an output."""

    def __init__(self, seed: int) -> None:
        self.rng, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.shapes: dict[str, tuple[int, ...]] = {"x": IMAGE}
        self.inputs = {"x": IMAGE}
        if self.rng.random() < 0.3:
            self.inputs["z"] = self.shapes["z"] = IMAGE
        for _ in range(self.rng.randint(2, 9)):
            self.rng.choice(STEPS)(self)
        self.outputs = self._outputs()

    def node(self, kind: str, inputs: list[str], shape: tuple[int, ...], count: int = 1, **attributes: Any) -> str:
        """The name of the first result of one more operator."""
        names = [f"v{len(self.nodes)}" + "abc"[i] for i in range(count)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        self.shapes.update(dict.fromkeys(names, shape))
        return names[0]

    def constant(self, *shape: int, low: float = -1.0) -> str:
        return self.given(self.numbers.uniform(low, 1.0, shape).astype(np.float32))

    def given(self, array: Any) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(array), f"c{len(self.constants)}"))
        return str(self.constants[-1].name)

    def any(self, rank: int | None = None) -> str:
        """A value of this rank; what was made last is likelier."""
        fits = [name for name, shape in self.shapes.items() if rank is None or len(shape) == rank]
        return self.rng.choice(fits[-3:] if self.rng.random() < 0.7 else fits)

    def _outputs(self) -> list[str]:
        rng, made = self.rng, [name for name in self.shapes if name not in self.inputs]
        chosen = rng.sample(made, min(len(made), rng.randint(1, 4)))
        if made[-1] not in chosen:
            chosen.append(made[-1])
        for _ in range(rng.choice((0, 1, 1, 2))):  # the same value under more names
            chosen.append(_same(self, rng.choice(chosen)))
        if rng.random() < 0.15:
            chosen.append(rng.choice([*self.inputs]))
        if rng.random() < 0.1:
            name = self.constant(2, 3)
            self.shapes[name] = (2, 3)
            chosen.append(name)
        rng.shuffle(chosen)
        return list(dict.fromkeys(chosen))

    def data(self) -> bytes:
        """The model's file."""
        ends = [
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, self.shapes[name]) for name in names]
            for names in (self.inputs, self.outputs)
        ]
        graph = helper.make_graph(self.nodes, "random", *ends, self.constants)
        opsets = [helper.make_opsetid("", 18)]
        return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString())


def _convolve(m: Model) -> None:
    x = m.any(4)
    n, c, h, w = m.shapes[x]
    kind, out = m.rng.choice(("full", "full", "pixel", "depthwise")), m.rng.choice((c, 4, 8))
    size = 1 if kind == "pixel" else 3
    groups, out = (c, c) if kind == "depthwise" else (1, out)
    inputs = [x, m.constant(out, c // groups, size, size)]
    if m.rng.random() < 0.5:
        inputs.append(m.constant(out))
    m.node("Conv", inputs, (n, out, h, w), pads=[size // 2] * 4, group=groups)


def _pool(m: Model) -> None:
    x = m.any(4)
    size = m.rng.choice((3, 3, 5))
    m.node(m.rng.choice(("MaxPool", "AveragePool")), [x], m.shapes[x], kernel_shape=[size] * 2, pads=[size // 2] * 4)


def _activate(m: Model) -> None:
    x = m.any()
    m.node(m.rng.choice(ACTIVATIONS), [x], m.shapes[x])


def _clip(m: Model) -> None:
    x = m.any()
    m.node("Clip", [x, m.given(np.float32(0)), m.given(np.float32(6))], m.shapes[x])


def _norm(m: Model) -> None:
    x = m.any(4)
    c = m.shapes[x][1]
    rows = [m.constant(c), m.constant(c), m.constant(c), m.constant(c, low=0.5)]
    m.node("BatchNormalization", [x, *rows], m.shapes[x])


def _combine(m: Model) -> None:
    a = m.any()
    same = [name for name, shape in m.shapes.items() if shape == m.shapes[a]]
    shape = m.shapes[a]
    others = [m.rng.choice(same), m.rng.choice(same)]
    others.append(m.constant(*(shape[:1] + shape[1:2] + (1,) * (len(shape) - 2))[: len(shape)]))
    m.node(m.rng.choice(("Add", "Mul", "Sub", "Max")), [a, m.rng.choice(others)], shape)


def _join(m: Model) -> None:
    a = m.any(4)
    same = [name for name, shape in m.shapes.items() if shape == m.shapes[a]]
    n, c, h, w = m.shapes[a]
    parts = [a, *(m.rng.choice(same) for _ in range(m.rng.randint(1, 2)))]
    m.node("Concat", parts, (n, c * len(parts), h, w), axis=1)


def _turn(m: Model) -> None:
    x = m.any(4)
    perm = m.rng.choice(((0, 2, 3, 1), (0, 3, 1, 2), (0, 1, 3, 2)))
    m.node("Transpose", [x], tuple(m.shapes[x][axis] for axis in perm), perm=perm)


def _flatten(m: Model) -> None:
    x = m.any()
    shape = (m.shapes[x][0], int(np.prod(m.shapes[x][1:])))
    flat = m.node("Reshape", [x, m.given(np.array(shape))], shape)
    if m.rng.random() < 0.5:
        m.node("MatMul", [flat, m.constant(shape[1], 5)], (shape[0], 5))


def _widen(m: Model) -> None:
    x = m.any(4)
    n, c, h, w = m.shapes[x]
    if h * w <= 256:
        sizes = m.given(np.array([1, 1, 2, 2], np.float32))
        m.node("Resize", [x, "", sizes], (n, c, 2 * h, 2 * w), mode=m.rng.choice(("linear", "nearest")))


def _pad(m: Model) -> None:
    x = m.any(4)
    n, c, h, w = m.shapes[x]
    m.node("Pad", [x, m.given(np.array([0, 0, 1, 1, 0, 0, 1, 1]))], (n, c, h + 2, w + 2))


def _split(m: Model) -> None:
    x = m.any(4)
    n, c, h, w = m.shapes[x]
    if c % 2 == 0:
        m.node("Split", [x], (n, c // 2, h, w), 2, axis=1, num_outputs=2)


def _soften(m: Model) -> None:
    x = m.any()
    m.node("Softmax", [x], m.shapes[x], axis=m.rng.choice((0, -1)))


def _normalize(m: Model) -> None:
    """A layer normalisation as exporters spell it out."""
    x = m.any()
    shape, axes = m.shapes[x], m.given(np.array([-1]))
    rows = (*shape[:-1], 1)
    centred = m.node("Sub", [x, m.node("ReduceMean", [x, axes], rows)], shape)
    square = m.node("Pow", [centred, m.given(np.float32(2))], shape)
    spread = m.node("ReduceMean", [square, axes], rows)
    root = m.node("Sqrt", [m.node("Add", [spread, m.given(np.float32(1e-3))], rows)], rows)
    scaled = m.node("Div", [centred, root], shape)
    if m.rng.random() < 0.5:
        m.node("Mul", [scaled, m.constant(shape[-1])], shape)


def _smooth(m: Model) -> None:
    """An activation of several operators: SiLU, GELU, hard swish."""
    x = m.any()
    shape, kind = m.shapes[x], m.rng.choice(("silu", "gelu", "hard"))
    if kind == "silu":
        m.node("Mul", [x, m.node("Sigmoid", [x], shape)], shape)
    elif kind == "hard":
        m.node("Mul", [x, m.node("HardSigmoid", [x], shape, alpha=1 / 6, beta=0.5)], shape)
    else:
        erf = m.node("Erf", [m.node("Div", [x, m.given(np.float32(2**0.5))], shape)], shape)
        both = m.node("Mul", [x, m.node("Add", [erf, m.given(np.float32(1))], shape)], shape)
        m.node("Mul", [both, m.given(np.float32(0.5))], shape)


def _same(m: Model, x: str | None = None) -> str:
    """Another name for a value, by an operator that changes nothing."""
    x = m.any() if x is None else x
    shape, kind = m.shapes[x], m.rng.choice(SAME)
    inputs, attributes = [x], dict[str, Any]()
    if kind == "Cast":
        attributes["to"] = TensorProto.FLOAT
    elif kind in ("Expand", "Reshape"):
        inputs.append(m.given(np.array(shape)))
    elif kind == "Slice":
        inputs += [m.given(np.array([0])), m.given(np.array([2**31 - 1]))]
    elif kind == "Transpose":
        attributes["perm"] = range(len(shape))
    elif kind == "Concat":
        attributes["axis"] = 0
    elif kind == "Pad":
        inputs.append(m.given(np.zeros(2 * len(shape), np.int64)))
    elif kind == "Tile":
        inputs.append(m.given(np.ones(len(shape), np.int64)))
    return m.node(kind, inputs, shape, **attributes)


def _round(m: Model) -> None:
    """Integers and back, as quantised files have it around each operator."""
    x, stored = m.any(), m.rng.choice((np.int8, np.uint8))
    ends = [m.given(np.float32(STEP)), m.given(stored(0 if stored is np.int8 else 128))]
    m.node("DequantizeLinear", [m.node("QuantizeLinear", [x, *ends], m.shapes[x]), *ends], m.shapes[x])
    del m.shapes[str(m.nodes[-2].output[0])]  # no operator but these takes integers


def _multiply_rounded(m: Model) -> None:
    """A convolution with weights of 8 bits, between rounded activations."""
    _round(m)
    x = m.any(4)
    n, c, h, w = m.shapes[x]
    weights = [m.given(m.numbers.integers(-99, 99, (4, c, 1, 1), np.int8)), m.given(np.float32(0.01))]
    m.node("Conv", [x, m.node("DequantizeLinear", [*weights, m.given(np.int8(0))], (4, c, 1, 1))], (n, 4, h, w))
    del m.shapes[str(m.nodes[-2].output[0])]
    _round(m)


def _round_trip(m: Model) -> None:
    """There and back again: two transposes or two reshapes."""
    x = m.any()
    shape = m.shapes[x]
    if len(shape) == 4 and m.rng.random() < 0.7:
        there = m.node("Transpose", [x], tuple(shape[a] for a in (0, 2, 3, 1)), perm=(0, 2, 3, 1))
        m.node("Transpose", [there], shape, perm=(0, 3, 1, 2))
    else:
        flat = m.node("Reshape", [x, m.given(np.array([-1]))], (int(np.prod(shape)),))
        m.node("Reshape", [flat, m.given(np.array(shape))], shape)


STEPS = (
    _convolve, _convolve, _convolve, _pool, _activate, _activate, _activate, _clip, _norm, _combine, _combine, _join,
    _turn, _flatten, _widen, _pad, _split, _soften, _normalize, _smooth, _same, _same, _round_trip,
    _round, _multiply_rounded,
)  # fmt: skip
