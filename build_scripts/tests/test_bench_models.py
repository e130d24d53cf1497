"""What the benchmark prepares of a model: inputs of every type that models have, and reference outputs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tests.importers.tflite_writer import Writer
from tests.passes.building import Build, Q

from build_scripts.bench.models import _quantised, _random_array, prepare
from build_scripts.bench.site import without
from build_scripts.bench.sources import TOKENS, Source, models_in, readers, sized
from build_scripts.bench.tfjs_graph import fold_constants
from build_scripts.errors import BuildError
from webinfer.dtypes import DType
from webinfer.ops import elementwise as ew
from webinfer.ops import matmul
from webinfer.ops import movement as mv

PAGE = Path(__file__).resolve().parents[2] / "e2e_tests" / "benchmarks" / "page" / "compare.js"


@pytest.mark.parametrize("dtype", ["bool", "int64", "int32", "int16", "uint8", "int8", "float32"])
def test_inputs_of_every_type_are_drawn_and_answered(dtype: str, tmp_path: Path) -> None:
    w = Writer()
    x, y = w.input("x", (16, 3), dtype), w.tensor("y", (3, 16), dtype)
    w.node("TRANSPOSE", [x, w.constant("order", np.int32([1, 0]))], [y])
    (tmp_path / "turned.tflite").write_bytes(w.finish(y))
    entry = prepare(Source("turned", tmp_path / "turned.tflite"), tmp_path / "site")
    (given,), (wanted,) = entry.inputs, entry.outputs
    assert given.dtype == wanted.dtype == dtype
    array = np.fromfile(tmp_path / "site" / given.file, dtype).reshape(16, 3)
    assert len(np.unique(array)) > 1
    assert wanted.range > 0
    assert (tmp_path / "site" / wanted.file).read_bytes() == np.ascontiguousarray(array.T).tobytes()
    assert re.search(rf"\b{dtype}: \w+Array,", PAGE.read_text())


def test_a_model_is_quantised_by_its_arithmetic_not_by_its_inputs() -> None:
    inside, outside = Build(), Build()
    stored = {"dtype": DType.INT8, "quant": Q}
    x = inside.node(ew.QUANTIZE, [inside.input("x", 1, 64)], ew.CastAttrs(DType.INT8, Q), "stored")
    attrs = matmul.MatmulAttrs(out_type=(DType.INT8, Q))
    inside.output(inside.node(matmul.MATMUL, [x, inside.constant(64, 64, **stored)], attrs, "y"))
    real = outside.node(ew.DEQUANTIZE, [outside.input("x", 1, 64, **stored)], ew.CastAttrs(DType.FLOAT32), "real")
    outside.output(outside.node(matmul.MATMUL, [real, outside.constant(64, 64)], matmul.MatmulAttrs(), "y"))
    assert _quantised(inside.graph, [("x", "float32", [1, 64])])
    assert not _quantised(outside.graph, [("x", "int8", [1, 64])])
    assert _quantised(None, [("x", "int8", [1, 64])])


def test_a_type_that_cannot_be_drawn_is_named() -> None:
    with pytest.raises(BuildError, match="odd: input 1 is of type complex64"):
        _random_array("odd", 1, "complex64", [2])


def test_models_of_every_format_are_found_under_their_names(tmp_path: Path) -> None:
    for name in ("a.tflite", "c.onnx", "b/model.json", "b/shard.bin"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [(m.name, m.format) for m in models_in(tmp_path)] == [("a", "tflite"), ("b", "tfjs"), ("c", "onnx")]
    assert [m.name for m in models_in(tmp_path, "c,b")] == ["b", "c"]
    with pytest.raises(BuildError, match="no model d"):
        models_in(tmp_path, "a,d")


def test_only_systems_that_read_a_format_of_the_folder_get_columns(tmp_path: Path) -> None:
    systems = ("webinfer", "litertjs", "ortweb", "tfjs", "native")
    (tmp_path / "a.onnx").touch()
    assert readers(systems, tmp_path) == ["webinfer", "ortweb", "tfjs"]
    (tmp_path / "b.tflite").touch()
    assert readers(systems, tmp_path) == list(systems)


class _Judge:
    """Runs everything at 64."""

    def shapes(self, model: Path) -> dict[str, tuple[int, ...]]:
        return {"x": (1, 64)}


@pytest.mark.parametrize(("dtype", "rows"), [("int64", [f"text@{n}" for n in TOKENS]), ("float32", ["text"])])
def test_a_model_that_reads_tokens_is_measured_at_several_lengths(dtype: str, rows: list[str], tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    element = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    x, y = (onnx.helper.make_tensor_value_info(name, element, [1, "n"]) for name in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Add", ["x", "x"], ["y"])], "text", [x], [y])
    onnx.save(onnx.helper.make_model(graph), tmp_path / "text.onnx")
    found = sized(*models_in(tmp_path), _Judge())
    assert [source.name for source in found] == rows
    entry = prepare(found[0], tmp_path / "site")
    assert entry.inputs[0].shape == entry.shapes["x"] == [1, 16 if len(rows) > 1 else 64]
    assert entry.onnx == entry.files["text.onnx"] == "models/text.onnx"


def test_what_ended_the_page_is_refused_and_what_was_done_is_not_measured_again(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"models": [{"name": name} for name in "abc"]}))
    without(tmp_path, ["a"], {"model": "b", "system": "tfjs", "threads": 1}, "the page crashed")
    left = json.loads((tmp_path / "config.json").read_text())["models"]
    assert [model["name"] for model in left] == ["b", "c"]
    assert left[0]["refused"] == [{"model": "b", "system": "tfjs", "threads": 1, "error": "the page crashed"}]
    assert "refused" not in left[1]


def test_weights_that_nodes_compute_become_constants_for_the_rival() -> None:
    b = Build()
    x, w = b.input("x", 1, 4), b.constant(2, 4)
    turned = b.node(mv.TRANSPOSE, [w], mv.TransposeAttrs((1, 0)), "turned")
    graph = b.output(b.node(matmul.MATMUL, [x, turned], matmul.MatmulAttrs(), "y"))
    fold_constants(graph)
    assert [node.op.name for node in graph.nodes] == ["matmul"]
    assert turned.is_constant
