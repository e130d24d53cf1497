"""Bytes by a scale of the run, and sums of their products as real numbers: a step each, with the bits of all nodes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import BUILDS, Target
from tests.passes.building import Build

from webinfer.backends import reference, wasm
from webinfer.dtypes import DType
from webinfer.graph.ir import Graph
from webinfer.host.native import NativeHost
from webinfer.ops import elementwise as ew

PLAIN = ew.BinaryAttrs()


def _quantized(dtype: DType, zero: bool, size: int, both: bool = False) -> Graph:
    b = Build()
    x, scale = b.input("x", size), b.input("scale")
    y = b.node(ew.ROUND_EVEN, [b.node(ew.DIV, [x, scale], PLAIN, "d")], ew.UnaryAttrs(), "r")
    if zero:
        y = b.node(ew.ADD, [y, b.input("zero")], PLAIN, "a")
    low, high = map(float, dtype.range)
    shifted, y = y, b.node(ew.CLAMP, [y], ew.UnaryAttrs(low, high), "c")
    y = b.node(ew.CAST, [y], ew.CastAttrs(dtype), "y")
    return b.output(*([y, shifted] if both else [y]))


def _scaled(whole: bool, offset: bool, rows: bool, bias: bool, n: int = 7) -> Graph:
    """float32(int32(x) - offset) * factor + bias; x is an int32 unless `whole`."""
    b = Build()
    x = b.input("x", 3, n)
    sums = b.node(ew.CAST, [x], ew.CastAttrs(DType.INT32), "i")
    if not whole:  # an int32 that no cast of floats gives
        sums = b.node(ew.NEG, [sums], ew.UnaryAttrs(), "n")
    if offset:
        row = b.node(ew.CAST, [b.input("offset", n)], ew.CastAttrs(DType.INT32), "o")
        sums = b.node(ew.SUB, [sums, row], PLAIN, "s")
    real = b.node(ew.CAST, [sums], ew.CastAttrs(DType.FLOAT32), "f")
    y = b.node(ew.MUL, [real, b.input("factor", *((n,) if rows else (1, 1)))], PLAIN, "m")
    if bias:
        y = b.node(ew.ADD, [b.input("bias", n), y], PLAIN, "b")
    return b.output(y)


def _both(graph: Graph, target: Target) -> tuple[np.ndarray, np.ndarray, list[str]]:
    rng = np.random.default_rng(3)
    arrays = {v.name: (rng.normal(size=v.type.shape) * 400).astype("f4") for v in graph.inputs}
    if "scale" in arrays:
        arrays["scale"], arrays["zero"] = np.float32(2.7), np.float32(17)
        if arrays["x"].size > 4:
            arrays["x"][1:4] = np.inf, -np.inf, np.nan
    inputs = {v.name: memoryview(np.ascontiguousarray(arrays[v.name])).cast("B") for v in graph.inputs}
    name = graph.outputs[0].name
    want = run(run(reference.build(graph, NativeHost())).run(inputs))[name].numpy()
    executor = run(wasm.build(graph, NativeHost(), **dict(target.options)))
    return run(executor.run(inputs))[name].numpy(), want, [row.kernel for row in executor.rows()]


@pytest.mark.parametrize("zero", [True, False], ids=["zero point", "none"])
@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8], ids=str)
@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_bytes_by_a_scale_of_the_run_are_one_step(target: Target, dtype: DType, zero: bool) -> None:
    target.demand()
    for size in (1, 3, 4, 5, 8, 13, 1003):
        got, want, kernels = _both(_quantized(dtype, zero, size), target)
        assert kernels == [f"{'u8' if dtype is DType.UINT8 else 'i8'}_quantize_by"]
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("given", [(w, o, r, b) for w in (0, 1) for o in (0, 1) for r, b in ((0, 1), (1, 0), (1, 1))])
@pytest.mark.parametrize("target", BUILDS, ids=str)
def test_sums_as_real_numbers_are_one_step(target: Target, given: tuple[bool, bool, bool, bool]) -> None:
    target.demand()
    got, want, kernels = _both(_scaled(*given), target)
    assert kernels[-1] == "f32_scale_sums"
    np.testing.assert_array_equal(got, want)


def test_what_others_read_too_keeps_its_steps() -> None:
    got, want, kernels = _both(_quantized(DType.UINT8, True, 9, both=True), BUILDS[0])
    assert "u8_quantize_by" not in kernels
    np.testing.assert_array_equal(got, want)
