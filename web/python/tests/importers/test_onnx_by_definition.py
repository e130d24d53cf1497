"""ONNX operators that ONNX Runtime lacks or seldom meets, beside the evaluator of the package `onnx`."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

import webinfer  # noqa: E402

PREVIEW, TRAINING = "ai.onnx.preview", "ai.onnx.preview.training"
DRAW = np.random.default_rng(0)


def _real(*shape: int) -> Any:
    return DRAW.normal(size=shape).astype(np.float32)


def _infos(arrays: dict[str, Any]) -> list[Any]:
    return [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in arrays.items()
    ]


def _agree(node: Any, inputs: dict[str, Any], rtol: float = 1e-5, opset: int = 21, **constants: Any) -> None:
    ends = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    tensors = [numpy_helper.from_array(a, name) for name, a in constants.items()]
    graph = helper.make_graph([node], "g", _infos(inputs), ends, tensors)
    domains = [helper.make_opsetid("", opset), helper.make_opsetid(PREVIEW, 1), helper.make_opsetid(TRAINING, 1)]
    model = helper.make_model(graph, opset_imports=domains)
    wanted = ReferenceEvaluator(model).run(None, inputs)
    for output, want in zip(graph.output, wanted, strict=True):
        output.CopyFrom(*_infos({output.name: np.asarray(want)}))
    data = helper.make_model(graph, opset_imports=domains).SerializeToString()

    async def run() -> list[Any]:
        with await webinfer.load(data, backend="wasm") as session:
            return [tensor.numpy().copy() for tensor in (await session.run(inputs)).values()]

    for mine, want in zip(asyncio.run(run()), wanted, strict=True):
        assert mine.dtype == np.asarray(want).dtype
        np.testing.assert_allclose(mine.astype("f8"), np.asarray(want, "f8"), rtol=rtol, atol=rtol)


# ----- steps of optimisers


@pytest.mark.parametrize("time", [0, 3])
@pytest.mark.parametrize(("kind", "states", "attributes"), [
    ("Adagrad", 1, {"decay_factor": 0.1, "epsilon": 1e-5, "norm_coefficient": 0.01}),
    ("Adam", 2, {"alpha": 0.95, "beta": 0.8, "epsilon": 1e-5, "norm_coefficient": 0.01, "norm_coefficient_post": 0.1}),
    ("Momentum", 1, {"alpha": 0.95, "beta": 0.1, "mode": "standard", "norm_coefficient": 0.01}),
    ("Momentum", 1, {"alpha": 0.95, "beta": 0.1, "mode": "nesterov", "norm_coefficient": 0.0}),
])  # fmt: skip
def test_steps_of_optimisers(kind: str, states: int, attributes: dict[str, Any], time: int) -> None:
    """Of two tensors of different shapes at once."""
    tensors = {f"{part}{i}": abs(_real(2 + i, 3)) for part in ("x", "g", "v", "h")[: 2 + states] for i in range(2)}
    outputs = [f"y{i}" for i in range(2 * (1 + states))]
    node = helper.make_node(kind, ["r", "t", *tensors], outputs, domain=TRAINING, **attributes)
    _agree(node, {"r": np.array(0.1, "f4"), "t": np.array(time), **tensors}, 1e-4)


def test_a_batch_normalises_itself_where_a_file_was_exported_in_training() -> None:
    node = helper.make_node(
        "BatchNormalization", ["x", "s", "b", "m", "v"], ["y", "m2", "v2"], training_mode=1, momentum=0.7
    )
    others = {name: abs(_real(3)) for name in "sbmv"}
    _agree(node, {"x": _real(2, 3, 4, 5)}, 1e-4, **others)


# ----- attention


def _graph(op: str, number: float) -> Any:
    info = helper.make_tensor_value_info
    nodes = [helper.make_node(op, ["scores", "number"], ["out"])]
    ends = [info(name, TensorProto.FLOAT, [None] * 4) for name in ("scores", "out")]
    return helper.make_graph(nodes, op, ends[:1], ends[1:], [numpy_helper.from_array(np.float32(number), "number")])


@pytest.mark.parametrize("attributes", [{}, {"scale": 0.3}, {"score_mod": ("Min", 0.4), "prob_mod": ("Mul", 0.5)}])
def test_attention_with_graphs_inside(attributes: dict[str, Any]) -> None:
    """Four heads of queries share two of keys and values."""
    graphs = {name: _graph(*value) if isinstance(value, tuple) else value for name, value in attributes.items()}
    node = helper.make_node("FlexAttention", ["q", "k", "v"], ["y"], domain=PREVIEW, **graphs)
    _agree(node, {"q": _real(2, 4, 3, 8), "k": _real(2, 2, 5, 8), "v": _real(2, 2, 5, 6)}, 1e-4)


def test_attention_in_float16_is_rounded_at_its_end() -> None:
    q, k, v = (_real(1, 2, n, 8).astype(np.float16) for n in (3, 5, 5))
    node = helper.make_node("Attention", ["q", "k", "v"], ["y", "", "", "scores"], is_causal=1)
    _agree(node, {"q": q, "k": k, "v": v}, 3e-3, opset=23)


# ----- n-grams, rows, powers


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("skips", [0, 2])
def test_counts_of_n_grams(mode: str, skips: int) -> None:
    attributes = {
        "mode": mode, "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": skips, "ngram_counts": [0, 4],
        "ngram_indexes": [2, 0, 1, 3, 6, 5, 4], "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7],
        "weights": [1.0, 2.0, 3.0, 0.5, 0.25, 4.0, 6.0],
    }  # fmt: skip
    node = helper.make_node("TfIdfVectorizer", ["x"], ["y"], **attributes)
    rows = np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]])
    _agree(node, {"x": rows.astype(np.int32)})
    _agree(node, {"x": rows[1]})


@pytest.mark.parametrize(("axis", "ordered"), [(0, 0), (0, 1), (-1, 1)])
def test_different_rows(axis: int, ordered: int) -> None:
    x = np.float32([[1, 0, 0], [2, 3, 4], [1, 0, 0], [1, -1, 9], [2, 3, 4]])
    node = helper.make_node("Unique", ["x"], ["y", "first", "back", "counts"], axis=axis, sorted=ordered)
    _agree(node, {"x": x})


def test_whole_numbers_to_real_powers() -> None:
    x = np.array([5, 7, -3, 2, 9], np.int32)
    _agree(helper.make_node("Pow", ["x", "e"], ["y"]), {"x": x, "e": np.float32([3, 2, 3, 0.5, 1.5])})
