"""Custom operators of TFLite files that a user brings along."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from tests.importers.test_custom_operators import _map
from tests.importers.tflite_writer import Writer
from tests.ops.case_graphs import run

import webinfer
from webinfer.errors import ModelFormatError, UnsupportedOpError


def model(options: bytes = b"", inputs: int = 1) -> bytes:
    """relu of ScaledRelu of x."""
    w = Writer()
    given = [w.input(f"x{i}", (2, 3)) for i in range(inputs)]
    scaled, y = w.tensor("scaled", (2, 3)), w.tensor("y", (2, 3))
    w.custom("ScaledRelu", given, [scaled], options)
    w.node("RELU", [scaled], [y])
    return w.finish(y)


def register(**options: Any) -> None:
    webinfer.register_operator(
        "my.scaled_relu", params={"scale": 1.0}, wgsl="load_x(i) * params.scale",
        reference=lambda x, scale: x * np.float32(scale), custom_code="ScaledRelu", **options,
    )  # fmt: skip


X = np.float32([[-1, 2, 3], [4, -5, 6]])


@pytest.mark.parametrize(("options", "scale"), [(b"", 1), (_map(scale=2.5), 2.5), (_map(scale=3), 3)])
def test_the_registered_operator_is_the_one_of_the_file(options: bytes, scale: float) -> None:
    register()
    with run(webinfer.load(model(options), backend="wasm")) as session:
        assert [r.op for r in session.plan().rows] == ["my.scaled_relu", "relu"]
        np.testing.assert_array_equal(run(session.run(X))["y"].numpy(), (X * np.float32(scale)).clip(0))


def test_options_that_are_a_struct_are_read_by_the_user() -> None:
    register(read_options=lambda data: {"scale": struct.unpack("<f", data)[0]})
    with run(webinfer.load(model(struct.pack("<f", 0.5)), backend="wasm")) as session:
        np.testing.assert_array_equal(run(session.run(X))["y"].numpy(), (X * np.float32(0.5)).clip(0))


@pytest.mark.parametrize(
    ("options", "inputs", "message"),
    [
        (_map(scale=[1, 2]), 1, r"ScaledRelu: my\.scaled_relu: scale is \(1, 2\), needs float"),
        (_map(size=1), 1, "my.scaled_relu has no attribute size"),
        (b"\x01", 1, "ScaledRelu"),
        (b"", 2, r"my\.scaled_relu: 2 inputs, needs x"),
    ],
)
def test_what_does_not_fit_the_registration_is_refused(options: bytes, inputs: int, message: str) -> None:
    register()
    with pytest.raises(ModelFormatError, match=message):
        run(webinfer.load(model(options, inputs), backend="wasm"))


def test_options_that_the_user_cannot_read_are_a_fault_of_the_file() -> None:
    register(read_options=lambda data: {"scale": struct.unpack("<f", data)[0]})
    with pytest.raises(ModelFormatError, match=r"ScaledRelu: its options cannot be read: error: unpack"):
        run(webinfer.load(model(b"123"), backend="wasm"))


def test_an_operator_that_nobody_registered_says_how() -> None:
    with pytest.raises(UnsupportedOpError, match="ScaledRelu: a custom operator; register_operator can add it"):
        run(webinfer.load(model(), backend="wasm"))
