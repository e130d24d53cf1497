"""Quantised tensors of a file: their scales are checked, and what is computed on integers."""

from __future__ import annotations

import numpy as np
import pytest
from tests.importers.test_file_rules import refused
from tests.importers.tflite_writer import Writer

from webinfer.errors import UnsupportedOpError
from webinfer.importers import read_model


def test_the_scale_that_is_none_is_named() -> None:
    w = Writer()
    x = w.input("x", (1, 2, 2, 3))
    kernel = w.constant("kernel", np.ones((2, 1, 1, 3), np.int8), ([0.5, -0.25], [0, 0], 0))
    y = w.tensor("y", (1, 2, 2, 2))
    w.node("CONV_2D", [x, kernel, w.constant("bias", np.float32([0, 0]))], [y], padding=1, stride_w=1, stride_h=1)
    assert "scale -0.25 is not a positive number" in refused(w.finish(y))


def test_integers_without_a_scale_are_refused_by_softmax() -> None:
    w = Writer()
    x, y = w.input("x", (1, 4), "int8"), w.tensor("y", (1, 4), "int8", (1 / 256, -128))
    w.node("SOFTMAX", [x], [y], beta=1.0)
    assert "has no scale" in refused(w.finish(y))


@pytest.mark.parametrize("op", ["MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"])
def test_quantised_reductions_are_computed_on_integers(op: str) -> None:
    w = Writer()
    x, y = w.input("x", (2, 6), "int8", (0.5, 3)), w.tensor("y", (2,), "int8", (0.5, 3))
    w.node(op, [x, w.constant("axes", np.int32([1]))], [y], keep_dims=False)
    assert [str(v.type.dtype) for node in read_model(w.finish(y)).nodes for v in node.outputs] == ["int8"]


def test_layers_of_integers_without_a_scale_are_refused() -> None:
    w = Writer()
    x, y = w.input("x", (1, 4), "int32"), w.tensor("y", (1, 2), "int32")
    w.node("FULLY_CONNECTED", [x, w.constant("weights", np.ones((2, 4), np.int8), (0.5, 0)), -1], [y])
    assert "x of type int32" in refused(w.finish(y), UnsupportedOpError)
