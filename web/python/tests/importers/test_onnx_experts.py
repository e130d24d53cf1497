"""Forms of mixtures of experts that ONNX Runtime's CPU kernel refuses give what the form gives that it takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

import webinfer

_RNG = np.random.default_rng(3)
_X, _SCORES, _FIRST, _BIAS, _SECOND = (
    _RNG.uniform(-2, 2, shape).astype(np.float32) for shape in ((5, 8), (5, 4), (4, 12, 8), (4, 12), (4, 8, 6))
)


def _run(constants: list[Any], **attributes: Any) -> Any:
    """Two of four experts for each of five tokens."""
    held = [numpy_helper.from_array(a, f"c{i}") for i, a in enumerate(constants) if a is not None]
    names = ["" if a is None else f"c{i}" for i, a in enumerate(constants)]
    node = helper.make_node("MoE", ["x", "scores", *names], ["y"], domain="com.microsoft", k=2, **attributes)
    ends = [helper.make_tensor_value_info(name, 1, a.shape) for name, a in (("x", _X), ("scores", _SCORES))]
    graph = helper.make_graph([node], "experts", ends, [helper.make_tensor_value_info("y", 1, None)], held)
    domains = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    data = helper.make_model(graph, opset_imports=domains, ir_version=9).SerializeToString()
    with webinfer.load_sync(data, backend="reference") as session:
        return session.run({"x": _X, "scores": _SCORES})["y"].numpy()


def test_gate_and_values_may_lie_side_by_side_or_in_layers_of_their_own() -> None:
    gate, linear = ((_FIRST[:, i::2], _BIAS[:, i::2]) for i in (0, 1))
    woven = _run([_FIRST, _BIAS, _SECOND], activation_type="swiglu", swiglu_fusion=1)
    both = [np.concatenate(parts, 1) for parts in zip(gate, linear, strict=True)]
    np.testing.assert_allclose(_run([*both, _SECOND], activation_type="swiglu", swiglu_fusion=2), woven, rtol=1e-5)
    apart = [*gate, _SECOND, None, *linear]
    np.testing.assert_allclose(_run(apart, activation_type="swiglu"), woven, rtol=1e-5)
    np.testing.assert_allclose(_run(apart, activation_type="silu"), woven, rtol=1e-5)  # alpha is 1, beta 0


def test_a_sparse_mixer_is_refused() -> None:
    with pytest.raises(webinfer.errors.UnsupportedOpError, match="a sparse mixer"):
        _run([_FIRST, _BIAS, _FIRST.transpose(0, 2, 1).copy()], use_sparse_mixer=1)
