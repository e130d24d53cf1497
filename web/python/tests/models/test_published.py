"""Models out of packages of the index: pip fetches them once, checked, with progress; a failure says what to do."""

from __future__ import annotations

import asyncio
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.ops.case_graphs import run
from tests.session.test_session import model

from webinfer.errors import IntegrityError, ModelFormatError
from webinfer.host import published_files
from webinfer.host.interface import ProgressEvent
from webinfer.host.native import NativeHost

PACKAGE = {"requirement": "tiny-models==1.0", "megabytes": 0.01, "platform": "any", "python": "3.11"}


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A package with two files on an index of this machine, and an empty cache folder."""
    wheel = tmp_path / "index" / "tiny_models-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    info = "tiny_models-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny/a.tflite", model())
        archive.writestr("tiny/b.json", b"[1]")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-models\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    import hashlib

    table = {
        "files": {"a.tflite": ["tiny", "tiny/a.tflite"], "b.json": ["tiny", "tiny/b.json"]},
        "packages": {"tiny": {**PACKAGE, "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest()}},
    }
    monkeypatch.setattr(published_files, "table", lambda: table)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("WEBINFER_MODELS", raising=False)
    return table


def test_a_model_comes_once_with_progress_and_is_kept(shelf: dict[str, Any], tmp_path: Path) -> None:
    host, told = NativeHost(), list[ProgressEvent]()
    address = host.asset("models/a.tflite")
    assert bytes(run(host.fetch(address, told.append))) == model()
    assert told[-1].done == told[-1].total == 10_000
    shelf["packages"]["tiny"]["requirement"] = "no-such-package==1.0"
    assert bytes(run(host.fetch(address))) == model(), "kept"
    assert bytes(run(host.fetch(host.asset("models/b.json")))) == b"[1]", "what came with it is kept too"
    with pytest.raises(ModelFormatError, match=r"no-such-package.*WEBINFER_MODELS"):
        run(host.fetch(address, fresh=True))


def test_two_that_ask_at_once_both_get_it(shelf: dict[str, Any], tmp_path: Path) -> None:
    async def both() -> list[bytes]:
        found = await asyncio.gather(NativeHost().fetch("published:a.tflite"), NativeHost().fetch("published:a.tflite"))
        return [bytes(data) for data in found]

    assert asyncio.run(both()) == [model(), model()]
    kept = {file.name for file in (tmp_path / "cache").rglob("*") if file.is_file()}
    assert kept == {"published-a.tflite", "published-b.json"}


def test_a_full_disk_is_told_by_its_name(shelf: dict[str, Any]) -> None:
    shelf["packages"]["tiny"] |= {"requirement": "no-such-package==1.0", "megabytes": 1e9}
    with pytest.raises(ModelFormatError, match=r"MB are free in .*; TMPDIR names another folder"):
        run(NativeHost().fetch("published:a.tflite"))


def test_what_is_kept_and_was_damaged_is_fetched_again(shelf: dict[str, Any], tmp_path: Path) -> None:
    host = NativeHost()
    address = host.asset("models/a.tflite")
    run(host.fetch(address))
    (kept,) = (tmp_path / "cache").rglob("published-a.tflite")
    kept.write_bytes(kept.read_bytes()[:-1] + b"?")
    assert bytes(run(host.fetch(address))) == model()


def test_a_package_with_another_hash_is_refused(shelf: dict[str, Any]) -> None:
    shelf["packages"]["tiny"]["sha256"] = "0" * 64
    with pytest.raises(IntegrityError, match="another SHA-256"):
        run(NativeHost().fetch("published:a.tflite"))


def test_every_file_of_the_wheels_table_is_one_that_the_registry_knows() -> None:
    from build_scripts.setup.published import published
    from webinfer.models.registry import MODELS

    known = {row.file for row in MODELS.values()} | {file for row in MODELS.values() for file, _ in row.beside}
    table = json.loads(json.dumps(published()))
    assert set(table["files"]) <= known
    assert {"face_detection_short_range.tflite", "magika_standard_v3_3.json"} <= set(table["files"])
    assert {name for name, _ in table["files"].values()} == set(table["packages"])
