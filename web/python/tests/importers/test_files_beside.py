"""Files beside a model, however they are called, and what is said of files that are not weights or no models."""

from __future__ import annotations

import gzip
import json
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import webinfer  # noqa: E402
from webinfer.errors import ModelFormatError  # noqa: E402
from webinfer.host.urls import beside  # noqa: E402
from webinfer.importers import formats  # noqa: E402
from webinfer.importers.core.files_beside import plain_name  # noqa: E402

WEIGHTS = np.arange(12, dtype=np.float32).reshape(4, 3)
X = np.eye(2, 4, dtype=np.float32)


def model_of(location: str) -> bytes:
    """MatMul by weights that lie in a file of this name."""
    tensor = numpy_helper.from_array(WEIGHTS, "w")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", location
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [value("x", 1, [2, 4])], [value("y", 1, None)], [tensor]
    )
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    return bytes(model.SerializeToString())


def run(source: Any) -> Any:
    with webinfer.load_sync(source, backend="reference") as session:
        return session.run(X)["y"].numpy()


@pytest.mark.parametrize("name", ["w.bin", "./w.bin", "a/../w.bin", "./a//w.bin", "a/./w.bin"])
def test_a_file_is_found_however_its_name_is_written(name: str, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "m.onnx").write_bytes(model_of(name))
    (tmp_path / plain_name(name)).write_bytes(WEIGHTS.tobytes())
    assert np.array_equal(run(tmp_path / "m.onnx"), X @ WEIGHTS)
    for key in (plain_name(name), name):
        assert np.array_equal(run({"m.onnx": model_of(name), key: WEIGHTS.tobytes()}), X @ WEIGHTS)


@pytest.mark.parametrize("name", ["../w.bin", "a/../../w.bin", "/w.bin", "a\\w.bin", "..", "", "c:w.bin", "x" * 300])
def test_a_name_outside_of_the_folder_is_refused(name: str) -> None:
    with pytest.raises(ModelFormatError, match="outside its folder"):
        formats.files_beside(memoryview(model_of(name)), "m")
    with pytest.raises(ModelFormatError, match="outside its folder"):
        run({"m.onnx": model_of(name), name or "w.bin": WEIGHTS.tobytes()})


def test_queries_of_addresses_follow_the_files_they_may_be_for() -> None:
    sas = "https://a.test/f/m.onnx?sv=1&sig=x#part"
    assert beside(sas, "w.bin") == "https://a.test/f/w.bin?sv=1&sig=x"
    assert beside(sas, "w.bin?sig=own") == "https://a.test/f/w.bin?sig=own"
    assert beside("https://a.test/m.onnx?X-Amz-Signature=x", "w.bin") == "https://a.test/w.bin"
    assert beside("https://a.test/m?Policy=p&Signature=s&Key-Pair-Id=k", "w").endswith("Signature=s&Key-Pair-Id=k")
    assert beside("m.onnx", "w.bin") == "w.bin"
    name = "a//w.bin?sig=x"
    assert formats.files_beside(memoryview(model_of(name)), "m") == ("a/w.bin?sig=x",)
    assert np.array_equal(run({"m.onnx": model_of(name), "a/w.bin": WEIGHTS.tobytes()}), X @ WEIGHTS)


def test_a_tensorflowjs_model_may_have_a_byte_order_mark_and_dots_before_its_shards() -> None:
    kind, shape = {"type": "DT_FLOAT"}, {"dim": [{"size": "4"}]}
    tensor = {"dtype": "DT_FLOAT", "tensorShape": shape}
    nodes = [
        {"name": "x", "op": "Placeholder", "attr": {"dtype": kind, "shape": {"shape": shape}}},
        {"name": "w", "op": "Const", "attr": {"dtype": kind, "value": {"tensor": tensor}}},
        {"name": "y", "op": "AddV2", "input": ["x", "w"], "attr": {"T": kind}},
    ]
    manifest = [{"paths": ["./1.bin", "b//2.bin"], "weights": [{"name": "w", "shape": [4], "dtype": "float32"}]}]
    described = {"modelTopology": {"node": nodes, "versions": {"producer": 1}}, "weightsManifest": manifest}
    raw, text = X[0].tobytes(), b"\xef\xbb\xbf" + json.dumps(described).encode()
    files = {"model.json": text, "1.bin": raw[:6], "b/2.bin": raw[6:]}
    with webinfer.load_sync(files, backend="reference") as session:
        assert session.run(X[1])["y"].tolist() == (X[0] + X[1]).tolist()


HTML = b"<!doctype html><title>My app</title>".ljust(48)
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 48\n"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (HTML, "web page"), (b"\n  <html>".ljust(48), "web page"), (POINTER, "Git LFS pointer"),
        (gzip.compress(WEIGHTS.tobytes() + bytes(range(200))), "gzip-compressed"),
        (json.dumps({"error": "no such key", "request": "0123456789"}).encode().ljust(48), "error message"),
    ],
)  # fmt: skip
def test_other_files_do_not_become_weights(data: bytes, said: str) -> None:
    with pytest.raises(ModelFormatError, match=rf"w\.bin, which should contain tensor w, is .*{said}"):
        run({"m.onnx": model_of("w.bin"), "w.bin": data})


@pytest.mark.parametrize("first", [b"\x1f\x8b\x08\x00", b"\x1f\x8b\x00\x00", b"{\x22ab", b"<htm", b"vers"])
def test_weights_that_begin_like_other_files_stay_weights(first: bytes) -> None:
    weights = first + WEIGHTS.tobytes()[4:]
    expected = X @ np.frombuffer(weights, np.float32).reshape(4, 3)
    assert np.array_equal(run({"m.onnx": model_of("w.bin"), "w.bin": weights}), expected, equal_nan=True)


def zipped(*names: str) -> bytes:
    data = BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name in names:
            archive.writestr(name, b"\x80\x02")
    return data.getvalue()


NODE = b"\x0a\x08\x0a\x01x\x12\x03Add"
OTHERS = {
    ".ort": (b"\x18\0\0\0ORTM" + bytes(200), "ONNX Runtime .*load the .onnx file"),
    "safetensors": (b'\x40\0\0\0\0\0\0\0{"w":{}}'.ljust(80), "safetensors"),
    "PyTorch zip": (zipped("archive/data.pkl", "archive/version"), "PyTorch checkpoint.*torch.onnx.export"),
    "Keras zip": (zipped("config.txt", "model.weights.h5"), "Keras"),
    "SavedModel zip": (zipped("saved_model.pb", "variables/variables.index"), "SavedModel"),
    "npz": (zipped("w.npy"), "NumPy arrays"),
    "saved_model.pb": (b"\x08\x01\x12\x0b\n\t\x12\x07\n\x05\n\x03Add", "TensorFlow SavedModel.*convert"),
    "frozen graph": (NODE + b"\x22\x02\x08\x1b", "frozen TensorFlow graph"),
    "Core ML": (b"\x08\x05\x12\x06\n\x04\n\x02xy\xa2\x1f\x02\n\0", "Core ML model"),
    ".litertlm": (b"LITERTLM" + bytes(100), "LiteRT-LM.*GGUF"),
    "ExecuTorch": (b"\x30\0\0\0ET12" + bytes(100), "ExecuTorch"),
    "OpenVINO": (b'<?xml version="1.0"?><net name="m" version="11"></net>', "OpenVINO"),
    "HDF5": (b"\x89HDF\r\n\x1a\n" + bytes(100), "HDF5 file .Keras"),
    "config.json": (b'{"model_type": "bert"}', "Hugging Face config.json"),
    "tar": (bytes(257) + b"ustar" + bytes(200), "tar archive"),
    "npy": (b"\x93NUMPY\x01\x00" + bytes(80), "NumPy array"),
    "ONNX without a graph": (b"\x08\x08\x12\x01a\x1a\x01b", "0 graphs"),
    **{f"pickle {n}": (bytes([0x80, n]) + bytes(50), "Python pickle") for n in (2, 3, 4, 5)},
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_formats_are_named_with_a_way_on(name: str) -> None:
    data, said = OTHERS[name]
    with pytest.raises(ModelFormatError, match=said) as error:
        webinfer.load_sync(data, backend="reference")
    assert "damaged" not in str(error.value) or name == "ONNX without a graph"
