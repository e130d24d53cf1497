"""Models with 8-bit weights beside float activations: in real numbers, or rounded as LiteRT rounds."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from tests.importers.litert import judged
from tests.importers.runs import RNG, S1, S2, SAME, X, bytes8, f, per_channel, real, weights8, whole
from tests.importers.test_variables import _layer
from tests.importers.tflite_writer import Array, single

import webinfer
from build_scripts.judge.float_twin import float_twin
from webinfer.errors import InputError

MODELS = {
    "conv": single("CONV_2D", [X, (weights8(6, 3, 3, 4), (0.01, 0)), real(6)], [f(1, 7, 6, 6)], 2, **SAME, **S1),
    "conv, a scale a channel": single(
        "CONV_2D", [f(2, 7, 6, 4), (weights8(6, 3, 3, 4), per_channel(6, 0)), real(6)], [f(2, 7, 6, 6)], 5, **SAME, **S1
    ),
    "conv, uint8": single("CONV_2D", [X, (bytes8(6, 3, 3, 4), (0.01, 0)), real(6)], [f(1, 7, 6, 6)], 2, **SAME, **S1),
    "depthwise": single(
        "DEPTHWISE_CONV_2D", [X, (weights8(1, 3, 3, 4), per_channel(4, 3)), real(4)], [f(1, 7, 6, 4)], 6,
        **SAME, **S1, depth_multiplier=1,
    ),
    "rows": single("FULLY_CONNECTED", [f(3, 24), (weights8(5, 24), (0.01, 0)), real(5)], [f(3, 5)], 3),
    "transposed": single(
        "TRANSPOSE_CONV", [whole(1, 14, 12, 6), (weights8(6, 3, 3, 4), (0.01, 0)), X], [f(1, 14, 12, 6)], 3,
        **SAME, **S2,
    ),
    "matrices": single("BATCH_MATMUL", [f(2, 3, 8), (weights8(2, 8, 5), (0.01, 0))], [f(2, 3, 5)], 4),
    "lstm": _layer("UNIDIRECTIONAL_SEQUENCE_LSTM", 3, (0.01, 0)),
    "rnn": _layer("UNIDIRECTIONAL_SEQUENCE_RNN", 3, (0.01, 0)),
}  # fmt: skip


def _run(data: bytes, x: Array | None, **options: str) -> tuple[Array, Array, tuple[str, ...]]:
    async def work() -> tuple[Array, Array, tuple[str, ...]]:
        with await webinfer.load(data, **options) as session:
            given = RNG.uniform(-1, 2, session.inputs[0].shape).astype(np.float32) if x is None else x
            results = await session.run(given)
            return given, results[session.outputs[0].name].numpy().copy(), session.plan().notes

    return asyncio.run(work())


@pytest.mark.parametrize("backend", ["reference", "wasm", "webgpu"])
@pytest.mark.parametrize("name", MODELS)
def test_each_mode_is_what_it_claims_to_be(name: str, backend: str) -> None:
    data = MODELS[name]
    duplicate = float_twin(data)
    assert duplicate is not None
    x, got, notes = _run(data, None, backend=backend)
    np.testing.assert_allclose(got, judged(duplicate, [x])[0], atol=2e-5)
    assert "computed in float32" in notes[0]
    _, got, notes = _run(data, x, backend=backend, dynamic_range="int8")
    np.testing.assert_allclose(got, judged(data, [x])[0], atol=2e-5)
    assert "rounded to 8 bits a row, as the format's runtime does" in notes[0]


def test_an_unknown_mode_is_a_typed_error() -> None:
    with pytest.raises(InputError, match="choose float or int8"):
        _run(MODELS["rows"], None, dynamic_range="int4")
