"""TensorFlow.js models as files: shards, quantised weights, signatures, ways to hand a model over, hostile bytes."""

from __future__ import annotations

import asyncio
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.importers.test_tfjs_operators import f, run
from tests.importers.tfjs_writer import described, model, node, placeholder, zipped

import webinfer
from webinfer.errors import InputError, LimitError, ModelFormatError, ShapeError, UnsupportedOpError
from webinfer.host.interface import Progress
from webinfer.host.native import NativeHost
from webinfer.importers import files_beside, read_model

X = f(2, 3)
NODES = [placeholder("x", [-1, 3]), node("a", "Mul", "x", "w"), node("y", "AddV2", "a", "b")]
WEIGHTS = {"w": f(3), "b": f(3, low=5, high=6)}
FILES = model(NODES, WEIGHTS, cuts=(5, 13))  # shards that end within weights


def read(files: dict[str, bytes], **shapes: tuple[int, ...]) -> Any:
    return read_model(files["model.json"], shapes=shapes, files={n: memoryview(d) for n, d in files.items()})


def test_weights_may_span_shards_and_a_batch_is_bound() -> None:
    got = run(FILES, {"x": X}, shapes={"x": (2, 3)})
    np.testing.assert_allclose(got["y"], X * WEIGHTS["w"] + WEIGHTS["b"], 1e-6)
    assert read(FILES).inputs[0].type.shape == (1, 3)
    assert files_beside(FILES["model.json"]) == ("shard0.bin", "shard1.bin", "shard2.bin")


LEVELS = np.array([[0, 1, 200], [255, 7, 130]])
QUANTIZED: dict[str, tuple[Any, dict[str, Any], Any]] = {
    "uint8": (np.uint8(LEVELS), {"dtype": "uint8", "scale": 0.1, "min": -7.3}, np.float32(LEVELS * 0.1 - 7.3)),
    "uint16": (
        np.uint16(LEVELS * 200),
        {"dtype": "uint16", "scale": 1e-3, "min": 2},
        np.float32(LEVELS * 200 * 1e-3 + 2),
    ),
    "float16": (np.float16(LEVELS / 7), {"dtype": "float16"}, np.float32(np.float16(LEVELS / 7))),
    "int32": (
        np.uint8(LEVELS),
        {"dtype": "uint8", "scale": 0.5, "min": -4, "of": "int32"},
        np.floor(LEVELS * 0.5 - 3.5),
    ),
}


@pytest.mark.parametrize("kind", QUANTIZED)
def test_quantised_weights_have_the_numbers_that_tensorflow_js_gives_them(kind: str) -> None:
    levels, quantization, wanted = QUANTIZED[kind]
    many = np.tile(levels, (40, 1))
    nodes = [
        placeholder("x", []),
        node("y", "Mul", "few", "x"),
        node("z", "Mul", "many", "x"),
        node("n", "Neg", "last"),
    ]
    weights = {"few": levels, "many": many, "last": np.float32(3)}
    files = model(nodes, weights, {"few": dict(quantization), "many": dict(quantization)})
    got = run(files, {"x": np.float32(1).reshape(())})
    np.testing.assert_array_equal(got["y"], wanted)
    np.testing.assert_array_equal(got["z"], np.tile(wanted, (40, 1)))
    assert got["n"] == -3


def test_inputs_and_outputs_have_the_names_of_the_signature_or_of_the_nodes() -> None:
    tensor = {"name": "x:0", "tensorShape": {"dim": [{"size": "2"}, {"size": "3"}]}}
    signature = {"inputs": {"picture:0": tensor}, "outputs": {"scores": {"name": "y:0"}, "a:0": {"name": "a:0"}}}
    for more in ({"signature": signature}, {"userDefinedMetadata": {"signature": signature}}):
        graph = read(model(NODES, WEIGHTS, **more))
        assert [v.name for v in graph.inputs] == ["picture"]
        assert graph.inputs[0].type.shape == (2, 3)  # the usual size, where the node leaves it open
        assert [v.name for v in graph.outputs] == ["scores", "a"]
    assert [v.name for v in read(FILES).outputs] == ["y"]  # what no node reads


def test_only_what_the_outputs_need_is_read() -> None:
    signature = {"outputs": {"a": {"name": "a"}}}
    nodes = [*NODES, placeholder("u", [7]), node("strange", "DecodeJpeg", "u"), node("c", "AddV2", "y", "strange")]
    graph = read(model(nodes, WEIGHTS, signature=signature))
    assert [n.op.name for n in graph.nodes] == ["mul"]
    assert [v.name for v in graph.inputs] == ["x"]


def test_open_sizes_are_bound_by_name() -> None:
    files = model([placeholder("x", [-1, -1, 3]), node("y", "Neg", "x")])
    with pytest.raises(ShapeError, match=r"leaves sizes of inputs open: x \(\?, \?, 3\); bind them with `shapes`"):
        read(files)
    assert read(files, x=(2, 5, 3)).outputs[0].type.shape == (2, 5, 3)
    with pytest.raises(ShapeError, match="cannot have shape"):
        read(files, x=(2, 5, 4))


def test_everything_that_is_lacking_is_in_one_error() -> None:
    nodes = [
        placeholder("x", [3]),
        node("p", "DecodeJpeg", "x"),
        node("q", "Unknown", "x"),
        node("y", "AddV2", "p", "q"),
    ]
    with pytest.raises(UnsupportedOpError) as caught:
        read(model(nodes))
    assert [line.partition(" (")[0] for line in caught.value.problems] == [
        "DecodeJpeg: not supported",
        "Unknown: not supported",
    ]


def test_strings_are_refused_where_they_are_used() -> None:
    files = model([node("y", "Identity", "s"), node("z", "Neg", "n")], {"n": np.float32(2)})
    manifest = described(files)
    manifest["weightsManifest"][0]["weights"].insert(0, {"name": "s", "dtype": "string", "shape": [2]})
    manifest["modelTopology"]["node"].append({"name": "s", "op": "Const"})
    words = b"".join(len(w).to_bytes(4, "little") + w for w in (b"one", b"eleven"))
    changed = {"model.json": json.dumps(manifest).encode(), "shard0.bin": words + files["shard0.bin"]}
    with pytest.raises(UnsupportedOpError, match="Const: weights of type string"):
        read(changed)
    manifest["signature"] = {"outputs": {"z": {"name": "z"}}}
    assert run({**changed, "model.json": json.dumps(manifest).encode()})["z"] == -2


# ---- ways to hand a model over


def _folder(path: Path) -> Any:
    for name, data in FILES.items():
        (path / name).write_bytes(data)
    return path


def _zip(path: Path) -> Any:
    (path / "m.zip").write_bytes(zipped({f"deep/{name}": data for name, data in FILES.items()}, zipfile.ZIP_DEFLATED))
    return str(path / "m.zip")


WAYS: dict[str, Callable[[Path], Any]] = {
    "folder": _folder,
    "folder as text": lambda path: f"{_folder(path)}/",
    "path": lambda path: str(_folder(path) / "model.json"),
    "zip": _zip,
    "bytes of a zip": lambda path: zipped(FILES),
    "mapping": lambda path: dict(FILES),
    "mapping with folders": lambda path: {f"a/b/{name}": bytearray(data) for name, data in FILES.items()},
    "other name": lambda path: {
        **{n: d for n, d in FILES.items() if n != "model.json"},
        "age.json": FILES["model.json"],
    },
}


@pytest.mark.parametrize("way", WAYS)
def test_a_model_of_several_files_is_handed_over(way: str, tmp_path: Path) -> None:
    source = WAYS[way](tmp_path)

    async def loaded() -> Any:
        with await webinfer.load(source, backend="reference") as session:
            return session.name, (await session.run({"x": X[:1]}))["y"].numpy().copy()

    name, got = asyncio.run(loaded())
    np.testing.assert_allclose(got, X[:1] * WEIGHTS["w"] + WEIGHTS["b"], 1e-6)
    assert name == (tmp_path.name if way in ("folder", "folder as text", "path") else "m" if way == "zip" else "model")


class _Web(NativeHost):
    """A host whose network knows the files of one folder."""

    asked: list[str]

    async def fetch(self, url: str, progress: Progress | None = None, fresh: bool = False) -> memoryview:
        self.asked.append(url)
        return memoryview(FILES[url.partition("?")[0].removeprefix("https://models.test/age/")])


@pytest.mark.parametrize("url", ["https://models.test/age/model.json?tfjs-format=file", "https://models.test/age/"])
def test_shards_are_fetched_beside_the_url_of_the_model(url: str) -> None:
    host = _Web()
    host.asked = []

    async def loaded() -> Any:
        with await webinfer.load(url, backend="reference", host=host) as session:
            return session.name, (await session.run({"x": X[:1]}))["y"].numpy().copy()

    name, got = asyncio.run(loaded())
    assert name == "age"
    np.testing.assert_allclose(got, X[:1] * WEIGHTS["w"] + WEIGHTS["b"], 1e-6)
    query = url.partition("?")[2] and "?tfjs-format=file"  # which TF Hub asks for with the shards, too
    assert host.asked[1:] == [f"https://models.test/age/shard{i}.bin{query}" for i in range(3)]


def test_a_model_of_one_file_may_be_zipped_too() -> None:
    from tests.importers.sample_models import residual

    assert read_model(zipped({"notes.txt": b"hello", "net.tflite": residual()})).nodes


# ---- hostile bytes


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "holds no model: nothing"),
        ({"a.bin": b"x"}, "holds no model: a.bin"),
        ({"a/model.json": b"{}", "b/model.json": b"{}"}, "holds several models: a/model.json, b/model.json"),
    ],
)
def test_files_without_one_model_are_listed(files: dict[str, bytes], words: str) -> None:
    for source in (files, zipped({**files, "note": b""}) if files else files):
        with pytest.raises(ModelFormatError, match=words):
            asyncio.run(webinfer.load(source, backend="reference"))


def test_a_mapping_of_something_else_is_refused() -> None:
    with pytest.raises(InputError, match="names that are not text"):
        asyncio.run(webinfer.load({1: b"x"}))
    with pytest.raises(ModelFormatError, match="cannot be read from a str"):
        asyncio.run(webinfer.load({"model.json": "text"}))


@pytest.mark.parametrize(
    "path", ["../out.bin", "/etc/passwd", "https://other.test/w.bin", "a\\b.bin", "a/../../b", "", "x" * 300]
)
def test_a_shard_outside_of_the_folder_is_refused(path: str, tmp_path: Path) -> None:
    manifest = described(FILES)
    manifest["weightsManifest"][0]["paths"][0] = path
    (tmp_path / "model.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelFormatError, match="which is outside its folder"):
        asyncio.run(webinfer.load(tmp_path, backend="reference"))


def test_shards_that_are_missing_short_or_long_are_typed_errors() -> None:
    with pytest.raises(ModelFormatError, match=r"in a separate file, shard1.bin, which was not given"):
        read({name: data for name, data in FILES.items() if name != "shard1.bin"})
    with pytest.raises(ModelFormatError, match="weight b needs 12 bytes, its files have 11 left"):
        read({**FILES, "shard2.bin": FILES["shard2.bin"][:-1]})
    with pytest.raises(ModelFormatError, match=r"1 bytes of shard0.bin, shard1.bin, shard2.bin belong to no weight"):
        read({**FILES, "shard2.bin": FILES["shard2.bin"] + b"x"})


def _changed(change: Callable[[Any, Any], Any]) -> dict[str, bytes]:
    manifest = described(FILES)
    change(manifest, manifest["weightsManifest"][0]["weights"])
    return {**FILES, "model.json": json.dumps(manifest).encode()}


CHANGES: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "negative size": (lambda m, w: w[0].update(shape=[-3]), "its shape"),
    "size that is not a number": (lambda m, w: w[0].update(shape=["3"]), "must hold nothing but int"),
    "huge": (lambda m, w: w[0].update(shape=[2**40, 0]), "bytes of shape"),
    "rank": (lambda m, w: w[0].update(shape=[1] * 99), "rank"),
    "twice": (lambda m, w: w.append(dict(w[0])), "is there twice"),
    "type": (lambda m, w: w[0].update(dtype="float8"), "which the format lacks"),
    "levels": (lambda m, w: w[0].update(quantization={"dtype": "int4"}), "is not known"),
    "scale": (lambda m, w: w[0].update(quantization={"dtype": "uint8", "scale": "1", "min": 0}), "must be numbers"),
    "nodes": (lambda m, w: m["modelTopology"].update(node={}), "'node' is a dict"),
    "names": (lambda m, w: m["modelTopology"]["node"].append({"name": "x", "op": "Neg"}), "two nodes"),
    "attributes": (lambda m, w: m["modelTopology"]["node"][2].update(attr=[1]), "'attr' is a list"),
    "attribute": (lambda m, w: m["modelTopology"]["node"][2]["attr"].update(dtype=3), "unexpected type or value"),
    "nothing": (lambda m, w: m["modelTopology"].update(node=[]), "has no outputs"),
    "no weight": (lambda m, w: m["modelTopology"]["node"].append({"name": "k", "op": "Const", "input": []}), ""),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_manifest_or_a_topology_that_breaks_a_rule_is_a_typed_error(name: str) -> None:
    change, words = CHANGES[name]
    if not words:
        assert read(_changed(change)).nodes  # nothing needs it
        return
    with pytest.raises((ModelFormatError, LimitError), match=words):
        read(_changed(change))


def test_a_zip_bomb_is_not_unpacked() -> None:
    bomb = zipped({"model.json": bytes(30 * 2**20)}, zipfile.ZIP_DEFLATED)
    with pytest.raises(LimitError, match="bytes of the zip archive"):
        read_model(bomb)


def test_a_damaged_or_doubled_archive_is_a_typed_error() -> None:
    whole = zipped(FILES)
    with pytest.raises(ModelFormatError, match="damaged"):
        read_model(whole[:-9])
    with pytest.raises(ModelFormatError, match="damaged"):
        read_model(whole.replace(FILES["shard0.bin"], b"12345"))
    with pytest.raises(ModelFormatError, match="twice"):
        read_model(zipped({**FILES, "shard0.bi0": b"-----"}).replace(b"shard0.bi0", b"shard0.bin"))
