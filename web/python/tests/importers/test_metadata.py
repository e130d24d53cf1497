"""What the writers of model files leave in them in words."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import flatbuffers
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402
from tests.importers.sample_models import residual  # noqa: E402
from tests.ops.case_graphs import run  # noqa: E402

import webinfer  # noqa: E402
from webinfer.importers import metadata  # noqa: E402


def onnx_model(shape: list[int | str], **properties: str) -> bytes:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    helper.set_model_props(model, properties)
    return bytes(model.SerializeToString())


def test_a_session_tells_the_properties_of_an_onnx_file() -> None:
    async def told(model: object) -> dict[str, str]:
        with await webinfer.load(model, backend="wasm") as session:
            return dict(session.metadata)

    assert run(told(onnx_model([1, 4], task="detect", names="{0: 'ä'}"))) == {"task": "detect", "names": "{0: 'ä'}"}
    assert run(told(onnx_model([1, 4]))) == {}
    builder = webinfer.GraphBuilder()
    builder.output(builder.node("relu", builder.input("x", (1, 4))), "y")
    assert run(told(builder)) == {}


def test_sizes_that_a_converter_does_not_know_are_no_names() -> None:
    async def shapes() -> list[tuple[object, ...]]:
        with await webinfer.load(onnx_model([1, "?", "?"]), shapes={"x": (1, 2, 3)}, backend="wasm") as session:
            return [session.inputs[0].shape]

    assert run(shapes()) == [(1, 2, 3)]


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("metadata.json", '{"task": "pose", "stride": 32, "names": {"0": "person"}}',
         {"task": "pose", "stride": "32", "names": "{'0': 'person'}"}),
        ("temp_meta.txt", "{'task': 'detect', 'imgsz': [320, 320]}", {"task": "detect", "imgsz": "[320, 320]"}),
        ("labels.txt", "cat\ndog\n", {"labels.txt": "cat\ndog\n"}),
        ("broken.json", "{task", {"broken.json": "{task"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("whole", [True, False])
def test_files_appended_to_a_tflite_model_are_read(file: str, content: str, told: dict[str, str], whole: bool) -> None:
    model = bytes(residual())
    buffer = io.BytesIO(model if whole else b"")
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(file, content)
    data = buffer.getvalue() if whole else model + buffer.getvalue()  # offsets count from the file's start, or not
    assert metadata(data) == told
    assert metadata(model) == {}
    assert metadata(data[:-3]) == {}
    damaged = bytearray(data)
    damaged[len(model) + 2] ^= 0xFF
    assert metadata(bytes(damaged)) == {}


def scores_from(least: float) -> bytes:
    """A TFLite model whose metadata says that its output's classes count from this score on."""
    b = flatbuffers.Builder(0)

    def table(**slots: Any) -> int:
        b.StartObject(8)
        for slot, (write, value, default) in slots.items():
            write(int(slot[1:]), value, default)
        return int(b.EndObject())

    def tables(*rows: int) -> int:
        b.StartVector(4, len(rows), 4)
        for row in reversed(rows):
            b.PrependUOffsetTRelative(row)
        return int(b.EndVector())

    def link(value: int) -> tuple[Any, int, int]:
        return b.PrependUOffsetTRelativeSlot, value, 0

    options = table(_0=(b.PrependFloat32Slot, least, 0.0))
    unit = table(_0=(b.PrependUint8Slot, 3, 0), _1=link(options))
    output = table(_4=link(tables(unit)))
    graph = table(_3=link(tables(output)))
    b.Finish(table(_3=link(tables(graph))), b"M001")
    told, b = bytes(b.Output()), flatbuffers.Builder(0)
    data, name = b.CreateByteVector(told), b.CreateString("TFLITE_METADATA")
    buffers = tables(table(_0=link(data)))
    rows = tables(table(_0=link(name), _1=(b.PrependUint32Slot, 0, 0)))
    b.Finish(table(_4=link(buffers), _6=link(rows)), b"TFL3")
    return bytes(b.Output())


def test_the_score_from_which_classes_count_is_read_of_a_tflite_file() -> None:
    model = scores_from(0.625)
    assert metadata(model) == {"score_threshold": "0.625"}
    assert metadata(bytes(residual())) == {}
    for at in range(8, len(model), 3):  # damaged bytes say something else, or nothing
        damaged = bytearray(model)
        damaged[at] ^= 0xFF
        assert len(metadata(bytes(damaged))) <= 1
