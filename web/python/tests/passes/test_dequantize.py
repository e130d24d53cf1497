"""Quantised graphs in real numbers: every type, constant and conversion, and the same answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import problem, run

from webinfer.backends import reference
from webinfer.dtypes import DType
from webinfer.graph.ir import Case, Constant, Graph, Quantization, State, TensorType, Value, apply
from webinfer.graph.verify import verify
from webinfer.host.native import NativeHost
from webinfer.ops import OPS
from webinfer.ops.conv import Conv2dAttrs
from webinfer.ops.elementwise import BinaryAttrs, CastAttrs, UnaryAttrs
from webinfer.ops.movement import PadAttrs
from webinfer.passes.dequantize import SMALL, dequantize
from webinfer.passes.pipeline import optimize

SCALE = Quantization((0.5,), (3,))


def real(array: np.ndarray[Any, Any], type: TensorType) -> np.ndarray[Any, Any]:
    quant = type.quant
    assert quant is not None
    return ((array.astype(np.float64) - quant.zero_points[0]) * quant.scales[0]).astype(np.float32)


def answers(graph: Graph, *arrays: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    async def go() -> list[np.ndarray[Any, Any]]:
        executor = await reference.build(graph, NativeHost())
        names = [v.name for v in graph.inputs]
        found = await executor.run({n: memoryview(a.tobytes()) for n, a in zip(names, arrays, strict=True)})
        return [found[v.name].numpy().copy() for v in graph.outputs]

    return list(run(go()))


def cases(name: str) -> list[Case]:
    return [c for c in OPS[name].cases if c.inputs[0] is not None and c.inputs[0].quant is not None]


PRODUCTS = [
    pytest.param(name, case, id=f"{name}-{case.label}")
    for name in ("conv2d", "depthwise_conv2d", "matmul", "add", "average_pool2d")
    for case in cases(name)
    if case.inputs[0].dtype is not DType.INT16  # type: ignore[union-attr]
]


@pytest.mark.parametrize(("name", "case"), PRODUCTS)
def test_real_results_are_the_quantised_ones_within_their_rounding(name: str, case: Case) -> None:
    p = problem(OPS[name], case)
    inputs = [v for v in p.node.inputs if v is not None and not v.is_constant]
    feeds = [
        real(a, v.type) for v, a in zip(p.node.inputs, p.arrays, strict=True) if v in inputs and a is not None and v
    ]
    stored = p.node.output.type
    assert stored.quant is not None
    graph = Graph("g", inputs, p.node.outputs, [p.node])
    assert dequantize(graph) >= 2
    verify(graph)
    optimize(graph)
    (got,) = answers(graph, *feeds)
    assert got.dtype == np.float32
    low, high = stored.dtype.range
    want = real(p.want[0], stored)
    inside = (p.want[0] > low) & (p.want[0] < high)  # what the stored type cut off is larger now
    np.testing.assert_allclose(got[inside], want[inside], atol=1.01 * stored.quant.scales[0], rtol=1e-3)


def test_conversions_vanish_and_the_names_of_inputs_and_outputs_stay() -> None:
    x = Value("x", TensorType((2, 2)))
    stored = apply(OPS["quantize"], [x], CastAttrs(DType.UINT8, SCALE), "quantize")
    padded = apply(OPS["pad"], [stored.output], PadAttrs((0, 1), (0, 0), 3.0), "pad")
    back = apply(OPS["dequantize"], [padded.output], CastAttrs(DType.FLOAT32), "dequantize")
    name = back.output.name
    graph = Graph("g", [x], [back.output], [stored, padded, back])
    assert dequantize(graph) == 2
    optimize(graph)
    assert [v.name for v in graph.outputs] == [name]
    (got,) = answers(graph, np.array([[1.1, 2.2], [3.3, 4.4]], np.float32))
    np.testing.assert_allclose(got, np.array([[0, 1.1, 2.2], [0, 3.3, 4.4]], np.float32))


def test_large_constants_are_converted_at_load() -> None:
    stored = TensorType((SMALL + 4,), DType.UINT8, SCALE)
    x, w = Value("x", stored), Value("w", stored, Constant(memoryview(bytes(stored.nbytes)), DType.UINT8))
    total = apply(OPS["add"], [x, w], BinaryAttrs(out_type=(DType.UINT8, SCALE)), "add")
    graph = Graph("g", [x], total.outputs, [total])
    assert dequantize(graph) == 3
    assert [n.op.name for n in graph.nodes] == ["dequantize", "add"]
    assert {n.output.type for n in graph.nodes} == {TensorType((SMALL + 4,))}


@pytest.mark.parametrize(("end", "zero", "activation"), [(6.0, 0, "relu6"), (9.0, 0, "relu"), (6.0, 3, "none")])
def test_a_range_that_begins_at_zero_is_an_activation(end: float, zero: int, activation: str) -> None:
    stored = TensorType((4,), DType.UINT8, Quantization((end / 255,), (zero,)))
    a, b = Value("a", stored), Value("b", stored)
    total = apply(OPS["add"], [a, b], BinaryAttrs(out_type=(DType.UINT8, stored.quant)), "add")
    dequantize(Graph("g", [a, b], total.outputs, [total]))
    assert total.attrs.activation == activation


def test_a_model_of_real_numbers_stays_as_it_is() -> None:
    x, w = Value("x", TensorType((1, 2, 2, 4))), Value("w", TensorType((3, 1, 1, 4)))
    node = apply(OPS["conv2d"], [x, w], Conv2dAttrs())
    graph = Graph("g", [x, w], node.outputs, [node])
    assert dequantize(graph) == 0
    verify(graph)
    assert node.attrs == Conv2dAttrs()


def test_a_state_that_is_only_written_becomes_real_too() -> None:
    x = Value("x", TensorType((2,), DType.INT8, SCALE))
    node = apply(OPS["relu"], [x], UnaryAttrs(out_type=(DType.INT8, SCALE)), name="next")
    graph = Graph("writes a state", [x], [node.output], [node])
    graph.states = [State("s", node.output.type, memoryview(bytes([5, 3])), "", "next")]
    dequantize(graph)
    assert graph.states[0].type == TensorType((2,))
    assert np.frombuffer(graph.states[0].initial or b"", np.float32).tolist() == [1.0, 0.0]
