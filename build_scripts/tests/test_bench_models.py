"""What the benchmark prepares of a model: inputs of every type that models have, and reference outputs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tests.importers.tflite_writer import Writer

from build_scripts.bench.models import _random_array, prepare
from build_scripts.errors import BuildError

PAGE = Path(__file__).resolve().parents[2] / "e2e_tests" / "benchmarks" / "page" / "compare.js"


@pytest.mark.parametrize("dtype", ["bool", "int64", "int32", "int16", "uint8", "int8", "float32"])
def test_inputs_of_every_type_are_drawn_and_answered(dtype: str, tmp_path: Path) -> None:
    w = Writer()
    x, y = w.input("x", (16, 3), dtype), w.tensor("y", (3, 16), dtype)
    w.node("TRANSPOSE", [x, w.constant("order", np.int32([1, 0]))], [y])
    (tmp_path / "turned.tflite").write_bytes(w.finish(y))
    entry = prepare(tmp_path / "turned.tflite", tmp_path / "site")
    (given,), (wanted,) = entry.inputs, entry.outputs
    assert given.dtype == wanted.dtype == dtype
    array = np.fromfile(tmp_path / "site" / given.file, dtype).reshape(16, 3)
    assert len(np.unique(array)) > 1
    assert wanted.range > 0
    assert (tmp_path / "site" / wanted.file).read_bytes() == np.ascontiguousarray(array.T).tobytes()
    assert re.search(rf"\b{dtype}: \w+Array,", PAGE.read_text())


def test_a_type_that_cannot_be_drawn_is_named() -> None:
    with pytest.raises(BuildError, match="odd: input 1 is of type complex64"):
        _random_array("odd", 1, "complex64", [2])
