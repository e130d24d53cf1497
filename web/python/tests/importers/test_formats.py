"""The formats table: a format is a folder and a row; bytes of no row are told what they look like."""

from __future__ import annotations

import asyncio
import json
import sys

import numpy as np
import pytest
from tests.importers.sample_models import SAMPLES
from tests.importers.test_webnn import one, operand

import webinfer
from webinfer.errors import LimitError, ModelFormatError, ShapeError, UnsupportedOpError, WebinferError
from webinfer.importers import formats, read_model
from webinfer.importers.formats import FORMATS, Format, model_names

TOY = b"""TOY1
input x ?x4
constant w 0.5 2.0 -1.0 4.0
constant size 4 1
MUL scaled x w
RELU y scaled
RESHAPE column y size
output y
output column
"""
DESCRIBED = json.dumps(one("relu", {"x": operand(2, 3)}, {"input": "x"})).encode()


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Format(
        "Toy", (".toy",), "tests.importers.toy.convert:read_toy", "all but four operators",
        signature=lambda head: head.startswith(b"TOY1"),
    )  # fmt: skip
    monkeypatch.setattr(formats, "FORMATS", [*FORMATS, row])


def run(data: bytes, **inputs: np.ndarray) -> dict[str, np.ndarray]:
    async def loaded() -> dict[str, np.ndarray]:
        with await webinfer.load(data, backend="reference") as session:
            return {name: tensor.numpy().copy() for name, tensor in (await session.run(inputs)).items()}

    return asyncio.run(loaded())


@pytest.mark.usefixtures("toy")
def test_a_format_of_one_folder_and_one_row_is_loaded_and_run() -> None:
    got = run(TOY, x=np.array([[1, -2, 3, 4]], np.float32))
    np.testing.assert_array_equal(got["y"], [[0.5, 0, 0, 16]])
    np.testing.assert_array_equal(got["column"], [[0.5], [0], [0], [16]])


@pytest.mark.usefixtures("toy")
def test_a_new_format_has_open_sizes_and_results_by_name_from_the_core() -> None:
    graph = read_model(TOY.replace(b"RESHAPE column y size", b"SPLIT a,b,column,d y"), "toy", {"x": (3, 4)})
    assert [v.type.shape for v in (*graph.inputs, *graph.outputs)] == [(3, 4), (3, 4), (3, 1)]
    assert [v.name for v in graph.outputs] == ["y", "column"]
    with pytest.raises(ShapeError, match=r"the model allows \(any, 4\)"):
        read_model(TOY, "toy", {"x": (3, 5)})


@pytest.mark.usefixtures("toy")
def test_everything_that_a_new_format_lacks_is_one_error() -> None:
    data = TOY.replace(b"MUL", b"WARP").replace(b"RELU", b"BEND") + b"WARP z x\n"
    with pytest.raises(UnsupportedOpError) as raised:
        read_model(data, "toy")
    assert raised.value.problems == ["WARP: not supported (operators 3, 8)", "BEND: not supported (operator 4)"]


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (b"x w", b"x", "toy: operator 3 MUL: input 1 is missing; 1 are listed"),
        (b"?x4", b"1x3", "toy: operator 3 MUL: "),
        (b"4 1\n", b"5 -1\n", "toy: operator 5 RESHAPE: "),
        (b"output y", b"output q", "outputs ['q'] are made by no line"),
        (b"0.5", b"half", "a damaged line"),
        (b"RELU y", b"RELU", "toy: "),
    ],
)
def test_damaged_toys_are_typed_errors(before: bytes, after: bytes, says: str) -> None:
    with pytest.raises(ModelFormatError) as raised:
        read_model(TOY.replace(before, after), "toy")
    assert says in str(raised.value)


@pytest.mark.usefixtures("toy")
def test_a_toy_cut_off_anywhere_is_a_graph_or_a_typed_error() -> None:
    outcomes = set()
    for size in range(len(TOY)):
        try:
            read_model(TOY[:size], "toy")
            outcomes.add("graph")
        except WebinferError as error:
            outcomes.add(type(error).__name__)
    assert outcomes == {"graph", "ModelFormatError"}


def test_without_its_row_the_toy_is_text() -> None:
    with pytest.raises(ModelFormatError, match="bytes of text that begin with 'TOY1"):
        read_model(TOY, "toy")


def test_a_description_in_json_is_a_model_too() -> None:
    got = run(DESCRIBED, x=np.array([[1, -2, 3], [-4, 5, -6]], np.float32))
    np.testing.assert_array_equal(got["y"], [[1, 0, 3], [0, 5, 0]])
    with pytest.raises(ShapeError, match=r"the model allows \(2, 3\)"):
        read_model(DESCRIBED, "made", {"x": (4, 3)})


@pytest.mark.parametrize(
    "damaged",
    [
        b'{"inputs": {}, "operators": 3}',
        b'{"inputs": {}, "operators": [3]}',
        b'{"inputs": [1], "operators": []}',
        b'{"inputs": {"x": 1}, "operators": []}',
        b'{"inputs": {}, "operators": [{"name": "relu", "arguments": "input", "outputs": "y"}]}',
        b'{"inputs": {}, "operators": [{"name": "relu", "arguments": [{"input": ["x"]}], "outputs": ["y"]}]}',
        b'{"inputs": {}, "operators": [{"name": "relu", "arguments": [{"input": "x"}], "outputs": [["y"]]}]}',
        b'{"inputs": {}, "operators": [], "outputs": 5}',
        DESCRIBED.replace(b'"relu"', b'["relu"]'),
    ],
)
def test_a_damaged_description_is_a_typed_error(damaged: bytes) -> None:
    with pytest.raises((ModelFormatError, UnsupportedOpError)):
        read_model(damaged, "made")


def test_a_description_keeps_to_the_limits_of_files() -> None:
    with pytest.raises(LimitError, match="rank"):
        read_model(json.dumps(one("relu", {"x": operand(*[1] * 9)}, {"input": "x"})).encode())


@pytest.mark.parametrize(
    "data", [b'{"format": "graph-model"}', b"{" + b"[" * 100_000, b'{"inputs": {}, "operators": [']
)
def test_json_of_no_row_is_called_json(data: bytes) -> None:
    with pytest.raises(
        ModelFormatError, match=r"not a model of a known format \(TensorFlow Lite, .*: it is JSON, but no"
    ):
        read_model(data, "made")


def test_a_reader_that_was_left_out_is_a_typed_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "webinfer.importers.webnn.convert", None)
    with pytest.raises(ModelFormatError, match="format WebNN graphs, and this installation of webinfer has no reader"):
        read_model(DESCRIBED, "made")
    read_model(SAMPLES["residual"](), "residual")


def test_files_are_models_by_their_suffix() -> None:
    files = ["models/a.tflite", "models/b.webnn.json", "models/labels.txt", "models/deep/c.v2.tflite"]
    assert model_names(files) == ["a", "b", "c.v2"]


@pytest.mark.parametrize("row", FORMATS, ids=lambda row: row.name)
def test_every_row_names_a_reader_with_a_table_and_one_way_to_tell_it(row: Format) -> None:
    module, _, function = row.reader.partition(":")
    loaded = __import__(module, fromlist=[function])
    assert callable(getattr(loaded, function))
    assert loaded.CONVERTERS
    assert row.name
    assert row.suffixes
    assert row.help
    assert (row.signature is None) != (not row.keys)


def test_files_beside_a_model_of_a_format_that_has_none_change_nothing() -> None:
    data = next(iter(SAMPLES.values()))()
    plain, beside = read_model(data), read_model(data, files={"weights.bin": memoryview(b"abc")})
    assert [node.op.name for node in beside.nodes] == [node.op.name for node in plain.nodes]
