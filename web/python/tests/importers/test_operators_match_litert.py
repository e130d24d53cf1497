"""Each operator as a model of its own: what our reading of it computes is what ai-edge-litert computes.

The arithmetic is the reference backend's; what is tested here is that attributes, pads, axes, masks and
scales are read as TFLite means them, before and after the passes.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.importers.float_runs import FLOAT_RUNS
from tests.importers.litert import computed, judged
from tests.importers.quantized_runs import QUANTIZED_RUNS
from tests.importers.runs import Run
from tests.importers.tflite_writer import Array, single

from webinfer.graph.verify import verify
from webinfer.importers import read_model
from webinfer.importers.tflite.convert import CONVERTERS
from webinfer.passes.pipeline import optimize
from webinfer.session.state import open_inputs

RUNS = [*FLOAT_RUNS, *QUANTIZED_RUNS]


def draw(run: Run, shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    if dtype == "float32":
        return rng.uniform(run.low, run.high, shape).astype(np.float32)
    low, high = (int(run.low), int(run.high)) if run.high > run.low else (0, 1)
    return rng.integers(low, high, shape).astype(dtype)


def same(got: Array, want: Array, run: Run) -> None:
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    if want.size == 0:
        return
    if want.dtype == np.float32:
        scale = max(float(np.ptp(want)), 1.0)
        np.testing.assert_allclose(got, want, rtol=0, atol=run.tolerance * scale)
    else:
        off = np.abs(got.astype(np.int64) - want.astype(np.int64))
        assert off.max() <= (1 if want.dtype in (np.int8, np.uint8) else 0)
        assert np.mean(off == 0) >= run.exact


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_operator_is_read_as_litert_means_it(run: Run) -> None:
    data = single(run.op, run.inputs, run.outputs, run.version, **run.options)
    graph = read_model(data, "one_op")
    arrays = [draw(run, v.type.shape, v.type.dtype.value, i) for i, v in enumerate(open_inputs(graph))]
    wanted = judged(data, arrays)
    for got, want in zip(computed(graph, arrays), wanted, strict=True):
        same(got, want, run)
    optimize(graph)
    verify(graph)
    for got, want in zip(computed(graph, arrays), wanted, strict=True):
        same(got, want, run)


def test_every_converter_has_a_run_or_a_reason() -> None:
    elsewhere = {"DENSIFY", "SHAPE", "RANK", "RANGE", "IF", "WHILE"}  # test_file_rules, _dynamic_shapes, _loops
    elsewhere |= {"ASSIGN_VARIABLE", "CALL_ONCE", "READ_VARIABLE", "VAR_HANDLE"}  # test_variables
    elsewhere |= {"MULTINOMIAL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM"}  # no two runtimes draw the same
    elsewhere |= {"COMPLEX_ABS", "IMAG", "REAL", "RFFT2D", "STABLEHLO_COMPOSITE", "SVDF", "BROADCAST_ARGS"}
    elsewhere |= {"NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "STABLEHLO_REDUCE_WINDOW"}  # test_whole_operators
    elsewhere |= {"UNIQUE", "WHERE"}  # test_stages
    assert set(CONVERTERS) - elsewhere == {run.op for run in RUNS}
