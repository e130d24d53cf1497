"""What a float16 session stores as float16, and that it answers as a float32 one does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.ops.targets import Target as RingTarget
from tests.webgpu.disguised import HOST, Disguised, HostWith

import webinfer
from webinfer.backends.webgpu.float16 import in_float16
from webinfer.dtypes import DType
from webinfer.errors import InputError
from webinfer.graph.ir import Constant, Graph, Node, Quantization, TensorType, Value, apply
from webinfer.ops import OPS
from webinfer.ops.conv import Conv2dAttrs
from webinfer.ops.elementwise import BinaryAttrs, CastAttrs, UnaryAttrs
from webinfer.ops.movement import ConcatAttrs, PadAttrs, ReshapeAttrs
from webinfer.ops.softmax import SoftmaxAttrs
from webinfer.session.session import Session

FLOAT16, FLOAT = DType.FLOAT16, DType.FLOAT32
SHARED = Path(__file__).parents[5] / "shared"
RNG = np.random.default_rng(11)


def constant(name: str, *shape: int, low: float = -1.0, high: float = 1.0) -> Value:
    data = RNG.uniform(low, high, shape).astype(np.float32)
    return Value(name, TensorType(shape), Constant(memoryview(data.tobytes()), FLOAT))


def conv(x: Value, co: int, name: str = "conv", **range: float) -> Node:
    ci = x.type.shape[3]
    return apply(OPS["conv2d"], [x, constant(f"{name} w", co, 1, 1, ci, **range)], Conv2dAttrs(), name)


def relu(x: Value, name: str = "relu") -> Node:
    return apply(OPS["relu"], [x], UnaryAttrs(), name)


def types(nodes: list[Node], outputs: list[Value]) -> dict[str, DType]:
    """The type that each value gets, by name."""
    x = next(v for v in nodes[0].inputs if v is not None and not v.is_constant)
    graph, originals = in_float16(Graph("g", [x], outputs, nodes))
    values = [v for node in graph.nodes for v in (*node.inputs, *node.outputs) if v is not None]
    assert all(originals[v].name == v.name and originals[v].type.dtype is FLOAT for v in originals)
    assert set(originals) == {v for v in values if v.type.dtype is FLOAT16}
    return {v.name: v.type.dtype for v in values}


def test_weights_and_what_lies_between_become_float16() -> None:
    x = Value("x", TensorType((1, 4, 4, 8)))
    scaled = apply(OPS["mul"], [x, constant("scale", 8)], BinaryAttrs(), "scaled")
    first = conv(scaled.output, 12, "first")
    middle = relu(first.output)
    last = conv(middle.output, 8, "last")
    flat = apply(OPS["reshape"], [last.output], ReshapeAttrs((1, 128)), "flat")
    found = types([scaled, first, middle, last, flat], flat.outputs)
    assert {name for name, dtype in found.items() if dtype is FLOAT16} == {"first w", "last w", "first", "relu"}


def test_what_is_stored_one_by_one_or_needs_float32_keeps_it() -> None:
    x = Value("x", TensorType((1, 4, 4, 8)))
    odd = conv(x, 6, "odd")
    after = relu(odd.output, "after odd")
    first = conv(after.output, 8, "first")
    probable = apply(OPS["softmax"], [first.output], SoftmaxAttrs(3), "softmax")
    last = conv(probable.output, 8, "last")
    end = relu(last.output, "end")
    found = types([odd, after, first, probable, last, end], end.outputs)
    assert {name for name, dtype in found.items() if dtype is FLOAT16} == {"odd w", "first w", "last w", "last"}


def test_moves_have_one_type_on_all_sides() -> None:
    x = Value("x", TensorType((1, 4, 4, 8)))
    a, b = conv(x, 8, "a"), conv(x, 4, "b")
    joined = apply(OPS["concat"], [a.output, b.output], ConcatAttrs(3), "joined")
    with_input = apply(OPS["concat"], [joined.output, x], ConcatAttrs(3), "with input")
    end = conv(with_input.output, 8, "end")
    nodes = [a, b, joined, with_input, end]
    assert all(types(nodes, end.outputs)[name] is FLOAT for name in ("a", "b", "joined", "with input"))
    end = conv(joined.output, 8, "end")
    found = types([a, b, joined, end], end.outputs)
    assert [found[name] for name in ("a", "b", "joined", "end")] == [FLOAT16, FLOAT16, FLOAT16, FLOAT]


@pytest.mark.parametrize("large", [65505.0, -1e5, float("inf")])
def test_constants_beyond_the_range_stay_float32_with_their_results(large: float) -> None:
    x = Value("x", TensorType((1, 4, 4, 8)))
    first = conv(x, 8, "first")
    mask = np.zeros(8, np.float32)
    mask[3] = large
    masked = Value("mask", TensorType((8,)), Constant(memoryview(mask.tobytes()), FLOAT))
    total = apply(OPS["add"], [first.output, masked], BinaryAttrs(), "masked")
    padded = apply(OPS["pad"], [total.output], PadAttrs((0, 1, 1, 0), (0, 1, 1, 0), value=-3e38), "padded")
    end = conv(padded.output, 8, "end", low=-1e9, high=1e9)
    found = types([first, total, padded, end, relu(end.output)], end.outputs)
    assert all(found[name] is FLOAT for name in ("first", "mask", "masked", "padded", "end w"))


@pytest.mark.parametrize(("scale", "dtype"), [(0.5, FLOAT16), (400.0, FLOAT)])
def test_weights_made_real_at_load_are_narrow_where_their_scale_allows(scale: float, dtype: DType) -> None:
    x = Value("x", TensorType((1, 4, 4, 8)))
    quant = Quantization((scale,), (0,))
    stored = Value("q", TensorType((8, 1, 1, 8), DType.INT8, quant), Constant(memoryview(bytes(64)), DType.INT8))
    real = apply(OPS["dequantize"], [stored], CastAttrs(FLOAT), "real")
    end = apply(OPS["conv2d"], [x, real.output], Conv2dAttrs(), "end")
    graph, _ = in_float16(Graph("g", [x], end.outputs, [real, end]))
    assert graph.nodes[0].output.type.dtype is dtype


def load(name: str, host: Any, **options: Any) -> Session:
    path = SHARED / "models" / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"{path} is missing")
    session: Session = run(webinfer.load(path, backend="webgpu", strict=True, host=host, **options))
    return session


@pytest.mark.parametrize(
    ("name", "hardware"),
    [("blazeface_short_range", True), ("blazeface_full_range_sparse", False), ("mobilenet_v1_025_128_quant", False)],
)
def test_real_models_run_the_same_kernels_in_half_the_memory(name: str, hardware: bool) -> None:
    RingTarget("webgpu").demand()
    host = HostWith(Disguised(run(HOST.gpu()), software=False)) if hardware else HOST
    options = {"dequantize": "quant" in name}
    with load(name, host, **options) as wide, load(name, host, **options, precision="float16") as narrow:
        assert [row.kernel for row in narrow.plan().rows] == [row.kernel for row in wide.plan().rows]
        assert narrow.memory().constants < 0.52 * wide.memory().constants or (hardware and "blaze" in name)
        assert narrow.memory().arena < 0.8 * wide.memory().arena
        assert [(i.name, i.dtype) for i in narrow.outputs] == [(i.name, i.dtype) for i in wide.outputs]
        inputs = wide.noise()
        want, got = run(wide.run(inputs)), run(narrow.run(inputs))
        for key, tensor in want.items():
            right = tensor.numpy()
            assert np.abs(right - got[key].numpy()).max() <= 1e-2 * (right.max() - right.min())


def test_verify_compares_with_the_float32_graph() -> None:
    RingTarget("webgpu").demand()
    with load("blazeface_short_range", HOST, precision="float16") as session:
        report = run(session.verify(tolerance=1e-2))
        assert report.ok
        assert len(report.differences) > 30
        assert not run(session.verify(tolerance=1e-6)).ok


def test_a_node_that_webgpu_refuses_runs_elsewhere_all_the_same() -> None:
    RingTarget("webgpu").demand()
    webinfer.register_operator("my.no_wgsl", reference=lambda x: x + 1)
    builder = webinfer.GraphBuilder("float16")
    x = builder.input("x", (1, 4, 4, 8))
    ones = np.full((8, 1, 1, 8), 0.125, np.float32)
    first = builder.node("conv2d", x, ones)
    last = builder.node("conv2d", builder.node("my.no_wgsl", first), ones)
    builder.output(last, "y")
    session = run(webinfer.load(builder, backend="webgpu", precision="float16", host=HOST))
    with session:
        found = run(session.run(np.ones((1, 4, 4, 8), np.float32)))
        assert np.array_equal(found["y"].numpy(), np.full((1, 4, 4, 8), 2.0, np.float32))


def test_unknown_precisions_and_backends_without_it_are_refused() -> None:
    path = SHARED / "models" / "blazeface_short_range.tflite"
    with pytest.raises(InputError, match=r"'bfloat16' is unknown; choose float32 or float16"):
        run(webinfer.load(path, precision="bfloat16", host=HOST))
    with pytest.raises(InputError, match="is for webgpu; wasm, reference computes in float32"):
        run(webinfer.load(path, backend=["wasm", "reference"], precision="float16", host=HOST))


def test_other_backends_of_a_list_compute_in_float32() -> None:
    class NoGpu:
        async def gpu(self) -> Any:
            raise webinfer.BackendUnavailableError("no GPU here")

        def __getattr__(self, name: str) -> Any:
            return getattr(HOST, name)

    path = SHARED / "models" / "blazeface_short_range.tflite"
    if not path.exists():
        pytest.skip(f"{path} is missing")
    with run(webinfer.load(path, backend=["webgpu", "reference"], precision="float16", host=NoGpu())) as session:
        assert session.backend == "reference"
