"""Element types that an operator is not made for: a typed error, or the reference's result and no byte beside it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.importers import paper_host
from tests.importers.mutations import Tally
from tests.importers.runs import S1, SAME, Run, X, f, real
from tests.importers.tflite_writer import single
from tests.importers.type_sweep import KINDS, RUNS, attempt, sweep, variants
from tests.ops.targets import TARGETS

from webinfer.backends import reference
from webinfer.errors import ModelFormatError, ShapeError
from webinfer.graph.ir import Op
from webinfer.host.native import NativeHost
from webinfer.importers import read_model
from webinfer.ops.conv import CONV2D

pytestmark = pytest.mark.skipif(not paper_host.can_plan(), reason="no kernel table")
CONV = Run("CONV_2D", [X, real(6, 3, 3, 4), real(6)], [f(1, 7, 6, 6)], {**SAME, **S1})
BYTES = ((1, 7, 6, 6), "int8", (0.05, 3))


def test_a_share_of_the_sweep() -> None:
    tally = sweep(NativeHost(), share=0.015, seed=3)
    assert not tally.others, tally.others[:3]
    assert tally.results
    assert tally.untouched == tally.results
    assert tally.webgpu["planned"] > tally.webgpu["refused"] > 0
    assert set(tally.errors) <= {"model-format", "unsupported-op", "limit", "shape"}


def test_every_operator_meets_every_kind() -> None:
    labels = [label for label, _ in variants(CONV)]
    assert len(labels) == len(set(labels)) == len(KINDS) ** 2 + 4 * len(KINDS)
    assert all(sum(1 for _ in variants(run)) > len(KINDS) ** 2 for run in RUNS)


@pytest.mark.parametrize("op", ["CONV_2D", "ADD", "SOFTMAX", "PRELU", "FULLY_CONNECTED", "DEPTHWISE_CONV_2D"])
def test_floats_with_a_result_of_bytes_are_refused_in_words(op: str) -> None:
    run = next(run for run in RUNS if run.op == op)
    data = single(op, run.inputs, [(run.outputs[0][0], "int8", (0.05, 3))], run.version, **run.options)
    with pytest.raises((ModelFormatError, ShapeError), match="int8"):
        read_model(data, "retyped")


def test_what_the_sweep_looks_for_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    tally, host = Tally(), NativeHost()
    attempt("as it is", CONV, host, tally)
    bytes_out = dataclasses.replace(CONV, outputs=[BYTES])
    attempt("bytes", bytes_out, host, tally)
    assert (tally.results, sum(tally.errors.values()), tally.others) == (1, 1, [])
    monkeypatch.setattr(Op, "result_types", lambda self, inputs, attrs: self.infer(inputs, attrs))
    attempt("bytes, unchecked", bytes_out, host, tally)
    assert "would write 1008 bytes" in tally.others[0]
    monkeypatch.setitem(reference.LOWERINGS, CONV2D, lambda inputs, node: [np.ones((1, 7, 6, 6), np.float32)])
    attempt("wrong numbers", CONV, host, tally)
    assert "wasm computes" in tally.others[1]


def test_a_gpu_computes_what_the_reference_does_or_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    TARGETS[-1].demand()
    tally, host = Tally(), NativeHost()
    attempt("as it is", CONV, host, tally, on_gpu=True)
    assert (tally.webgpu, tally.others) == ({"planned": 1, "ran": 1}, [])
    monkeypatch.setitem(reference.LOWERINGS, CONV2D, lambda inputs, node: [np.ones((1, 7, 6, 6), np.float32)])
    attempt("wrong numbers", CONV, host, tally, on_gpu=True)
    assert "webgpu computes" in tally.others[0]
