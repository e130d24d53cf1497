"""Who can write the cache folder cannot make a process run code; what is stored is the user's alone."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from webinfer.host import cache_folder
from webinfer.host.cache_folder import recall, remember
from webinfer.host.checksums import sealed

posix = pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Path]]:
    """The cache folder and the file of the key, neither of which is there."""
    monkeypatch.delenv("WEBINFER_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    cache_folder._key.cache_clear()
    cache_folder._told.cache_clear()
    yield tmp_path / "cache" / "webinfer", tmp_path / "config" / "webinfer" / "cache.key"
    cache_folder._key.cache_clear()


def kept(name: str) -> bytes | None:
    found = recall(name)
    return None if found is None else bytes(found)


def test_what_is_stored_comes_back_by_its_name_only(places: tuple[Path, Path]) -> None:
    folder, _ = places
    remember("code.1", b"machine code")
    remember("code.2", b"other code")
    assert (kept("code.1"), kept("code.2"), kept("code.3")) == (b"machine code", b"other code", None)
    (folder / "code.1").write_bytes((folder / "code.2").read_bytes())  # swapped
    assert kept("code.1") is None
    assert not (folder / "code.1").exists()


def test_a_checksum_without_the_key_does_not_do(places: tuple[Path, Path], caplog: pytest.LogCaptureFixture) -> None:
    folder, key = places
    remember("code.1", b"good")
    (folder / "code.1").write_bytes(sealed(b"evil"))  # as versions before this one stored it
    assert kept("code.1") is None
    assert not caplog.records  # an update is not an alarm
    stored = cache_folder.MAGIC + cache_folder._code(b"guess" * 6, "code.1", memoryview(b"evil")) + b"evil"
    (folder / "code.1").write_bytes(stored)
    assert kept("code.1") is None
    assert "not of this user" in caplog.text
    assert key.stat().st_size == 32


@posix
def test_the_folder_and_the_key_are_closed_to_others(places: tuple[Path, Path]) -> None:
    folder, key = places
    folder.mkdir(parents=True, mode=0o777)
    folder.chmod(0o777)
    remember("x", b"1")
    assert kept("x") == b"1"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(key.stat().st_mode) == 0o600


@posix
def test_a_folder_or_a_key_of_another_user_is_not_used(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    remember("x", b"1")
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    remember("x", b"2")
    assert kept("x") is None
    assert "belongs to another user" in caplog.text
    monkeypatch.setattr(os, "geteuid", lambda: own)
    assert kept("x") == b"1"
    places[1].chmod(0o644)
    cache_folder._key.cache_clear()
    assert kept("x") is None


@pytest.mark.parametrize("said", ["off", "OFF", "0"])
def test_the_cache_can_be_switched_off_or_moved(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str
) -> None:
    monkeypatch.setenv("WEBINFER_CACHE", said)
    remember("x", b"1")
    assert kept("x") is None
    assert not places[0].exists()
    monkeypatch.setenv("WEBINFER_CACHE", str(tmp_path / "own"))
    remember("x", b"1")
    assert kept("x") == b"1"
    assert (tmp_path / "own" / "x").is_file()


def test_no_place_for_a_key_means_that_nothing_is_stored(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/dev/null")
    remember("x", b"1")
    assert kept("x") is None


def test_what_was_not_used_for_longest_goes_when_a_kind_has_too_many_or_too_large_files(
    places: tuple[Path, Path],
) -> None:
    folder, _ = places
    remember("other", bytes(5000))
    for i in range(4):
        remember(f"plan-{i}", bytes(1000), "plan-", kept=4, kept_bytes=10_000)
        os.utime(folder / f"plan-{i}", (i, i))
    assert kept("plan-0") is not None  # used now
    remember("plan-4", bytes(1000), "plan-", kept=4, kept_bytes=10_000)
    assert sorted(file.name for file in folder.iterdir()) == ["other", "plan-0", "plan-2", "plan-3", "plan-4"]
    os.utime(folder / "plan-0", (10, 10))
    remember("plan-5", bytes(2000), "plan-", kept=4, kept_bytes=3_500)
    assert sorted(file.name for file in folder.iterdir()) == ["other", "plan-4", "plan-5"]
