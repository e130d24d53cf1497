"""What registering an operator accepts and refuses, and what a graph makes of it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.custom.one_node import one_node

import webinfer
from webinfer.errors import InputError, ShapeError
from webinfer.graph.printer import print_graph

RELU = "max(load_x(i), 0.0)"
WHOLE = "@compute @workgroup_size(1) fn main() { store_y(0u, load_x(0u)); }"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "relu"}, "cannot name an operator"),
        ({"name": "my.relu\nfn"}, r"my\.relu\{a\}fn cannot name"),
        ({"name": "my." + "a" * 62}, "cannot name an operator"),
        ({"wgsl": ""}, "neither wgsl nor reference"),
        ({"wgsl": " // nothing\n"}, "is not text"),
        ({"wgsl": "max(load_x(i), 0.0"}, r"does not close a \("),
        ({"wgsl": "load_x(i)) }"}, r"has a \) too many"),
        ({"wgsl": "1.0 + 0.0" * 8000}, "characters, the limit is 65536"),
        ({"wgsl": "load_z(i)"}, "calls load_z; load_ goes with x"),
        ({"wgsl": "load_x(index_z(place_y(i)))"}, "calls index_z"),
        ({"wgsl": "store4_y(i, load4_x(i));"}, "calls store4_y; store4_ goes with none"),
        ({"wgsl": "load_x(i) * params.size", "params": {"scale": 1.0}}, r"reads params\.size; there are scale"),
        ({"inputs": ("X",)}, "X cannot name a tensor"),
        ({"inputs": ("x__y",)}, "cannot name a tensor"),
        ({"inputs": ("x; }",)}, "cannot name a tensor"),
        ({"inputs": ("x", "x")}, "different names"),
        ({"inputs": ()}, "give 2 to 8"),
        ({"params": {"for": 1.0}}, "for cannot name"),
        ({"params": {"var": 1.0}}, "var cannot name"),
        ({"params": {"scale": "1"}}, "parameter scale is '1'"),
        ({"form": "pixel"}, "there is no form 'pixel'; there are element, quad, shader"),
        ({"outputs": ("out",)}, "form element computes one output called y"),
        ({"form": "shader", "wgsl": WHOLE}, "`workgroups` belongs to form 'shader'"),
        ({"workgroups": lambda x: 1}, "`workgroups` belongs to form 'shader'"),
        ({"form": "shader", "workgroups": lambda x: 1}, "needs a function main with @compute"),
        ({"reference": lambda x, y: x}, "reference must take x and the params"),
        ({"reference": 3}, "reference is a int, needs a function"),
        ({"shape": lambda: (1,)}, "shape must take x"),
        ({"custom_code": "MaxUnpooling2D"}, "MaxUnpooling2D already has a meaning"),
    ],
)
def test_a_bad_operator_is_refused_with_the_reason(options: dict[str, Any], message: str) -> None:
    options = {"name": "my.relu", "wgsl": RELU, **options}
    with pytest.raises(InputError, match=message):
        webinfer.register_operator(options.pop("name"), **options)
    assert "my.relu" not in webinfer.operators()


def test_a_name_is_taken_once_unless_it_is_replaced() -> None:
    webinfer.register_operator("my.relu", wgsl=RELU, custom_code="MyRelu")
    with pytest.raises(InputError, match=r"my\.relu is already registered"):
        webinfer.register_operator("my.relu", wgsl="load_x(i)")
    with pytest.raises(InputError, match="MyRelu already has a meaning"):
        webinfer.register_operator("my.other", wgsl=RELU, custom_code="MyRelu")
    webinfer.register_operator("my.relu", wgsl="load_x(i)", replace=True)
    webinfer.register_operator("my.other", wgsl=RELU, custom_code="MyRelu")


def test_a_removed_operator_is_unknown() -> None:
    webinfer.register_operator("my.relu", wgsl=RELU)
    assert {"my.relu", "conv2d"} <= set(webinfer.operators())
    webinfer.unregister_operator("my.relu")
    with pytest.raises(InputError, match=r"there is no operator my\.relu"):
        one_node("my.relu", (4,))
    with pytest.raises(InputError, match=r"no custom operator is called my\.relu; there are none"):
        webinfer.unregister_operator("my.relu")


def test_comments_and_functions_of_the_text_itself_are_not_accessors() -> None:
    text = "// load_z(i) is not here: (\nfn load_tile(i: u32) -> f32 { return load_x(i); }\n" + WHOLE
    webinfer.register_operator("my.copy", wgsl=text.replace("load_x(0u)", "load_tile(0u)"), form="shader",
                               workgroups=lambda x: 1)  # fmt: skip


def test_the_shape_function_types_the_outputs() -> None:
    int32 = webinfer.DType.INT32
    webinfer.register_operator(
        "my.split", inputs=("x", "w"), outputs=("low", "high"), params={"parts": 2},
        reference=lambda x, w, parts: (x, w),
        shape=lambda x, w, parts: ((x.shape[0] // parts,), webinfer.TensorType(w.shape, int32)),
    )  # fmt: skip
    text = print_graph(one_node("my.split", (12,), (3, 5), parts=3).graph())
    assert "%y0, %y1 = my.split(%x0, %x1) parts=3 -> float32[4], int32[3x5]" in text


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (lambda x, scale: "4", "its shape function made '4'"),
        (lambda x, scale: (4, -1), r"its shape function made \(4, -1\)"),
        (lambda x, scale: (2.0,), r"its shape function made \(2.0,\)"),
        (lambda x, scale: (x.shape[3],), r"fails for float32\[4\]: IndexError"),
    ],
)
def test_a_shape_function_that_fails_is_a_shape_error(shape: Any, message: str) -> None:
    webinfer.register_operator("my.scale", wgsl=RELU, params={"scale": 1.0}, shape=shape)
    with pytest.raises(ShapeError, match=message):
        one_node("my.scale", (4,))


@pytest.mark.parametrize(
    ("attrs", "error", "message"),
    [
        ({"size": 2.0}, InputError, "my.scale has no attribute size; its attributes are scale, axes, exact"),
        ({"scale": "2"}, InputError, "scale is '2', needs float"),
        ({"axes": 1}, InputError, "axes is 1, needs tuple"),
        ({"exact": 1}, InputError, "exact is 1, needs bool"),
        ({"scale": float("inf")}, ShapeError, "scale is inf; WGSL has 32-bit numbers"),
        ({"axes": [1] * 9}, ShapeError, "tuples up to 8"),
        ({"axes": [2**31]}, ShapeError, "WGSL has 32-bit numbers"),
    ],
)
def test_a_wrong_attribute_is_named(attrs: dict[str, Any], error: type[Exception], message: str) -> None:
    webinfer.register_operator("my.scale", wgsl=RELU, params={"scale": 1.0, "axes": (0, 1), "exact": True})
    with pytest.raises(error, match=message):
        one_node("my.scale", (4,), **attrs)


def test_a_whole_number_is_a_float_where_one_is_needed() -> None:
    webinfer.register_operator("my.scale", wgsl=RELU, params={"scale": 1.0, "axes": (0, 1)})
    assert "my.scale(%x0) scale=2 axes=3" in print_graph(one_node("my.scale", (4,), scale=2, axes=[3]).graph())


def test_missing_inputs_are_counted() -> None:
    webinfer.register_operator("my.sum", inputs=("x", "b"), wgsl="load_x(i) + load_b(i)")
    with pytest.raises(ShapeError, match=r"my\.sum: 1 inputs, needs x, b"):
        one_node("my.sum", (4,))
