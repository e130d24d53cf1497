"""Custom operators on every backend: their WGSL judged by their reference, and what stands in for it."""

from __future__ import annotations

import importlib.util
import re
from typing import Any

import numpy as np
import pytest
from tests.custom.one_node import noise, one_node, results
from tests.ops.case_graphs import run
from tests.ops.targets import Target

import webinfer
from webinfer.backends import python
from webinfer.errors import BackendUnavailableError, GpuError, LimitError, ShapeError, UnsupportedOpError
from webinfer.host.native import NativeHost
from webinfer.ops.custom import CUSTOM

SUMS = """
var<workgroup> part: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    var sum = 0.0;
    for (var k = lane; k < x_shape[1]; k += 64u) { sum += load_x(index_x(array<u32, 2>(group.x, k))); }
    part[lane] = sum;
    for (var half = 32u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (lane < half) { part[lane] += part[lane + half]; }
    }
    if (lane == 0u) { store_sum(group.x, part[0]); store_most(group.x, i32(x_shape[1])); }
}
"""


def register_cases() -> dict[str, tuple[webinfer.GraphBuilder, list[Any]]]:
    """A graph and inputs for each form and feature."""
    register = webinfer.register_operator
    register("my.scaled_relu", params={"scale": 1.0}, wgsl="max(load_x(i), 0.0) * params.scale",
             reference=lambda x, scale: x.clip(0) * scale)  # fmt: skip
    register(
        "my.relu4", form="quad", wgsl="let v = load4_x(q);\nreturn max(v, y_v(0.0));", reference=lambda x: x.clip(0)
    )
    register("my.transpose", shape=lambda x: (x.shape[1], x.shape[0]), reference=lambda x: x.T,
             wgsl="let at = place_y(i); return load_x(index_x(array<u32, 2>(at[1], at[0])));")  # fmt: skip
    register("my.shift", params={"by": (0, 0), "wrap": True}, reference=lambda x, by, wrap: np.roll(x, by, (0, 1)),
             wgsl="""
        var at = place_y(i);
        for (var d = 0u; d < 2u; d++) {
            at[d] = u32(i32(at[d] + x_shape[d]) - by_at(d)) % x_shape[d];
        }
        return select(0, load_x(index_x(at)), params.wrap == 1u);""")  # fmt: skip
    register("my.is_even", shape=lambda x: webinfer.TensorType(x.shape, webinfer.DType.BOOL),
             wgsl="select(0, 1, load_x(i) % 2 == 0)", reference=lambda x: x % 2 == 0)  # fmt: skip
    register("my.row_sums", outputs=("sum", "most"), form="shader", wgsl=SUMS, workgroups=lambda x: x.shape[0],
             shape=lambda x: ((x.shape[0],), webinfer.TensorType((x.shape[0],), webinfer.DType.INT32)),
             reference=lambda x: (x.sum(1), np.full(x.shape[0], x.shape[1], np.int32)))  # fmt: skip
    counted = np.arange(15, dtype=np.int32).reshape(5, 3)
    return {
        "an expression with a parameter": (one_node("my.scaled_relu", (3, 7), scale=-0.5), [noise(3, 7)]),
        "statements on four elements": (one_node("my.relu4", (2, 3, 3)), [noise(2, 3, 3)]),
        "indices of another shape": (one_node("my.transpose", (5, 6)), [noise(5, 6)]),
        "integers and a tuple": (one_node("my.shift", (5, 3), dtype="int32", by=[2, -1]), [counted]),
        "a type of its own": (one_node("my.is_even", (5, 3), dtype="int32"), [counted]),
        "a shader whose invocations cooperate": (one_node("my.row_sums", (3, 150)), [noise(3, 150)]),
        "a scalar": (one_node("my.scaled_relu", (), scale=2), [noise()]),
    }


LABELS = tuple(register_cases())
CUSTOM.clear()


@pytest.mark.parametrize("backend", ["webgpu", "reference"])
@pytest.mark.parametrize("label", LABELS)
def test_a_backend_computes_what_the_reference_says(label: str, backend: str) -> None:
    graph, inputs = register_cases()[label]
    node = graph.graph().nodes[0]
    want = node.op.reference(*inputs, **{k: getattr(node.attrs, k) for k in node.attrs.__dataclass_fields__})  # type: ignore[attr-defined]
    got = results(graph, backend, *inputs)
    for mine, theirs in zip(got, want if isinstance(want, tuple) else [want], strict=True):
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)


def mixed() -> webinfer.GraphBuilder:
    """conv2d, a custom operator, max_pool2d: one custom step between two built-in ones."""
    g = webinfer.GraphBuilder("mixed")
    x = g.input("x", (1, 8, 8, 3))
    y = g.node("conv2d", x, noise(4, 3, 3, 3, seed=1), noise(4, seed=2), pads=(1, 1, 1, 1))
    y = g.node("my.scaled_relu", y, scale=2.0)
    g.output(g.node("max_pool2d", y, window=(2, 2), stride=(2, 2)), "y")
    return g


def test_between_built_in_steps_on_the_gpu_nothing_is_read_back() -> None:
    Target("webgpu").demand()
    register_cases()
    with run(webinfer.load(mixed(), backend="webgpu", strict=True)) as session:
        assert [(r.op, r.backend) for r in session.plan().rows] == [
            ("conv2d", "webgpu"), ("my.scaled_relu", "webgpu"), ("max_pool2d", "webgpu"),
        ]  # fmt: skip
        assert session.backend == "webgpu"  # one executor: one submit, one readback
        report = run(session.verify("reference"))
        assert report.ok, report


def test_on_wasm_the_reference_stands_in() -> None:
    register_cases()
    with run(webinfer.load(mixed(), backend="wasm")) as session:
        rows = session.plan().rows
        assert [(r.op, r.backend) for r in rows] == [
            ("conv2d", "wasm"), ("my.scaled_relu", "python"), ("max_pool2d", "wasm"),
        ]  # fmt: skip
        assert "my.scaled_relu on wasm: a custom operator, which has no kernel" in rows[1].why
        report = run(session.verify("reference"))
        assert report.ok, report
        assert len(run(session.profile(rounds=1)).times_ms) == 3


def test_without_numpy_the_reference_is_given_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    from array import array

    def reference(x: webinfer.Tensor) -> array[float]:
        assert isinstance(x, webinfer.Tensor)
        return array("f", [2 * n for n in x.tolist()])

    found = importlib.util.find_spec
    monkeypatch.setattr(python.importlib.util, "find_spec", lambda name: None if name == "numpy" else found(name))
    webinfer.register_operator("my.twice", reference=reference)
    with run(webinfer.load(one_node("my.twice", (2, 3)), backend="wasm")) as session:
        x = noise(2, 3)
        np.testing.assert_array_equal(run(session.run(x))["y0"].numpy(), 2 * x)


def test_on_wasm_without_a_reference_the_shader_runs_on_the_gpu_with_a_reason() -> None:
    Target("webgpu").demand()
    webinfer.register_operator("my.scaled_relu", params={"scale": 1.0}, wgsl="max(load_x(i), 0.0) * params.scale")
    with run(webinfer.load(mixed(), backend="wasm")) as session:
        row = session.plan().rows[1]
        assert (row.op, row.backend) == ("my.scaled_relu", "webgpu")
        assert "my.scaled_relu on wasm" in row.why
        assert "run on webgpu" in session.choice
        got = run(session.run(noise(1, 8, 8, 3)))["y"].numpy()
    webinfer.unregister_operator("my.scaled_relu")
    register_cases()
    with run(webinfer.load(mixed(), backend="reference")) as judge:
        np.testing.assert_allclose(got, run(judge.run(noise(1, 8, 8, 3)))["y"].numpy(), atol=1e-4)


def test_on_wasm_without_a_reference_and_without_a_gpu_the_operator_is_unsupported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def none(self: NativeHost) -> None:
        raise BackendUnavailableError("no GPU adapter")

    webinfer.register_operator("my.copy", wgsl="load_x(i)")
    monkeypatch.setattr(NativeHost, "gpu", none)
    with pytest.raises(UnsupportedOpError, match=r"my\.copy on wasm: a custom operator, which has no kernel"):
        run(webinfer.load(one_node("my.copy", (4,)), backend="wasm"))
    for backend in ("reference", ["wasm"]):
        with pytest.raises(UnsupportedOpError, match=r"my\.copy"):
            run(webinfer.load(one_node("my.copy", (4,)), backend=backend, strict=True))


def test_without_wgsl_the_gpu_leaves_the_step_to_the_reference() -> None:
    Target("webgpu").demand()
    webinfer.register_operator("my.scaled_relu", params={"scale": 1.0}, reference=lambda x, scale: x.clip(0) * scale)
    with run(webinfer.load(mixed(), backend="webgpu")) as session:
        assert [r.backend for r in session.plan().rows] == ["webgpu", "python", "webgpu"]
        assert "registered without wgsl" in session.plan().rows[1].why
        assert run(session.verify("reference")).ok


def test_a_shader_that_does_not_compile_is_named_with_its_own_line() -> None:
    Target("webgpu").demand()
    webinfer.register_operator("my.broken", wgsl="\n    let a = load_x(i);\n    return a + missing;\n")
    with pytest.raises(GpuError, match=re.compile(r"my\.broken.*missing.*:3:", re.DOTALL)):
        run(webinfer.load(one_node("my.broken", (4,)), backend="webgpu"))
    webinfer.register_operator("my.broken", wgsl="load_x(i)", replace=True)
    assert results(one_node("my.broken", (4,)), "webgpu", noise(4))[0].shape == (4,)


@pytest.mark.parametrize(
    ("workgroups", "error", "message"),
    [
        (lambda x: 0, ShapeError, "its workgroups are 0"),
        (lambda x: (1, 2, 3, 4), ShapeError, "needs 1 to 3 whole numbers"),
        (lambda x: 1 << 30, LimitError, "spread them over more dimensions"),
        (lambda x: x.shape[9], ShapeError, "IndexError"),
    ],
)
def test_impossible_workgroups_are_refused(workgroups: Any, error: type[Exception], message: str) -> None:
    Target("webgpu").demand()
    text = "@compute @workgroup_size(1) fn main() { store_y(0u, load_x(0u)); }"
    webinfer.register_operator("my.first", wgsl=text, form="shader", workgroups=workgroups)
    with pytest.raises(error, match=message):
        run(webinfer.load(one_node("my.first", (4,)), backend="webgpu", strict=True))


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (lambda x: x[:2], r"not float32\[4\].*shape \(2,\)"),
        (lambda x: x.astype(complex), "not float32"),
        (lambda x: None, "not float32"),
    ],
)
@pytest.mark.parametrize("backend", ["reference", "wasm"])
def test_a_reference_that_makes_something_else_is_refused(reference: Any, message: str, backend: str) -> None:
    webinfer.register_operator("my.odd", reference=reference)
    with (
        run(webinfer.load(one_node("my.odd", (4,)), backend=backend)) as session,
        pytest.raises(ShapeError, match=message),
    ):
        run(session.run(noise(4)))


def test_an_error_of_the_reference_says_where_it_was() -> None:
    def reference(x: Any) -> Any:
        raise ZeroDivisionError("mine")

    webinfer.register_operator("my.odd", reference=reference)
    with (
        run(webinfer.load(one_node("my.odd", (4,)), backend="wasm")) as session,
        pytest.raises(ZeroDivisionError) as caught,
    ):
        run(session.run(noise(4)))
    assert caught.value.__notes__ == ["in the reference function of my.odd, node my.odd_0"]
