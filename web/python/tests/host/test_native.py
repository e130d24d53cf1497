"""The files and the storage of the CPython host."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from webinfer.errors import ModelFormatError, OutOfMemoryError
from webinfer.host import kernels_native
from webinfer.host.native import NativeHost
from webinfer.models.registry import MODELS, locate_model

FILE = MODELS["face_mesh"].file


def test_listed_folders_are_searched_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in "bc":
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.tflite").write_bytes(folder.encode())
    monkeypatch.setenv("WEBINFER_MODELS", os.pathsep.join(str(tmp_path / name) for name in "abc"))
    assert NativeHost().asset("models/x.tflite") == str(tmp_path / "b" / "x.tflite")
    assert NativeHost().asset("models/y.tflite", "models/x.tflite") == str(tmp_path / "b" / "x.tflite")


def test_a_model_is_found_under_its_file_or_its_own_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBINFER_MODELS", str(tmp_path))
    (tmp_path / "face_mesh.tflite").write_bytes(b"own")
    assert locate_model("face_mesh", NativeHost().asset) == str(tmp_path / "face_mesh.tflite")
    (tmp_path / FILE).write_bytes(b"published")
    assert locate_model("face_mesh", NativeHost().asset) == str(tmp_path / FILE)


def test_a_missing_model_is_named_with_its_folders_and_its_source() -> None:
    def nowhere(*names: str) -> str:
        return NativeHost().asset(*(f"no{name}" for name in names))

    with pytest.raises(ModelFormatError, match=f"'face_mesh' .npm @mediapipe/face_mesh.: {FILE} is not in .*nomodels"):
        locate_model("face_mesh", nowhere)


def test_what_is_remembered_is_recalled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    async def there_and_back() -> tuple[str | None, str | None]:
        host = NativeHost()
        await host.remember("note", "häh")
        return await host.recall("note"), await host.recall("nothing")

    assert asyncio.run(there_and_back()) == ("häh", None)


def test_kernel_memory_that_cannot_be_had_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise kernels_native.wasmtime.WasmtimeError("mmap failed")

    monkeypatch.setattr(kernels_native.wasmtime, "Memory", refused)
    with pytest.raises(OutOfMemoryError, match=r"no address space for kernel memory \(mmap failed\)"):
        asyncio.run(NativeHost().kernels())
