"""Bundles: MediaPipe's .task files and other archives of several models."""

from __future__ import annotations

import asyncio
import json
import struct
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.importers.sample_models import SAMPLES
from tests.importers.tfjs_writer import zipped

import webinfer
from webinfer.errors import InputError, LimitError, ModelFormatError
from webinfer.importers import read_model

ONE, OTHER = (make() for make in list(SAMPLES.values())[:2])


def inputs(source: Any, **options: Any) -> tuple[str, list[tuple[int, ...]]]:
    """What a session is called, and the shapes of its inputs."""

    async def loaded() -> tuple[str, list[tuple[int, ...]]]:
        with await webinfer.load(source, backend="reference", **options) as session:
            return session.name, [value.shape for value in session.inputs]

    return asyncio.run(loaded())


ALONE = {"a": inputs(ONE)[1], "b": inputs(OTHER)[1]}


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_bundle_with_one_model_is_that_model(compression: int, tmp_path: Path) -> None:
    path = tmp_path / "hand.task"
    path.write_bytes(zipped({"metadata.binarypb": b"any", "models/a.tflite": ONE}, compression))
    assert inputs(path) == ("hand", ALONE["a"])
    assert inputs(path.read_bytes())[1] == ALONE["a"]


def test_one_of_several_models_is_named(tmp_path: Path) -> None:
    path = tmp_path / "face.task"
    path.write_bytes(zipped({"a.tflite": ONE, "b.tflite": OTHER}))
    with pytest.raises(ModelFormatError, match=r"several models: a.tflite, b.tflite; name one with `member`"):
        inputs(path)
    assert inputs(path, member="b.tflite") == ("b", ALONE["b"])
    assert inputs({"a.tflite": ONE, "b.tflite": OTHER}, member="a.tflite") == ("a", ALONE["a"])
    with pytest.raises(InputError, match=r"no member 'c.tflite'; its models are a.tflite, b.tflite"):
        inputs(path, member="c.tflite")
    with pytest.raises(InputError, match="it is a single file"):
        inputs(ONE, member="a.tflite")
    with pytest.raises(InputError, match="member is 3"):
        inputs(path, member=3)


def test_models_of_bundles_inside_have_their_names_before_theirs() -> None:
    whole = zipped(
        {"hand.task": zipped({"a.tflite": ONE, "b.tflite": OTHER}), "gesture.task": zipped({"a.tflite": ONE})}
    )
    with pytest.raises(ModelFormatError, match=r"several models: gesture.task/a.tflite, hand.task/a.tflite"):
        inputs(whole)
    assert inputs(whole, member="hand.task/b.tflite") == ("b", ALONE["b"])
    assert inputs(zipped({"hand.task": zipped({"a.tflite": ONE})}))[1] == ALONE["a"]


def _resized(data: bytes, size: int) -> bytes:
    """An archive of one file whose central directory claims another size."""
    at = data.rindex(b"PK\x01\x02") + 24
    return data[:at] + struct.pack("<I", size) + data[at + 4 :]


@pytest.mark.parametrize("name", ["../a.tflite", "/a.tflite", "b/../../a.tflite", "b\\..\\a.tflite", "./a.tflite"])
def test_a_name_that_leaves_the_archive_is_a_typed_error(name: str) -> None:
    with pytest.raises(ModelFormatError, match="leaves the zip archive"):
        read_model(zipped({name: ONE}))


@pytest.mark.parametrize("size", [0, 10, 10_000_000, 2**32 - 2])
def test_a_wrong_size_is_a_typed_error(size: int) -> None:
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with pytest.raises((ModelFormatError, LimitError)):
            read_model(_resized(zipped({"a.tflite": ONE}, compression), size))


def test_bombs_inside_bundles_share_one_limit() -> None:
    """Each inner archive stays within its own ratio; together they would hold 200 times 200 times what came."""
    inner = zipped({f"{i}.tflite": bytes(2**20) for i in range(20)}, zipfile.ZIP_DEFLATED)
    bomb = zipped({f"{i}.task": inner for i in range(30)}, zipfile.ZIP_DEFLATED)
    tracemalloc.start()
    with pytest.raises(LimitError, match="bytes of the zip archive"):
        read_model(bomb)
    assert tracemalloc.get_traced_memory()[1] < 260 * len(bomb)
    tracemalloc.stop()


def test_archives_in_archives_end() -> None:
    deep = zipped({"a.tflite": ONE})
    for _ in range(9):
        deep = zipped({"x.task": deep})
    with pytest.raises(ModelFormatError, match=r"no model: x.task/x.task/x.task/x.task"):
        read_model(deep)


def test_a_bundle_may_hold_a_model_of_several_files() -> None:
    described = {
        "inputs": {"x": {"descriptor": {"shape": [2], "dataType": "float32"}}},
        "operators": [],
        "outputs": ["x"],
    }
    text = json.dumps(described).encode()
    assert inputs(zipped({"a/m.webnn.json": text, "b/a.tflite": ONE}), member="a/m.webnn.json")[1] == [(2,)]
