"""Layers models of TensorFlow.js: how layers are connected, named and called, against what NumPy computes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from tests.importers.keras_runs import CELL, F32, SEQUENCE, f, gru, near, of, run, sigmoid
from tests.importers.tfjs_writer import Array, functional, layer, layer3, layers_model, zipped

from webinfer.errors import LimitError, ModelFormatError, ShapeError, UnsupportedOpError
from webinfer.importers import formats, read_model

X, W, B = f(2, 4), f(4, 3), f(3)


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (layer, ("dense/kernel", "dense/bias")),
        (layer3, ("model/dense/kernel", "model/dense/bias")),
        (layer3, ("dense/inside/kernel", "dense/inside/bias")),
    ],
)
def test_both_spellings_connect_the_same_layers(make: Any, names: Sequence[str]) -> None:
    layers = [
        make("InputLayer", "a", batch_input_shape=[None, 4]), make("InputLayer", "b", batch_input_shape=[None, 4]),
        make("Add", "sum", ["both", "a"]), make("Concatenate", "both", [["dense", 0, 0], ["dense", 1, 0], "one"]),
        make("Dense", "dense", ["a"], ["b"], units=3, activation="relu"),
        make("Dense", "one", ["a"], units=1, activation=None, use_bias=False),
    ]  # fmt: skip
    layers[2] = make("Activation", "sum", ["both"], activation="tanh")
    kernel = f(4, 1)
    files = layers_model(
        functional(layers, ["a", "b"], ["sum", "both"]), {"one/kernel": kernel, names[0]: W, names[1]: B}
    )
    a, b = X, X[::-1].copy()
    (got,) = run(zipped(files), {"a": a, "b": b}, shapes={"a": (2, 4), "b": (2, 4)})
    want = np.concatenate([np.maximum(a @ W + B, 0), np.maximum(b @ W + B, 0), a @ kernel], 1)
    near(got["both"], want)
    near(got["sum"], np.tanh(want))


def test_a_sequence_of_layers_begins_with_what_its_first_layer_says() -> None:
    dense = {"class_name": "Dense", "config": {"name": "d", "batch_input_shape": [None, 4], "units": 3}}
    inside = {"class_name": "Sequential", "config": [dense]}  # as old files have it
    flat = {"class_name": "Flatten", "config": {"name": "flat"}}
    files = layers_model(
        {"class_name": "Sequential", "config": {"layers": [inside, flat]}}, {"d/kernel": W, "d/bias": B}
    )
    (got,) = run(files, {"Sequential_input": X[:1]})
    near(got["flat"], X[:1] @ W + B)


@pytest.mark.parametrize("first", [0, 1])
def test_models_that_are_layers_are_called_from_zero_or_from_one(first: int) -> None:
    inside = functional(
        [layer("InputLayer", "i", batch_input_shape=[None, 4]), layer("Dense", "d", ["i"], units=3)], ["i"], ["d", "i"]
    )["config"]
    layers = [
        layer("InputLayer", "x", batch_input_shape=[None, 4]), layer("Model", "m", ["x"], [("m", first, 1)], **inside),
        layer("Average", "y", [("m", first, 0), ("m", first + 1, 0)]),
    ]  # fmt: skip
    (got,) = run(layers_model(functional(layers, ["x"], ["y"]), {"d/kernel": W, "d/bias": B}), {"x": X[:1]})
    near(got["y"], X[:1] @ W + B)


def test_weights_of_models_with_layers_of_one_name_are_told_apart_by_their_path() -> None:
    inside = functional(
        [layer("InputLayer", "i", batch_input_shape=[None, 4]), layer("Dense", "d", ["i"], use_bias=False)],
        ["i"],
        ["d"],
    )["config"]
    layers = [
        layer("InputLayer", "x", batch_input_shape=[None, 4]), layer("Model", "m", ["x"], **inside),
        layer("Dense", "d", ["x"], use_bias=False),
    ]  # fmt: skip
    described = functional(layers, ["x"], ["m", "d"])
    (got,) = run(layers_model(described, {"m/d/kernel": W, "d/kernel": 2 * W}), {"x": X[:1]})
    near(got["m"], X[:1] @ W)
    near(got["d"], 2 * X[:1] @ W)
    with pytest.raises(ModelFormatError, match="d/a/kernel and d/b/kernel may both be meant"):
        run(layers_model(described, {"d/a/kernel": W, "d/b/kernel": W}), {"x": X[:1]})


def lstm(x: Array, w: Array, r: Array, bias: Array, hard: bool = False, mask: Array | None = None) -> Array:
    size, found = r.shape[0], []
    gate = (lambda v: np.clip(0.2 * v + 0.5, 0, 1)) if hard else sigmoid
    h = c = np.zeros((len(x), size))
    for t in range(x.shape[1]):
        i, fo, new, o = np.split(x[:, t] @ w + h @ r + bias, 4, 1)
        after = gate(fo) * c + gate(i) * np.tanh(new)
        shown = gate(o) * np.tanh(after)
        held = np.ones((len(x), 1), bool) if mask is None else mask[:, t : t + 1]
        h, c = np.where(held, shown, h), np.where(held, after, c)
        found.append(h)
    return np.stack(found, 1)


@pytest.mark.parametrize("after", [False, True])
def test_gru_resets_before_or_after_the_product(after: bool) -> None:
    w, r, b = f(4, 9), f(3, 9), f(2, 9) if after else f(9)
    weights = {"kernel": w, "recurrent_kernel": r, "bias": b}
    (got,) = of("GRU", SEQUENCE, weights=weights, reset_after=after, **CELL)
    near(got, gru(SEQUENCE, w, r, b, after))
    (turned,) = of("GRU", SEQUENCE, weights=weights, reset_after=after, go_backwards=True, **CELL)
    near(turned, gru(SEQUENCE[:, ::-1], w, r, b, after))


@pytest.mark.parametrize("hard", [False, True])
def test_lstm_gives_its_states_and_takes_others(hard: bool) -> None:
    w, r, b = f(4, 12), f(3, 12), f(12)
    weights = {"cell/kernel": w, "cell/recurrent_kernel": r, "cell/bias": b}
    config = {**CELL, "recurrent_activation": "hard_sigmoid" if hard else "sigmoid"}
    got = of("LSTM", SEQUENCE, weights=weights, return_state=True, results=3, **config)
    want = lstm(SEQUENCE, w, r, b, hard)
    near(got[0], want)
    near(got[1], want[:, -1])
    one = of("LSTM", SEQUENCE[:, :2], weights=weights, return_state=True, results=3, **config)
    rest = of("LSTM", SEQUENCE[:, 2:], *one[1:], weights=weights, **config)
    near(rest[0], want[:, 2:])


def test_a_state_is_kept_from_run_to_run() -> None:
    w, r, b = f(4, 12), f(3, 12), f(12)
    held = layer("LSTM", "layer", ["x"], stateful=True, **{**CELL, "return_sequences": False})
    described = functional([layer("InputLayer", "x", batch_input_shape=[2, None, 4]), held], ["x"], ["layer"])
    files = layers_model(described, {"layer/kernel": w, "layer/recurrent_kernel": r, "layer/bias": b})
    first, second = run(files, {"x": SEQUENCE[:, :2]}, {"x": SEQUENCE[:, 2:4]}, shapes={"x": (2, 2, 4)})
    want = lstm(SEQUENCE, w, r, b)
    near(first["layer"], want[:, 1])
    near(second["layer"], want[:, 3])


def test_steps_that_do_not_count_leave_the_state() -> None:
    words = np.array([[3, 0, 2, 1, 0], [0, 0, 1, 2, 3]], np.int32)
    table, w, r, b = f(4, 4), f(4, 12), f(3, 12), f(12)
    layers = [
        layer("InputLayer", "x", batch_input_shape=[None, 5], dtype="int32"),
        layer("Embedding", "e", ["x"], input_dim=4, output_dim=4, mask_zero=True),
        layer("Dropout", "d", ["e"], rate=0.5),
        layer("Bidirectional", "both", ["d"], layer=layer("LSTM", "l", **CELL), merge_mode="concat"),
    ]
    weights = {"e/embeddings": table}
    for way in ("forward", "backward"):
        weights |= {f"both/{way}_l/{n}": v for n, v in (("kernel", w), ("recurrent_kernel", r), ("bias", b))}
    (got,) = run(layers_model(functional(layers, ["x"], ["both"]), weights), {"x": words}, shapes={"x": (2, 5)})
    x, mask = table[words], words != 0
    back = lstm(x[:, ::-1], w, r, b, mask=mask[:, ::-1])[:, ::-1]
    near(got["both"], np.concatenate([lstm(x, w, r, b, mask=mask), back], 2))


def test_one_layer_runs_on_all_steps() -> None:
    weights = {"inside/kernel": W, "inside/bias": B}
    (got,) = of("TimeDistributed", SEQUENCE, weights=weights, layer=layer("Dense", "inside", units=3))
    near(got, SEQUENCE @ W + B)
    (bare,) = of("TimeDistributed", SEQUENCE, weights={"kernel": W, "bias": B}, layer=layer("Dense", "other", units=3))
    near(bare, SEQUENCE @ W + B)


IMAGE = f(1, 3, 5, 6)  # channels first
ROW = f(1, 7, 2)
LAYERS: dict[str, tuple[list[Array], dict[str, Any], Array]] = {
    "ReLU": ([X], {"max_value": 0.5, "negative_slope": 0.1, "threshold": 0.2},
             np.minimum(np.where(X >= 0.2, X, 0.1 * (X - 0.2)), 0.5)),
    "LeakyReLU": ([X], {"negative_slope": 0.2}, np.where(X > 0, X, 0.2 * X)),
    "ELU": ([X], {"alpha": 0.5}, np.where(X > 0, X, 0.5 * np.expm1(X))),
    "Subtract": ([X, X[::-1].copy()], {}, X - X[::-1]),
    "Dot": ([f(2, 3, 4), f(2, 5, 3)], {"axes": [1, -1]}, np.einsum("nab,nca->nbc", f(2, 3, 4), f(2, 5, 3))),
    "Permute": ([SEQUENCE], {"dims": [2, 1]}, SEQUENCE.transpose(0, 2, 1)),
    "Reshape": ([SEQUENCE], {"target_shape": [-1, 2]}, SEQUENCE.reshape(2, 10, 2)),
    "ZeroPadding1D": ([ROW], {"padding": [1, 2]}, np.pad(ROW, ((0, 0), (1, 2), (0, 0)))),
    "Cropping1D": ([ROW], {"cropping": 1}, ROW[:, 1:-1]),
    "UpSampling1D": ([ROW], {"size": 3}, np.repeat(ROW, 3, 1)),
    "Cropping2D": ([IMAGE], {"cropping": [[1, 0], [2, 1]], "data_format": "channels_first"}, IMAGE[:, :, 1:, 2:-1]),
    "GlobalMaxPooling2D": ([IMAGE], {"data_format": "channels_first"}, IMAGE.max((2, 3))),
    "GlobalAveragePooling1D": ([ROW], {"keepdims": True}, ROW.mean(1, keepdims=True)),
    "Flatten": ([IMAGE], {"data_format": "channels_first"}, IMAGE.transpose(0, 2, 3, 1).reshape(1, -1)),
    "Resizing": ([f(1, 4, 6, 1)], {"height": 2, "width": 3}, f(1, 4, 6, 1).reshape(1, 2, 2, 3, 2, 1).mean((2, 4))),
    "Rescaling": ([X], {"scale": [1, 2, 3, 4], "offset": 1}, X * np.arange(1, 5) + 1),
    "RepeatVector": ([X], {"n": 2}, np.stack([X, X], 1)),
    "SpatialDropout2D": ([IMAGE], {"rate": 0.5}, IMAGE),
    "Softmax": ([SEQUENCE], {"axis": 1}, np.exp(SEQUENCE) / np.exp(SEQUENCE).sum(1, keepdims=True)),
}  # fmt: skip


@pytest.mark.parametrize("kind", LAYERS)
def test_layer(kind: str) -> None:
    inputs, config, want = LAYERS[kind]
    (got,) = of(kind, *inputs, **config)
    near(got, want.astype(F32))


def test_channels_may_come_first() -> None:
    """A convolution beside which the image is turned, and a normalisation of its channels."""
    w, b = f(1, 1, 3, 4), f(4)
    conv = {"kernel_size": [1, 1], "data_format": "channels_first", "activation": "softmax"}
    (got,) = of("Conv2D", IMAGE, weights={"kernel": w, "bias": b}, **conv)
    y = np.einsum("nihw,io->nohw", IMAGE, w[0, 0]) + b[:, None, None]
    near(got, np.exp(y) / np.exp(y).sum(3, keepdims=True))
    mean, variance = f(3), f(3, low=0.5, high=2)
    weights = {"moving_mean": mean, "moving_variance": variance, "beta": B}
    (normed,) = of("BatchNormalization", IMAGE, weights=weights, axis=[1], scale=False, epsilon=0.01)
    near(normed, ((IMAGE.transpose(0, 2, 3, 1) - mean) / np.sqrt(variance + 0.01) + B).transpose(0, 3, 1, 2))


def test_rows_see_what_came_before() -> None:
    w = f(2, 2, 3)
    (got,) = of("Conv1D", ROW, weights={"kernel": w}, padding="causal", dilation_rate=[2], use_bias=False)
    wide = np.pad(ROW, ((0, 0), (2, 0), (0, 0)))
    near(got, wide[:, :7] @ w[0] + wide[:, 2:] @ w[1])
    depth, points = f(3, 2, 2), f(1, 4, 5)
    (both,) = of(
        "SeparableConv1D", ROW, weights={"depthwise_kernel": depth, "pointwise_kernel": points}, use_bias=False
    )
    parts = sum(ROW[:, i : i + 5, :, None] * depth[i] for i in range(3))
    near(both, np.asarray(parts).reshape(1, 5, 4) @ points[0])


def test_everything_unsupported_is_in_one_error() -> None:
    layers = [
        layer("InputLayer", "x", batch_input_shape=[None, 4]), layer("InputLayer", "y", batch_input_shape=[None, 3, 4]),
        layer("Lambda", "l", ["x"]), layer("Activation", "a", ["x"], activation="my_own"),
        layer("EinsumDense", "c", ["l"]),
        layer("TimeDistributed", "t", ["y"], layer=layer("Lambda", "z")), layer("Dense", "d", ["c"]),
        layer("Model", "m", ["x"], **functional([layer("Foo", "f", ["i"]), layer("InputLayer", "i")], ["i"], ["f"])
              ["config"]),
    ]  # fmt: skip
    with pytest.raises(UnsupportedOpError) as caught:
        read_model(*_given(layers_model(functional(layers, ["x", "y"], ["a", "d", "t", "m"]))))
    for line in ("Lambda: not supported", "Activation: activation myown", "EinsumDense: not supported", "Lambda inside",
                 "Foo: not supported"):  # fmt: skip
        assert line in str(caught.value)


def _given(files: Mapping[str, bytes]) -> tuple[bytes, str]:
    return zipped(files), "made"


def _dense(**config: Any) -> dict[str, Any]:
    return layer("Dense", "d", ["x"], **config)


HOSTILE: dict[str, tuple[list[dict[str, Any]], str]] = {
    "ring": ([layer("Activation", "d", ["e"]), layer("Activation", "e", ["d"])], "needs its own result"),
    "nowhere": ([layer("Dense", "d", ["y"])], "y:0 is read, and no such call"),
    "call": ([layer("Dense", "d", [("x", 7, 0)])], "x:7 is read"),
    "result": ([layer("Dense", "d", [("x", 0, 3)])], "input 0 is missing"),
    "twice": ([_dense(), _dense()], "two layers are called d"),
    "no weight": ([layer("Dense", "d", ["x"]), layer("Dense", "z", ["x"])], ""),
    "rank": ([layer("Conv2D", "d", ["x"], filters=2)], "it reads float32.1x4., needs rank 4"),
    "config": ([{"class_name": "Dense", "name": "d", "config": 3, "inbound_nodes": []}], "configuration int"),
    "huge": ([layer("RepeatVector", "d", ["x"], n=2**31 - 1)], "bytes of shape"),
    "not whole": ([layer("RepeatVector", "d", ["x"], n=1.5)], "n is 1.5, must be a whole number"),
    "axis": ([layer("Concatenate", "d", ["x", "x"], axis=9)], "axis 9"),
    "infinite": ([layer("LeakyReLU", "d", ["x"], alpha=math.inf)], "alpha is inf"),
    "deep": ([layer("TimeDistributed", "d", ["s"], layer=None), layer("RepeatVector", "s", ["x"], n=2)], "layer"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_a_broken_rule_is_a_typed_error(case: str) -> None:
    layers, text = HOSTILE[case]
    holder = layer("InputLayer", "x", batch_input_shape=[None, 4])
    files = layers_model(functional([holder, *layers], ["x"], ["d"]))
    with pytest.raises((ModelFormatError, LimitError, ShapeError), match=text or "lists no kernel of it"):
        read_model(*_given(files))


def test_models_inside_models_end() -> None:
    holder, inside = (
        layer("InputLayer", "x", batch_input_shape=[1, 2]),
        layer("Activation", "t", ["x"], activation="relu"),
    )
    for _ in range(30):
        inside = layer("Functional", "t", ["x"], **functional([holder, inside], ["x"], ["t"])["config"])
    with pytest.raises(LimitError, match="depth"):
        read_model(*_given(layers_model(functional([holder, inside], ["x"], ["t"]))))


def test_many_calls_of_a_large_model_and_many_weights_of_one_name_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers that nobody reads count too, each time that a model is called."""
    monkeypatch.setattr("webinfer.importers.core.writer.MAX_CONVERTED", 5000)
    holder = layer("InputLayer", "x", batch_input_shape=[1, 2])
    idle = [layer("Activation", f"idle{i}", ["x"], activation="relu") for i in range(300)]
    inside = functional([holder, *idle], ["x"], ["x"])["config"]
    calls = [["x"], *([("m", i, 0)] for i in range(18))]
    many = functional([holder, layer("Model", "m", *calls, **inside)], ["x"], [["m", 18, 0]])
    with pytest.raises(LimitError, match="operators to read"):
        read_model(*_given(layers_model(many)))
    names = [f"d{i}" for i in range(1001)]
    layers = [holder, *(layer("Dense", name, ["x"]) for name in names), layer("Add", "y", names)]
    weights = {f"model/{i}/kernel": np.zeros((), F32) for i in range(1001)}
    with pytest.raises(LimitError, match="weights kernel of layers model"):
        read_model(*_given(layers_model(functional(layers, ["x"], ["y"]), weights)))


def test_weights_of_the_training_are_no_weights() -> None:
    layers = [layer("InputLayer", "x", batch_input_shape=[None, 4]), _dense(use_bias=False)]
    files = layers_model(functional(layers, ["x"], ["d"]), {"d/kernel": W, "Adam/m": np.float32(1)})
    assert json.loads(files["model.json"])["format"] == "layers-model"
    (got,) = run(files, {"x": X[:1]})
    near(got["d"], X[:1] @ W)


def test_the_outline_lists_layers_and_what_they_read() -> None:
    layers = [layer("InputLayer", "x", batch_input_shape=[None, 4]), layer("Add", "y", ["x", "x"], units=3)]
    files = layers_model(functional(layers, ["x"], ["y"]))
    name, outline = formats.outline(memoryview(files["model.json"]), "made")
    assert name == "TensorFlow.js layers"
    assert [(node.op, list(node.inputs)) for node in outline.nodes] == [("InputLayer", []), ("Add", ["x", "x"])]
    assert (outline.inputs, outline.outputs) == (["x"], ["y"])
