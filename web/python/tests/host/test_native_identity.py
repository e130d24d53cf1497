"""In CPython a plan belongs to the files of the engine that made it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from webinfer.host import native
from webinfer.host.native import NativeHost, identity_of


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    (tmp_path / "inner" / "__pycache__").mkdir(parents=True)
    for name in ("one.py", "inner/two.py", "kernels.wasm", "inner/__pycache__/two.pyc"):
        written(tmp_path / name, name)
    return tmp_path


def written(file: Path, text: str, seconds: int = 1000) -> None:
    file.write_text(text)
    os.utime(file, (seconds, seconds))


def test_it_changes_with_any_file_of_the_engine_and_with_no_compiled_module(engine: Path) -> None:
    seen = {first := identity_of([engine])}
    written(engine / "inner" / "__pycache__" / "two.pyc", "compiled again")
    assert identity_of([engine]) == first
    written(engine / "inner" / "two.py", "changed")
    seen.add(identity_of([engine]))
    written(engine / "kernels.wasm", "kernels.wasm", 1001)  # as long as before
    seen.add(identity_of([engine]))
    (engine / "one.py").rename(engine / "three.py")
    seen.add(identity_of([engine]))
    assert len(seen) == 4
    assert "" not in seen


def test_there_is_none_where_a_file_is_newer_than_what_the_process_imported(engine: Path) -> None:
    written(engine / "one.py", "new", native.STARTED_NS // 10**9 + 1)
    assert identity_of([engine]) == ""


def test_plans_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEBINFER_PLANS")
    host = NativeHost()
    assert len(host.identity()) == 16
    assert host.identity() == NativeHost().identity()
    monkeypatch.setenv("WEBINFER_PLANS", "off")
    assert host.identity() == ""
