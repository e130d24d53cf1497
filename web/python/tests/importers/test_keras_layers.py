"""Attention, volumes and cells as layers of Keras, against what NumPy computes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.importers.keras_runs import CELL, F32, SEQUENCE, f, gru, near, of, run
from tests.importers.tfjs_writer import Array, functional, layer, layer3, layers_model


def scored(q: Array, k: Array, v: Array, hidden: Array | bool = False) -> Array:
    scores = np.where(hidden, -1e9, q @ np.swapaxes(k, -1, -2))
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(shares / shares.sum(-1, keepdims=True) @ v)


QUERY, OTHER = f(2, 3, 4), f(2, 5, 4, low=-0.9)
CAUSAL = np.triu(np.ones((3, 5), bool), 1)


@pytest.mark.parametrize("third", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_of_several_heads_by_place_or_by_name(third: bool, causal: bool) -> None:
    """Values that have names stand behind those by place; Keras 3 names them beside the call, Keras 2 inside it."""
    names = {"query": f(4, 2, 3), "key": f(4, 2, 3, low=-0.5), "value": f(4, 2, 2)}
    weights = {f"m/{n}/kernel": w for n, w in names.items()} | {"m/attention_output/kernel": f(2, 2, 6)}
    weights |= {f"m/{n}/bias": f(2, w.shape[2], low=0) for n, w in names.items()} | {"m/attention_output/bias": f(6)}
    make = layer3 if third else layer
    layers = [make("InputLayer", n, batch_input_shape=[2, s, 4]) for n, s in (("x", 3), ("y", 5))]
    held = make("MultiHeadAttention", "m", ["x"], num_heads=2, key_dim=3, value_dim=2)
    other = make("Add", "z", ["y", "y"])["inbound_nodes"][0]
    tensor = other["args"][0][0] if third else ["y", 0, 0]
    spot = held["inbound_nodes"][0] if third else held["inbound_nodes"][0][0]
    named = {"value": tensor, "key": tensor, "use_causal_mask": causal}
    if third:
        spot["kwargs"] = named
    else:
        spot[3] = named
    (got,) = run(layers_model(functional([*layers, held], ["x", "y"], ["m"]), weights), {"x": QUERY, "y": OTHER})
    q, k, v = (
        np.einsum("ntd,dhk->nhtk", x, weights[f"m/{n}/kernel"]) + weights[f"m/{n}/bias"][:, None]
        for x, n in ((QUERY, "query"), (OTHER, "key"), (OTHER, "value"))
    )
    heads = scored(q / np.sqrt(3), k, v, CAUSAL & causal)
    near(got["m"], (np.einsum("nhtk,hko->nto", heads, f(2, 2, 6)) + f(6)).astype(F32))


def test_attention_of_one_head_has_two_kinds_of_scores() -> None:
    (dot,) = of("Attention", QUERY, OTHER, weights={"scale": np.array(0.5, F32)}, use_scale=True)
    near(dot, scored(QUERY * 0.5, OTHER, OTHER).astype(F32))
    scale = f(4)
    (added,) = of("AdditiveAttention", QUERY, OTHER, weights={"scale": scale})
    sums = (np.tanh(QUERY[:, :, None] + OTHER[:, None]) * scale).sum(-1)
    near(added, scored(sums, np.broadcast_to(np.eye(5), (2, 5, 5)), OTHER).astype(F32))
    (both,) = of("Attention", QUERY, OTHER, weights={"concat_score_weight": np.array(2, F32)}, score_mode="concat")
    sums = np.tanh(QUERY[:, :, None] + OTHER[:, None]).sum(-1) * 2
    near(both, scored(sums, np.broadcast_to(np.eye(5), (2, 5, 5)), OTHER).astype(F32))


def test_attention_sees_no_steps_that_do_not_count() -> None:
    words = np.array([[3, 0, 2, 1, 0], [0, 1, 1, 2, 3]], np.int32)
    table = f(4, 4)
    layers = [
        layer("InputLayer", "x", batch_input_shape=[None, 5], dtype="int32"),
        layer("Embedding", "e", ["x"], input_dim=4, output_dim=4, mask_zero=True),
        layer("Attention", "a", ["e", "e"]),
    ]
    files = layers_model(functional(layers, ["x"], ["a"]), {"e/embeddings": table})
    (got,) = run(files, {"x": words}, shapes={"x": (2, 5)})
    x, held = table[words], words != 0
    near(got["a"], (scored(x, x, x, ~held[:, None]) * held[:, :, None]).astype(F32))


CUBE = f(1, 4, 3, 5, 2)


def test_volumes_are_windowed_padded_and_sampled() -> None:
    """What TensorFlow.js judges in the verb `judge model-zoo --layers`, in small; and layers that only Keras has."""
    w, b = f(2, 2, 3, 2, 3), f(3)
    (got,) = of("Conv3D", CUBE, weights={"kernel": w, "bias": b}, strides=[2, 1, 1])
    windows = np.lib.stride_tricks.sliding_window_view(CUBE, (2, 2, 3), (1, 2, 3))[:, ::2]
    near(got, np.einsum("ndhwcijk,ijkco->ndhwo", windows, w) + b)
    (spread,) = of("Conv3DTranspose", CUBE, weights={"kernel": f(2, 2, 2, 3, 2)}, strides=2, use_bias=False)
    blocks = np.einsum("ndhwc,ijkoc->ndihjwko", CUBE, f(2, 2, 2, 3, 2))
    near(spread, blocks.reshape(1, 8, 6, 10, 3))
    (largest,) = of("MaxPooling3D", CUBE, pool_size=[2, 3, 2], strides=1)
    near(largest, np.lib.stride_tricks.sliding_window_view(CUBE, (2, 3, 2), (1, 2, 3)).max((5, 6, 7)))
    (sampled,) = of("UpSampling3D", CUBE, size=[1, 2, 3])
    near(sampled, CUBE.repeat(2, 2).repeat(3, 3))
    (edged,) = of("ZeroPadding3D", CUBE, padding=[[1, 0], [0, 2], [1, 1]])
    near(edged, np.pad(CUBE, ((0, 0), (1, 0), (0, 2), (1, 1), (0, 0))))


def test_cells_in_a_row_are_layers_in_a_row() -> None:
    cell = {"class_name": "GRUCell", "config": {"name": "c", **CELL}}
    weights = {"kernel": f(4, 9), "recurrent_kernel": f(3, 9), "bias": f(9)}
    (one,) = of("RNN", SEQUENCE, weights=weights, cell=cell, return_sequences=True)
    near(one, gru(SEQUENCE, *weights.values(), False))
    other = {"kernel": f(3, 9), "recurrent_kernel": f(3, 9, low=-0.5), "bias": f(9)}
    stacked = {"class_name": "StackedRNNCells", "config": {"cells": [cell, cell]}}
    held = {f"RNNCell_0/{n}": v for n, v in weights.items()} | {f"RNNCell_1/{n}": v for n, v in other.items()}
    (two,) = of("RNN", SEQUENCE, weights=held, cell=stacked)
    near(two, gru(one, *other.values(), False)[:, -1])
