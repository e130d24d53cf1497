"""What GPUs do otherwise than the software adapter of tests: quotients a few units off, small numbers flushed to zero.

Fuzzing on an NVIDIA H100 under wgpu found these: x mod x was x, suppression by more than nothing dropped every box, the
mean of negative integers was too large. The software adapter divides exactly and keeps small numbers, so the shader's
text is run here on quotients that are off, and parameters are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from tests.ops.case_graphs import run
from tests.webgpu.devices import HARDWARE

import webinfer
from webinfer.backends.webgpu.lowerings import suppression
from webinfer.codegen.templates import shader_folder
from webinfer.dtypes import DType
from webinfer.graph.ir import Node, TensorType, Value
from webinfer.ops.suppression import NON_MAX_SUPPRESSION, NonMaxSuppressionAttrs

OFF = {"below": "(1.0 - 2.0e-7)", "exact": "1.0", "above": "(1.0 + 2.0e-7)"}
NAMES = ("fits", "floor_quotient", "modulo")


def functions_with_quotients(off: str) -> str:
    """The functions of _math.wgsl, with divisions that are off by a factor."""
    text = (shader_folder() / "include" / "_math.wgsl").read_text(encoding="utf-8")
    found = [re.search(rf"^fn {name}\(.*?^}}", text, re.MULTILINE | re.DOTALL) for name in NAMES]
    functions = "\n".join(match[0] for match in found if match)
    assert functions.count("a / b") == 2
    return functions.replace("a / b", f"a / b * {off}")


@pytest.fixture
def operator() -> Iterator[str]:
    name = "tests.divide"
    yield name
    if name in webinfer.operators():
        webinfer.unregister_operator(name)


@pytest.mark.parametrize("off", OFF)
@pytest.mark.parametrize("called", NAMES[1:])
def test_multiples_have_no_rest_whatever_a_gpu_makes_of_the_quotient(operator: str, called: str, off: str) -> None:
    main = f"""{functions_with_quotients(OFF[off])}
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) gid: vec3<u32>) {{
    if (gid.x < 2u) {{ store4_y(gid.x, {called}(load4_x(gid.x), load4_z(gid.x))); }}
}}"""
    webinfer.register_operator(operator, inputs=("x", "z"), wgsl=main, form="shader", workgroups=lambda *_: (1, 1, 1))
    z = np.array([0.3, 1.7, -2.3, 0.625, 1e-3, -5.0, 11.0, 3.0], np.float32)
    times = np.array([1, 1, 1, 3, 1, 2, 4, 7], np.float32)  # small enough for exact products
    g = webinfer.GraphBuilder()
    g.output(g.node(operator, g.input("x", z.shape), g.input("z", z.shape)), "y")
    with run(webinfer.load(g, backend="webgpu", strict=True)) as session:
        y = run(session.run({"x": z * times, "z": z}))["y"].numpy()
    if called == "modulo":
        np.testing.assert_allclose(y, 0, atol=3e-6)
    elif off != "above":  # what is too large by less than a rounding is not told from a whole quotient
        np.testing.assert_array_equal(y, times)


def test_a_small_number_over_one_of_the_other_sign_is_a_whole_step_below() -> None:
    g = webinfer.GraphBuilder()
    a, b = g.input("a", (4,)), g.input("b", (4,))
    g.output(g.node("floor_div", a, b), "quotient")
    g.output(g.node("floor_mod", a, b), "rest")
    given = {"a": np.float32([2e-10, -2e-10, 0.5, -0.5]), "b": np.float32([-1.2, 1.2, 2.0, 2.0])}
    with run(webinfer.load(g, backend="webgpu", strict=True)) as session:
        found = run(session.run(given))
    np.testing.assert_array_equal(found["quotient"].numpy(), [-1, -1, 0, -1])
    np.testing.assert_allclose(found["rest"].numpy(), np.mod(given["a"], given["b"]), rtol=1e-6)


def test_a_threshold_of_nothing_reaches_the_shader_as_a_number_that_no_gpu_flushes() -> None:
    least = float(np.nextafter(np.float32(0), np.float32(1)))  # ONNX drops what overlaps by more than 0
    types = [TensorType((4, 4), DType.FLOAT32), TensorType((1, 4), DType.FLOAT32)]
    attrs = NonMaxSuppressionAttrs(4, least, -1.0)
    inputs = [Value(f"v{i}", t) for i, t in enumerate(types)]
    outputs = [Value(f"y{i}", t) for i, t in enumerate(NON_MAX_SUPPRESSION.infer(types, attrs))]
    (dispatch,) = suppression._non_max_suppression(Node(NON_MAX_SUPPRESSION, inputs, outputs, attrs), HARDWARE)
    assert {p.name: p.value for p in dispatch.params}["overlap"] == suppression.LEAST_NORMAL


def test_means_of_negative_integers_take_no_remainder_of_them() -> None:
    text = (shader_folder() / "reduce" / "_reduce.wgsl").read_text(encoding="utf-8")
    assert "x % count" not in text
