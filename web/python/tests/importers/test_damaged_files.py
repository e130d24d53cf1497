"""Any bytes: a graph or a typed error, soon and in little memory, and the next good file is read."""

from __future__ import annotations

import time
import tracemalloc

import flatbuffers
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from tests.importers.mutations import Tally, attempt, survey, truncations
from tests.importers.sample_models import SAMPLES, residual
from tests.importers.tflite_writer import Writer

from webinfer.errors import LimitError, ModelFormatError
from webinfer.graph.verify import verify
from webinfer.importers import read_model
from webinfer.passes.pipeline import optimize

STRANGERS = {
    "empty": (b"", "empty"),
    "one byte": (b"\x1c", "too short"),
    "short": (b"\x1c\0\0\0TF", "too short"),
    "zeros": (bytes(4096), "begin with zeros"),
    "html": (b"<!DOCTYPE html><html><body>404 Not Found</body></html>", "web page"),
    "html after blanks": (b"\n\n  <html lang=en>", "web page"),
    "json": (b'{"format": "layers-model"}', "JSON"),
    "text": (b"Not found. Try again later, please.", "text that begin with 'Not found."),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:00", "Git LFS pointer"),
    "zip": (b"PK\x03\x04" + bytes(60), "zip archive that is damaged"),
    "gzip": (b"\x1f\x8b\x08" + bytes(60), "gzip"),
    "random": (np.random.default_rng(1).integers(0, 256, 4096).astype(np.uint8).tobytes(), "bytes that begin with"),
    "other version": (b"\x1c\0\0\0TFL9" + bytes(60), "version '9'"),
    "magic alone": (b"\x1c\0\0\0TFL3", "byte 0 of 8"),
    "magic and zeros": (b"\x1c\0\0\0TFL3" + bytes(60), "byte"),
}


@pytest.mark.parametrize("name", STRANGERS)
def test_what_is_no_model_is_said_at_once(name: str) -> None:
    data, words = STRANGERS[name]
    start = time.perf_counter()
    with pytest.raises(ModelFormatError, match=words.replace("(", r"\(")) as caught:
        read_model(data, "upload.bin")
    assert time.perf_counter() - start < 0.05
    assert "upload.bin" in str(caught.value)
    assert read_model(residual(), "good.tflite").nodes


@pytest.mark.parametrize("size", range(0, 65))
def test_a_beginning_of_a_model_is_no_model(size: int) -> None:
    with pytest.raises(ModelFormatError):
        read_model(residual()[:size], "cut.tflite")


@pytest.mark.parametrize("name", SAMPLES)
def test_every_truncation_is_read_or_refused(name: str) -> None:
    tally = Tally()
    tracemalloc.start()
    try:
        for label, data in truncations(SAMPLES[name]()):
            attempt(data, label, tally)
    finally:
        tracemalloc.stop()
    assert not tally.others, tally.others[:3]
    assert tally.results == 0, "a file that was cut anywhere lacks something"


def test_random_damage_is_read_or_refused() -> None:
    tally = survey({name: make() for name, make in SAMPLES.items()}, 1_000, seed=11)
    assert not tally.others, tally.others[:3]
    assert tally.results
    assert set(tally.errors) <= {"model-format", "unsupported-op", "limit", "shape", "out-of-memory"}


def test_ten_thousand_operators_import_in_linear_time() -> None:
    short = min(_chain_seconds(1_000) for _ in range(3))
    assert _chain_seconds(10_000) < 30 * short  # linear would be 10, quadratic 100


def _chain_seconds(count: int) -> float:
    w = Writer()
    x = w.input("x", (1, 4))
    w.node("ABS", [x], [y := w.tensor("t", (1, 4))])
    for i in range(count - 1):
        w.node("RELU" if i % 2 else "ABS", [y], [y := w.tensor("t", (1, 4))])
    data = w.finish(y)
    start = time.process_time()
    graph = read_model(data, "chain.tflite")
    optimize(graph)
    verify(graph)
    seconds = time.process_time() - start
    assert len(graph.nodes) == count
    return seconds


def test_too_many_tensors_are_refused_by_number() -> None:
    """A vector that names one table a hundred thousand times and once more, in a file of 400 kB."""
    b = flatbuffers.Builder(1024)
    schema.TensorStart(b)
    tensor = schema.TensorEnd(b)
    count = 100_001
    schema.SubGraphStartTensorsVector(b, count)
    for _ in range(count):
        b.PrependUOffsetTRelative(tensor)
    tensors = b.EndVector()
    schema.SubGraphStart(b)
    schema.SubGraphAddTensors(b, tensors)
    graph = schema.SubGraphEnd(b)
    schema.ModelStartSubgraphsVector(b, 1)
    b.PrependUOffsetTRelative(graph)
    graphs = b.EndVector()
    schema.ModelStart(b)
    schema.ModelAddVersion(b, 3)
    schema.ModelAddSubgraphs(b, graphs)
    b.Finish(schema.ModelEnd(b), b"TFL3")
    with pytest.raises(LimitError, match="number of tensors: needs 100001"):
        read_model(bytes(b.Output()), "many.tflite")


def test_vectors_that_share_their_bytes_are_bounded() -> None:
    """Ten thousand operators that all name one long vector of inputs."""
    b = flatbuffers.Builder(1024)
    inputs = b.CreateNumpyVector(np.zeros(100_000, np.int32))
    operators = []
    for _ in range(10_000):
        schema.OperatorStart(b)
        schema.OperatorAddInputs(b, inputs)
        operators.append(schema.OperatorEnd(b))
    schema.SubGraphStartOperatorsVector(b, len(operators))
    for operator in operators:
        b.PrependUOffsetTRelative(operator)
    vector = b.EndVector()
    schema.TensorStart(b)
    tensor = schema.TensorEnd(b)
    schema.SubGraphStartTensorsVector(b, 1)
    b.PrependUOffsetTRelative(tensor)
    tensors = b.EndVector()
    schema.SubGraphStart(b)
    schema.SubGraphAddTensors(b, tensors)
    schema.SubGraphAddOperators(b, vector)
    graph = schema.SubGraphEnd(b)
    schema.OperatorCodeStart(b)
    code = schema.OperatorCodeEnd(b)
    schema.ModelStartOperatorCodesVector(b, 1)
    b.PrependUOffsetTRelative(code)
    codes = b.EndVector()
    schema.ModelStartSubgraphsVector(b, 1)
    b.PrependUOffsetTRelative(graph)
    graphs = b.EndVector()
    schema.ModelStart(b)
    schema.ModelAddVersion(b, 3)
    schema.ModelAddOperatorCodes(b, codes)
    schema.ModelAddSubgraphs(b, graphs)
    b.Finish(schema.ModelEnd(b), b"TFL3")
    start = time.perf_counter()
    with pytest.raises(ModelFormatError, match="over and over"):
        read_model(bytes(b.Output()), "shared.tflite")
    assert time.perf_counter() - start < 5
